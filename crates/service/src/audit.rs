//! The audit log: acts of administrators and denied requests, one line of JSON each.
//!
//! ```text
//! {"time":"2026-11-24T12:25:00.120Z","event":"act","user":"root","client":"127.0.0.1",
//!  "act":"grant read on all graphs to anyone","outcome":"done","commit":17}
//! {"time":"2026-11-24T12:25:01.003Z","event":"denied","client":"203.0.113.9",
//!  "method":"POST","path":"/sparql","status":401}
//! ```
//!
//! An act is on the disk before its answer is sent. Denied requests are written as they come, up to
//! a bound per second, so that an attacker cannot fill the disk; a line after them says how many
//! were left out. The file is only appended to, never shortened or removed: `logrotate` with
//! `copytruncate` bounds its size.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use orrery_query_log::{Time, cut};
use orrery_storage::reason;
use serde::Serialize;

/// Denied requests that are written per second.
const DENIED_PER_SECOND: u32 = 100;
const SECOND: Duration = Duration::from_secs(1);
/// Bytes of a path that are written.
const PATH_BYTES_MAX: usize = 512;

/// An open audit log file.
#[derive(Debug)]
pub struct AuditLog {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Start of the second in which denied requests are counted, and the number written in that
    /// second.
    second: Instant,
    written: u32,
    /// Denied requests that were neither written nor reported as left out yet.
    left_out: u64,
    has_failed: bool,
}

/// An act of an administrator, successful or not.
#[derive(Debug, Serialize)]
pub struct Act<'a> {
    /// The user's name; none if the client is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// The act, in words.
    pub act: &'a str,
    /// `done`, or the reason of the failure.
    pub outcome: &'a str,
    /// The commit that the act made, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
}

/// A request that was refused because of its sender.
#[derive(Debug, Serialize)]
pub struct Denied<'a> {
    /// The user's name; none if the client is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// The HTTP method, or the name of the port.
    pub method: &'a str,
    /// The path of the URL, or the kind of request at a port.
    pub path: &'a str,
    /// The status of the answer.
    pub status: u16,
}

#[derive(Serialize)]
struct Line<'a, E> {
    time: Time,
    event: &'a str,
    #[serde(flatten)]
    what: E,
}

/// A failed query of an access rule; the rule granted nothing.
#[derive(Debug, Serialize)]
struct RuleFailed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    query: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct LeftOut {
    denied: u64,
}

impl AuditLog {
    /// Opens or creates the file; a new file is readable by its owner alone.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(path);
        let file = file.map_err(|error| {
            let text = format!("the audit log {}: {}", path.display(), reason(&error));
            io::Error::new(error.kind(), text)
        })?;
        Ok(Self {
            state: Mutex::new(State {
                file,
                second: Instant::now(),
                written: 0,
                left_out: 0,
                has_failed: false,
            }),
        })
    }

    /// Writes an act, and waits until the line is on the disk. A disk failure goes to the server's
    /// log only: the act is done by then, and recorded in the log of commits.
    pub fn act(&self, act: &Act<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tell_left_out();
        state.write("act", act);
        let synced = state.file.sync_data();
        state.note(synced);
    }

    /// Writes a denied request, unless this second's bound is reached.
    pub fn denied(&self, denied: &Denied<'_>) {
        let path = cut(denied.path, PATH_BYTES_MAX);
        self.write_some("denied", &Denied { path, ..*denied });
    }

    /// Writes that a rule's query failed for a user and granted nothing; bounded like denied
    /// requests.
    pub fn rule_failed(&self, user: Option<&str>, query: &str, why: &str) {
        let query = cut(query, PATH_BYTES_MAX);
        let why = cut(why, PATH_BYTES_MAX);
        self.write_some("rule_failed", &RuleFailed { user, query, why });
    }

    /// Writes a line that any client can cause, unless this second's bound is reached.
    fn write_some(&self, event: &str, what: &impl Serialize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.second.elapsed() >= SECOND {
            (state.second, state.written) = (Instant::now(), 0);
        }
        if state.written >= DENIED_PER_SECOND {
            state.left_out += 1;
            return;
        }
        state.tell_left_out();
        state.written += 1;
        state.write(event, what);
    }
}

impl State {
    fn tell_left_out(&mut self) {
        let denied = std::mem::take(&mut self.left_out);
        if denied > 0 {
            self.write("left_out", &LeftOut { denied });
        }
    }

    fn write(&mut self, event: &str, what: impl Serialize) {
        let time = Time::now();
        let line = serde_json::to_vec(&Line { time, event, what });
        let written = line.map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            // One write call per line, so that lines of two servers do not mix.
            self.file.write_all(&line)
        });
        self.note(written);
    }

    /// Logs the first of consecutive disk failures.
    fn note(&mut self, written: io::Result<()>) {
        match written {
            Ok(()) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                tracing::error!("the audit log cannot be written: {}", reason(&error));
            }
            Err(_) => {}
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.tell_left_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const DENIED: Denied<'_> = Denied {
        user: None,
        client: None,
        method: "GET",
        path: "/sparql",
        status: 401,
    };

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn who_knocks_does_not_fill_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let log = AuditLog::open(&path).unwrap();
        let long = "x".repeat(10 * PATH_BYTES_MAX);
        let count = 3 * u64::from(DENIED_PER_SECOND);
        for _ in 0..count {
            log.denied(&Denied {
                path: &long,
                ..DENIED
            });
        }
        log.act(&Act {
            user: Some("root"),
            client: None,
            act: "add user \"a\nb\"",
            outcome: "done",
            commit: Some(3),
        });
        drop(log);
        let lines = lines(&path);
        let of = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
        let left_out: u64 = lines
            .iter()
            .filter_map(|line| line["denied"].as_u64())
            .sum();
        assert_eq!(of("denied") as u64 + left_out, count);
        // A slow machine may take two seconds for the loop.
        assert!(left_out >= u64::from(DENIED_PER_SECOND));
        let last = lines.last().unwrap();
        assert_eq!(
            (&last["event"], &last["commit"]),
            (&"act".into(), &3.into())
        );
        assert!(lines.iter().all(|line| {
            line["path"]
                .as_str()
                .is_none_or(|path| path.len() <= PATH_BYTES_MAX)
        }));
    }

    #[test]
    fn a_log_goes_on_where_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        for _ in 0..2 {
            AuditLog::open(&path).unwrap().denied(&DENIED);
        }
        assert_eq!(lines(&path).len(), 2);
        let missing = directory.path().join("no/such/folder");
        let error = AuditLog::open(&missing).unwrap_err();
        assert!(error.to_string().contains("the audit log"), "{error}");
    }
}
