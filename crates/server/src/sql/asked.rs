//! A request of SQL that was read.

use crate::access_log::AccessRecord;
use crate::metering::Meter;
use crate::negotiate::AcceptedFormats;
use crate::output::TimeLimit;
use crate::protocol::Held;
use orrery_sql::{GraphLimits, Session, SqlScope, Statement};
use std::sync::Arc;

/// What both reads and changes need.
pub(super) struct Asked {
    pub(super) session: Session,
    /// What it may read and change, where that is not everything.
    pub(super) scope: Option<Arc<SqlScope>>,
    pub(super) statements: Vec<Statement>,
    pub(super) text: Arc<str>,
    pub(super) accepted: AcceptedFormats,
    pub(super) time: TimeLimit,
    pub(super) record: Arc<AccessRecord>,
    #[expect(dead_code, reason = "held")]
    pub(super) meter: Option<Arc<Meter>>,
    #[expect(dead_code, reason = "held")]
    pub(super) memory: Held,
}

impl Asked {
    /// The same, where what is read of graphs is waited for so long.
    pub(super) fn waiting(self, limits: GraphLimits) -> Self {
        Self {
            session: self.session.with_graph_limits(limits),
            ..self
        }
    }
}
