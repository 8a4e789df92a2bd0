//! `PATHS`: a query whose answers are the paths of a graph, as Stardog's users know it.
//!
//! ```text
//! PATHS [ALL | [ANY] SHORTEST [k]] [CYCLIC] [FROM <g>]...
//! START ?x [= <a> | { pattern }]  END ?y [= <b> | { pattern }]
//! VIA { pattern } | ?p | property path   [WEIGHT expression]
//! [MIN LENGTH n] [MAX LENGTH n] [ORDER BY ...] [LIMIT n] [OFFSET n]
//! ```
//!
//! It becomes a SELECT over the `SERVICE` that finds paths (`docs/paths.md`), so that there is one
//! form inside: a row for each edge, with the edge's nodes under the names of START and END, what
//! else the pattern binds, and the numbers of path and edge. The words are none of SPARQL's
//! keywords, and are known here only.

use oxrdf::vocab::xsd;
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{
    GroundTerm, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

use super::triples::join;
use super::{Parsed, Parser};
use crate::edge_weight::weights_between;
use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::names::is_made_up;
use crate::token::TokenKind;
use crate::word::Keyword;

/// The service that finds paths, and what its settings' names begin with.
const SEARCH: &str = "https://orrery-db.org/path#search";
const NAMES: &str = "https://orrery-db.org/path#";

/// Which paths are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    AllShortest,
    AnyShortest,
    First,
    All,
}

/// `START` or `END`.
struct End {
    variable: Variable,
    /// What the search knows it by.
    term: TermPattern,
    /// What binds that.
    pattern: Option<GraphPattern>,
}

/// Settings of the service, as triples.
struct Settings {
    subject: TermPattern,
    triples: Vec<TriplePattern>,
}

impl Settings {
    fn put(&mut self, name: &str, value: impl Into<TermPattern>) {
        self.triples.push(TriplePattern {
            subject: self.subject.clone(),
            predicate: name_of(name).into(),
            object: value.into(),
        });
    }

    fn number(&mut self, name: &str, digits: &str) {
        self.put(name, Literal::new_typed_literal(digits, xsd::INTEGER));
    }
}

fn name_of(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{NAMES}{name}"))
}

