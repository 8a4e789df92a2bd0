//! Bulk loads over HTTP: a document too large for memory goes through the bulk loader and becomes
//! visible at once.
//!
//! Readers and other writers go on meanwhile.
//!
//! ```text
//! body -> memory, or a spool -> statements, within a memory limit -> a transaction like any other
//!                            \ more than that -> spool -> loader -> check the new state -> visible
//! ```
//!
//! A load writes the whole database anew, so it checks first whether old snapshots would be lost
//! that nobody gave up, and whether its sender can pay for all quads that they see. Before the
//! result becomes visible, while nobody else commits, it checks again whether the sender may still
//! change the graphs and can pay for what came, and whether a graph that is mapped from tables got
//! quads. Conditions cannot hold for the time of a load and are refused. The files of a form are
//! the sources of one load. A load reserves a part of the server's memory while it runs.

use super::address::{BODY_NAME, Target};
use super::form_documents::DocumentHead;
use super::spool::{Spool, SpooledDocument};
use crate::edge::around;
use crate::edge::guard::base_iri;
use crate::request::body::{BodyMemory, Coding};
use crate::request::documents::has_graphs;
use crate::routes::updates::{self, CommitRequest};
use crate::state::HttpState;
use axum::http::{StatusCode, request::Parts};
use axum::response::Response;
use orrery_loader::{
    LoadCheck, LoadError, LoadOptions, Source, Upload, WhileAwaited, load_into,
    load_into_by_workers,
};
use orrery_service::errors::{ServiceError, told_to_the_log};
use orrery_service::metering::{Meter, Payment};
use orrery_service::users::standing::Standing;
use orrery_service::writes::{Committed, Writes};
use orrery_sparql::{Engine, UpdateOptions};
use orrery_storage::{ByteCount, Error as StorageError, ReadView, Snapshot, reason};
use orrery_term::Term;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Divisor of the memory: most that a load may take, within these bounds.
const LOAD_MEMORY_PART: u64 = 4;
const LOAD_MEMORY_BYTES_MIN: u64 = 64 << 20;
const LOAD_MEMORY_BYTES_MAX: u64 = 1 << 30;

/// The request behind a load: its target, options and payment.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) options: &'a UpdateOptions,
    pub(super) target: &'a Target,
    pub(super) commit_request: &'a CommitRequest,
    pub(super) forgets_history: bool,
    pub(super) meter: Option<&'a Arc<Meter>>,
    /// None if the cost is not reported.
    pub(super) payment: Option<&'a Arc<Payment>>,
}

