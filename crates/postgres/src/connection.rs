//! The session of one authenticated client: answers its messages, one after the other.
//!
//! A statement stops when the client cancels it, when its time is up, when the server stops, or
//! when the client leaves; in each case everything that it holds is released.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use futures::future::BoxFuture;
use orrery_service::ports::denied::Denied;
use orrery_service::ports::users::{Caller, Entered};
use orrery_service::record::StatementRecord;
use orrery_sql::{Error, Outcome, Session, TransactionStatus, Turn};
use tokio::time::Instant;

use crate::frontend::Frontend;
use crate::guard::{Guard, reached, shutting_down};
use crate::message::put_message;
use crate::portal::{Answer, Portal};
use crate::refusal::{Refusal, Stop, Stopped};
use crate::shared::{Shared, Stage, close};
use crate::startup::Greeting;
use crate::watching::Watching;
use crate::wire::Wire;

/// The client at the other end of a connection.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// None where the database has no users.
    pub(crate) caller: Option<Caller>,
}

/// A connection of an authenticated client: its session, its portals and what may stop its
/// statement.
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    client: Client,
    pub(crate) watching: Watching,
    pub(crate) session: Session,
    pub(crate) portals: HashMap<String, Portal>,
    /// True if the client did not begin the open transaction, which then ends with the message, or
    /// at Sync.
    pub(crate) is_implicit: bool,
    pub(crate) guard: Guard,
    pub(crate) shared: Arc<Shared>,
}

impl Connection {
    /// Starts the session of a client; none if the client's settings were refused, with an error
    /// sent.
    pub(crate) async fn start(
        mut wire: Wire,
        greeting: Greeting,
        client: Client,
        shared: Arc<Shared>,
    ) -> Stopped<Option<Self>> {
        let user = greeting.settings.get("user").cloned().unwrap_or_default();
        let who = format!("postgresql {user}");
        let session = shared
            .host
            .session(Some(&user), who, client.caller.as_ref());
        if let Err(refusal) = settle(&session, &greeting, &user) {
            refusal.write(&mut wire.output);
            close(wire).await;
            return Ok(None);
        }
        let key = shared.keys.key();
        put_message(&mut wire.output, b'R', |body| body.put_u32(0));
        for (name, value) in session.reported_settings() {
            put_parameter(&mut wire.output, &name, &value);
        }
        put_message(&mut wire.output, b'K', |body| {
            body.put_i32(key.process);
            body.put_i32(key.secret);
        });
        let known = client
            .caller
            .as_ref()
            .map(|caller| caller.name().to_owned());
        let mut connection = Self {
            wire,
            watching: Watching::new(shared.host.clone(), known, client.address.ip()),
            client,
            portals: HashMap::new(),
            is_implicit: false,
            guard: Guard {
                key,
                stage: shared.stage.clone(),
                until: None,
                committing: session.committing(),
                watched: None,
                spent: None,
            },
            session,
            shared,
        };
        connection.put_ready();
        connection.wire.flush().await?;
        Ok(Some(connection))
    }

    /// Answers messages until the client leaves or the server stops.
    pub(crate) async fn run(mut self) -> Stopped<()> {
        // True from a failure until Sync.
        let mut is_skipping = false;
        let mut stage = self.shared.stage.clone();
        loop {
            if self.wire.is_full() {
                // Bounds the buffer, however many messages come without Sync.
                tokio::select! {
                    sent = self.wire.flush() => sent?,
                    () = reached(&mut stage, Stage::Over) => return Err(shutting_down().into()),
                }
            }
            let message = tokio::select! {
                message = self.wire.any_message(is_skipping) => message,
                () = reached(&mut stage, Stage::Stopping) => Err(shutting_down().into()),
            };
            let message = match self.client.require() {
                Ok(()) => message,
                Err(denied) => message.and(Err(refusal_of(denied).into())),
            };
            let is_extended = self.wire.is_extended();
            let done = match message {
                Ok(Frontend::Terminate) => return Ok(()),
                Ok(Frontend::Sync) => {
                    is_skipping = false;
                    self.sync().await
                }
                Ok(Frontend::Skipped) => continue,
                Ok(Frontend::Query(text)) => {
                    self.watch(&text);
                    let done = self.simple(&text).await;
                    self.answered(done).await
                }
                Ok(message) => self.extended(message).await,
                Err(stop) => Err(stop),
            };
            self.watching.end(&done, &mut self.guard, &self.wire);
            let Err(stop) = done else {
                continue;
            };
            self.roll_back().await;
            let refusal = self.wire.refuse(stop)?;
            if refusal.is_fatal() {
                close(self.wire).await;
                return Err(refusal.into());
            }
            if is_extended {
                is_skipping = true;
                // A client that pipelines waits for it before it sends Sync.
                self.wire.flush().await?;
            } else {
                self.ready().await?;
            }
        }
    }

