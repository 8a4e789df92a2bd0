//! A SQL request that was read and authorized, on its way to run.

use crate::edge::access_log::AccessRecord;
use crate::request::negotiate::AcceptedFormats;
use crate::request::protocol::Held;
use orrery_service::errors::ServiceError;
use orrery_service::metering::{Exceeded, Meter, Payment};
use orrery_service::time_limit::TimeLimit;
use orrery_sql::{Error, GraphLimits, Session, SqlScope, Statement};
use std::sync::Arc;

/// The input of both reads and changes: session, statements, limits and accepted formats.
pub(super) struct Asked {
    pub(super) session: Session,
    /// What the session may read and change, where that is not everything.
    pub(super) scope: Option<Arc<SqlScope>>,
    pub(super) statements: Vec<Statement>,
    pub(super) text: Arc<str>,
    pub(super) accepted: AcceptedFormats,
    pub(super) time: TimeLimit,
    pub(super) record: Arc<AccessRecord>,
    /// Held until the end.
    pub(super) meter: Option<Arc<Meter>>,
    /// None if the cost is not reported.
    pub(super) payment: Option<Arc<Payment>>,
    /// Whether the client accepts a partial answer at a limit.
    pub(super) takes_part: bool,
    #[expect(dead_code, reason = "held")]
    pub(super) memory: Held,
}

impl Asked {
    /// The budget's error for work that was ended before it could report one.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.payment.as_ref()?.exceeded()
    }

    /// The error for the client: the budget's, if that has ended the work.
    pub(super) fn failure(&self, error: Error) -> ServiceError {
        match self.exceeded() {
            Some(exceeded) => exceeded.into(),
            None => ServiceError::of_sql(error, &self.text),
        }
    }

    /// Sets the limits for reading graphs.
    pub(super) fn waiting(self, limits: GraphLimits) -> Self {
        Self {
            session: self.session.with_graph_limits(limits),
            ..self
        }
    }
}