impl Load<'_> {
    /// Refuses a request that cannot be a load; before the body is read, if its head announces a
    /// load.
    pub(super) fn check(
        &self,
        state: &HttpState,
        writes: &Writes,
        parts: &Parts,
    ) -> Result<(), ServiceError> {
        if !self.commit_request.conditions.is_empty() {
            return Err(ServiceError::bad_request(
                "If-Match and other conditions cannot be kept over a load; send the document without them",
            ));
        }
        if self.forgets_history {
            around::require_administrator(parts, "give up old states")?;
        } else if let Some(first) = writes.writer().given_up_by_load() {
            return Err(StorageError::KeepsHistory { first }.into());
        }
        match self.meter {
            Some(meter) => {
                let snapshot = state.engine.database().snapshot();
                Ok(meter.afford(self.rewritten(snapshot)?)?)
            }
            None => Ok(()),
        }
    }

    /// Refuses a document that cannot be part of a load, before it is read.
    pub(super) fn check_document(
        &self,
        state: &HttpState,
        head: &DocumentHead,
    ) -> Result<(), ServiceError> {
        let graph = self.graph(head)?;
        // The loader takes quads as they come, whatever graphs they name.
        if has_graphs(head.format) && !self.options.writes.is_all() {
            return Err(ServiceError::forbidden(
                "a large document of quads is for those who may change all graphs; send less at a time, or triples to one graph",
            ));
        }
        let snapshot = state.engine.database().snapshot();
        match graph {
            Some(name) if state.engine.is_mapped(&snapshot, &name)? => {
                Err(ServiceError::bad_request(format!(
                    "the graph {name} is mapped from tables, so no quads can be stored in it"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The graph of statements that name none.
    fn graph(&self, head: &DocumentHead) -> Result<Option<String>, ServiceError> {
        match head.target(self.target) {
            Target::Graph(name) => Ok(name.clone()),
            Target::Store if has_graphs(head.format) => Ok(None),
            Target::Store if &*head.name == BODY_NAME => Err(ServiceError::bad_request(
                "a large document of triples needs its graph: ?graph=IRI or ?default",
            )),
            Target::Store => Err(ServiceError::bad_request(format!(
                "{} is of triples, and needs its graph where so much is sent: ?graph=IRI, ?default, or a field `graph` or `default` before it",
                head.name
            ))),
        }
    }

    /// The source of a spooled document, for the loader.
    fn source(
        &self,
        parts: &Parts,
        spool: &Spool,
        document: &SpooledDocument,
    ) -> Result<Source, ServiceError> {
        let graph = self.graph(&document.head)?;
        // Otherwise the base would be the address of the temporary file.
        let base_iri = graph.clone().or_else(|| base_iri(parts));
        let base_iri =
            base_iri.ok_or_else(|| ServiceError::bad_request("the request has no Host"))?;
        Ok(Source::Upload(Upload {
            path: spool.path().to_owned(),
            range: document.range.clone(),
            is_brotli: spool.coding() == Coding::Brotli,
            name: Arc::clone(&document.head.name),
            format: document.head.format,
            graph: graph.map(Into::into),
            base_iri: base_iri.into(),
        }))
    }

    /// The cost of a load in touches: the quads it writes anew, of which the sender pays for those
    /// that they see.
    fn rewritten(&self, snapshot: Arc<Snapshot>) -> Result<u64, ServiceError> {
        let view = ReadView::new(snapshot, self.options.query.scope.clone())?;
        Ok(view.quad_count())
    }

    /// Prepares the check of a load's result before it becomes visible.
    fn last_look(
        &self,
        state: &HttpState,
        parts: &Parts,
        spool: &Spool,
    ) -> Result<LastLook, ServiceError> {
        let heads = || spool.documents().iter().map(|document| &document.head);
        let graphs = heads().map(|head| self.graph(head));
        Ok(LastLook {
            engine: Arc::clone(&state.engine),
            standing: around::standing(state.authentication.as_ref(), parts),
            has_quads: heads().any(|head| has_graphs(head.format)),
            graphs: graphs.collect::<Result<_, _>>()?,
            meter: self.meter.cloned(),
            threads: state.query_threads.handle().clone(),
        })
    }
}

/// The check of a load's result, see [`Load::last_look`].
struct LastLook {
    engine: Arc<Engine>,
    /// None where the database has no users.
    standing: Option<Standing>,
    /// Whether documents name the graphs of their quads.
    has_quads: bool,
    /// The graphs of statements that name none; the default graph has no name.
    graphs: BTreeSet<Option<String>>,
    /// None where nothing is limited.
    meter: Option<Arc<Meter>>,
    threads: Handle,
}

impl LastLook {
    fn look(&self, before: &Arc<Snapshot>, after: &Arc<Snapshot>) -> Result<(), ServiceError> {
        if let Some(standing) = &self.standing {
            let rights = self.threads.block_on(standing.asked())?.rights;
            let may = |graph: &Option<String>| {
                let name = graph.as_ref().map(|iri| Term::iri(iri.clone()));
                rights.writes.require(name.as_ref()).is_ok()
            };
            let may_all = match self.has_quads {
                true => rights.writes.is_all(),
                false => self.graphs.iter().all(may),
            };
            if !may_all {
                return Err(rights.refusal("change the graphs of this document any more"));
            }
        }
        self.engine.refuse_quads_of_mapped_graphs(before, after)?;
        let [before, after] = [before, after].map(|state| {
            let view = ReadView::of_process(Arc::clone(state));
            view.quad_count()
        });
        match &self.meter {
            Some(meter) => Ok(meter.afford(after.saturating_sub(before))?),
            None => Ok(()),
        }
    }
}

/// Loads the documents of a request.
pub(super) async fn load(
    state: &Arc<HttpState>,
    writes: &Writes,
    parts: &Parts,
    load: Load<'_>,
    spool: Arc<Spool>,
) -> Result<Response, ServiceError> {
    for document in spool.documents() {
        load.check_document(state, &document.head)?;
    }
    load.check(state, writes, parts)?;
    let documents = spool.documents().iter();
    let sources = documents.map(|document| load.source(parts, &spool, document));
    let sources = sources.collect::<Result<Vec<Source>, ServiceError>>()?;
    let memory_bytes = (state.engine.options().memory_bytes / LOAD_MEMORY_PART)
        .clamp(LOAD_MEMORY_BYTES_MIN, LOAD_MEMORY_BYTES_MAX);
    let mut memory = BodyMemory::new(&state.engine);
    memory.resize(usize::try_from(memory_bytes).unwrap_or(usize::MAX))?;
    let refused: Arc<Mutex<Option<ServiceError>>> = Arc::default();
    let last_look = load.last_look(state, parts, &spool)?;
    let told = Arc::clone(&refused);
    let check = LoadCheck::new(move |before, after| {
        last_look.look(before, after).map_err(|error| {
            let what = error.line();
            *told.lock() = Some(error);
            StorageError::Refused { what }
        })
    });
    if let Some(payment) = load.payment {
        payment.charge(load.rewritten(state.engine.database().snapshot())?);
    }
    let options = LoadOptions {
        memory_bytes,
        // Prefixes hold for all graphs.
        takes_prefixes: load.options.writes.is_all(),
        keeps_history: !load.forgets_history,
        check: Some(check),
        ..LoadOptions::default()
    };
    let writer = writes.writer().clone();
    let others = state
        .load_help
        .others(state.options.cluster.as_ref(), spool.bytes());
    // The meter counts until the load has ended: it gives up a moment after its client has gone.
    let meter = load.meter.cloned();
    let waiting = Arc::new(());
    let progress = WhileAwaited(Arc::downgrade(&waiting));
    let loaded = state.query_threads.handle().spawn_blocking(move || {
        let _held = (memory, meter, spool);
        match others {
            None => load_into(&writer, &sources, &options, &progress),
            Some(others) => {
                let loaded = load_into_by_workers(&writer, &sources, &options, &others, &progress);
                tracing::info!("a load with other nodes: {:?}", others.counts());
                loaded
            }
        }
    });
    let report = loaded
        .await
        .map_err(|error| ServiceError::Internal {
            message: format!("the load ended: {error}"),
        })?
        .map_err(|error| match refused.lock().take() {
            Some(refused) => refused,
            None => failed(error),
        })?;
    // Held until now by this future, and dropped with it when its client has gone.
    drop(waiting);
    let committed = Committed {
        number: report.commit,
        added: report.quads_added,
        removed: 0,
    };
    Ok(updates::answer_with(
        StatusCode::OK,
        committed,
        &report.warnings,
    ))
}

/// The error of a failed load, for a client.
fn failed(error: LoadError) -> ServiceError {
    match error {
        LoadError::Storage(error) => ServiceError::from(error),
        LoadError::Syntax(error) => {
            // A fix says what to do.
            let advice = match &error.mend {
                Some(_) => "",
                None => "; correct it",
            };
            ServiceError::bad_request(format!("{error}; nothing was loaded{advice}"))
        }
        LoadError::StatementTooLong {
            name,
            line,
            bytes_max,
        } => ServiceError::TooLong {
            message: format!(
                "{name}:{line}: a statement that begins about here is longer than {}, and has to stand in memory; send \
                 N-Triples or N-Quads, where a literal may have any length; nothing was loaded",
                ByteCount(bytes_max as u64)
            ),
        },
        LoadError::Input { name, source } => {
            ServiceError::bad_request(format!("{name}: {}; nothing was loaded", reason(&source)))
        }
        LoadError::NoRdf { name, what } => {
            ServiceError::bad_request(format!("{name}: {what}; nothing was loaded"))
        }
        error @ (LoadError::InvalidIri { .. } | LoadError::TooManyTerms { .. }) => {
            ServiceError::bad_request(error.to_string())
        }
        other => ServiceError::Internal {
            message: told_to_the_log("the load failed, and nothing was loaded", &other),
        },
    }
}
