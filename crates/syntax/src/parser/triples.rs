//! Triples: subjects, predicates and objects, collections, `[]`, triple terms, reified triples and
//! annotations.
//!
//! One set of rules serves patterns, templates and data, which differ in what may stand there
//! ([`Place`]). What an object brings along (the triples of a collection, of a `[...]`, of an
//! annotation) comes before the triple that it is the object of; the orders are spargebra's, so
//! that the algebra is the same.

mod pattern;
mod properties;
mod reified;

pub(super) use pattern::{Elements, is_triples, join, triple};

use oxrdf::vocab::rdf;
use spargebra::term::{NamedNodePattern, TermPattern};

use super::literal::{is_iri, is_literal};
use super::{Parsed, Parser};
use crate::error::ErrorKind;
use crate::expected::Thing;
use crate::token::{Token, TokenKind};

/// Where triples stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a `WHERE`.
    Pattern,
    /// `CONSTRUCT`, `INSERT`.
    Template,
    /// `DELETE`, `DELETE WHERE`: no blank nodes.
    Deletion,
    /// `INSERT DATA`: no variables. Which operation of the request it is.
    InsertedData(usize),
    /// `DELETE DATA`: neither.
    DeletedData,
}

impl Place {
    fn is_data(self) -> bool {
        matches!(self, Self::InsertedData(_) | Self::DeletedData)
    }

    fn has_blank_nodes(self) -> bool {
        !matches!(self, Self::Deletion | Self::DeletedData)
    }
}

/// Whether triples can begin here.
pub(super) fn begins_triples(kind: TokenKind) -> bool {
    is_iri(kind)
        || is_literal(kind)
        || matches!(
            kind,
            TokenKind::Variable
                | TokenKind::BlankNodeLabel
                | TokenKind::LeftBracket
                | TokenKind::LeftParen
                | TokenKind::LeftTriple
                | TokenKind::LeftTripleTerm
                | TokenKind::Plus
                | TokenKind::Minus
        )
}

impl Parser<'_, '_> {
    /// Triples of subjects with dots between them, and perhaps behind the last.
    pub(super) fn triples(&mut self, place: Place, out: &mut Elements) -> Parsed<()> {
        loop {
            self.triples_of_subject(place, out)?;
            if !self.eat(TokenKind::Dot) {
                return Ok(());
            }
            if !self.at_thing(Thing::Term, begins_triples) {
                return Ok(());
            }
        }
    }

    /// Triples of one subject.
    pub(super) fn triples_of_subject(&mut self, place: Place, out: &mut Elements) -> Parsed<()> {
        match self.token.kind {
            TokenKind::LeftTriple => {
                let mut of_subject = Elements::default();
                let subject = self.reified_triple(place, &mut of_subject)?;
                let mut own = Elements::default();
                let result = match self.at_verb(place) {
                    true => self.own_properties(subject, place, out, &mut own),
                    false => Ok(()),
                };
                // Behind an error, too: a tolerant reader keeps what it read.
                out.append(&mut of_subject);
                out.append(&mut own);
                result
            }
            TokenKind::LeftParen | TokenKind::LeftBracket if !self.at_empty_brackets() => {
                let subject = self.node(place, out)?;
                match self.at_verb(place) {
                    true => self.properties(subject, place, out),
                    false => Ok(()),
                }
            }
            _ => {
                let subject = self.subject(place)?;
                self.properties(subject, place, out)
            }
        }
    }

    fn subject(&mut self, place: Place) -> Parsed<TermPattern> {
        let token = self.token;
        let subject = self.term(place)?;
        self.check_subject(place, &subject, token)?;
        Ok(subject)
    }

    /// Data have subjects only that statements can have.
    fn check_subject(&mut self, place: Place, subject: &TermPattern, token: Token) -> Parsed<()> {
        let is_resource = !matches!(subject, TermPattern::Literal(_) | TermPattern::Triple(_));
        if !place.is_data() || is_resource {
            return Ok(());
        }
        let failure = self.error_at(token, ErrorKind::InvalidSubject);
        self.report(failure)
    }

    fn variable_in(&mut self, place: Place) -> Parsed<oxrdf::Variable> {
        if place.is_data() {
            let failure = self.error(ErrorKind::VariableInData);
            self.report(failure)?;
        }
        let (id, variable) = self.variable()?;
        if place == Place::Pattern {
            self.scope.see(id);
        }
        Ok(variable)
    }

