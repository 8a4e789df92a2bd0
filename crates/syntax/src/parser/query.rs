//! Whole queries, and the prologue that declares prefixes and base.

use oxiri::Iri;
use oxrdf::Variable;
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern, QueryDataset};
use spargebra::term::{NamedNode, NamedNodePattern};

use super::select::{Item, Selection};
use super::triples::{Elements, Place, begins_triples};
use super::{Parsed, Parser};
use crate::expected::Thing;
use crate::token::TokenKind;
use crate::word::Keyword;

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
            let template = self.template()?;
            self.labels.clear();
            let dataset = self.dataset(Keyword::From)?;
            (template, dataset, self.where_clause()?)
        } else {
            let dataset = self.dataset(Keyword::From)?;
            self.expect_keyword(Keyword::Where)?;
            let names = self.names.all().len();
            let template = self.template()?;
            // It is the pattern, too.
            self.see_triples(&template, names);
            let patterns = template.clone();
            (template, dataset, GraphPattern::Bgp { patterns })
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
    fn see_triples(&mut self, template: &[spargebra::term::TriplePattern], names: usize) {
        if !template.is_empty() {
            for id in names..self.names.all().len() {
                self.scope.see(id as u32);
            }
        }
    }

    /// Triples in braces, without paths.
    fn template(&mut self) -> Parsed<Vec<spargebra::term::TriplePattern>> {
        let depth = self.open_brace()?;
        let mut elements = Elements::default();
        loop {
            let result = match self.at_thing(Thing::Term, begins_triples) {
                true => self.triples(Place::Template, &mut elements),
                false => Ok(()),
            };
            let failure = match result {
                Ok(()) if self.at(TokenKind::RightBrace) => break,
                Ok(()) if self.token.kind == TokenKind::End => break,
                Ok(()) => self.no_quad("put it behind this, into `WHERE { .. }`"),
                Err(failure) => failure,
            };
            self.recover_in_group(failure, depth)?;
        }
        self.close(TokenKind::RightBrace)?;
        Ok(elements.into_triples())
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
