//! `orrery update`: runs one SPARQL update, on a local database or through a server.

use std::cell::Cell;
use std::sync::Arc;

use orrery_http_client::AllowList;
use orrery_loader::{BulkCommit, CompactOptions, LoadCheck, SilentProgress, commit_in_bulk};
use orrery_server::Documents;
use orrery_sparql::{
    DocumentSource, Engine, EngineOptions, QueryError, QueryOptions, UpdateOptions,
};
use orrery_storage::{CommitOptions, Database, Error, Transaction, Writer, WriterOptions};

use crate::arguments::{LoadSourceArguments, UpdateArguments};
use crate::commands::foreign::foreign_anywhere;
use crate::commands::http::{post_text, server_url};
use crate::commands::output::Output;
use crate::commands::query_text::{own_address, read_text, threads, warn_of};
use crate::database_place::DatabasePlace;
use crate::failure::Failure;
use crate::units::{Counted, ShowCount};

/// Memory for sorting on disk: this fraction of the memory limit.
const BULK_MEMORY_PART: u64 = 4;

pub(crate) fn run(arguments: UpdateArguments) -> Result<(), Failure> {
    let text = read_text(
        "update",
        arguments.update.as_deref(),
        arguments.file.as_deref(),
    )?;
    let report = match (&arguments.directory, &arguments.server) {
        (Some(directory), None) => {
            let place = DatabasePlace::of(directory, &arguments.cache)?;
            let database = Arc::new(place.create_or_open()?);
            local(database, &text, &arguments)?
        }
        (_, Some(server)) => {
            let mut url = server_url(server, "sparql")?;
            if arguments.forget_history {
                url.query_pairs_mut().append_pair("forget-history", "true");
            }
            let answer = post_text(url, "application/sparql-update", &text)?;
            if is_unchanged(&answer) {
                eprintln!("note: nothing was changed");
            }
            answer
        }
        (None, None) => {
            return Err(Failure::Other(
                "no database; give --db DIR or --server URL".to_owned(),
            ));
        }
    };
    let mut output = Output::open(None)?;
    output.drain(&mut report.into_bytes())?;
    output.finish()
}

/// Whether a server's answer reports that nothing was changed.
fn is_unchanged(answer: &str) -> bool {
    let Ok(report) = serde_json::from_str::<serde_json::Value>(answer) else {
        return false;
    };
    ["added", "removed"].iter().all(|count| report[count] == 0)
}

fn local(
    database: Arc<Database>,
    text: &str,
    arguments: &UpdateArguments,
) -> Result<String, Failure> {
    // First of all: without the lock there is nothing to do.
    let writer = database.open_writer(WriterOptions::default())?;
    let engine_options = EngineOptions {
        memory_bytes: arguments.memory.0,
        service: arguments.endpoints.options()?.service()?,
        ..EngineOptions::default()
    };
    let engine = Engine::new(database, engine_options)?;
    let engine = Arc::new(orrery_r2rml::mapped(engine, &foreign_anywhere()));
    let documents = Documents::new(
        arguments.sources.load_dir.clone(),
        allow_list(&arguments.sources)?,
    )
    .map_err(Failure::Other)?
    .counted_in(&engine);
    let options = UpdateOptions {
        query: QueryOptions {
            base_iri: base_iri(arguments),
            union_default_graph: arguments.union_default_graph,
            strict_prefixes: arguments.strict_prefixes,
            timeout: arguments.timeout.map(|time| time.0),
            ..QueryOptions::of_process()
        },
        documents: Some(Arc::new(documents) as Arc<dyn DocumentSource>),
        ..UpdateOptions::of_process()
    };
    let update = engine
        .prepare_update(text, &options)
        .map_err(|error| Failure::of_text(error, text))?;
    warn_of(text);
    let runtime = threads(&engine)?;
    let of_check = Arc::clone(&engine);
    let check = LoadCheck::new(move |before, after| {
        let checked = of_check.refuse_quads_of_mapped_graphs(before, after);
        checked.map_err(|error| Error::Refused {
            what: error.to_string(),
        })
    });
    let asks_first = Cell::new(false);
    let change = |transaction: &mut Transaction| -> Result<CommitOptions, Failure> {
        let applied = runtime.block_on(engine.apply(&update, &options, transaction));
        asks_first.set(matches!(applied, Err(QueryError::AskFirst)));
        applied?;
        Ok(CommitOptions {
            who: "orrery update".to_owned(),
            keeps_history: !arguments.forget_history,
            ..CommitOptions::default()
        })
    };
    let made = loop {
        match commit(&writer, arguments.memory.0, &check, change) {
            Err(_) if asks_first.get() => {
                runtime.block_on(engine.ask(&update, options.query.timeout))?;
            }
            made => break made?,
        }
    };
    let (added, removed, commit) = match made {
        BulkCommit::InLog(pending) => (pending.added(), pending.removed(), pending.wait()?),
        BulkCommit::InBase {
            number,
            added,
            removed,
        } => (added, removed, number),
    };
    Ok(match (added, removed) {
        (0, 0) => format!("nothing was changed, the last commit is still {commit}\n"),
        _ => format!(
            "commit {commit}: {} added, {} removed\n",
            Counted(added, "quad"),
            ShowCount(removed)
        ),
    })
}

/// The base IRI of the update's relative IRIs.
fn base_iri(arguments: &UpdateArguments) -> Option<String> {
    let given = arguments.base.clone();
    given.or_else(|| own_address(arguments.file.as_deref()))
}

/// Makes a change in memory; if it exceeds memory, makes it again by way of the disk.
fn commit(
    writer: &Writer,
    memory_bytes: u64,
    check: &LoadCheck,
    change: impl Fn(&mut Transaction) -> Result<CommitOptions, Failure>,
) -> Result<BulkCommit, Failure> {
    let mut transaction = writer.begin()?;
    match change(&mut transaction) {
        Ok(options) => return Ok(BulkCommit::InLog(transaction.commit(options)?)),
        Err(Failure::Query(QueryError::Storage(Error::TransactionMemory { .. }))) => {
            drop(transaction);
        }
        Err(error) => return Err(error),
    }
    let options = CompactOptions {
        memory_bytes: (memory_bytes / BULK_MEMORY_PART).max(orrery_loader::MEMORY_BYTES_MIN),
        ..CompactOptions::default()
    };
    commit_in_bulk(writer, &options, Some(check), &SilentProgress, change)
}

/// The hosts that `LOAD` may ask.
pub(crate) fn allow_list(arguments: &LoadSourceArguments) -> Result<AllowList, Failure> {
    AllowList::parse(&arguments.load_allow).map_err(|error| Failure::Other(error.to_string()))
}