    /// A variable or an IRI: of `GRAPH`, `SERVICE`, `DESCRIBE`.
    pub(super) fn variable_or_iri(&mut self) -> Parsed<NamedNodePattern> {
        if self.at_thing(Thing::Variable, |it| it == TokenKind::Variable) {
            return Ok(self.variable()?.1.into());
        }
        Ok(self.iri()?.into())
    }

    /// Whether `()` or `[]` is here.
    fn at_empty_brackets(&self) -> bool {
        let closing = match self.token.kind {
            TokenKind::LeftParen => TokenKind::RightParen,
            TokenKind::LeftBracket => TokenKind::RightBracket,
            _ => return false,
        };
        self.second().kind == closing
    }

    /// An object, or an item of a collection.
    fn node(&mut self, place: Place, out: &mut Elements) -> Parsed<TermPattern> {
        match self.token.kind {
            TokenKind::LeftTriple => self.reified_triple(place, out),
            TokenKind::LeftParen if !self.at_empty_brackets() => self.collection(place, out),
            TokenKind::LeftBracket if !self.at_empty_brackets() => {
                self.refuse_blank_node(place)?;
                let depth = self.opened.len();
                self.open(TokenKind::LeftBracket, "[")?;
                let node = TermPattern::from(self.fresh_blank_node());
                let properties = self.properties(node.clone(), place, out);
                if let Err(failure) = properties.and_then(|()| self.close(TokenKind::RightBracket))
                {
                    // What was said of the node so far stays, and what is said of it outside.
                    self.recover_behind_bracket(failure, depth)?;
                }
                Ok(node)
            }
            _ => self.term(place),
        }
    }

    fn refuse_blank_node(&mut self, place: Place) -> Parsed<()> {
        if place.has_blank_nodes() {
            return Ok(());
        }
        let failure = self.error(ErrorKind::BlankNodeInDelete);
        self.report(failure)
    }

    fn collection(&mut self, place: Place, out: &mut Elements) -> Parsed<TermPattern> {
        self.refuse_blank_node(place)?;
        self.open(TokenKind::LeftParen, "(")?;
        let mut items = Vec::new();
        while items.is_empty() || !self.at(TokenKind::RightParen) {
            let mut of_item = Elements::default();
            let item = self.node(place, &mut of_item)?;
            items.push((item, of_item));
        }
        self.close(TokenKind::RightParen)?;
        let mut rest = TermPattern::from(rdf::NIL.into_owned());
        for (item, mut of_item) in items.into_iter().rev() {
            let node = TermPattern::from(self.fresh_blank_node());
            let of_node = |predicate: oxrdf::NamedNodeRef<'static>, object| {
                triple(node.clone(), predicate.into_owned(), object)
            };
            out.push(of_node(rdf::FIRST, item));
            out.push(of_node(rdf::REST, rest));
            out.append(&mut of_item);
            rest = node;
        }
        Ok(rest)
    }

    /// A term that brings nothing along.
    fn term(&mut self, place: Place) -> Parsed<TermPattern> {
        self.expected.thing(Thing::Term);
        match self.token.kind {
            TokenKind::LeftParen if self.at_empty_brackets() => {
                self.bump();
                self.bump();
                Ok(rdf::NIL.into_owned().into())
            }
            TokenKind::LeftBracket if self.at_empty_brackets() => {
                self.refuse_blank_node(place)?;
                self.bump();
                self.bump();
                Ok(self.fresh_blank_node().into())
            }
            _ => self.plain_term(place),
        }
    }

    /// A variable, IRI, literal, label or triple term.
    fn plain_term(&mut self, place: Place) -> Parsed<TermPattern> {
        self.expected.thing(Thing::Term);
        Ok(match self.token.kind {
            TokenKind::Variable => self.variable_in(place)?.into(),
            TokenKind::BlankNodeLabel => self.label_in(place)?,
            TokenKind::LeftTripleTerm => self.triple_term(place)?,
            kind if is_iri(kind) => self.iri()?.into(),
            kind if is_literal(kind) => self.literal()?.into(),
            _ if self.at_signed_number() => self.signed_number().into(),
            _ => return Err(self.no_term()),
        })
    }

    fn label_in(&mut self, place: Place) -> Parsed<TermPattern> {
        self.refuse_blank_node(place)?;
        if let Place::InsertedData(operation) = place {
            let token = self.token;
            let label = &self.text_of(token)[2..];
            if *self.data_labels.entry(label).or_insert(operation) != operation {
                let label = label.to_owned();
                let failure = self.error_at(token, ErrorKind::SharedLabel { label });
                self.report(failure)?;
            }
        }
        Ok(self.label()?.into())
    }
}
