//! `MATERIALIZE`: the triples of a mapping as quads of the store, in a transaction.

use std::sync::Arc;

use futures::StreamExt as _;
use hashbrown::HashMap;
use orrery_sql::{Spending, TableReader};
use orrery_storage::Transaction;
use orrery_storage::table::Tables;
use orrery_term::{Term, TermId};

use crate::error::{Error, Result};
use crate::model::Mapping;
use crate::quads::{BoundScan, Quad, scans};
use crate::rules::Rules;
use crate::terms::Ids;

/// Quads that are put into the transaction at a time.
const QUADS_PER_CHANGE: usize = 1 << 16;
/// Labels of blank nodes of one mapping that are told apart, in bytes.
const LABEL_BYTES_MAX: usize = 256 << 20;

/// Blank nodes by their labels.
#[derive(Default)]
struct Labels {
    nodes: HashMap<Box<str>, TermId>,
    bytes: usize,
}

/// Ids of a transaction.
struct TransactionIds<'t> {
    transaction: &'t mut Transaction,
    labels: &'t mut Labels,
}

impl Ids for TransactionIds<'_> {
    fn intern(&mut self, term: &Term<'_>) -> Result<TermId> {
        Ok(self.transaction.intern(term)?)
    }

    fn blank_node(&mut self, label: &str) -> Result<TermId> {
        if let Some(node) = self.labels.nodes.get(label) {
            return Ok(*node);
        }
        self.labels.bytes += label.len() + size_of::<(Box<str>, TermId)>();
        if self.labels.bytes > LABEL_BYTES_MAX {
            return Err(Error::Words(format!(
                "the labels of the mapping's blank nodes take more than {LABEL_BYTES_MAX} bytes"
            )));
        }
        let node = self.transaction.fresh_blank_node();
        self.labels.nodes.insert(label.into(), node);
        Ok(node)
    }
}

/// What is copied, in the hands of whichever thread works on it.
struct Copy {
    transaction: Transaction,
    labels: Labels,
    quads: Vec<Quad>,
    count: u64,
    /// Who pays for them.
    spending: Option<Arc<Spending>>,
}

impl Copy {
    fn with<R>(&mut self, work: impl FnOnce(&mut TransactionIds<'_>) -> Result<R>) -> Result<R> {
        work(&mut TransactionIds {
            transaction: &mut self.transaction,
            labels: &mut self.labels,
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.count += self.transaction.insert(&mut self.quads)?;
        self.quads.clear();
        let spending = self.spending.as_ref();
        let paid = spending.map_or(Ok(()), |it| it.spend_on_change_up_to(self.count));
        Ok(paid.map_err(orrery_sql::Error::from)?)
    }
}

/// Puts all quads of a mapping into a transaction, those of the mapping's default graph into
/// `graph`; without those of graphs that constants name where these stay mapped. The transaction
/// with how many were not there before; an error leaves it lost, for a part of them may be in it.
pub(crate) async fn materialize(
    mapping: &Mapping,
    tables: &Arc<Tables>,
    reader: &TableReader,
    (graph, has_named_graphs): (&str, bool),
    mut transaction: Transaction,
    spending: Option<Arc<Spending>>,
) -> Result<(Transaction, u64)> {
    let rules = Rules::of(mapping, tables, reader).await?;
    transaction.add_language_tags(&rules.language_tags);
    let default_graph = transaction.intern(&Term::iri(graph))?;
    let mut copy = Copy {
        transaction,
        labels: Labels::default(),
        quads: Vec::new(),
        count: 0,
        spending,
    };
    for scan in scans(&rules, has_named_graphs)? {
        let mut rows = scan.rows(tables, reader).await?;
        let bound = copy.with(|ids| scan.bound(default_graph, ids))?;
        let bound: Arc<BoundScan> = Arc::new(bound);
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(|error| orrery_sql::Error::of_run(&error))?;
            let bound = Arc::clone(&bound);
            // Interning waits for the disk, and computes.
            let done = tokio::task::spawn_blocking(move || {
                let mut quads = std::mem::take(&mut copy.quads);
                copy.with(|ids| bound.quads(&batch, ids, &mut quads))?;
                copy.quads = quads;
                if copy.quads.len() >= QUADS_PER_CHANGE {
                    copy.flush()?;
                }
                Ok::<_, Error>(copy)
            });
            copy = done
                .await
                .map_err(|error| Error::Words(error.to_string()))??;
        }
    }
    copy.flush()?;
    Ok((copy.transaction, copy.count))
}
