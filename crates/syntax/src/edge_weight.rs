//! Edge weight statements encoded in spargebra's algebra.
//!
//! `CREATE EDGE WEIGHT` and `DROP EDGE WEIGHT` are read as a change without templates, whose
//! pattern is one `SERVICE` with a name that no text can write; its triples are what the statement
//! says. [`weight_statement`] tells them from other operations.

use spargebra::GraphUpdateOperation;
use spargebra::algebra::GraphPattern;
use spargebra::term::{
    BlankNode, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

/// What the names begin with that have to do with edge weights.
pub const WEIGHT_NAMES: &str = "https://orrery-db.org/weight#";

/// The services that stand for the statements. A blank cannot stand in an IRI.
const CREATE: &str = " create edge weight";
const DROP: &str = " drop edge weight";
const NAME: &str = " name";
const DEFINITION: &str = " definition";
const REPLACES: &str = " replaces";

/// The pattern that reads an edge weight into these variables; `node` is a blank node of its own.
pub fn weights_between(
    node: BlankNode,
    name: NamedNode,
    [start, end]: [&Variable; 2],
    weight: &Variable,
) -> GraphPattern {
    let named = |name: &str| NamedNode::new_unchecked(format!("{WEIGHT_NAMES}{name}"));
    let settings: [(&str, TermPattern); 4] = [
        ("name", name.into()),
        ("start", start.clone().into()),
        ("end", end.clone().into()),
        ("value", weight.clone().into()),
    ];
    let triple = |(setting, object)| TriplePattern {
        subject: node.clone().into(),
        predicate: named(setting).into(),
        object,
    };
    GraphPattern::Service {
        name: named("read").into(),
        inner: Box::new(GraphPattern::Bgp {
            patterns: settings.map(triple).into(),
        }),
        silent: false,
    }
}

/// What is to become of an edge weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightStatement {
    /// `CREATE EDGE WEIGHT`.
    Create {
        /// Its name.
        name: NamedNode,
        /// A query that gives the start, the end and the weight of each pair, with all prefixes
        /// that it needs.
        definition: String,
        /// Whether one of that name that is there goes.
        replaces: bool,
        /// Whether one of that name that is there stays, without an error.
        is_silent: bool,
    },
    /// `DROP EDGE WEIGHT`.
    Drop {
        /// Its name.
        name: NamedNode,
        /// Whether it need not be there.
        is_silent: bool,
    },
}

impl WeightStatement {
    pub(crate) fn into_operation(self) -> GraphUpdateOperation {
        let mut triples = Vec::new();
        let mut put = |predicate: &str, object: TermPattern| {
            triples.push(TriplePattern {
                subject: BlankNode::new_unchecked("statement").into(),
                predicate: NamedNode::new_unchecked(predicate).into(),
                object,
            });
        };
        let (service, silent) = match self {
            Self::Create {
                name,
                definition,
                replaces,
                is_silent,
            } => {
                put(NAME, name.into());
                put(DEFINITION, Literal::new_simple_literal(definition).into());
                if replaces {
                    put(REPLACES, Literal::from(true).into());
                }
                (CREATE, is_silent)
            }
            Self::Drop { name, is_silent } => {
                put(NAME, name.into());
                (DROP, is_silent)
            }
        };
        GraphUpdateOperation::DeleteInsert {
            delete: Vec::new(),
            insert: Vec::new(),
            using: None,
            pattern: Box::new(GraphPattern::Service {
                name: NamedNode::new_unchecked(service).into(),
                inner: Box::new(GraphPattern::Bgp { patterns: triples }),
                silent,
            }),
        }
    }
}

/// The statement about an edge weight that an operation stands for, if it does.
pub fn weight_statement(operation: &GraphUpdateOperation) -> Option<WeightStatement> {
    let GraphUpdateOperation::DeleteInsert { pattern, .. } = operation else {
        return None;
    };
    let GraphPattern::Service {
        name: NamedNodePattern::NamedNode(service),
        inner,
        silent,
    } = &**pattern
    else {
        return None;
    };
    let GraphPattern::Bgp { patterns } = &**inner else {
        return None;
    };
    let said = |name: &str| {
        let is_it = |it: &&TriplePattern| matches!(&it.predicate, NamedNodePattern::NamedNode(known) if known.as_str() == name);
        patterns.iter().find(is_it).map(|it| &it.object)
    };
    let Some(TermPattern::NamedNode(name)) = said(NAME) else {
        return None;
    };
    match service.as_str() {
        CREATE => Some(WeightStatement::Create {
            name: name.clone(),
            definition: match said(DEFINITION)? {
                TermPattern::Literal(text) => text.value().to_owned(),
                _ => return None,
            },
            replaces: said(REPLACES).is_some(),
            is_silent: *silent,
        }),
        DROP => Some(WeightStatement::Drop {
            name: name.clone(),
            is_silent: *silent,
        }),
        _ => None,
    }
}
