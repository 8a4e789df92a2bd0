//! The interface to mapped graphs, such as R2RML's graphs over tables.
//!
//! A graph is asked for basic graph patterns. It answers with parts that are joined, each a union
//! of leaves of the plan ([`MappedRows`]); conditions of filters come down to the leaves as hints.
//! A graph is a set of triples as stored ones are: where leaves may give a solution twice, their
//! union is made distinct.

use std::fmt;
use std::sync::Arc;

use orrery_operators::source::SolutionSource;
use orrery_storage::Snapshot;
use orrery_storage::table::Tables;
use orrery_term::Term;

use crate::error::Result;

/// The source of a database's mapped graphs.
pub trait MappedGraphs: fmt::Debug + Send + Sync {
    /// Whether a state has any; asked for every query and update.
    fn are_in(&self, tables: &Tables) -> bool;

    /// Those of a state, for one query.
    ///
    /// # Errors
    /// When definitions cannot be read.
    fn of_query(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<dyn MappedDataset>>;
}

/// The mapped graphs that a query sees.
pub trait MappedDataset: fmt::Debug + Send + Sync {
    /// Their names, each once.
    fn names(&self) -> Vec<&str>;

    /// What matches patterns in one of them: the join of the parts.
    ///
    /// # Errors
    /// When the graph cannot be read, as where its mapping names a table that is there no more.
    fn matches(&self, graph: &str, patterns: &[MappedPattern]) -> Result<Vec<MappedPart>>;
}

/// A triple pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedPattern {
    /// Subject.
    pub subject: MappedTerm,
    /// Predicate.
    pub predicate: MappedTerm,
    /// Object.
    pub object: MappedTerm,
}

/// A position of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum MappedTerm {
    /// By its name in the plan.
    Variable(Arc<str>),
    /// Any term, also one that the store does not know.
    Constant(Term<'static>),
}

/// Some of the patterns.
#[derive(Debug)]
pub struct MappedPart {
    /// The variables that each solution binds.
    pub variables: Vec<Arc<str>>,
    /// The solutions are those of all of these.
    pub branches: Vec<Arc<dyn MappedRows>>,
    /// Whether it is known that none comes twice.
    pub is_distinct: bool,
}

/// Leaves that give solutions of a part.
pub trait MappedRows: fmt::Debug + Send + Sync {
    /// Expected solutions.
    fn expected_rows(&self) -> f64;

    /// The leaf that gives these variables of each solution. It may leave out solutions for which a
    /// condition does not hold, which are looked at again.
    fn source(
        &self,
        variables: &[Arc<str>],
        conditions: &[MappedCondition],
    ) -> Arc<dyn SolutionSource>;
}

/// A condition on a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedCondition {
    /// Its name in the plan.
    pub variable: Arc<str>,
    /// How it compares.
    pub comparison: MappedComparison,
    /// To what.
    pub term: Term<'static>,
}

/// SPARQL's comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappedComparison {
    /// `=`, of values.
    Equal,
    /// `sameTerm`.
    Same,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}
