//! Updates by the SPARQL protocol, and what all changes over HTTP share.
//!
//! ```text
//!   guard -> room for the body -> body -> parse (query threads) -> the queue of `writes` -> answer
//! ```
//!
//! The answer is JSON, `{"commit":17,"added":3,"removed":0}`, with the commit as its `ETag`. A request
//! with `If-Match: "17"` is made only if 17 is still the current commit, else it gets 412; so a client
//! can read, decide and write.

use crate::errors::ServerError;
use crate::protocol::UpdateRequest;
use crate::router::ServerState;
use crate::writes::{Change, Committed, Writes};
use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use orrery_sparql::{Engine, ParsedUpdate, QueryOptions, UpdateOptions};
use orrery_storage::{CommitOptions, Durability, Transaction};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// How a change is committed, as the request asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommitWish {
    pub(crate) is_relaxed: bool,
    pub(crate) expected: Expected,
}

/// `If-Match`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No condition, or `*`, for there always is a current commit.
    #[default]
    Any,
    /// One of these commits must be the current one.
    OneOf(Vec<u64>),
}

impl CommitWish {
    /// Reads the headers.
    pub(crate) fn new(headers: &HeaderMap, is_relaxed: bool) -> Result<Self, ServerError> {
        Ok(Self {
            is_relaxed,
            expected: parse_if_match(headers)?,
        })
    }

    /// Fails if the transaction does not begin where the client thinks it does.
    pub(crate) fn check(&self, transaction: &Transaction) -> Result<(), ServerError> {
        let Expected::OneOf(numbers) = &self.expected else {
            return Ok(());
        };
        let current = transaction.begins_after();
        if numbers.contains(&current) {
            return Ok(());
        }
        Err(ServerError::Precondition {
            message: format!(
                "the current commit is {current}, not the one that If-Match names; read again, then retry"
            ),
        })
    }

    /// For the storage; `who` is written into the log.
    pub(crate) fn options(&self, who: &str) -> CommitOptions {
        CommitOptions {
            who: who.to_owned(),
            durability: if self.is_relaxed {
                Durability::Relaxed
            } else {
                Durability::Durable
            },
            // Checked in this very transaction; while it lasts nobody else commits.
            expected: None,
        }
    }
}

/// Entity tags of this server are commit numbers in quotes; any others match nothing.
fn parse_if_match(headers: &HeaderMap) -> Result<Expected, ServerError> {
    let mut values = headers.get_all(header::IF_MATCH).iter().peekable();
    if values.peek().is_none() {
        return Ok(Expected::Any);
    }
    let mut numbers = Vec::new();
    for value in values {
        let text = value
            .to_str()
            .map_err(|_| ServerError::bad_request("If-Match is not ASCII text"))?;
        for tag in text.split(',').map(str::trim) {
            if tag == "*" {
                return Ok(Expected::Any);
            }
            let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                numbers.push(number);
            }
        }
    }
    Ok(Expected::OneOf(numbers))
}

/// The entity tag of a commit.
pub(crate) fn etag(commit: u64) -> HeaderValue {
    // Digits and quotes are always a header.
    HeaderValue::try_from(format!("\"{commit}\"")).unwrap_or(HeaderValue::from_static("*"))
}

/// The answer to a change that was made.
pub(crate) fn answer(status: StatusCode, committed: Committed) -> Response {
    answer_with(status, committed, &[])
}

/// The same, with what the client should know beside.
pub(crate) fn answer_with(
    status: StatusCode,
    committed: Committed,
    warnings: &[String],
) -> Response {
    let headers = [(header::ETAG, etag(committed.number))];
    let mut body = serde_json::json!({
        "commit": committed.number,
        "added": committed.added,
        "removed": committed.removed,
    });
    if !warnings.is_empty() {
        body["warnings"] = warnings.into();
    }
    (status, headers, Json(body)).into_response()
}

/// Who makes a change, for the log: the address as the proxy gives it is not to be trusted, so there is
/// only what the client calls itself.
pub(crate) fn who(headers: &HeaderMap) -> String {
    const WHO_CHARACTERS_MAX: usize = 100;
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .unwrap_or("unknown client");
    let agent: String = agent.chars().take(WHO_CHARACTERS_MAX).collect();
    format!("http {agent}")
}

/// Makes the change that an update asks for.
pub(crate) async fn update(
    state: &ServerState,
    writes: &Writes,
    parts: &Parts,
    request: UpdateRequest,
) -> Result<Response, ServerError> {
    let wish = CommitWish::new(&parts.headers, request.is_relaxed)?;
    let options = UpdateOptions {
        query: QueryOptions {
            base_iri: base_iri(parts),
            default_graphs: request.using_graphs,
            named_graphs: request.using_named_graphs,
            union_default_graph: state.options.union_default_graph,
            timeout: Some(state.time_limit(request.timeout).limit),
            ..QueryOptions::default()
        },
        documents: Some(Arc::clone(&state.documents)),
    };
    let engine = Arc::clone(&state.engine);
    let of_parse = options.clone();
    let parsed = state
        .on_query_thread(move || Ok(engine.prepare_update(&request.update, &of_parse)?))
        .await?;
    let who = who(&parts.headers);
    let change = change(Arc::clone(&state.engine), parsed, options, wish, who);
    let committed = writes.make(change).await?;
    Ok(answer(StatusCode::OK, committed))
}

/// Relative IRIs of queries and updates are resolved against the address that they were sent to
/// (SPARQL 1.1 Protocol, 2.1.4 and 2.2.3, leave that to us).
pub(crate) fn base_iri(parts: &Parts) -> Option<String> {
    let host = crate::guard::host_of(&parts.headers).ok()?;
    Some(format!("http://{host}{}", parts.uri.path()))
}

/// A change that applies an update.
pub(crate) fn change(
    engine: Arc<Engine>,
    update: ParsedUpdate,
    options: UpdateOptions,
    wish: CommitWish,
    who: String,
) -> Change {
    Box::new(move |transaction: &mut Transaction, runtime: &Runtime| {
        wish.check(transaction)?;
        runtime.block_on(engine.apply(&update, &options, transaction))?;
        Ok(wish.options(&who))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(values: &[&str]) -> Expected {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, HeaderValue::from_str(value).unwrap());
        }
        parse_if_match(&headers).unwrap()
    }

    #[test]
    fn if_match_is_a_list_of_commits() {
        assert_eq!(expected(&[]), Expected::Any);
        assert_eq!(expected(&["*"]), Expected::Any);
        assert_eq!(expected(&["\"3\""]), Expected::OneOf(vec![3]));
        assert_eq!(
            expected(&["\"3\", \"4\"", "\"5\""]),
            Expected::OneOf(vec![3, 4, 5])
        );
        // A weak tag never matches strongly (RFC 9110, 13.1.1), and what is not ours matches nothing.
        assert_eq!(expected(&["W/\"3\""]), Expected::OneOf(vec![]));
        assert_eq!(expected(&["3, \"x\""]), Expected::OneOf(vec![]));
    }

    #[test]
    fn a_commit_is_its_own_tag() {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MATCH, etag(18));
        assert_eq!(parse_if_match(&headers).unwrap(), Expected::OneOf(vec![18]));
    }
}
