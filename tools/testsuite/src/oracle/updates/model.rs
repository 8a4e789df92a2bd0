//! The model of SPARQL 1.1 Update on a set of quads.

use std::collections::{BTreeMap, BTreeSet};

use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, Variable};
use spargebra::algebra::{Expression, GraphPattern, GraphTarget, QueryDataset};
use spargebra::term::{
    GraphNamePattern, GroundQuadPattern, GroundTermPattern, NamedNodePattern, QuadPattern,
    TermPattern,
};
use spargebra::{GraphUpdateOperation, Query, SparqlParser};

use super::super::answer::Answer;
use super::super::reference::{self, NoAnswer, Question};
use super::requests::DEAD;

/// The quads as text.
pub(super) type State = BTreeSet<String>;

/// Why a request changed nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// The specification has it fail.
    Refused,
    /// Nobody knows what should come of it.
    LeftOut,
}

/// The data, and those of other endpoints.
#[derive(Clone)]
pub(super) struct Model {
    quads: BTreeMap<String, Quad>,
    endpoints: Vec<Quad>,
}

/// A solution: the values of some variables.
type Solution = BTreeMap<String, Term>;

impl Model {
    pub(super) fn new(quads: &[Quad], endpoints: &[Quad]) -> Self {
        let quads = quads.iter().map(|quad| (quad.to_string(), quad.clone()));
        Self {
            quads: quads.collect(),
            endpoints: endpoints.to_vec(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.quads.keys().cloned().collect()
    }

    /// Does all operations of a request. After a failure the model is of no use.
    pub(super) fn apply(&mut self, text: &str) -> Result<(), Failure> {
        let update = SparqlParser::new().parse_update(text);
        let update = update.map_err(|_| Failure::LeftOut)?;
        update
            .operations
            .into_iter()
            .try_for_each(|operation| self.operation(operation))
    }

    fn operation(&mut self, operation: GraphUpdateOperation) -> Result<(), Failure> {
        match operation {
            GraphUpdateOperation::InsertData { data } => {
                for quad in data {
                    let graph = graph_name(quad.graph_name);
                    self.insert(Quad::new(quad.subject, quad.predicate, quad.object, graph));
                }
            }
            GraphUpdateOperation::DeleteData { data } => {
                for quad in data {
                    let (object, graph) = (Term::from(quad.object), graph_name(quad.graph_name));
                    let quad = Quad::new(quad.subject, quad.predicate, object, graph);
                    self.quads.remove(&quad.to_string());
                }
            }
            GraphUpdateOperation::DeleteInsert {
                delete,
                insert,
                using,
                pattern,
            } => self.modify(&delete, &insert, using, &pattern)?,
            GraphUpdateOperation::Clear { graph, .. }
            | GraphUpdateOperation::Drop { graph, .. } => {
                self.quads
                    .retain(|_, quad| !is_meant(&graph, &quad.graph_name));
            }
            GraphUpdateOperation::Create { graph, silent } => {
                let name = GraphName::from(graph);
                if !silent && self.quads.values().any(|quad| quad.graph_name == name) {
                    return Err(Failure::Refused);
                }
            }
            GraphUpdateOperation::Load { .. } => return Err(Failure::LeftOut),
        }
        Ok(())
    }

    fn insert(&mut self, quad: Quad) {
        self.quads.insert(quad.to_string(), quad);
    }

    fn modify(
        &mut self,
        delete: &[GroundQuadPattern],
        insert: &[QuadPattern],
        using: Option<QueryDataset>,
        pattern: &GraphPattern,
    ) -> Result<(), Failure> {
        let solutions = self.solutions(using, pattern)?;
        let deleted: Vec<Quad> = solutions
            .iter()
            .flat_map(|solution| delete.iter().filter_map(|quad| quad_of(quad, solution)))
            .collect();
        let inserted: Vec<Quad> = solutions
            .iter()
            .flat_map(|solution| insert.iter().filter_map(|quad| new_quad_of(quad, solution)))
            .collect();
        for quad in deleted {
            self.quads.remove(&quad.to_string());
        }
        inserted.into_iter().for_each(|quad| self.insert(quad));
        Ok(())
    }

    fn solutions(
        &self,
        using: Option<QueryDataset>,
        pattern: &GraphPattern,
    ) -> Result<Vec<Solution>, Failure> {
        let mut variables: Vec<Variable> = Vec::new();
        pattern.on_in_scope_variable(|variable| {
            if !variables.contains(variable) {
                variables.push(variable.clone());
            }
        });
        let mut quads: Vec<Quad> = self.quads.values().cloned().collect();
        let mut pattern = pattern.clone();
        let mut using = using;
        if let Some(QueryDataset { named, .. }) = &mut using {
            // `WITH` leaves all named graphs to be seen, `USING` those of `USING NAMED`.
            named.get_or_insert_with(|| names_of(&quads));
        }
        if has_service(&pattern) {
            // Requests with SERVICE have no GRAPH, which would see the endpoints too.
            if let Some(QueryDataset { named, .. }) = &mut using {
                named
                    .get_or_insert_default()
                    .extend(names_of(&self.endpoints));
            }
            quads.extend(self.endpoints.iter().cloned());
            pattern = without_service(pattern);
        }
        let query = Query::Select {
            dataset: using,
            pattern: GraphPattern::Project {
                inner: Box::new(pattern),
                variables,
            },
            base_iri: None,
        };
        let question = Question::of(&query, &quads);
        let answer = reference::answer(&quads, &question.whole).map_err(|error| match error {
            NoAnswer::TooLarge | NoAnswer::NoQuery | NoAnswer::Failed(_) => Failure::LeftOut,
        })?;
        let Answer::Solutions(solutions) = answer else {
            return Err(Failure::LeftOut);
        };
        let names = &solutions.variables;
        let rows = solutions.rows.iter().map(|row| {
            let bound = names.iter().zip(row);
            bound
                .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
                .collect()
        });
        Ok(rows.collect())
    }
}

fn names_of(quads: &[Quad]) -> Vec<NamedNode> {
    let mut names = BTreeMap::new();
    for quad in quads {
        if let GraphName::NamedNode(name) = &quad.graph_name {
            names.insert(name.as_str(), name.clone());
        }
    }
    names.into_values().collect()
}

fn graph_name(name: spargebra::term::GraphName) -> GraphName {
    match name {
        spargebra::term::GraphName::DefaultGraph => GraphName::DefaultGraph,
        spargebra::term::GraphName::NamedNode(node) => node.into(),
    }
}

/// Whether a graph is one of those that are cleared.
fn is_meant(target: &GraphTarget, graph: &GraphName) -> bool {
    match target {
        GraphTarget::AllGraphs => true,
        GraphTarget::DefaultGraph => *graph == GraphName::DefaultGraph,
        GraphTarget::NamedGraphs => *graph != GraphName::DefaultGraph,
        GraphTarget::NamedNode(node) => *graph == GraphName::from(node.clone()),
    }
}

/// The generator puts `SERVICE` into joins, optional parts, unions and subtractions only.
fn has_service(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Service { .. } => true,
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Minus { left, right } => has_service(left) || has_service(right),
        GraphPattern::Filter { expr, inner } => condition_has_service(expr) || has_service(inner),
        GraphPattern::Extend { inner, .. } => has_service(inner),
        _ => false,
    }
}

fn without_service(pattern: GraphPattern) -> GraphPattern {
    let map = |pattern: Box<GraphPattern>| Box::new(without_service(*pattern));
    match pattern {
        GraphPattern::Service {
            name: NamedNodePattern::NamedNode(name),
            inner,
            ..
        } => match name.as_str().ends_with(DEAD) {
            // One solution without bindings.
            true => GraphPattern::default(),
            false => GraphPattern::Graph {
                name: name.into(),
                inner,
            },
        },
        GraphPattern::Join { left, right } => GraphPattern::Join {
            left: map(left),
            right: map(right),
        },
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => GraphPattern::LeftJoin {
            left: map(left),
            right: map(right),
            expression,
        },
        GraphPattern::Union { left, right } => GraphPattern::Union {
            left: map(left),
            right: map(right),
        },
        GraphPattern::Lateral { left, right } => GraphPattern::Lateral {
            left: map(left),
            right: map(right),
        },
        GraphPattern::Minus { left, right } => GraphPattern::Minus {
            left: map(left),
            right: map(right),
        },
        GraphPattern::Filter { expr, inner } => GraphPattern::Filter {
            expr: condition_without_service(expr),
            inner: map(inner),
        },
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => GraphPattern::Extend {
            inner: map(inner),
            variable,
            expression,
        },
        other => other,
    }
}

/// Conditions on the existence of something are joined by `&&` at most.
fn condition_has_service(condition: &Expression) -> bool {
    match condition {
        Expression::Exists(pattern) => has_service(pattern),
        Expression::And(a, b) => condition_has_service(a) || condition_has_service(b),
        _ => false,
    }
}

fn condition_without_service(condition: Expression) -> Expression {
    match condition {
        Expression::Exists(pattern) => Expression::Exists(Box::new(without_service(*pattern))),
        Expression::And(a, b) => Expression::And(
            Box::new(condition_without_service(*a)),
            Box::new(condition_without_service(*b)),
        ),
        other => other,
    }
}

/// The quad of a template, if the solution makes one of it.
fn quad_of(template: &GroundQuadPattern, solution: &Solution) -> Option<Quad> {
    let term = |term: &GroundTermPattern| match term {
        GroundTermPattern::NamedNode(node) => Some(node.clone().into()),
        GroundTermPattern::Literal(literal) => Some(literal.clone().into()),
        GroundTermPattern::Variable(variable) => solution.get(variable.as_str()).cloned(),
        GroundTermPattern::Triple(_) => None,
    };
    let (subject, object) = (term(&template.subject)?, term(&template.object)?);
    quad(
        subject,
        &template.predicate,
        object,
        &template.graph_name,
        solution,
    )
}

fn new_quad_of(template: &QuadPattern, solution: &Solution) -> Option<Quad> {
    let term = |term: &TermPattern| match term {
        TermPattern::NamedNode(node) => Some(node.clone().into()),
        TermPattern::Literal(literal) => Some(literal.clone().into()),
        TermPattern::Variable(variable) => solution.get(variable.as_str()).cloned(),
        TermPattern::BlankNode(_) | TermPattern::Triple(_) => None,
    };
    let (subject, object) = (term(&template.subject)?, term(&template.object)?);
    quad(
        subject,
        &template.predicate,
        object,
        &template.graph_name,
        solution,
    )
}

fn quad(
    subject: Term,
    predicate: &NamedNodePattern,
    object: Term,
    graph: &GraphNamePattern,
    solution: &Solution,
) -> Option<Quad> {
    let value = |variable: &Variable| match solution.get(variable.as_str()) {
        Some(Term::NamedNode(node)) => Some(node.clone()),
        _ => None,
    };
    let predicate: NamedNode = match predicate {
        NamedNodePattern::NamedNode(node) => node.clone(),
        NamedNodePattern::Variable(variable) => value(variable)?,
    };
    let graph = match graph {
        GraphNamePattern::DefaultGraph => GraphName::DefaultGraph,
        GraphNamePattern::NamedNode(node) => node.clone().into(),
        GraphNamePattern::Variable(variable) => value(variable)?.into(),
    };
    let subject = NamedOrBlankNode::try_from(subject).ok()?;
    Some(Quad::new(subject, predicate, object, graph))
}
