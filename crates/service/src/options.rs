//! Settings of the service, with their defaults, for statements of every protocol.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orrery_loader::{BackgroundOptions, CompactOptions};
use orrery_sql::ForeignAccess;

use crate::cluster::nodes::Cluster;
use crate::query_log::QueryLogOptions;
use crate::traces::OtlpOptions;

/// Limits and behaviour of statements, whichever protocol they come by.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// Time limit of a query that asks for none.
    pub timeout_default: Duration,
    /// The largest time limit that a query can ask for; more is refused.
    pub timeout_max: Duration,
    /// Queries that run at the same time. Each may keep a thread busy.
    pub queries_running_max: usize,
    /// Queries that may wait for a turn.
    pub queries_waiting_max: usize,
    /// Changes that may wait in the queue.
    pub updates_waiting_max: usize,
    /// Clients that read the change feed at the same time.
    pub feeds_max: usize,
    /// The default graph of a query without dataset is the union of all graphs.
    pub union_default_graph: bool,
    /// Assumes no prefixes: a query must declare each prefix, as the standard requires.
    pub strict_prefixes: bool,
    /// Foreign servers whose tables SQL and mapped graphs may read, for clients of all protocols.
    pub foreign: ForeignAccess,
    /// Settings of the query log; none for no log.
    pub query_log: Option<QueryLogOptions>,
    /// Whether running queries are listed, and can be ended.
    pub lists_queries: bool,
    /// The audit log's file; none for no log.
    pub audit_log: Option<PathBuf>,
    /// Where traces are sent; none for no traces.
    pub otlp: Option<OtlpOptions>,
    /// The cluster that the server is a node of, if any.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// Number of rows from which a query is divided among the cluster's nodes.
    pub divide_from: u64,
}

/// Default number of rows from which a query is divided.
pub const DIVIDE_FROM: u64 = orrery_distributed::LEAST_ROWS as u64;

impl Default for ServiceOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self {
            timeout_default: Duration::from_secs(60),
            timeout_max: Duration::from_secs(600),
            queries_running_max: (4 * threads).max(16),
            queries_waiting_max: 256,
            updates_waiting_max: 256,
            feeds_max: 256,
            union_default_graph: false,
            strict_prefixes: false,
            foreign: ForeignAccess::refused(),
            query_log: None,
            lists_queries: false,
            audit_log: None,
            otlp: None,
            cluster: None,
            divide_from: DIVIDE_FROM,
        }
    }
}

/// Memory of a compaction: this fraction of the queries' memory, and at least this many bytes.
const COMPACTION_MEMORY_PART: u64 = 8;
const COMPACTION_BYTES_MIN: u64 = 64 << 20;

/// Options of compaction beside queries that have this much memory.
pub fn compaction_within(memory_bytes: u64) -> CompactOptions {
    CompactOptions {
        memory_bytes: (memory_bytes / COMPACTION_MEMORY_PART).max(COMPACTION_BYTES_MIN),
        ..BackgroundOptions::default().compact
    }
}
