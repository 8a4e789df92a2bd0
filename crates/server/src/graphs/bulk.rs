//! POST of a large document: it goes to a temporary file as it comes, and from there through the bulk
//! loader, which becomes visible at once. Readers and other writers go on meanwhile.
//!
//! Taken for large is what says so (`Content-Length`), or does not say how large it is. `If-Match` cannot
//! be kept over the time of a load and is refused. Multipart bodies are read in memory.

use super::{Address, BODY_NAME, Target};
use crate::documents::{format_of_body, has_graphs};
use crate::errors::ServerError;
use crate::router::ServerState;
use crate::updates::{self, CommitWish, Expected};
use crate::writes::{Committed, Writes};
use axum::body::Body;
use axum::http::{StatusCode, header, request::Parts};
use axum::response::Response;
use futures::StreamExt;
use orrery_loader::{LoadError, LoadOptions, SilentProgress, Source, SyntaxError, load_into};
use std::io::Write;
use std::sync::Arc;

/// Memory of a load, beside that of the queries.
const LOAD_MEMORY_BYTES: u64 = 1 << 30;

/// Whether a request goes this way.
pub(super) fn is_large(parts: &Parts, limit_bytes: usize) -> bool {
    let header = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let content_type = header(header::CONTENT_TYPE).unwrap_or_default();
    let is_multipart = content_type
        .to_ascii_lowercase()
        .starts_with("multipart/form-data");
    let length: Option<usize> = header(header::CONTENT_LENGTH).and_then(|n| n.parse().ok());
    !is_multipart && length.is_none_or(|length| length > limit_bytes)
}

pub(super) async fn load(
    state: &Arc<ServerState>,
    writes: &Writes,
    parts: &Parts,
    body: Body,
    address: &Address,
    wish: &CommitWish,
) -> Result<Response, ServerError> {
    if wish.expected != Expected::Any {
        return Err(ServerError::bad_request(
            "If-Match cannot be kept over a load; send the document without it",
        ));
    }
    let format = format_of_body(&parts.headers)?;
    let graph = match &address.target {
        Target::Graph(name) => name.clone(),
        Target::Store if has_graphs(format) => None,
        Target::Store => {
            return Err(ServerError::bad_request(
                "a large document of triples needs its graph: ?graph=IRI or ?default",
            ));
        }
    };
    let failed = |error: std::io::Error| ServerError::Internal {
        message: format!("the body cannot be kept on disk: {error}"),
    };
    let directory = writes.writer().database().directory().to_owned();
    let mut file = tempfile::Builder::new()
        .prefix("load-body-")
        .tempfile_in(&state.engine.options().temp_dir)
        .map_err(failed)?;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            ServerError::bad_request(format!("the request body could not be read: {error}"))
        })?;
        file.write_all(&chunk).map_err(failed)?;
    }
    file.flush().map_err(failed)?;
    // Without a base, the address of the temporary file would be one.
    let base_iri = graph.clone().or_else(|| updates::base_iri(parts));
    let base_iri = base_iri.ok_or_else(|| ServerError::bad_request("the request has no Host"))?;
    let options = LoadOptions {
        memory_bytes: LOAD_MEMORY_BYTES,
        base_iri: Some(base_iri),
        graph,
        format: Some(format),
        ..LoadOptions::default()
    };
    let writer = writes.writer().clone();
    let temporary = file.path().display().to_string();
    let loaded = state.query_threads.handle().spawn_blocking(move || {
        let source = Source::File(file.path().to_owned());
        load_into(&writer, &[source], &options, &SilentProgress)
    });
    let report = loaded
        .await
        .map_err(|error| ServerError::Internal {
            message: format!("the load into {} ended: {error}", directory.display()),
        })?
        .map_err(|error| match error {
            LoadError::Storage(error) => ServerError::from(error),
            LoadError::Syntax(error) => {
                // The client knows its body, not the file that keeps it here.
                let source_name = BODY_NAME.to_owned();
                let error = SyntaxError {
                    source_name,
                    ..error
                };
                ServerError::bad_request(format!("{error}; nothing was loaded; correct it"))
            }
            other => ServerError::bad_request(other.to_string()),
        })?;
    let committed = Committed {
        number: report.commit,
        added: report.quads_added,
        removed: 0,
    };
    // As above.
    let of_body = |warning: &String| warning.replace(&temporary, BODY_NAME);
    let warnings: Vec<String> = report.warnings.iter().map(of_body).collect();
    Ok(updates::answer_with(StatusCode::OK, committed, &warnings))
}