    /// Begins the record of a statement, for the log and the list of running statements.
    pub(crate) fn watch(&mut self, text: &str) {
        let agent = self.session.setting("application_name");
        let agent = agent.as_deref().filter(|agent| !agent.is_empty());
        self.watching
            .begin(text, agent, &mut self.guard, &self.wire);
    }

    /// Resumes the record of a statement that has sent some rows.
    pub(crate) fn go_on_watching(&mut self, watched: Option<Arc<StatementRecord>>) {
        self.watching.go_on(watched, &mut self.guard, &self.wire);
    }

    /// Ends a simple query that was done or refused.
    async fn answered(&mut self, done: Stopped<()>) -> Stopped<()> {
        match done {
            Ok(()) => self.ready().await,
            Err(stop) => Err(stop),
        }
    }

    /// Rolls an implicit transaction back; one that the client has begun becomes failed.
    async fn roll_back(&mut self) {
        if !std::mem::take(&mut self.is_implicit) {
            self.session.fail();
        } else if let Err(error) = self.session.end_block(false).await {
            tracing::warn!("a transaction was not rolled back: {error}");
        }
    }

    /// Commits an implicit transaction.
    pub(crate) async fn commit_implicit(&mut self) -> Stopped<()> {
        if std::mem::take(&mut self.is_implicit)
            && self.session.transaction_status() != TransactionStatus::Idle
        {
            self.session.end_block(true).await?;
        }
        Ok(())
    }

    async fn sync(&mut self) -> Stopped<()> {
        let committed = self.commit_implicit().await;
        if let Err(stop) = committed {
            self.session.fail();
            self.wire.refuse(stop)?;
        }
        self.ready().await
    }

    /// Sends ReadyForQuery.
    ///
    /// Portals live as long as the transaction. An idle client holds no snapshot: the next
    /// statement chooses its own.
    async fn ready(&mut self) -> Stopped<()> {
        if self.session.transaction_status() == TransactionStatus::Idle {
            self.portals.clear();
            self.session.set_ruled(None);
        }
        for (name, value) in self.session.changed_settings() {
            put_parameter(&mut self.wire.output, &name, &value);
        }
        self.put_ready();
        Ok(self.wire.flush().await?)
    }

    fn put_ready(&mut self) {
        let status = match self.session.transaction_status() {
            TransactionStatus::Idle => b'I',
            TransactionStatus::Open => b'T',
            TransactionStatus::Failed => b'E',
        };
        put_message(&mut self.wire.output, b'Z', |body| body.put_u8(status));
    }

    /// Begins a statement: starts its time, checks the client's rights, and waits for admission.
    pub(crate) async fn begin_statement(&mut self) -> Stopped<Turn> {
        let options = &self.shared.options;
        let asked = self.session.statement_timeout();
        let asked = asked.unwrap_or(options.statement_time_default);
        let began = Instant::now();
        self.guard.begin(asked.min(options.statement_time_max));
        let entered = match self.client.caller.clone() {
            None => Entered::of_nobody(&mut self.session),
            Some(caller) => {
                let admitted = async { Ok(caller.admitted().await) };
                let admitted = self.guard.run(&mut self.wire, admitted).await?;
                let admitted = admitted.map_err(refusal_of)?;
                let session = &mut self.session;
                let held = async {
                    admitted.hold(session).await;
                    Ok(())
                };
                self.guard.run(&mut self.wire, held).await?;
                let record = self.guard.watched.as_ref();
                admitted
                    .enter(&mut self.session, record)
                    .map_err(refusal_of)?
            }
        };
        if let Some(until) = entered.time_max.and_then(|max| began.checked_add(max)) {
            self.guard.until = self.guard.until.map(|it| it.min(until));
        }
        self.guard.spent = entered.spent.clone();
        let (shared, session) = (Arc::clone(&self.shared), &self.session);
        let turn = async { Ok(shared.host.turn_of(session).await) };
        let turn = self.guard.run(&mut self.wire, turn).await?;
        let turn = turn.map_err(|why| Refusal::new("53000", why.to_string()))?;
        Ok(Box::new((entered, turn)))
    }
}

