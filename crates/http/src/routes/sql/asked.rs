//! A request of SQL that was read.

use crate::edge::access_log::AccessRecord;
use crate::request::negotiate::AcceptedFormats;
use crate::request::protocol::Held;
use orrery_service::errors::ServiceError;
use orrery_service::metering::{Exceeded, Meter, Payment};
use orrery_service::time_limit::TimeLimit;
use orrery_sql::{Error, GraphLimits, Session, SqlScope, Statement};
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
    /// Held until the end.
    pub(super) meter: Option<Arc<Meter>>,
    /// None where nobody is told what it costs.
    pub(super) payment: Option<Arc<Payment>>,
    /// Whether the rows found until a limit are an answer.
    pub(super) takes_part: bool,
    #[expect(dead_code, reason = "held")]
    pub(super) memory: Held,
}

impl Asked {
    /// Why work was ended that could not say it itself.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.payment.as_ref()?.exceeded()
    }

    /// A failure in the words of whoever it is told.
    pub(super) fn failure(&self, error: Error) -> ServiceError {
        match self.exceeded() {
            Some(exceeded) => exceeded.into(),
            None => ServiceError::of_sql(error, &self.text),
        }
    }

    /// The same, where what is read of graphs is waited for so long.
    pub(super) fn waiting(self, limits: GraphLimits) -> Self {
        Self {
            session: self.session.with_graph_limits(limits),
            ..self
        }
    }
}
