//! State that all calls share: options, host, what outlives a call by handle, and the server's
//! stage.

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

/// Period of the search for idle transactions, statements and answers.
const EXPIRY_PERIOD: Duration = Duration::from_secs(10);

/// The options, the host and the handles of one server.
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

    /// Forgets what ends with a connection; prepared statements stay for a client that comes back.
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

    /// Forgets idle entries, again and again.
    pub(crate) async fn expire(&self) {
        loop {
            tokio::time::sleep(EXPIRY_PERIOD).await;
            self.answers.expire();
            self.statements.expire();
            self.transactions.expire();
        }
    }

    /// Fails when the server is stopping.
    pub(crate) fn require_serving(&self) -> Result<(), Status> {
        match *self.stage.borrow() {
            Stage::Serving => Ok(()),
            Stage::Stopping | Stage::Over => Err(shutting_down()),
        }
    }
}