impl Parser<'_, '_> {
    /// Whether this word is here, in any case.
    pub(super) fn at_word(&self, word: &str) -> bool {
        self.token.kind == TokenKind::Word && self.text_of(self.token).eq_ignore_ascii_case(word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let is_here = self.at_word(word);
        if is_here {
            self.bump();
        }
        is_here
    }

    /// `MIN` and `MAX` are the names of aggregates, elsewhere.
    pub(super) fn at_name(&self, name: &str) -> bool {
        matches!(self.token.kind, TokenKind::BuiltIn(_))
            && self.text_of(self.token).eq_ignore_ascii_case(name)
    }

    pub(super) fn no_word(&self, keyword: &'static str, note: &'static str) -> super::Failure {
        let failure = self.error(ErrorKind::MissingKeyword { keyword });
        failure.with_hint(Hint::Note(note))
    }

    pub(super) fn expect_word(&mut self, word: &'static str, note: &'static str) -> Parsed<()> {
        match self.eat_word(word) {
            true => Ok(()),
            false => Err(self.no_word(word, note)),
        }
    }

    /// A query that begins with `PATHS`.
    pub(super) fn paths(&mut self) -> Parsed<Query> {
        self.bump();
        let subject = TermPattern::from(self.fresh_blank_node());
        let mut settings = Settings {
            subject,
            triples: Vec::new(),
        };
        self.kind_of_paths(&mut settings)?;
        let dataset = self.dataset(Keyword::From)?;
        self.expect_word("START", "write START ?x, START ?x = <a> or START ?x { .. }")?;
        let start = self.end_of_paths()?;
        self.expect_word(
            "END",
            "write END ?y, END ?y = <b> or END ?y { .. } behind START",
        )?;
        let end = self.end_of_paths()?;
        if start.variable == end.variable {
            let variable = end.variable.as_str().to_owned();
            let failure = self.error_at(self.previous, ErrorKind::RepeatedVariable { variable });
            let note = "START and END name the two ends of an edge; cycles are found with CYCLIC";
            return Err(failure.with_hint(Hint::Note(note)));
        }
        // The name of an edge weight says what an edge is, too.
        let edges = match self.at_word("WEIGHT") {
            true => None,
            false => {
                self.expect_word(
                    "VIA",
                    "behind END, VIA says what an edge is: VIA { ?x :knows ?y }",
                )?;
                Some(self.edges_of_paths(&start.variable, &end.variable)?)
            }
        };
        let (weight, edges) = self.weight_of_edges(edges, [&start.variable, &end.variable])?;
        self.lengths_of_paths(&mut settings)?;
        let modifiers = self.modifiers()?;
        let is_grouped = modifiers.group.is_some() || modifiers.having.is_some();
        if is_grouped || modifiers.values.is_some() {
            let clause = match is_grouped {
                true => "GROUP BY",
                false => "VALUES",
            };
            let place = "behind PATHS";
            let failure = self.error_at(self.previous, ErrorKind::Misplaced { clause, place });
            let note = "in a SELECT the same paths are found by SERVICE <https://orrery-db.org/path#search>";
            return Err(failure.with_hint(Hint::Note(note)));
        }
        if let Some((offset, limit)) = modifiers.slice {
            settings.number("offset", &offset.to_string());
            if let Some(limit) = limit {
                settings.number("limit", &limit.to_string());
            }
        }
        let (service, columns) = service(settings, [&start, &end], edges, weight);
        let mut pattern = service;
        for bound in [start.pattern, end.pattern].into_iter().flatten() {
            self.deeper()?;
            pattern = join(bound, pattern);
        }
        if let Some(expression) = modifiers.order {
            pattern = GraphPattern::OrderBy {
                inner: Box::new(pattern),
                expression,
            };
        }
        Ok(Query::Select {
            dataset,
            pattern: GraphPattern::Project {
                inner: Box::new(pattern),
                variables: columns,
            },
            base_iri: self.base.clone(),
        })
    }

    /// `ALL`, `SHORTEST`, `ANY SHORTEST`, `SHORTEST 3`; `CYCLIC`.
    fn kind_of_paths(&mut self, settings: &mut Settings) -> Parsed<()> {
        let mut kind = Kind::AllShortest;
        if self.eat_keyword(Keyword::All) {
            kind = Kind::All;
        } else if self.eat_word("ANY") {
            kind = Kind::AnyShortest;
            self.expect_word("SHORTEST", "write PATHS ANY SHORTEST START ..")?;
        } else if self.eat_word("SHORTEST") && self.token.kind == TokenKind::Integer {
            let digits = self.text_of(self.token).to_owned();
            self.bump();
            settings.number("count", &digits);
            kind = Kind::First;
        }
        let is_cyclic = self.eat_word("CYCLIC");
        let search = match (kind, is_cyclic) {
            (Kind::AllShortest, true) => "shortestCycle",
            (Kind::AnyShortest, true) => "oneShortestCycle",
            (Kind::First, true) => "firstCycles",
            (Kind::All, true) => "cycle",
            (Kind::AllShortest, false) => "shortestPath",
            (Kind::AnyShortest, false) => "oneShortestPath",
            (Kind::First, false) => "firstPaths",
            (Kind::All, false) => "allPaths",
        };
        settings.put("findPath", name_of(search));
        Ok(())
    }

    /// What stands behind `START` or `END`.
    fn end_of_paths(&mut self) -> Parsed<End> {
        if !self.at_thing(Thing::Variable, |it| it == TokenKind::Variable) {
            let part = "a variable";
            let failure = self.error(ErrorKind::MissingPart { part });
            let note = "START and END name the nodes of an edge, START ?x = <a> END ?y";
            return Err(failure.with_hint(Hint::Note(note)));
        }
        let (id, variable) = self.variable()?;
        self.scope.see(id);
        if self.eat(TokenKind::Equal) {
            let term = match self.ground_term()? {
                GroundTerm::NamedNode(node) => node.into(),
                GroundTerm::Literal(literal) => literal.into(),
                GroundTerm::Triple(_) => {
                    let part = "an IRI or a literal";
                    return Err(self.error_at(self.previous, ErrorKind::MissingPart { part }));
                }
            };
            return Ok(End {
                variable,
                term,
                pattern: None,
            });
        }
        let name = self.fresh_variable();
        if !self.at(TokenKind::LeftBrace) {
            return Ok(End {
                variable,
                term: name.into(),
                pattern: None,
            });
        }
        let token = self.token;
        let inner = self.group()?;
        let mut is_bound = false;
        inner.on_in_scope_variable(|seen| is_bound |= *seen == variable);
        if !is_bound {
            return Err(self.does_not_bind(&variable, token));
        }
        // Each node once, under a name that the edges do not have.
        let renamed = GraphPattern::Extend {
            inner: Box::new(inner),
            variable: name.clone(),
            expression: Expression::Variable(variable.clone()),
        };
        let projected = GraphPattern::Project {
            inner: Box::new(renamed),
            variables: vec![name.clone()],
        };
        Ok(End {
            variable,
            term: name.into(),
            pattern: Some(GraphPattern::Distinct {
                inner: Box::new(projected),
            }),
        })
    }

    pub(super) fn does_not_bind(
        &self,
        variable: &Variable,
        token: crate::token::Token,
    ) -> super::Failure {
        let variable = variable.as_str().to_owned();
        self.error_at(token, ErrorKind::NotBoundByPattern { variable })
    }

    /// The pattern of an edge.
    fn edges_of_paths(&mut self, start: &Variable, end: &Variable) -> Parsed<GraphPattern> {
        let token = self.token;
        let ends = [start, end].map(|variable| TermPattern::from(variable.clone()));
        let [subject, object] = ends;
        if self.at(TokenKind::LeftBrace) {
            let pattern = self.group()?;
            for variable in [start, end] {
                let mut is_bound = false;
                pattern.on_in_scope_variable(|seen| is_bound |= seen == variable);
                if !is_bound {
                    return Err(self.does_not_bind(variable, token));
                }
            }
            return Ok(pattern);
        }
        if self.at_thing(Thing::Variable, |it| it == TokenKind::Variable) {
            let (id, variable) = self.variable()?;
            self.scope.see(id);
            let predicate = NamedNodePattern::Variable(variable);
            return Ok(GraphPattern::Bgp {
                patterns: vec![TriplePattern {
                    subject,
                    predicate,
                    object,
                }],
            });
        }
        let path = self.path()?;
        Ok(GraphPattern::Path {
            subject,
            path,
            object,
        })
    }

    /// `WEIGHT`, and an expression over the variables of an edge or the name of an edge weight.
    fn weight_of_edges(
        &mut self,
        edges: Option<GraphPattern>,
        ends: [&Variable; 2],
    ) -> Parsed<(Option<Variable>, GraphPattern)> {
        if !self.eat_word("WEIGHT") {
            return Ok((None, edges.unwrap_or_default()));
        }
        self.deeper()?;
        let free = self.free.len();
        let expression = self.expression()?;
        self.free.truncate(free);
        let variable = match &edges {
            Some(_) => self.fresh_variable(),
            None => column_apart(ends),
        };
        let edges = match (edges, expression) {
            (edges, Expression::NamedNode(name)) => {
                let node = self.fresh_blank_node();
                let weights = weights_between(node, name, ends, &variable);
                edges.map_or(weights.clone(), |edges| join(edges, weights))
            }
            (Some(edges), expression) => GraphPattern::Extend {
                inner: Box::new(edges),
                variable: variable.clone(),
                expression,
            },
            (None, _) => {
                let keyword = "VIA";
                let failure = self.error_at(self.previous, ErrorKind::MissingKeyword { keyword });
                let note = "an expression is over the variables of VIA { .. }; without VIA, WEIGHT takes the name of an edge weight";
                return Err(failure.with_hint(Hint::Note(note)));
            }
        };
        Ok((Some(variable), edges))
    }

    /// `MIN LENGTH` and `MAX LENGTH`, each once.
    fn lengths_of_paths(&mut self, settings: &mut Settings) -> Parsed<()> {
        for (name, clause, setting) in [
            ("MIN", "MIN LENGTH", "minPathLength"),
            ("MAX", "MAX LENGTH", "maxPathLength"),
        ] {
            if !self.at_name(name) {
                continue;
            }
            self.bump();
            self.expect_word("LENGTH", "write MAX LENGTH 5, or MIN LENGTH 2")?;
            let is_number = self.at_thing(Thing::WholeNumber, |it| it == TokenKind::Integer);
            let digits = self.text_of(self.token).to_owned();
            if !is_number || digits.parse::<u32>().is_err() {
                return Err(self.error(ErrorKind::InvalidNumber { clause }));
            }
            self.bump();
            settings.number(setting, &digits);
        }
        if self.at_name("MIN") || self.at_name("MAX") {
            let (clause, before) = ("MIN LENGTH", "MAX LENGTH");
            return Err(self.error(ErrorKind::ClauseOrder { clause, before }));
        }
        Ok(())
    }
}

/// A name for the weights of edges that has no other meaning.
fn column_apart(ends: [&Variable; 2]) -> Variable {
    let mut name = "weight".to_owned();
    while ends.iter().any(|end| end.as_str() == name) {
        name.push('_');
    }
    Variable::new_unchecked(name)
}

/// The service with its settings and the edges, and the columns of the answer.
fn service(
    mut settings: Settings,
    [start, end]: [&End; 2],
    edges: GraphPattern,
    weight: Option<Variable>,
) -> (GraphPattern, Vec<Variable>) {
    settings.put("sourceNode", start.term.clone());
    settings.put("destinationNode", end.term.clone());
    settings.put("startNode", start.variable.clone());
    settings.put("endNode", end.variable.clone());
    let mut columns = vec![start.variable.clone()];
    edges.on_in_scope_variable(|variable| {
        let is_own = *variable == start.variable
            || *variable == end.variable
            || is_made_up(variable.as_str())
            || columns.contains(variable);
        if !is_own {
            columns.push(variable.clone());
        }
    });
    for exported in &columns[1..] {
        settings.put("exportBinding", exported.clone());
    }
    columns.push(end.variable.clone());
    let mut numbers = vec![
        ("path", "pathIndex"),
        ("edge", "resultBindingIndex"),
        ("length", "length"),
    ];
    if let Some(weight) = weight {
        settings.put("weight", weight);
        numbers.push(("cost", "cost"));
    }
    for (name, setting) in numbers {
        // The pattern may use the name itself.
        let mut name = name.to_owned();
        while columns.iter().any(|column| column.as_str() == name) {
            name.push('_');
        }
        let variable = Variable::new_unchecked(name);
        settings.put(setting, variable.clone());
        columns.push(variable);
    }
    let edges = GraphPattern::Service {
        name: NamedNodePattern::NamedNode(name_of("edges")),
        inner: Box::new(edges),
        silent: false,
    };
    let settings = GraphPattern::Bgp {
        patterns: settings.triples,
    };
    let service = GraphPattern::Service {
        name: NamedNodePattern::NamedNode(NamedNode::new_unchecked(SEARCH)),
        inner: Box::new(join(settings, edges)),
        silent: false,
    };
    (service, columns)
}
