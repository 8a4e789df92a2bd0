//! Definitions of edge weights, stored as quads in a graph of their own.
//!
//! ```text
//! GRAPH <https://orrery-db.org/weight#definitions> {
//!   <name> <https://orrery-db.org/weight#definition> "SELECT ?x ?y (.. AS ?weight) WHERE { .. } GROUP BY ?x ?y"
//! }
//! ```
//!
//! So it is as durable as quads are, changes with transactions, is part of backups, dumps and old
//! states, and is seen by those who see the graph.

use std::sync::Arc;

use orrery_storage::{Permutation, ReadView};
use orrery_syntax::{Limits, ParserOptions, parse_query};
use orrery_term::{Term, TermId};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::Variable;

use crate::error::{QueryError, Result};

/// The graph with the definitions.
pub(crate) const DEFINITIONS: &str = "https://orrery-db.org/weight#definitions";
/// What leads from a name to its definition.
pub(crate) const DEFINITION: &str = "https://orrery-db.org/weight#definition";

/// What reads weights.
const READ: &str = "https://orrery-db.org/weight#read";
const WEIGHED: &str = "path#weight";
/// Calls that give another value each time, or go by the base of the query that asks, as the
/// algebra is shown; where one stands in a string it is taken for one.
const UNSTEADY: [&str; 6] = ["NOW(", "RAND(", "UUID(", "BNODE(", "IRI(", "SERVICE"];
/// A call that is none of them, though it ends as one.
const STEADY: &str = "isIRI(";

/// Bytes of a definition.
const DEFINITION_BYTES_MAX: usize = 64 << 10;
/// It becomes part of other queries, which are planned on ordinary stacks.
const LIMITS: Limits = Limits {
    nesting_max: 8,
    operators_max: 100,
};

/// A definition that was read.
#[derive(Clone, Debug)]
pub(crate) struct EdgeWeight {
    /// Its columns: start, end, weight.
    pub(crate) columns: [Variable; 3],
    /// What gives them.
    pub(crate) pattern: GraphPattern,
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    /// Whether it gives the same whenever it is asked of a state.
    pub(crate) is_steady: bool,
}

impl EdgeWeight {
    /// Reads a definition.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn read(name: &str, text: &str) -> Result<Self> {
        let wrong = |what: String| {
            QueryError::unsupported(format!("the definition of the edge weight <{name}> {what}"))
        };
        if text.len() > DEFINITION_BYTES_MAX {
            return Err(wrong(format!("has more than {DEFINITION_BYTES_MAX} bytes")));
        }
        let options = ParserOptions {
            limits: LIMITS,
            ..ParserOptions::default()
        };
        let (query, _) = parse_query(text, &options)
            .map_err(|error| wrong(format!("cannot be kept: {error}")))?;
        let Query::Select {
            pattern,
            dataset: None,
            ..
        } = query
        else {
            return Err(wrong("is no SELECT without FROM".to_owned()));
        };
        let columns = match &pattern {
            GraphPattern::Project { variables, .. } => variables.clone(),
            _ => Vec::new(),
        };
        let columns = <[Variable; 3]>::try_from(columns)
            .map_err(|_| wrong("gives no start, end and weight".to_owned()))?;
        let shown = pattern.to_string();
        if shown.contains(READ) || shown.contains(WEIGHED) {
            return Err(wrong("reads an edge weight itself".to_owned()));
        }
        Ok(Self {
            is_steady: {
                let shown = shown.replace(STEADY, "");
                !UNSTEADY.iter().any(|call| shown.contains(call))
            },
            columns,
            pattern,
            name: name.into(),
            text: text.into(),
        })
    }
}

/// A definition where it stands.
pub(crate) struct Definition {
    pub(crate) id: TermId,
    pub(crate) text: String,
}

/// The definition of a name, as far as the view shows it.
pub(crate) fn definition_in(view: &ReadView, name: &str) -> Result<Option<Definition>> {
    let mut prefix = Vec::with_capacity(3);
    for iri in [DEFINITIONS, name, DEFINITION] {
        match view.id_in_quads(&Term::iri(iri.to_owned()))? {
            Some(id) => prefix.push(id),
            None => return Ok(None),
        }
    }
    let Some(index) = view.index(Permutation::Gspo) else {
        return Ok(None);
    };
    let Some(id) = index.cursor().distinct_next(&prefix, None)? else {
        return Ok(None);
    };
    match view.snapshot().term(id)? {
        Term::Literal(literal) => Ok(Some(Definition {
            id,
            text: literal.lexical.into_owned(),
        })),
        _ => Ok(None),
    }
}