impl Connection {
    /// Sends rows as [`Answer::send`] does. A query outside of transactions that ran out of memory
    /// before its first row was sent runs once more by `again`, in the narrow lane; a transaction
    /// has failed with it.
    pub(crate) async fn send_rows<'a>(
        &mut self,
        answer: &mut Answer,
        rows_max: usize,
        formats: &[i16],
        again: impl FnOnce(Session) -> BoxFuture<'a, Result<Outcome, Error>>,
    ) -> Stopped<bool> {
        let (wire, guard) = (&mut self.wire, &mut self.guard);
        let refusal = match answer.send(rows_max, formats, wire, guard).await {
            Err(Stop::Refused(refusal)) if answer.can_restart() && refusal.is_out_of_memory() => {
                refusal
            }
            sent => return sent,
        };
        if self.session.transaction_status() != TransactionStatus::Idle {
            return Err(refusal.into());
        }
        answer.give_up();
        let host = &self.shared.host;
        let session = self.session.clone();
        let second = async { Ok(host.second_try(&session).await) };
        let Ok((second, _turn)) = guard.run(wire, second).await? else {
            return Err(refusal.into());
        };
        let again = guard.run(wire, again(session.clone())).await?;
        let Outcome::Query(rows) = again else {
            return Err(refusal.into());
        };
        if !answer.restart(rows) {
            return Err(refusal.into());
        }
        answer.fetch(wire, guard).await?;
        // Others have their second try while the client takes its rows.
        drop(second);
        answer.send(rows_max, formats, wire, guard).await
    }
}

impl Client {
    /// Fails when the client is not allowed in any more.
    fn require(&self) -> Result<(), Denied> {
        self.caller
            .as_ref()
            .map_or(Ok(()), |caller| caller.require())
    }
}

/// The error for a client that is denied now; the connection ends if it may not stay.
fn refusal_of(denied: Denied) -> Refusal {
    match denied {
        Denied::Concurrent(_) | Denied::UsedUp(_) | Denied::Failed(_) => {
            Refusal::new(denied.code(), denied.to_string())
        }
        Denied::Unknown(_) | Denied::Wait(_) | Denied::Gone => {
            Refusal::fatal(denied.code(), denied.to_string())
        }
    }
}

fn put_parameter(output: &mut BytesMut, name: &str, value: &str) {
    put_message(output, b'S', |body| {
        for text in [name, value] {
            body.put_slice(text.as_bytes());
            body.put_u8(0);
        }
    });
}

/// Checks the client's settings, and applies them to the session.
fn settle(session: &Session, greeting: &Greeting, user: &str) -> Result<(), Refusal> {
    let fatal = |error: Error| Refusal {
        severity: "FATAL",
        ..Refusal::from(error)
    };
    for (name, value) in &greeting.settings {
        match name.as_str() {
            "user" => {}
            "database" => {
                if ![orrery_sql::DATABASE, "postgres", user].contains(&value.as_str()) {
                    return Err(Refusal::fatal(
                        "3D000",
                        format!(
                            "database \"{value}\" does not exist; its name is \"{}\"",
                            orrery_sql::DATABASE
                        ),
                    ));
                }
            }
            "replication" => {
                return Err(Refusal::fatal("0A000", "replication is not supported"));
            }
            "options" => {
                for (name, value) in options_of(value) {
                    session.set_at_start(&name, &value).map_err(fatal)?;
                }
            }
            name => session.set_at_start(name, value).map_err(fatal)?,
        }
    }
    Ok(())
}

/// Parses `-c name=value --name=value`; a backslash escapes blanks and backslashes.
fn options_of(text: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let last = words.len() - 1;
                words[last].extend(characters.next());
            }
            blank if blank.is_whitespace() => words.push(String::new()),
            other => {
                let last = words.len() - 1;
                words[last].push(other);
            }
        }
    }
    let words = words
        .into_iter()
        .filter(|word| !word.is_empty() && word != "-c");
    let pairs = words.filter_map(|word| {
        let word = word
            .strip_prefix("--")
            .or(word.strip_prefix("-c"))
            .unwrap_or(&word);
        let (name, value) = word.split_once('=')?;
        Some((name.replace('-', "_"), value.to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_at_the_start_are_taken_apart() {
        let expected = [
            ("a".to_owned(), "1".to_owned()),
            ("b_c".to_owned(), "x y".to_owned()),
        ];
        assert_eq!(options_of("-c a=1 --b-c=x\\ y"), expected);
        assert_eq!(options_of("-ca=1"), expected[..1]);
        assert_eq!(options_of(""), []);
    }
}
