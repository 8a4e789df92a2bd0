//! POST of a large document: it goes to a temporary file as it comes, and from there through the bulk
//! loader, which becomes visible at once. Readers and other writers go on meanwhile.
//!
//! Taken for large is what says so (`Content-Length`), or does not say how large it is, or did not fit into memory. Conditions cannot
//! be kept over the time of a load and are refused. Multipart bodies are read in memory. The memory of a load is a
//! part of the server's, and held of it while it runs.

use super::address::{Address, BODY_NAME, Target};
use crate::body::{BodyMemory, Coding, UploadPace, client_times, unreadable};
use crate::documents::{format_of_body, has_graphs};
use crate::errors::{ServerError, told_to_the_log};
use crate::guard::base_iri;
use crate::media_type::is_multipart;
use crate::state::ServerState;
use crate::updates::{self, CommitRequest};
use crate::writes::{Committed, Writes};
use axum::body::Body;
use axum::http::{StatusCode, header, request::Parts};
use axum::response::Response;
use futures::StreamExt;
use orrery_loader::{
    LoadError, LoadOptions, SilentProgress, Source, SyntaxError, load_into, load_into_by_workers,
};
use orrery_sparql::UpdateOptions;
use orrery_storage::{ByteCount, reason};
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Instant;

/// A load may take one part of so many of the memory, within these bounds.
const LOAD_MEMORY_PART: u64 = 4;
const LOAD_MEMORY_BYTES_MIN: u64 = 64 << 20;
const LOAD_MEMORY_BYTES_MAX: u64 = 1 << 30;
/// First bytes of a body, by which its coding is known.
const FIRST_BYTES: usize = 4;

/// Whether a request goes this way.
pub(super) fn is_large(parts: &Parts, limit_bytes: usize) -> bool {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length: Option<usize> = length.and_then(|length| length.to_str().ok()?.parse().ok());
    !is_multipart(&parts.headers) && length.is_none_or(|length| length > limit_bytes)
}

pub(super) async fn load(
    state: &Arc<ServerState>,
    writes: &Writes,
    parts: &Parts,
    update_options: &UpdateOptions,
    body: Body,
    address: &Address,
    commit_request: &CommitRequest,
) -> Result<Response, ServerError> {
    if !commit_request.conditions.is_empty() {
        return Err(ServerError::bad_request(
            "If-Match and other conditions cannot be kept over a load; send the document without them",
        ));
    }
    let coding = Coding::of(&parts.headers)?;
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
    // The loader takes quads as they come, whatever graphs they name.
    if has_graphs(format) && !update_options.writes.is_all() {
        return Err(ServerError::forbidden(
            "a large document of quads is for those who may change all graphs; send less at a time, or triples to one graph",
        ));
    }
    let failed = |error: std::io::Error| {
        let message = told_to_the_log("the body cannot be kept on the server's disk", &error);
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                ServerError::OutOfMemory { message }
            }
            _ => ServerError::Internal { message },
        }
    };
    let mut file = tempfile::Builder::new()
        .prefix("load-body-")
        .tempfile_in(&state.engine.options().temp_dir)
        .map_err(failed)?;
    let mut chunks = body.into_data_stream();
    let times = client_times(parts);
    let stall_max = times.body_max;
    let mut pace = UploadPace::new(times);
    let mut first = Vec::with_capacity(FIRST_BYTES);
    loop {
        let asked = Instant::now();
        let chunk = tokio::time::timeout(stall_max, chunks.next()).await;
        let chunk = chunk.map_err(|_elapsed| ServerError::BodyTooSlow { limit: stall_max })?;
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|error| unreadable(&error))?;
        pace.came(chunk.len(), asked.elapsed())?;
        first.extend(chunk.iter().take(FIRST_BYTES - first.len()));
        file.write_all(&chunk).map_err(failed)?;
    }
    file.flush().map_err(failed)?;
    // Without a base, the address of the temporary file would be one.
    let base_iri = graph.clone().or_else(|| base_iri(parts));
    let base_iri = base_iri.ok_or_else(|| ServerError::bad_request("the request has no Host"))?;
    if !coding.fits(&first) {
        return Err(coding.mismatch());
    }
    let memory_bytes = (state.engine.options().memory_bytes / LOAD_MEMORY_PART)
        .clamp(LOAD_MEMORY_BYTES_MIN, LOAD_MEMORY_BYTES_MAX);
    let mut memory = BodyMemory::new(&state.engine);
    memory.resize(usize::try_from(memory_bytes).unwrap_or(usize::MAX))?;
    let options = LoadOptions {
        memory_bytes,
        base_iri: Some(base_iri),
        graph,
        format: Some(format),
        ..LoadOptions::default()
    };
    let writer = writes.writer().clone();
    let temporary = file.path().display().to_string();
    let bytes = file.as_file().metadata().map_or(0, |file| file.len());
    let others = state
        .load_help
        .others(state.options.cluster.as_ref(), bytes);
    let loaded = state.query_threads.handle().spawn_blocking(move || {
        let _memory = memory;
        let source = [Source::File(file.path().to_owned())];
        match others {
            None => load_into(&writer, &source, &options, &SilentProgress),
            Some(others) => {
                let loaded =
                    load_into_by_workers(&writer, &source, &options, &others, &SilentProgress);
                tracing::info!("a load with other nodes: {:?}", others.counts());
                loaded
            }
        }
    });
    let report = loaded
        .await
        .map_err(|error| ServerError::Internal {
            message: format!("the load ended: {error}"),
        })?
        .map_err(|error| match error {
            LoadError::Storage(error) => ServerError::from(error),
            LoadError::Syntax(error) => {
                // The client knows its body, not the file that keeps it here.
                let source_name = BODY_NAME.to_owned();
                let error = SyntaxError {
                    source_name,
                    ..*error
                };
                // A mend says what to do.
                let advice = match &error.mend {
                    Some(_) => "",
                    None => "; correct it",
                };
                ServerError::bad_request(format!("{error}; nothing was loaded{advice}"))
            }
            LoadError::StatementTooLong {
                line, bytes_max, ..
            } => ServerError::TooLong {
                message: format!(
                    "{BODY_NAME}:{line}: a statement that begins about here is longer than {}, and has to stand in memory; send \
                     N-Triples or N-Quads, where a literal may have any length; nothing was loaded",
                    ByteCount(bytes_max as u64)
                ),
            },
            LoadError::Input { source, .. } => ServerError::bad_request(format!(
                "{BODY_NAME}: {}; nothing was loaded",
                reason(&source)
            )),
            LoadError::NoRdf { what, .. } => {
                ServerError::bad_request(format!("{BODY_NAME}: {what}; nothing was loaded"))
            }
            error @ (LoadError::InvalidIri { .. } | LoadError::TooManyTerms { .. }) => {
                ServerError::bad_request(error.to_string())
            }
            other => ServerError::Internal {
                message: told_to_the_log("the load failed, and nothing was loaded", &other),
            },
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
