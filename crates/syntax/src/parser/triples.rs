//! Triples: subjects, predicates and objects, collections, `[]`, triple terms, reified triples and annotations.
//!
//! One set of rules serves patterns, templates and data, which differ in what may stand there ([`Place`]). What an object
//! brings along (the triples of a collection, of a `[...]`, of an annotation) comes before the triple that it is the object of; the
//! orders are spargebra's, so that the algebra is the same.

use oxrdf::vocab::rdf;
use spargebra::algebra::{GraphPattern, PropertyPathExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

use super::literal::{is_iri, is_literal, rdf_type};
use super::path::begins_path;
use super::{Parsed, Parser, weight};
use crate::error::ErrorKind;
use crate::expected::Thing;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

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

/// A triple, or what is to be found by a path.
#[derive(Debug)]
pub(super) enum Element {
    Triple(TriplePattern),
    Path(TermPattern, PropertyPathExpression, TermPattern),
}

#[derive(Clone, Debug)]
enum Verb {
    Term(NamedNodePattern),
    Path(PropertyPathExpression),
}

/// A predicate and an object of a subject that is not known yet.
#[derive(Debug)]
struct Property {
    verb: Verb,
    object: TermPattern,
    reifiers: Vec<TermPattern>,
    at: Token,
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
    pub(super) fn triples(&mut self, place: Place, out: &mut Vec<Element>) -> Parsed<()> {
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
    pub(super) fn triples_of_subject(
        &mut self,
        place: Place,
        out: &mut Vec<Element>,
    ) -> Parsed<()> {
        match self.token.kind {
            TokenKind::LeftTriple => {
                let mut of_subject = Vec::new();
                let subject = self.reified_triple(place, &mut of_subject)?;
                let properties = match self.at_verb(place) {
                    true => self.properties(place, out)?,
                    false => Vec::new(),
                };
                out.append(&mut of_subject);
                self.put(&subject, properties, out)
            }
            TokenKind::LeftParen | TokenKind::LeftBracket if !self.at_empty_brackets() => {
                let subject = self.node(place, out)?;
                let properties = match self.at_verb(place) {
                    true => self.properties(place, out)?,
                    false => Vec::new(),
                };
                self.put(&subject, properties, out)
            }
            _ => {
                let subject = self.subject(place)?;
                let properties = self.properties(place, out)?;
                self.put(&subject, properties, out)
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

    /// Puts together what is known of a subject.
    fn put(
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

    fn at_verb(&mut self, place: Place) -> bool {
        self.at_thing(Thing::Predicate, |kind| {
            kind == TokenKind::Variable
                || kind == TokenKind::Keyword(Keyword::A)
                || is_iri(kind)
                || (place == Place::Pattern && begins_path(kind))
        })
    }

    /// Predicates and objects; what objects bring along goes out at once.
    fn properties(&mut self, place: Place, out: &mut Vec<Element>) -> Parsed<Vec<Property>> {
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
    pub(super) fn simple_verb(&mut self, place: Place) -> Parsed<NamedNodePattern> {
        if self.at_thing(Thing::Predicate, |it| it == TokenKind::Variable) {
            return Ok(self.variable_in(place)?.into());
        }
        match self.token.kind == TokenKind::Keyword(Keyword::A) || is_iri(self.token.kind) {
            true => Ok(self.named_verb()?.into()),
            false => Err(self.no_predicate()),
        }
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
    fn node(&mut self, place: Place, out: &mut Vec<Element>) -> Parsed<TermPattern> {
        match self.token.kind {
            TokenKind::LeftTriple => self.reified_triple(place, out),
            TokenKind::LeftParen if !self.at_empty_brackets() => self.collection(place, out),
            TokenKind::LeftBracket if !self.at_empty_brackets() => {
                self.refuse_blank_node(place)?;
                self.open(TokenKind::LeftBracket, "[")?;
                let node = TermPattern::from(self.fresh_blank_node());
                let properties = self.properties(place, out)?;
                self.put(&node, properties, out)?;
                self.close(TokenKind::RightBracket)?;
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

    fn collection(&mut self, place: Place, out: &mut Vec<Element>) -> Parsed<TermPattern> {
        self.refuse_blank_node(place)?;
        self.open(TokenKind::LeftParen, "(")?;
        let mut items = Vec::new();
        while items.is_empty() || !self.at(TokenKind::RightParen) {
            let mut of_item = Vec::new();
            let item = self.node(place, &mut of_item)?;
            items.push((item, of_item));
        }
        self.close(TokenKind::RightParen)?;
        let mut rest = TermPattern::from(rdf::NIL.into_owned());
        for (item, mut of_item) in items.into_iter().rev() {
            let node = TermPattern::from(self.fresh_blank_node());
            let of_node = |predicate: oxrdf::NamedNodeRef<'static>, object| {
                Element::Triple(triple(node.clone(), predicate.into_owned(), object))
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

    fn triple_term(&mut self, place: Place) -> Parsed<TermPattern> {
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

    fn reified_triple(&mut self, place: Place, out: &mut Vec<Element>) -> Parsed<TermPattern> {
        self.open(TokenKind::LeftTriple, "<<")?;
        let (mut of_subject, mut of_object) = (Vec::new(), Vec::new());
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
        out.push(Element::Triple(triple(
            reifier.clone(),
            rdf::REIFIES.into_owned(),
            reified,
        )));
        out.append(&mut of_subject);
        out.append(&mut of_object);
        Ok(reifier)
    }

    fn reified_part(&mut self, place: Place, out: &mut Vec<Element>) -> Parsed<TermPattern> {
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
    fn annotations(&mut self, place: Place, out: &mut Vec<Element>) -> Parsed<Vec<TermPattern>> {
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
            self.open(TokenKind::LeftAnnotation, "{|")?;
            let mut nested = Vec::new();
            let properties = self.properties(place, &mut nested)?;
            self.close(TokenKind::RightAnnotation)?;
            self.put(&reifier, properties, out)?;
            out.append(&mut nested);
            reifiers.push(reifier);
        }
    }
}

/// A triple of these.
pub(super) fn triple(
    subject: impl Into<TermPattern>,
    predicate: impl Into<NamedNodePattern>,
    object: impl Into<TermPattern>,
) -> TriplePattern {
    TriplePattern {
        subject: subject.into(),
        predicate: predicate.into(),
        object: object.into(),
    }
}

/// How many joins their pattern has at most.
pub(super) fn joins_of(elements: &[Element]) -> usize {
    let is_path = |element: &Element| matches!(element, Element::Path(..));
    let paths = elements.iter().filter(|element| is_path(element)).count();
    let behind_triples = elements
        .windows(2)
        .filter(|pair| !is_path(&pair[0]) && is_path(&pair[1]));
    paths + behind_triples.count()
}

/// Triples and paths as a pattern: neighbouring triples are one basic graph pattern. As deep as there are
/// [joins](joins_of).
pub(super) fn pattern_of(elements: Vec<Element>) -> GraphPattern {
    let mut triples = Vec::with_capacity(elements.len());
    let mut pattern = GraphPattern::default();
    for element in elements {
        match element {
            Element::Triple(triple) => triples.push(triple),
            Element::Path(subject, path, object) => {
                if !triples.is_empty() {
                    let patterns = std::mem::take(&mut triples);
                    pattern = join(pattern, GraphPattern::Bgp { patterns });
                }
                let path = GraphPattern::Path {
                    subject,
                    path,
                    object,
                };
                pattern = join(pattern, path);
            }
        }
    }
    if !triples.is_empty() {
        pattern = join(pattern, GraphPattern::Bgp { patterns: triples });
    }
    pattern
}

/// The triples of a template, which holds no paths.
pub(super) fn triples_of(elements: Vec<Element>) -> Vec<TriplePattern> {
    let triples = elements.into_iter().filter_map(|element| match element {
        Element::Triple(triple) => Some(triple),
        Element::Path(..) => None,
    });
    triples.collect()
}

/// Whether a pattern is nothing but triples.
pub(super) fn is_triples(pattern: &GraphPattern) -> bool {
    matches!(pattern, GraphPattern::Bgp { .. })
}

/// A join, but of nothing, and of triples with triples.
pub(super) fn join(left: GraphPattern, right: GraphPattern) -> GraphPattern {
    match (left, right) {
        (GraphPattern::Bgp { patterns }, other) | (other, GraphPattern::Bgp { patterns })
            if patterns.is_empty() =>
        {
            other
        }
        (GraphPattern::Bgp { mut patterns }, GraphPattern::Bgp { patterns: more }) => {
            patterns.extend(more);
            GraphPattern::Bgp { patterns }
        }
        (left, right) => GraphPattern::Join {
            left: Box::new(left),
            right: Box::new(right),
        },
    }
}
