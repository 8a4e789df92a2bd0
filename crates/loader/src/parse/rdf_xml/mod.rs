//! The parser of RDF/XML: a stream of statements and errors, each with its place.
//!
//! ```text
//! bytes -> encoding -> markup: tags and texts -> tag: names, attributes -> a stack of open elements -> statements
//! ```
//!
//! The stack alternates between nodes and properties, as the grammar does (RDF/XML, 7.2): a frame
//! knows its base, its language and what it makes when it is closed. A text is all that stands in
//! an element but comments and processing instructions.
//!
//! A parser of our own because `oxrdfxml` (0.2.5) knows no places, goes on in a wrong state behind
//! an error, and takes a text in pieces for its last piece. It is compared with it in `tests`.
//!
//! **What is left out.** Where wrong statements are skipped, a property goes with all that stands
//! in it, and so does a node that no property has; statements are held until the outermost node is
//! closed, so that none is given of what turns out to be wrong. Behind what is not well formed
//! nothing is read.
//!
//! Cost: as its statements, about 1 µs each.

mod attributes;
mod elements;
mod encoding;
mod fault;
mod frame;
mod markup;
mod namespaces;
mod scope;
mod tag;
#[cfg(test)]
mod tests;

pub(crate) use encoding::in_utf8;
pub(crate) use fault::{Fault, Position};

use crate::parse::held::{InParts, quad_bytes};
use crate::parse::iris::Iris;
use frame::{Frame, Kind};
use hashbrown::HashSet;
use markup::{Ended, Markup, Token};
use namespaces::Namespaces;
use orrery_term::Prefixes;
use oxrdf::{Quad, Triple};
use scope::{Scope, XML};
use std::collections::{HashMap, VecDeque};
use std::io;

/// How a text is read.
#[derive(Debug, Clone)]
pub(crate) struct Reading<'b> {
    pub(crate) base_iri: Option<&'b str>,
    pub(crate) iris: Iris,
    /// Whether wrong statements are left out; what may be held then.
    pub(crate) skips_within_bytes: Option<usize>,
}

/// What a text has that is no statement.
#[derive(Debug)]
pub(crate) enum Problem {
    Input(io::Error),
    Fault(Fault),
}

/// The statements of a text.
pub(crate) struct RdfXmlReader<R> {
    markup: Markup<R>,
    /// The text of the token, kept for its room.
    token: String,
    written: Vec<tag::Written>,
    /// Open elements; the first is the document.
    frames: Vec<Frame>,
    namespaces: Namespaces,
    /// Those that are written where the reader is in an XML literal.
    written_namespaces: Namespaces,
    prefixes: Prefixes,
    entities: HashMap<String, String>,
    ids: HashSet<String>,
    iris: Iris,
    held_bytes_max: Option<usize>,
    ready: VecDeque<Quad>,
    /// Those of the outermost node that is open, where wrong statements are skipped.
    held: Vec<Quad>,
    held_bytes: usize,
    problem: Option<Problem>,
    has_element: bool,
    has_token: bool,
    is_at_end: bool,
}

impl<R: InParts> RdfXmlReader<R> {
    /// Reads a text in UTF-8.
    pub(crate) fn new(input: R, reading: Reading<'_>) -> io::Result<Self> {
        let scope = Scope::of_document(reading.base_iri)?;
        let mut namespaces = Namespaces::default();
        namespaces.push("xml", XML.to_owned());
        Ok(Self {
            markup: Markup::new(input),
            token: String::new(),
            written: Vec::new(),
            frames: vec![Frame::document(scope)],
            namespaces,
            written_namespaces: Namespaces::default(),
            prefixes: Prefixes::default(),
            entities: HashMap::new(),
            ids: HashSet::new(),
            iris: reading.iris,
            held_bytes_max: reading.skips_within_bytes,
            ready: VecDeque::new(),
            held: Vec::new(),
            held_bytes: 0,
            problem: None,
            has_element: false,
            has_token: false,
            is_at_end: false,
        })
    }

