//! Whole queries, and the prologue that declares prefixes and base.

use oxiri::Iri;
use oxrdf::Variable;
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern, QueryDataset};
use spargebra::term::{NamedNode, NamedNodePattern, TriplePattern};

use super::select::{Item, Selection};
use super::triples::{Elements, Place, begins_triples, is_triples, join};
use super::{Parsed, Parser};
use crate::expected::Thing;
use crate::template::mark;
use crate::token::TokenKind;
use crate::word::Keyword;

/// Some triples of a template that are of one graph.
struct TemplatePart {
    /// None for the default graph.
    graph: Option<NamedNodePattern>,
    triples: Vec<TriplePattern>,
}

/// The triples of a template with marks before those of other graphs.
fn marked(parts: Vec<TemplatePart>) -> Vec<TriplePattern> {
    let mut template = Vec::new();
    let mut graph = None;
    for part in parts {
        if part.triples.is_empty() {
            continue;
        }
        if part.graph != graph {
            template.push(mark(part.graph.as_ref()));
            graph = part.graph;
        }
        match template.is_empty() {
            true => template = part.triples,
            false => template.extend(part.triples),
        }
    }
    template
}

impl<'t> Parser<'t, '_> {
    /// A query and nothing behind it.
    pub(crate) fn query_unit(&mut self) -> Parsed<Query> {
        self.prologue()?;
        let query = self.query()?;
        if !self.at_thing(Thing::End, |it| it == TokenKind::End) {
            let failure = self.behind_query();
            self.report(failure)?;
        }
        Ok(query)
    }

    /// Declarations.
    pub(super) fn prologue(&mut self) -> Parsed<()> {
        loop {
            if self.eat_keyword(Keyword::Base) {
                let iri = self.declared_iri()?;
                self.base = Iri::parse(iri).ok();
            } else if self.eat_keyword(Keyword::Prefix) {
                let is_prefix = self.at_thing(Thing::Prefix, |it| it == TokenKind::PrefixedName);
                let text = self.text_of(self.token);
                let Some(prefix) = text
                    .strip_suffix(':')
                    .filter(|it| is_prefix && !it.contains(':'))
                else {
                    return Err(self.no_prefix());
                };
                self.bump();
                let iri = self.declared_iri()?;
                self.declare(prefix, iri);
            } else if self.eat_keyword(Keyword::Version) {
                let text = self.text_of(self.token);
                if text.starts_with("'''") || text.starts_with("\"\"\"") {
                    return Err(self.unexpected());
                }
                self.string()?;
            } else {
                return Ok(());
            }
        }
    }

    fn declared_iri(&mut self) -> Parsed<String> {
        if !self.at_thing(Thing::FullIri, |it| it == TokenKind::Iri) {
            return Err(self.no_iri());
        }
        let token = self.bump();
        self.full_iri(token)
    }

    fn query(&mut self) -> Parsed<Query> {
        for keyword in [
            Keyword::Select,
            Keyword::Construct,
            Keyword::Describe,
            Keyword::Ask,
        ] {
            self.expected.token(TokenKind::Keyword(keyword));
        }
        match self.token.kind {
            TokenKind::Keyword(Keyword::Select) => {
                let (dataset, pattern) = self.select_query()?;
                Ok(Query::Select {
                    dataset,
                    pattern,
                    base_iri: self.base.clone(),
                })
            }
            TokenKind::Keyword(Keyword::Construct) => self.construct(),
            TokenKind::Keyword(Keyword::Describe) => self.describe(),
            TokenKind::Keyword(Keyword::Ask) => {
                self.bump();
                let mark = self.scope.mark();
                let dataset = self.dataset(Keyword::From)?;
                let pattern = self.where_clause()?;
                let pattern = self.modified(Selection::Visible, pattern, mark)?;
                Ok(Query::Ask {
                    dataset,
                    pattern,
                    base_iri: self.base.clone(),
                })
            }
            _ if self.at_word("PATHS") => self.paths(),
            _ => Err(self.no_query()),
        }
    }

    /// A pattern with the clauses behind it.
    fn modified(
        &mut self,
        selection: Selection,
        pattern: GraphPattern,
        mark: usize,
    ) -> Parsed<GraphPattern> {
        let modifiers = self.modifiers()?;
        self.all_selected(selection, pattern, modifiers, mark)
    }

    fn construct(&mut self) -> Parsed<Query> {
        self.bump();
        let mark = self.scope.mark();
        let (template, dataset, pattern) = if self.at(TokenKind::LeftBrace) {
            let template = marked(self.template(false)?);
            self.labels.clear();
            let dataset = self.dataset(Keyword::From)?;
            (template, dataset, self.where_clause()?)
        } else {
            let dataset = self.dataset(Keyword::From)?;
            self.expect_keyword(Keyword::Where)?;
            let names = self.names.all().len();
            let parts = self.template(true)?;
            // It is the pattern, too.
            let pattern = self.pattern_of(&parts)?;
            let template = marked(parts);
            self.see_triples(&pattern, names);
            (template, dataset, pattern)
        };
        let pattern = self.modified(Selection::Visible, pattern, mark)?;
        Ok(Query::Construct {
            template,
            dataset,
            pattern,
            base_iri: self.base.clone(),
        })
    }

    /// Brings all variables from a number on into scope: those of a template that is the pattern.
    fn see_triples(&mut self, pattern: &GraphPattern, names: usize) {
        if *pattern != GraphPattern::default() {
            for id in names..self.names.all().len() {
                self.scope.see(id as u32);
            }
        }
    }

    /// A template that is the pattern.
    fn pattern_of(&mut self, parts: &[TemplatePart]) -> Parsed<GraphPattern> {
        let mut pattern = GraphPattern::default();
        for part in parts {
            let patterns = part.triples.clone();
            let mut own = GraphPattern::Bgp { patterns };
            if let Some(name) = &part.graph {
                self.deeper()?;
                own = GraphPattern::Graph {
                    name: name.clone(),
                    inner: Box::new(own),
                };
            }
            if !(is_triples(&pattern) && is_triples(&own)) {
                self.deeper()?;
            }
            pattern = join(pattern, own);
        }
        Ok(pattern)
    }

    /// Triples in braces, without paths, and those of graphs. `is_pattern`: whether the blank nodes
    /// of each part are those of a pattern.
    fn template(&mut self, is_pattern: bool) -> Parsed<Vec<TemplatePart>> {
        let depth = self.open_brace()?;
        let mut parts = Vec::new();
        loop {
            let result = self.template_part(is_pattern, &mut parts);
            let failure = match result {
                Ok(()) if self.at(TokenKind::RightBrace) => break,
                Ok(()) if self.token.kind == TokenKind::End => break,
                Ok(())
                    if self.token.kind == TokenKind::Keyword(Keyword::Graph)
                        && !(is_pattern && self.options.is_standard) =>
                {
                    continue;
                }
                Ok(()) => self.no_quad("put it behind this, into `WHERE { .. }`"),
                Err(failure) => failure,
            };
            self.recover_in_group(failure, depth)?;
        }
        self.close(TokenKind::RightBrace)?;
        Ok(parts)
    }

    /// Triples of the default graph, if any, and those of a graph behind them.
    fn template_part(&mut self, is_pattern: bool, parts: &mut Vec<TemplatePart>) -> Parsed<()> {
        if self.at_thing(Thing::Term, begins_triples) {
            self.template_triples(None, parts)?;
        }
        if is_pattern && self.options.is_standard || !self.eat_keyword(Keyword::Graph) {
            return Ok(());
        }
        let name = self.variable_or_iri()?;
        if is_pattern {
            self.begin_labels();
        }
        self.open_brace()?;
        match self.at_thing(Thing::Term, begins_triples) {
            true => self.template_triples(Some(name), parts)?,
            false => parts.push(TemplatePart {
                graph: Some(name),
                triples: Vec::new(),
            }),
        }
        self.close(TokenKind::RightBrace)?;
        if is_pattern {
            self.begin_labels();
        }
        self.eat(TokenKind::Dot);
        match self.at_thing(Thing::Term, begins_triples) {
            true => self.template_triples(None, parts),
            false => Ok(()),
        }
    }

    fn template_triples(
        &mut self,
        graph: Option<NamedNodePattern>,
        parts: &mut Vec<TemplatePart>,
    ) -> Parsed<()> {
        let mut elements = Elements::default();
        let result = self.triples(Place::Template, &mut elements);
        // Behind an error, too: a tolerant reader keeps what it read.
        parts.push(TemplatePart {
            graph,
            triples: elements.into_triples(),
        });
        result
    }

    fn describe(&mut self) -> Parsed<Query> {
        self.bump();
        let mark = self.scope.mark();
        let selection = if self.eat(TokenKind::Star) {
            Selection::Visible
        } else {
            let mut items = Vec::new();
            match self.described() {
                Ok(item) => items.push(item),
                Err(failure) => self.recover_in_columns(failure)?,
            }
            while self.at_thing(Thing::Iri, |kind| {
                kind == TokenKind::Variable || super::literal::is_iri(kind)
            }) {
                items.push(self.described()?);
            }
            Selection::Items(items)
        };
        let dataset = self.dataset(Keyword::From)?;
        let has_pattern = self.at_keyword(Keyword::Where) | self.at(TokenKind::LeftBrace);
        let pattern = match has_pattern {
            true => self.where_clause()?,
            false => GraphPattern::default(),
        };
        let pattern = self.modified(selection, pattern, mark)?;
        Ok(Query::Describe {
            dataset,
            pattern,
            base_iri: self.base.clone(),
        })
    }

    fn described(&mut self) -> Parsed<Item> {
        let token = self.token;
        Ok(match self.variable_or_iri()? {
            NamedNodePattern::Variable(variable) => Item {
                id: Some(self.names.id(self.variable_name(token))),
                variable,
                token,
                expression: None,
            },
            NamedNodePattern::NamedNode(node) => {
                self.deeper()?;
                let variable: Variable = self.fresh_variable();
                Item {
                    id: None,
                    variable,
                    token,
                    expression: Some((Expression::NamedNode(node), Vec::new())),
                }
            }
        })
    }

    /// `FROM` or `USING`.
    pub(super) fn dataset(&mut self, keyword: Keyword) -> Parsed<Option<QueryDataset>> {
        let (mut default, mut named): (Vec<NamedNode>, Vec<NamedNode>) = Default::default();
        while self.eat_keyword(keyword) {
            let graphs = match self.eat_keyword(Keyword::Named) {
                true => &mut named,
                false => &mut default,
            };
            match self.iri() {
                Ok(graph) => graphs.push(graph),
                Err(failure) => self.report(failure)?,
            }
            if self.token.kind == TokenKind::Comma {
                let failure = self.comma_between_graphs(keyword);
                self.report(failure)?;
                self.bump();
                graphs.push(self.iri()?);
            }
        }
        let is_given = !default.is_empty() || !named.is_empty();
        Ok(is_given.then_some(QueryDataset {
            default,
            named: Some(named),
        }))
    }
}
