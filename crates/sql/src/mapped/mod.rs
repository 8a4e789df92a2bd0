//! Statements about mapped graphs: `CREATE GRAPH`, `DROP GRAPH MAPPING`, `MATERIALIZE GRAPH`.
//!
//! ```text
//! CREATE GRAPH 'http://e/g' FROM MAPPING 'text of R2RML' [BASE 'http://e/']
//! CREATE GRAPH 'http://e/g' FROM TABLES [schema] [BASE 'http://e/']
//! DROP GRAPH MAPPING [IF EXISTS] 'http://e/g'
//! MATERIALIZE GRAPH 'http://e/g' [INTO 'http://e/copy']
//! ```
//!
//! A definition is kept where views are, as the text of its statement, under the graph's name in a
//! schema that no text creates. What a mapping means is known to whoever fills in
//! [`GraphMappings`]: this crate knows no RDF.

mod definition;
mod kept;
mod run;
mod statement;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use orrery_runtime::Spending;
use orrery_storage::{Snapshot, Transaction};

use crate::Result;

pub(crate) use definition::is_mapped;
pub use definition::{MappedGraph, MappingSource};
pub(crate) use run::run;
pub(crate) use statement::{GraphStatement, begins, of, parse};

/// The implementation of mappings.
#[async_trait]
pub trait GraphMappings: fmt::Debug + Send + Sync {
    /// Fails where a definition is none for the tables of a state, or its name is taken by quads
    /// that are stored.
    async fn check(&self, graph: &MappedGraph, snapshot: &Arc<Snapshot>) -> Result<()>;

    /// Puts the triples of a graph into the store under another name, and says how many were not
    /// there. The tables are those that the transaction sees. What is read for it, and the triples
    /// as they are put in, are paid for by `spending`. An error leaves the transaction lost.
    async fn materialize(
        &self,
        graph: &MappedGraph,
        target: &str,
        transaction: Transaction,
        spending: Option<Arc<Spending>>,
    ) -> Result<(Transaction, u64)>;
}
