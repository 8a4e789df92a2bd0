//! Predicates and objects of a subject, and what they become: triples, and steps of paths.

use oxrdf::vocab::rdf;
use spargebra::algebra::PropertyPathExpression;
use spargebra::term::{NamedNodePattern, TermPattern};

use super::Place;
use super::pattern::{Element, triple};
use crate::error::ErrorKind;
use crate::expected::Thing;
use crate::parser::literal::{is_iri, rdf_type};
use crate::parser::path::begins_path;
use crate::parser::{Parsed, Parser, weight};
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

#[derive(Clone, Debug)]
enum Verb {
    Term(NamedNodePattern),
    Path(PropertyPathExpression),
}

/// A predicate and an object of a subject that is not known yet.
#[derive(Debug)]
pub(super) struct Property {
    verb: Verb,
    object: TermPattern,
    reifiers: Vec<TermPattern>,
    at: Token,
}

impl Parser<'_, '_> {
    /// Puts together what is known of a subject.
    pub(super) fn put(
        &mut self,
        subject: &TermPattern,
        properties: Vec<Property>,
        out: &mut Vec<Element>,
    ) -> Parsed<()> {
        out.reserve(properties.len());
        let bytes = weight::of_term(subject);
        for property in properties {
            self.copies(bytes)?;
            match property.verb {
                Verb::Term(predicate) => {
                    self.put_triple(
                        subject.clone(),
                        predicate,
                        property.object,
                        property.reifiers,
                        out,
                    )?;
                }
                Verb::Path(path) => {
                    let Property {
                        object,
                        reifiers,
                        at,
                        ..
                    } = property;
                    self.put_path(subject.clone(), path, object, reifiers, at, out)?;
                }
            }
        }
        Ok(())
    }

    /// A triple, and who reifies it before it.
    fn put_triple(
        &mut self,
        subject: TermPattern,
        predicate: NamedNodePattern,
        object: TermPattern,
        reifiers: Vec<TermPattern>,
        out: &mut Vec<Element>,
    ) -> Parsed<()> {
        let stated = triple(subject, predicate, object);
        if !reifiers.is_empty() {
            let bytes = weight::of_triple(&stated);
            self.copies(bytes.saturating_mul(reifiers.len()))?;
        }
        for reifier in reifiers {
            let reified = triple(reifier, rdf::REIFIES.into_owned(), stated.clone());
            out.push(Element::Triple(reified));
        }
        out.push(Element::Triple(stated));
        Ok(())
    }

    /// A path becomes triples as far as it is a sequence of plain steps. Recurses into paths, whose depth is bounded.
    fn put_path(
        &mut self,
        subject: TermPattern,
        path: PropertyPathExpression,
        object: TermPattern,
        reifiers: Vec<TermPattern>,
        at: Token,
        out: &mut Vec<Element>,
    ) -> Parsed<()> {
        use PropertyPathExpression as Path;
        match path {
            Path::NamedNode(predicate) => {
                return self.put_triple(subject, predicate.into(), object, reifiers, out);
            }
            Path::Reverse(path) => return self.put_path(object, *path, subject, reifiers, at, out),
            _ if !reifiers.is_empty() => {
                let failure = self.error_at(at, ErrorKind::AnnotatedPath);
                self.report(failure)?;
            }
            _ => {}
        }
        match path {
            Path::Sequence(..) => self.put_sequence(subject, path, object, at, out),
            path => {
                out.push(Element::Path(subject, path, object));
                Ok(())
            }
        }
    }

    /// Steps of a sequence, which lean to the left however many they are.
    fn put_sequence(
        &mut self,
        subject: TermPattern,
        path: PropertyPathExpression,
        object: TermPattern,
        at: Token,
        out: &mut Vec<Element>,
    ) -> Parsed<()> {
        use PropertyPathExpression as Path;
        // Blank nodes are made from the outside in, as spargebra does: the last one first.
        let mut steps = Vec::new();
        let (mut path, mut target) = (path, object);
        while let Path::Sequence(before, last) = path {
            let middle = TermPattern::from(self.fresh_blank_node());
            steps.push((
                middle.clone(),
                *last,
                std::mem::replace(&mut target, middle),
            ));
            path = *before;
        }
        self.put_path(subject, path, target, Vec::new(), at, out)?;
        for (from, step, to) in steps.into_iter().rev() {
            self.put_path(from, step, to, Vec::new(), at, out)?;
        }
        Ok(())
    }

    pub(super) fn at_verb(&mut self, place: Place) -> bool {
        self.at_thing(Thing::Predicate, |kind| {
            kind == TokenKind::Variable
                || kind == TokenKind::Keyword(Keyword::A)
                || is_iri(kind)
                || (place == Place::Pattern && begins_path(kind))
        })
    }

    /// Predicates and objects; what objects bring along goes out at once.
    pub(super) fn properties(
        &mut self,
        place: Place,
        out: &mut Vec<Element>,
    ) -> Parsed<Vec<Property>> {
        let mut properties = Vec::with_capacity(1);
        loop {
            if !self.at_verb(place) {
                return Err(self.no_predicate());
            }
            let verb = self.verb(place)?;
            loop {
                let at = self.token;
                let object = self.node(place, out)?;
                let reifiers = self.annotations(place, out)?;
                let is_last = !self.eat(TokenKind::Comma);
                if is_last {
                    properties.push(Property {
                        verb,
                        object,
                        reifiers,
                        at,
                    });
                    break;
                }
                self.copies(match &verb {
                    Verb::Term(predicate) => weight::of_predicate(predicate),
                    Verb::Path(path) => weight::of_path(path),
                })?;
                properties.push(Property {
                    verb: verb.clone(),
                    object,
                    reifiers,
                    at,
                });
            }
            if !self.eat(TokenKind::Semicolon) {
                return Ok(properties);
            }
            while self.eat(TokenKind::Semicolon) {}
            if !self.at_verb(place) {
                return Ok(properties);
            }
        }
    }

    fn verb(&mut self, place: Place) -> Parsed<Verb> {
        let is_simple = is_iri(self.token.kind) || self.at_keyword(Keyword::A);
        if self.token.kind == TokenKind::Variable {
            return Ok(Verb::Term(self.variable_in(place)?.into()));
        }
        if place != Place::Pattern {
            return Ok(Verb::Term(self.named_verb()?.into()));
        }
        if is_simple {
            // Most predicates are IRIs by themselves.
            let second = self.second().kind;
            let goes_on = matches!(
                second,
                TokenKind::Slash
                    | TokenKind::Bar
                    | TokenKind::Star
                    | TokenKind::Plus
                    | TokenKind::QuestionMark
            );
            if !goes_on {
                return Ok(Verb::Term(self.named_verb()?.into()));
            }
        }
        Ok(match self.path()? {
            PropertyPathExpression::NamedNode(node) => Verb::Term(node.into()),
            path => Verb::Path(path),
        })
    }

    fn named_verb(&mut self) -> Parsed<oxrdf::NamedNode> {
        match self.eat_keyword(Keyword::A) {
            true => Ok(rdf_type()),
            false => self.iri(),
        }
    }

    /// A predicate of a triple term or reified triple.
    pub(in crate::parser) fn simple_verb(&mut self, place: Place) -> Parsed<NamedNodePattern> {
        if self.at_thing(Thing::Predicate, |it| it == TokenKind::Variable) {
            return Ok(self.variable_in(place)?.into());
        }
        match self.token.kind == TokenKind::Keyword(Keyword::A) || is_iri(self.token.kind) {
            true => Ok(self.named_verb()?.into()),
            false => Err(self.no_predicate()),
        }
    }
}
