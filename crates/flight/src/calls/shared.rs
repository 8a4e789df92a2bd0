//! What all calls share: the engine and the door before it, what outlives a call, the server's life.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::sql::metadata::SqlInfoData;
use orrery_service::ports::host::Host;
use tokio::sync::watch;
use tonic::Status;

use crate::access::guard::Guard;
use crate::calls::answer::Answer;
use crate::calls::kept_statement::KeptStatement;
use crate::calls::open_transaction::OpenTransaction;
use crate::handles::{ConnectionId, Handles};
use crate::life::Stage;
use crate::options::FlightOptions;
use crate::refusal::shutting_down;

/// How often what nobody uses is looked for.
const EXPIRY_PERIOD: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Shared {
    pub(crate) options: FlightOptions,
    pub(crate) host: Host,
    pub(crate) guard: Guard,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) transactions: Handles<Arc<OpenTransaction>>,
    pub(crate) statements: Handles<Arc<KeptStatement>>,
    pub(crate) answers: Handles<Arc<Answer>>,
    pub(crate) capabilities: SqlInfoData,
}

impl Shared {
    pub(crate) fn new(
        options: FlightOptions,
        host: Host,
        stage: watch::Receiver<Stage>,
        capabilities: SqlInfoData,
    ) -> Self {
        Self {
            guard: Guard::new(options.password.clone(), host.users.clone()),
            transactions: Handles::new(
                "open transactions",
                options.transactions_max,
                options.idle_max,
            ),
            statements: Handles::new(
                "prepared statements",
                options.statements_max,
                options.idle_max,
            ),
            answers: Handles::new(
                "answers that were not fetched",
                options.answers_max,
                options.answer_time_max,
            ),
            options,
            host,
            stage,
            capabilities,
        }
    }

    /// Forgets what goes with a client: statements of a client that comes back are still there.
    pub(crate) fn end_connection(&self, connection: ConnectionId) {
        self.answers.end_connection(connection);
        self.transactions.end_connection(connection);
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.answers.clear();
        self.statements.clear();
        self.transactions.clear();
    }

    /// Forgets what nobody uses, again and again.
    pub(crate) async fn expire(&self) {
        loop {
            tokio::time::sleep(EXPIRY_PERIOD).await;
            self.answers.expire();
            self.statements.expire();
            self.transactions.expire();
        }
    }

    /// Fails when nothing more is begun.
    pub(crate) fn require_serving(&self) -> Result<(), Status> {
        match *self.stage.borrow() {
            Stage::Serving => Ok(()),
            Stage::Stopping | Stage::Over => Err(shutting_down()),
        }
    }
}
