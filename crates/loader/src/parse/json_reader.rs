//! The reader of JSON-LD documents: all quads of a document, or none where wrong ones are skipped.
//!
//! A wrong context may mean other statements everywhere, and a wrong value leaves half a list:
//! nothing in JSON-LD tells where what is right begins again. So a wrong document is left out
//! whole. Its quads are held until its end; of one that does not fit they were given, and the load
//! fails.

use crate::parse::held::quad_bytes;
use crate::parse::statement_reader::After;
use crate::parse::window::{Window, WindowReader};
use orrery_term::Prefixes;
use oxrdf::Quad;
use oxrdfio::{
    JsonLdProfileSet, RdfFormat, RdfParseError, RdfParser, RdfSyntaxError, ReaderQuadParser,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

/// What is wrong with a document, or why it cannot be read.
pub(crate) enum WrongJson {
    Input(io::Error),
    Document(RdfSyntaxError, After),
}

pub(crate) struct JsonReader {
    parser: ReaderQuadParser<WindowReader>,
    window: Rc<RefCell<Window>>,
    /// What may be held; nothing where the first error ends the load.
    held_bytes_max: Option<usize>,
    held: VecDeque<Quad>,
    held_bytes: usize,
    is_given: bool,
    is_at_end: bool,
}

impl JsonReader {
    /// Reads a document; where it is all or nothing, `held_bytes_max` may be held.
    pub(crate) fn new(
        reader: WindowReader,
        base_iri: Option<&str>,
        held_bytes_max: Option<usize>,
    ) -> io::Result<Self> {
        let profile = JsonLdProfileSet::empty();
        let mut parser = RdfParser::from_format(RdfFormat::JsonLd { profile });
        if let Some(base_iri) = base_iri {
            let based = parser.with_base_iri(base_iri);
            parser = based.map_err(|error| io::Error::other(error.to_string()))?;
        }
        Ok(Self {
            window: Rc::clone(&reader.window),
            parser: parser.for_reader(reader),
            held_bytes_max,
            held: VecDeque::new(),
            held_bytes: 0,
            is_given: false,
            is_at_end: false,
        })
    }

    pub(crate) fn next(&mut self) -> Option<Result<Quad, WrongJson>> {
        loop {
            let may_hold = self
                .held_bytes_max
                .is_some_and(|max| self.held_bytes <= max);
            let gives = self.is_at_end || self.is_given || !may_hold;
            if gives && let Some(quad) = self.held.pop_front() {
                self.is_given = true;
                return Some(Ok(quad));
            }
            if self.is_at_end {
                return None;
            }
            match self.parser.next() {
                Some(Ok(quad)) => {
                    self.window.borrow_mut().end_statement();
                    self.held_bytes += quad_bytes(&quad);
                    self.held.push_back(quad);
                }
                Some(Err(RdfParseError::Io(error))) => return Some(Err(WrongJson::Input(error))),
                Some(Err(RdfParseError::Syntax(error))) => {
                    self.held.clear();
                    self.is_at_end = true;
                    let after = match self.is_given && self.held_bytes_max.is_some() {
                        true => After::Fails,
                        false => After::Ends { line: 0 },
                    };
                    return Some(Err(WrongJson::Document(error, after)));
                }
                None => self.is_at_end = true,
            }
        }
    }

    /// Takes the prefixes that are declared at this place of the text.
    pub(crate) fn note_prefixes(&self, prefixes: &mut Prefixes) {
        for (name, iri) in self.parser.prefixes() {
            prefixes.note_loaded(name, iri);
        }
    }
}
