//! The shared state of one query's leaves: table state and blank nodes.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use orrery_operators::QueryContext;
use orrery_sql::TableReader;
use orrery_storage::table::Tables;
use orrery_term::TermId;
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// Labels of blank nodes of one query, in bytes.
const LABEL_BYTES_MAX: usize = 256 << 20;

/// What the leaves of one query share.
pub(crate) struct MappedQuery {
    pub(crate) reader: TableReader,
    pub(crate) tables: Arc<Tables>,
    pub(crate) labels: Mutex<Labels>,
}

/// Blank nodes by their labels.
#[derive(Default)]
pub(crate) struct Labels {
    nodes: HashMap<Box<str>, TermId>,
    bytes: usize,
}

impl fmt::Debug for MappedQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedQuery").finish_non_exhaustive()
    }
}

impl MappedQuery {
    /// The blank node of a label: another one in each query.
    pub(crate) fn blank_node(&self, label: &str, context: &QueryContext) -> Result<TermId> {
        let mut labels = self.labels.lock();
        if let Some(node) = labels.nodes.get(label) {
            return Ok(*node);
        }
        labels.bytes += label.len() + size_of::<(Box<str>, TermId)>();
        if labels.bytes > LABEL_BYTES_MAX {
            return Err(Error::Words(format!(
                "the labels of the mapping's blank nodes take more than {LABEL_BYTES_MAX} bytes"
            )));
        }
        let node = TermId::blank_node(context.fresh_blank_node());
        labels.nodes.insert(label.into(), node);
        Ok(node)
    }
}
