//! Predicates and objects of a subject, and what they become: triples, and steps of paths.

use oxrdf::vocab::rdf;
use spargebra::algebra::PropertyPathExpression;
use spargebra::term::{NamedNodePattern, TermPattern};

use super::Place;
use super::pattern::{Elements, triple};
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

/// What comes behind an object.
enum Next {
    Object,
    Predicate,
    Nothing,
}

/// Where a subject's own triples are.
struct Own {
    /// Where they begin among those that go out,
    start: (usize, usize),
    /// until they are kept apart.
    apart: Option<Elements>,
}

impl Own {
    /// Keeps them apart from now on.
    fn part_from(&mut self, out: &mut Elements) {
        self.apart.get_or_insert_with(|| out.split_off(self.start));
    }
}

/// Whether an object that begins so, or what stands so behind one, may bring triples along.
fn may_bring(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::LeftTriple
            | TokenKind::LeftParen
            | TokenKind::LeftBracket
            | TokenKind::LeftAnnotation
            | TokenKind::Tilde
    )
}

impl Parser<'_, '_> {
    /// Predicates and objects of a subject.
    ///
    /// What objects bring along comes before all triples of the subject itself, as spargebra has
    /// it. Most bring nothing, so that triples go out as they are read; from the first that may,
    /// the subject's own are kept apart.
    pub(super) fn properties(
        &mut self,
        subject: TermPattern,
        place: Place,
        out: &mut Elements,
    ) -> Parsed<()> {
        let mut own = Own {
            start: out.len(),
            apart: None,
        };
        let result = self.properties_apart(subject, place, out, &mut own);
        // Behind an error, too: a tolerant reader keeps what it read.
        if let Some(mut apart) = own.apart {
            out.append(&mut apart);
        }
        result
    }

    /// The same, for those who put something between: the subject's own triples go into a list of
    /// their own.
    pub(super) fn own_properties(
        &mut self,
        subject: TermPattern,
        place: Place,
        brought: &mut Elements,
        own: &mut Elements,
    ) -> Parsed<()> {
        let mut kept_apart = Own {
            start: brought.len(),
            apart: Some(Elements::default()),
        };
        let result = self.properties_apart(subject, place, brought, &mut kept_apart);
        if let Some(mut apart) = kept_apart.apart {
            own.append(&mut apart);
        }
        result
    }

    fn properties_apart(
        &mut self,
        subject: TermPattern,
        place: Place,
        out: &mut Elements,
        own: &mut Own,
    ) -> Parsed<()> {
        let bytes = weight::of_term(&subject);
        loop {
            if !self.at_verb(place) {
                return Err(self.no_predicate());
            }
            let verb = self.verb(place)?;
            loop {
                let at = self.token;
                if may_bring(at.kind) {
                    own.part_from(out);
                }
                let object = self.node(place, out)?;
                if may_bring(self.token.kind) {
                    own.part_from(out);
                }
                let reifiers = self.annotations(place, out)?;
                let next = self.behind_object(place);
                self.copies(bytes)?;
                let own = own.apart.as_mut().unwrap_or(out);
                match next {
                    Next::Object => {
                        self.copies(match &verb {
                            Verb::Term(predicate) => weight::of_predicate(predicate),
                            Verb::Path(path) => weight::of_path(path),
                        })?;
                        self.put(subject.clone(), verb.clone(), object, reifiers, at, own)?;
                    }
                    Next::Predicate => {
                        self.put(subject.clone(), verb, object, reifiers, at, own)?;
                        break;
                    }
                    Next::Nothing => return self.put(subject, verb, object, reifiers, at, own),
                }
            }
        }
    }

    /// Takes what stands between properties.
    fn behind_object(&mut self, place: Place) -> Next {
        if self.eat(TokenKind::Comma) {
            return Next::Object;
        }
        if !self.eat(TokenKind::Semicolon) {
            return Next::Nothing;
        }
        while self.eat(TokenKind::Semicolon) {}
        match self.at_verb(place) {
            true => Next::Predicate,
            false => Next::Nothing,
        }
    }

    fn put(
        &mut self,
        subject: TermPattern,
        verb: Verb,
        object: TermPattern,
        reifiers: Vec<TermPattern>,
        at: Token,
        out: &mut Elements,
    ) -> Parsed<()> {
        match verb {
            Verb::Term(predicate) => self.put_triple(subject, predicate, object, reifiers, out),
            Verb::Path(path) => self.put_path(subject, path, object, reifiers, at, out),
        }
    }

    /// A triple, and who reifies it before it.
    fn put_triple(
        &mut self,
        subject: TermPattern,
        predicate: NamedNodePattern,
        object: TermPattern,
        reifiers: Vec<TermPattern>,
        out: &mut Elements,
    ) -> Parsed<()> {
        let stated = triple(subject, predicate, object);
        if !reifiers.is_empty() {
            let bytes = weight::of_triple(&stated);
            self.copies(bytes.saturating_mul(reifiers.len()))?;
        }
        for reifier in reifiers {
            out.push(triple(reifier, rdf::REIFIES.into_owned(), stated.clone()));
        }
        out.push(stated);
        Ok(())
    }

    /// A path becomes triples as far as it is a sequence of plain steps. Recurses into paths, whose
    /// depth is bounded.
    fn put_path(
        &mut self,
        subject: TermPattern,
        path: PropertyPathExpression,
        object: TermPattern,
        reifiers: Vec<TermPattern>,
        at: Token,
        out: &mut Elements,
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
                out.push_path(subject, path, object);
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
        out: &mut Elements,
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

    fn verb(&mut self, place: Place) -> Parsed<Verb> {
        let is_simple = is_iri(self.token.kind) || self.at_keyword(Keyword::A);
        if self.token.kind == TokenKind::Variable {
            return Ok(Verb::Term(self.variable_in(place)?.into()));
        }
        if place != Place::Pattern {
            return Ok(Verb::Term(self.named_verb()?.into()));
        }
        let path = if is_simple {
            let predicate = self.named_verb()?;
            // Most predicates are IRIs by themselves.
            let goes_on = matches!(
                self.token.kind,
                TokenKind::Slash
                    | TokenKind::Bar
                    | TokenKind::Star
                    | TokenKind::Plus
                    | TokenKind::QuestionMark
            );
            if !goes_on {
                return Ok(Verb::Term(predicate.into()));
            }
            self.path_from(predicate)?
        } else {
            self.path()?
        };
        Ok(match path {
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