    /// The prefixes that elements have declared so far, but for the default namespace; the first
    /// IRI of each.
    pub(crate) fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// The next statement or problem.
    pub(crate) fn next(&mut self) -> Option<Result<Quad, Problem>> {
        loop {
            if let Some(quad) = self.ready.pop_front() {
                return Some(Ok(quad));
            }
            if let Some(problem) = self.problem.take() {
                return Some(Err(problem));
            }
            if self.is_at_end {
                return None;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        let mut text = std::mem::take(&mut self.token);
        match self.markup.next(&mut text) {
            Ok((token, begin)) => {
                self.has_token |= token != Token::EndOfFile;
                if let Err(fault) = self.take(token, begin, &text) {
                    self.fail(fault);
                }
            }
            Err(Ended::Fault(fault)) => self.fail(fault),
            Err(Ended::Input(error)) => {
                self.is_at_end = true;
                self.problem = Some(Problem::Input(error));
            }
        }
        self.token = text;
    }

    fn take(&mut self, token: Token, begin: Position, text: &str) -> Result<(), Fault> {
        match token {
            Token::Start { is_empty } => {
                if self.frames.len() == 1 && self.has_element {
                    let place = begin.part(text, 0..text.len());
                    let message = "there is a second element outside of the first";
                    let mend = "put both into one <rdf:RDF>";
                    return Err(Fault::new(place, message, mend).ending_reading());
                }
                self.has_element = true;
                let started = self.start(begin, text);
                if let Err(fault) = started {
                    self.start_of_skipped(text, fault)?;
                }
                if is_empty {
                    self.end()?;
                }
                Ok(())
            }
            Token::End => {
                let name = text.trim_ascii();
                let open = self.frames.last().filter(|_| self.frames.len() > 1);
                let Some(open) = open else {
                    let place = Position {
                        offset: begin.offset - 2,
                        column: begin.column - 2,
                        ..begin
                    };
                    let message = format!("`</{name}>` closes nothing that is open");
                    let fault =
                        Fault::new(place.place(3 + text.len() as u64), message, "take it away");
                    return Err(fault.ending_reading());
                };
                if *open.name != *name {
                    return Err(mismatch(&open.name, name, begin, text));
                }
                self.end()
            }
            Token::Text => self.text(begin, text, false),
            Token::CData => self.text(begin, text, true),
            Token::Comment => {
                self.markup_in_literal("<!--", text, "-->");
                Ok(())
            }
            Token::Instruction => {
                // The declaration is no instruction.
                if !(begin.offset == 2 && text.starts_with("xml")) {
                    self.markup_in_literal("<?", text, "?>");
                }
                Ok(())
            }
            Token::Doctype => {
                let taken = tag::entities(begin, text, &mut self.entities);
                taken.map_err(Fault::ending_reading)
            }
            Token::EndOfFile => {
                self.is_at_end = true;
                let mend = "it may have been cut; fetch or write it anew";
                let message = match (self.frames.len() > 1, self.has_element) {
                    (true, _) => "the file ends before its first element is closed",
                    (false, false) if self.has_token => "the file ends before its first element",
                    (false, _) => return Ok(()),
                };
                Err(Fault::new(begin.place(0), message, mend).ending_reading())
            }
        }
    }

    /// Leaves out what a fault makes wrong.
    fn fail(&mut self, fault: Fault) {
        // Statements of a property that is not closed are not known to be right.
        let wrong = match fault.ends_reading {
            true => self
                .frames
                .iter()
                .position(|frame| frame.kind.is_property()),
            false => self.innermost_property(),
        };
        let node = || {
            let last = self.frames.len() - 1;
            let is_node = matches!(self.frames[last].kind, Kind::Node { .. });
            is_node.then_some(last)
        };
        if let Some(first) = wrong.or_else(node) {
            self.skip_from(first);
        }
        if fault.ends_reading {
            self.is_at_end = true;
            self.release();
        }
        self.problem = Some(Problem::Fault(fault));
    }

    fn innermost_property(&self) -> Option<usize> {
        let frames = self.frames.iter();
        let is_open = |frame: &Frame| frame.kind.is_property();
        frames
            .rev()
            .position(is_open)
            .map(|behind| self.frames.len() - 1 - behind)
    }

    /// Makes nothing of an open element and of all in it.
    fn skip_from(&mut self, first: usize) {
        let held = self.frames[first].held_before.min(self.held.len());
        self.held.truncate(held);
        for frame in &mut self.frames[first..] {
            frame.kind = Kind::Skipped;
        }
    }

    /// An element whose tag is wrong: it is left out with all in it, and with the property it
    /// stands in.
    fn start_of_skipped(&mut self, text: &str, fault: Fault) -> Result<(), Fault> {
        let is_of_all = self.frames.len() == 1;
        if fault.ends_reading || is_of_all {
            return Err(fault.ending_reading());
        }
        let name_end = text
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(text.len());
        let around = self.frames.last().map(|frame| &frame.kind);
        let is_of_node = matches!(around, Some(Kind::Node { .. }));
        if !is_of_node && let Some(first) = self.innermost_property() {
            self.skip_from(first);
        }
        let frame = Frame {
            kind: Kind::Skipped,
            name: text[..name_end].into(),
            scope: Scope::default(),
            namespaces_before: self.namespaces.len(),
            held_before: self.held.len(),
        };
        self.frames.push(frame);
        self.problem = Some(Problem::Fault(fault));
        Ok(())
    }

    /// Gives a statement, or what an element of triple terms makes of it.
    fn emit(&mut self, quad: Quad) {
        for frame in self.frames.iter_mut().rev() {
            if let Kind::Triple { triples, .. } = &mut frame.kind {
                triples.push(Triple::new(quad.subject, quad.predicate, quad.object));
                return;
            }
        }
        let Some(held_bytes_max) = self.held_bytes_max else {
            self.ready.push_back(quad);
            return;
        };
        // What is left out stays counted until the rest is given: then less is held.
        self.held_bytes += quad_bytes(&quad);
        self.held.push(quad);
        if self.held_bytes > held_bytes_max {
            self.release();
        }
    }

    /// Gives what was held.
    fn release(&mut self) {
        self.ready.extend(self.held.drain(..));
        self.held_bytes = 0;
        for frame in &mut self.frames {
            frame.held_before = 0;
        }
    }
}

fn mismatch(opened: &str, closed: &str, begin: Position, text: &str) -> Fault {
    use crate::parse::mends::quoted;
    let place = Position {
        offset: begin.offset - 2,
        column: begin.column - 2,
        ..begin
    };
    let (opened, closing) = (format!("<{opened}>"), format!("</{opened}>"));
    let closed = format!("</{closed}>");
    let message = format!(
        "{} stands where {} has to be closed",
        quoted(&closed),
        quoted(&opened)
    );
    let mend = format!(
        "write {}, or close with it what was opened last",
        quoted(&closing)
    );
    Fault::new(place.place(3 + text.len() as u64), message, mend).ending_reading()
}
