//! The guard of a statement: stops it on cancel, at its time limit, on its budget, at shutdown, or
//! when its client leaves.

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

/// The error of a statement whose time is up.
pub(crate) const TIMED_OUT: &str = "canceling statement due to statement timeout";

/// Everything that may stop a connection's statement.
pub(crate) struct Guard {
    pub(crate) key: CancelKey,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) until: Option<Instant>,
    /// Tells whether the session is committing.
    pub(crate) committing: Committing,
    /// The record by which an administrator may end the statement; none where nothing records it.
    pub(crate) watched: Option<Arc<StatementRecord>>,
    /// Completes when the budget is used up; none where nothing is limited.
    pub(crate) spent: Option<Spent>,
}

impl Guard {
    /// Begins a statement: cancel requests count from now on, and time runs.
    pub(crate) fn begin(&mut self, time: Duration) {
        self.key.forget();
        self.spent = None;
        self.until = Instant::now().checked_add(time);
    }

    /// Begins a wait for the client that has no time limit.
    pub(crate) fn begin_without_end(&mut self) {
        self.key.forget();
        self.spent = None;
        self.until = None;
    }

    /// Waits for a message of the client, unless the statement has to stop.
    pub(crate) async fn message(&mut self, wire: &mut Wire) -> Stopped<Frontend> {
        tokio::select! {
            message = wire.any_message(false) => message,
            refusal = self.stop() => Err(refusal.into()),
        }
    }

    /// Completes with the error when the statement has to stop.
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

    /// Runs work until it is done or has to stop.
    ///
    /// A commit that has begun is waited for, unless the client has left: it cannot be undone.
    pub(crate) async fn run<T>(
        &mut self,
        wire: &mut Wire,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Stopped<T> {
        let mut work = pin!(work);
        // The usual case: done at once, without looking at anything else.
        if let std::task::Poll::Ready(done) = futures::poll!(&mut work) {
            return Ok(done?);
        }
        tokio::select! {
            // Done is done, whatever else has come meanwhile.
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

    /// Sends the output buffer, unless the statement has to stop before the client takes it.
    pub(crate) async fn send(&mut self, wire: &mut Wire) -> Stopped<()> {
        tokio::select! {
            sent = wire.flush() => Ok(sent?),
            refusal = self.stop() => Err(refusal.into()),
        }
    }
}

/// Completes when the server has reached a stage, or its sender is gone.
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
                // Without a commit it never ends by itself.
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
