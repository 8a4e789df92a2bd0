//! Triple terms, reified triples, reifiers and annotations (SPARQL 1.2, 4.1.5 and 4.1.6).

use oxrdf::vocab::rdf;
use spargebra::term::{TermPattern, TriplePattern};

use super::Place;
use super::pattern::{Elements, triple};
use crate::expected::Thing;
use crate::parser::literal::is_iri;
use crate::parser::{Parsed, Parser};
use crate::token::TokenKind;

impl Parser<'_, '_> {
    pub(super) fn triple_term(&mut self, place: Place) -> Parsed<TermPattern> {
        self.open(TokenKind::LeftTripleTerm, "<<(")?;
        let token = self.token;
        let subject = self.plain_term_or_nothing(place)?;
        self.check_subject(place, &subject, token)?;
        let predicate = self.simple_verb(place)?;
        let object = self.plain_term_or_nothing(place)?;
        self.close(TokenKind::RightTripleTerm)?;
        Ok(TriplePattern {
            subject,
            predicate,
            object,
        }
        .into())
    }

    /// A term in a triple term: `[]` too, but no `()`.
    fn plain_term_or_nothing(&mut self, place: Place) -> Parsed<TermPattern> {
        match self.token.kind {
            TokenKind::LeftBracket if self.at_empty_brackets() => self.term(place),
            _ => self.plain_term(place),
        }
    }

    pub(super) fn reified_triple(
        &mut self,
        place: Place,
        out: &mut Elements,
    ) -> Parsed<TermPattern> {
        self.open(TokenKind::LeftTriple, "<<")?;
        let (mut of_subject, mut of_object) = (Elements::default(), Elements::default());
        let token = self.token;
        let subject = self.reified_part(place, &mut of_subject)?;
        self.check_subject(place, &subject, token)?;
        let predicate = self.simple_verb(place)?;
        let object = self.reified_part(place, &mut of_object)?;
        let reifier = match self.at(TokenKind::Tilde) {
            true => self.reifier(place)?,
            false => {
                self.refuse_blank_node(place)?;
                self.fresh_blank_node().into()
            }
        };
        self.close(TokenKind::RightTriple)?;
        let reified = triple(subject, predicate, object);
        out.push(triple(reifier.clone(), rdf::REIFIES.into_owned(), reified));
        out.append(&mut of_subject);
        out.append(&mut of_object);
        Ok(reifier)
    }

    fn reified_part(&mut self, place: Place, out: &mut Elements) -> Parsed<TermPattern> {
        match self.token.kind {
            TokenKind::LeftTriple => self.reified_triple(place, out),
            _ => self.plain_term_or_nothing(place),
        }
    }

    /// `~`, and perhaps who reifies.
    fn reifier(&mut self, place: Place) -> Parsed<TermPattern> {
        self.expect(TokenKind::Tilde)?;
        let has_name = self.at_thing(Thing::Term, |kind| {
            is_iri(kind) || matches!(kind, TokenKind::Variable | TokenKind::BlankNodeLabel)
        });
        if has_name {
            return self.plain_term(place);
        }
        if self.token.kind == TokenKind::LeftBracket && self.at_empty_brackets() {
            return self.term(place);
        }
        self.refuse_blank_node(place)?;
        Ok(self.fresh_blank_node().into())
    }

    /// Reifiers and annotations behind an object.
    pub(super) fn annotations(
        &mut self,
        place: Place,
        out: &mut Elements,
    ) -> Parsed<Vec<TermPattern>> {
        let mut reifiers = Vec::new();
        loop {
            let reifier = if self.at(TokenKind::Tilde) {
                Some(self.reifier(place)?)
            } else {
                None
            };
            if !self.at(TokenKind::LeftAnnotation) {
                match reifier {
                    Some(reifier) => reifiers.push(reifier),
                    None => return Ok(reifiers),
                }
                continue;
            }
            let reifier = match reifier {
                Some(reifier) => reifier,
                None => {
                    self.refuse_blank_node(place)?;
                    self.fresh_blank_node().into()
                }
            };
            let depth = self.opened.len();
            self.open(TokenKind::LeftAnnotation, "{|")?;
            let (mut own, mut nested) = (Elements::default(), Elements::default());
            let result = self
                .own_properties(reifier.clone(), place, &mut nested, &mut own)
                .and_then(|()| self.close(TokenKind::RightAnnotation));
            out.append(&mut own);
            out.append(&mut nested);
            if let Err(failure) = result {
                self.recover_behind_bracket(failure, depth)?;
            }
            reifiers.push(reifier);
        }
    }
}
