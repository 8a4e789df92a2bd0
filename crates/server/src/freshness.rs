//! How old a state a client takes: `Orrery-Min-Commit: 17`, or `min-commit=17` in the address.
//!
//! A server that follows another is a moment behind it. Who has written at one and reads at the other says which commit the answer has to know of, the one
//! that the answer to the change named. The request waits until the state is there, and fails with 503 if it does not come.
//!
//! ```text
//! request -> who asks? -> is the commit there? -> the handlers
//!                            no: look for a newer state, again and again, for a while
//! ```
//!
//! Only who is known may wait; who they are and what they may do is asked again in the state that came, for rights are part of it, too. `/health` waits for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{HeaderName, Uri};
use memchr::memmem;
use orrery_storage::{Database, Snapshot};
use tokio::sync::Mutex;

use crate::errors::ServerError;
use crate::parameters::{decode_name, decode_value, pairs};

/// The header, whose value is the number of a commit.
pub(crate) const MIN_COMMIT: HeaderName = HeaderName::from_static("orrery-min-commit");
/// The parameter of the same meaning.
pub(crate) const MIN_COMMIT_PARAMETER: &str = "min-commit";

/// A server that follows looks for news twice a second by itself.
const WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits for states.
#[derive(Debug)]
pub(crate) struct Freshness {
    database: Arc<Database>,
    /// One looks for all who wait.
    looking: Mutex<()>,
}

impl Freshness {
    pub(crate) fn new(database: &Arc<Database>) -> Self {
        Self {
            database: Arc::clone(database),
            looking: Mutex::new(()),
        }
    }

    /// The newest state that is here.
    pub(crate) fn newest(&self) -> Arc<Snapshot> {
        self.database.snapshot()
    }

    /// Whether a commit is part of the newest state.
    pub(crate) fn is_here(&self, commit: u64) -> bool {
        self.database.snapshot().commit() >= commit
    }

    /// Looks once for a newer state, unless the commit is here, or somebody looks already.
    pub(crate) async fn look_for(&self, commit: u64) {
        if self.is_here(commit) {
            return;
        }
        if let Ok(_looking) = self.looking.try_lock() {
            let database = Arc::clone(&self.database);
            // What cannot be read now is told by who follows in the background; here it is only not there yet.
            let _ignored = tokio::task::spawn_blocking(move || database.refresh()).await;
        }
    }

    /// Waits until a commit is part of the newest state.
    pub(crate) async fn wait_for(&self, commit: u64) -> Result<(), ServerError> {
        let begun = Instant::now();
        loop {
            let newest = self.database.snapshot().commit();
            if newest >= commit {
                return Ok(());
            }
            if begun.elapsed() >= WAIT_MAX {
                return Err(ServerError::Behind { commit, newest });
            }
            self.look_for(commit).await;
            if self.database.snapshot().commit() < commit {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

/// Whether a request may ask for a commit.
pub(crate) fn is_asked(request: &Request) -> bool {
    let is_in = |query: &str| memmem::find(query.as_bytes(), MIN_COMMIT_PARAMETER.as_bytes());
    request.headers().contains_key(MIN_COMMIT) || request.uri().query().and_then(is_in).is_some()
}

/// The commit that a request asks for.
pub(crate) fn asked(request: &Request) -> Result<Option<u64>, ServerError> {
    let of_header = request.headers().get(MIN_COMMIT).map(|value| {
        let text = value.to_str().unwrap_or_default();
        parse_commit("header Orrery-Min-Commit", text)
    });
    match of_header {
        Some(commit) => commit.map(Some),
        None => of_address(request.uri()),
    }
}

fn of_address(uri: &Uri) -> Result<Option<u64>, ServerError> {
    for (name, value) in pairs(uri.query().unwrap_or_default().as_bytes()) {
        if decode_name(name).is_ok_and(|name| name == MIN_COMMIT_PARAMETER) {
            let text = decode_value(MIN_COMMIT_PARAMETER, value)?;
            return parse_commit("parameter `min-commit`", &text).map(Some);
        }
    }
    Ok(None)
}

/// The number of a commit.
pub(crate) fn parse_commit(what: &str, text: &str) -> Result<u64, ServerError> {
    text.parse().map_err(|_| {
        ServerError::bad_request(format!(
            "{what} is the number of a commit, as the answer to a change has it, not `{text}`"
        ))
    })
}

/// Refuses the parameter in a body, which nobody has read when the state is waited for.
pub(crate) fn check_in_address(is_body: bool) -> Result<(), ServerError> {
    match is_body {
        false => Ok(()),
        true => Err(ServerError::bad_request(
            "parameter `min-commit` has to stand in the address, or as header Orrery-Min-Commit",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn of(address: &str, header: Option<&str>) -> Result<Option<u64>, String> {
        let mut request = Request::builder().uri(address);
        if let Some(header) = header {
            request = request.header(MIN_COMMIT, header);
        }
        asked(&request.body(Body::empty()).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_commit_is_asked_for_by_header_or_address() {
        assert_eq!(of("/sparql?query=ASK%7B%7D", None), Ok(None));
        assert_eq!(of("/sparql?query=min-commit", None), Ok(None));
        assert_eq!(of("/sparql?query=x&min-commit=17", None), Ok(Some(17)));
        assert_eq!(of("/graphs/x", Some("18")), Ok(Some(18)));
        for wrong in ["", "-1", "last", "17.5"] {
            let told = of("/graphs/x", Some(wrong)).unwrap_err();
            assert!(told.contains("number of a commit"), "{told}");
            assert!(of(&format!("/sparql?min-commit={wrong}"), None).is_err());
        }
    }
}
