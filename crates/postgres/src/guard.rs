//! What stops a statement: its client's wish, its time, what it costs, the server's end, and that its client has gone.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use orrery_service::record::StatementRecord;
use orrery_sql::{Committing, Error, Spent, spent};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cancel::CancelKey;
use crate::frontend::Frontend;
use crate::refusal::{Refusal, Stop, Stopped};
use crate::shared::Stage;
use crate::wire::Wire;

/// What a statement is told whose time is up.
pub(crate) const TIMED_OUT: &str = "canceling statement due to statement timeout";

/// What may stop a statement.
pub(crate) struct Guard {
    pub(crate) key: CancelKey,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) until: Option<Instant>,
    /// Of the session whose statements are stopped.
    pub(crate) committing: Committing,
    /// Where others see the statement and may end it; none where nobody does.
    pub(crate) watched: Option<Arc<StatementRecord>>,
    /// Where is said that it costs more than there is; none where nothing is limited.
    pub(crate) spent: Option<Spent>,
}

impl Guard {
    /// A statement begins.
    pub(crate) fn begin(&mut self, time: Duration) {
        self.key.forget();
        self.spent = None;
        self.until = Instant::now().checked_add(time);
    }

    /// The client begins to do what may take as long as it likes.
    pub(crate) fn begin_without_end(&mut self) {
        self.key.forget();
        self.spent = None;
        self.until = None;
    }

    /// Waits for a message of the client, unless what it is for is to be stopped.
    pub(crate) async fn message(&mut self, wire: &mut Wire) -> Stopped<Frontend> {
        tokio::select! {
            message = wire.any_message(false) => message,
            refusal = self.stop() => Err(refusal.into()),
        }
    }

    /// Completes when something is to be stopped.
    async fn stop(&mut self) -> Refusal {
        let (until, stage, watched) = (self.until, &mut self.stage, &self.watched);
        let is_killed = async {
            match watched {
                Some(watched) => watched.killed().await,
                None => std::future::pending().await,
            }
        };
        let time_is_up = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.key.asked() => {
                Refusal::new("57014", "canceling statement due to user request")
            }
            () = is_killed => {
                Refusal::new("57014", "canceling statement because an administrator has ended it")
            }
            () = time_is_up => Refusal::new("57014", TIMED_OUT),
            message = spent(self.spent.as_ref()) => Refusal::new("53400", message),
            () = reached(stage, Stage::Over) => shutting_down(),
        }
    }

    /// Does something until it is done or to be stopped. A commit that has begun is waited for unless nobody is there to be told: it cannot be undone.
    pub(crate) async fn run<T>(
        &mut self,
        wire: &mut Wire,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Stopped<T> {
        let mut work = pin!(work);
        // Mostly it is done at once, and nobody else needs to be asked.
        if let std::task::Poll::Ready(done) = futures::poll!(&mut work) {
            return Ok(done?);
        }
        tokio::select! {
            // What is done was done, whatever else has come meanwhile.
            biased;
            done = &mut work => Ok(done?),
            refusal = self.stop() => {
                if refusal.is_fatal() || !self.committing.is_begun() {
                    return Err(refusal.into());
                }
                tokio::select! {
                    done = &mut work => Ok(done?),
                    () = reached(&mut self.stage, Stage::Over) => Err(shutting_down().into()),
                }
            }
            error = wire.watch() => Err(Stop::Gone(error)),
        }
    }

    /// Sends what was gathered, unless it is to be stopped before the client takes it.
    pub(crate) async fn send(&mut self, wire: &mut Wire) -> Stopped<()> {
        tokio::select! {
            sent = wire.flush() => Ok(sent?),
            refusal = self.stop() => Err(refusal.into()),
        }
    }
}

/// Completes when the server's life has come so far. If nobody is there to say so, it has.
pub(crate) async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}

pub(crate) fn shutting_down() -> Refusal {
    Refusal::fatal(
        "57P01",
        "terminating connection due to administrator command",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pgwire::tokio::server::MaybeTls;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::cancel::CancelKeys;

    #[tokio::test]
    async fn a_commit_that_has_begun_is_waited_for_though_its_time_is_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let mut wire = Wire::new(MaybeTls::Plain(accepted.unwrap().0), 1 << 20);
        let (_sender, stage) = watch::channel(Stage::Serving);
        let committing = orrery_sql::Committing::default();
        let mut guard = Guard {
            key: Arc::new(CancelKeys::default()).key(),
            stage,
            until: None,
            committing: committing.clone(),
            watched: None,
            spent: None,
        };
        for is_committing in [true, false] {
            guard.begin(Duration::ZERO);
            let work = async {
                let begun = is_committing.then(|| committing.begin());
                tokio::time::sleep(Duration::from_millis(50)).await;
                drop(begun);
                // Before it is committed, nothing would be the end of it.
                if !is_committing {
                    std::future::pending::<()>().await;
                }
                Ok(7)
            };
            let done = guard.run(&mut wire, work).await;
            match (is_committing, done) {
                (true, Ok(7)) => {}
                (false, Err(Stop::Refused(refusal))) => assert_eq!(refusal.code, "57014"),
                (_, other) => panic!("{is_committing}: {other:?}"),
            }
        }
        drop(client);
    }
}
