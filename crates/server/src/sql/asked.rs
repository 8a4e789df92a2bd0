//! A request of SQL that was read.

use crate::access_log::AccessRecord;
use crate::negotiate::AcceptedFormats;
use crate::output::TimeLimit;
use crate::protocol::Held;
use orrery_sql::{Session, Statement};
use std::sync::Arc;

/// What both reads and changes need.
pub(super) struct Asked {
    pub(super) session: Session,
    pub(super) statements: Vec<Statement>,
    pub(super) text: Arc<str>,
    pub(super) accepted: AcceptedFormats,
    pub(super) time: TimeLimit,
    pub(super) record: Arc<AccessRecord>,
    #[expect(dead_code, reason = "held")]
    pub(super) memory: Held,
}
