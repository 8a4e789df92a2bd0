//! POST of a large document: it goes to a temporary file as it comes, and from there through the bulk
//! loader, which becomes visible at once. Readers and other writers go on meanwhile.
//!
//! Taken for large is what says so (`Content-Length`), or does not say how large it is, or did not fit into memory. Conditions cannot
//! be kept over the time of a load and are refused. Several documents of a multipart body that says how long it is are one load. The memory of a load is a
//! part of the server's, and held of it while it runs.

use super::address::{Address, Target};
use super::spool::spool;
use crate::body::BodyMemory;
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
use orrery_loader::{
    Format, LoadError, LoadOptions, SilentProgress, Source, SyntaxError, load_into,
    load_into_by_workers,
};
use orrery_sparql::UpdateOptions;
use orrery_storage::{ByteCount, reason};
use std::sync::Arc;

/// A load may take one part of so many of the memory, within these bounds.
const LOAD_MEMORY_PART: u64 = 4;
const LOAD_MEMORY_BYTES_MIN: u64 = 64 << 20;
const LOAD_MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Whether a request goes this way.
pub(super) fn is_large(parts: &Parts, limit_bytes: usize) -> bool {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length: Option<usize> = length.and_then(|length| length.to_str().ok()?.parse().ok());
    match is_multipart(&parts.headers) {
        true => length.is_some_and(|length| length > limit_bytes),
        false => length.is_none_or(|length| length > limit_bytes),
    }
}

/// Whether documents of these formats may go where the request says.
fn check_formats(
    formats: &[Format],
    address: &Address,
    options: &UpdateOptions,
) -> Result<(), ServerError> {
    let is_of_quads = |format: &Format| has_graphs(*format);
    if matches!(address.target, Target::Store) && !formats.iter().all(is_of_quads) {
        return Err(ServerError::bad_request(
            "a large document of triples needs its graph: ?graph=IRI or ?default",
        ));
    }
    // The loader takes quads as they come, whatever graphs they name.
    if formats.iter().any(is_of_quads) && !options.writes.is_all() {
        return Err(ServerError::forbidden(
            "a large document of quads is for those who may change all graphs; send less at a time, or triples to one graph",
        ));
    }
    Ok(())
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
    let graph = match &address.target {
        Target::Graph(name) => name.clone(),
        Target::Store => None,
    };
    let check = |formats: &[Format]| check_formats(formats, address, update_options);
    if !is_multipart(&parts.headers) {
        // Before anything is taken.
        check(&[format_of_body(&parts.headers)?])?;
    }
    // Without a base, the address of the temporary file would be one.
    let base_iri = graph.clone().or_else(|| base_iri(parts));
    let base_iri = base_iri.ok_or_else(|| ServerError::bad_request("the request has no Host"))?;
    let documents = spool(state, parts, body).await?;
    let formats: Vec<Format> = documents.iter().map(|document| document.format).collect();
    check(&formats)?;
    let memory_bytes = (state.engine.options().memory_bytes / LOAD_MEMORY_PART)
        .clamp(LOAD_MEMORY_BYTES_MIN, LOAD_MEMORY_BYTES_MAX);
    let mut memory = BodyMemory::new(&state.engine);
    memory.resize(usize::try_from(memory_bytes).unwrap_or(usize::MAX))?;
    let options = LoadOptions {
        memory_bytes,
        base_iri: Some(base_iri),
        graph,
        ..LoadOptions::default()
    };
    let writer = writes.writer().clone();
    // The client knows its documents, not the files that keep them here.
    let names: Vec<(String, String)> = documents
        .iter()
        .map(|it| (it.path.display().to_string(), it.name.clone()))
        .collect();
    let by_client = |text: &str| {
        let mut text = text.to_owned();
        for (temporary, name) in &names {
            if text.contains(temporary.as_str()) {
                text = text.replace(temporary.as_str(), name);
            }
        }
        text
    };
    let bytes = documents.iter().map(|it| it.bytes).sum();
    let others = state
        .load_help
        .others(state.options.cluster.as_ref(), bytes);
    let loaded = state.query_threads.handle().spawn_blocking(move || {
        let _memory = memory;
        let sources = documents
            .iter()
            .map(|it| Source::File(it.path.to_path_buf()));
        let source: Vec<Source> = sources.collect();
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
                let source_name = by_client(&error.source_name);
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
                name,
                line,
                bytes_max,
            } => ServerError::TooLong {
                message: format!(
                    "{}:{line}: a statement that begins about here is longer than {}, and has to stand in memory; send \
                     N-Triples or N-Quads, where a literal may have any length; nothing was loaded",
                    by_client(&name),
                    ByteCount(bytes_max as u64)
                ),
            },
            LoadError::Input { name, source } => ServerError::bad_request(format!(
                "{}: {}; nothing was loaded",
                by_client(&name),
                reason(&source)
            )),
            LoadError::NoRdf { name, what } => ServerError::bad_request(format!(
                "{}: {what}; nothing was loaded",
                by_client(&name)
            )),
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
    let warnings = report.warnings.iter().map(|warning| by_client(warning));
    let warnings: Vec<String> = warnings.collect();
    Ok(updates::answer_with(StatusCode::OK, committed, &warnings))
}
