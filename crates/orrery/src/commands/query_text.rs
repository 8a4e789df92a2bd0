//! The common part of `query` and `explain`: reading the text, opening the engine, starting a
//! runtime.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use orrery_http_client::AllowList;
use orrery_loader::Excerpt;
use orrery_server::EndpointOptions;
use orrery_sparql::{Engine, EngineOptions, PreparedQuery, QueryOptions};
use tokio::runtime::Runtime;

use super::foreign::foreign_anywhere;
use crate::arguments::{DatabaseArgument, EndpointArguments, QueryText};
use crate::failure::Failure;

impl QueryText {
    /// Reads the query from the command line, a file or standard input.
    pub(crate) fn read(&self) -> Result<String, Failure> {
        read_text("query", self.query.as_deref(), self.file.as_deref())
    }

    /// The base IRI of the query's relative IRIs.
    fn base(&self) -> Option<String> {
        self.base
            .clone()
            .or_else(|| own_address(self.file.as_deref()))
    }

    /// The query's options from the command line.
    pub(crate) fn options(&self) -> QueryOptions {
        QueryOptions {
            base_iri: self.base(),
            union_default_graph: self.union_default_graph,
            strict_prefixes: self.strict_prefixes,
            ..QueryOptions::of_process()
        }
    }

    /// Opens an engine over the database.
    pub(crate) fn engine(&self, database: &DatabaseArgument) -> Result<Engine, Failure> {
        let defaults = EngineOptions::default();
        let options = EngineOptions {
            memory_bytes: self.memory.0,
            service: self.endpoints.options()?.service()?,
            query_bytes_max: self.query_bytes_max.in_memory(),
            threads: self.threads.unwrap_or(defaults.threads),
            ..defaults
        };
        let database = Arc::new(database.place()?.open()?);
        let engine = Engine::new(database, options)?;
        Ok(orrery_r2rml::mapped(engine, &foreign_anywhere()))
    }
}

impl EndpointArguments {
    /// The endpoints that `SERVICE` may ask, and their limits.
    pub(crate) fn options(&self) -> Result<EndpointOptions, Failure> {
        let allow = AllowList::parse(&self.allow);
        Ok(EndpointOptions {
            allow: allow.map_err(|error| Failure::Other(format!("--service-allow: {error}")))?,
            timeout: self.timeout.0,
            answer_rows_max: self.rows_max,
            answer_bytes_max: self.bytes_max.0,
        })
    }
}

/// Reads a query or an update from the command line, a file or standard input.
pub(crate) fn read_text(
    what: &str,
    text: Option<&str>,
    file: Option<&Path>,
) -> Result<String, Failure> {
    match (text, file) {
        (Some(text), _) => match is_like_a_file(text) {
            true => Err(Failure::Other(format!(
                "`{text}` looks like a file: use -f {text}"
            ))),
            false => Ok(text.to_owned()),
        },
        (None, Some(path)) if path == Path::new("-") => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Failure::file(Path::new("standard input"), error))?;
            Ok(text)
        }
        (None, Some(path)) => {
            std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))
        }
        (None, None) => Err(Failure::Other(format!(
            "no {what}; give one, or -f with a file that has one"
        ))),
    }
}

/// Whether a text is the name of a file rather than a statement: `q.rq`, or any existing file.
fn is_like_a_file(text: &str) -> bool {
    let path = Path::new(text);
    let is_one_word = !text.contains(|c: char| c.is_whitespace() || "{}<>();".contains(c));
    let is_named_so = path.extension().and_then(|it| it.to_str());
    let is_named_so = is_named_so.is_some_and(|it| ["rq", "ru", "sparql", "sql"].contains(&it));
    // `BEGIN` is a statement, whatever files exist.
    is_one_word && (is_named_so || (text.contains(['.', '/']) && path.is_file()))
}

/// Warns about parts of a valid query or update that surely have an unintended meaning, with their
/// lines.
pub(crate) fn warn_of(text: &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for warning in orrery_sparql::warnings(text) {
        if let Some(line) = text.lines().nth(warning.line - 1) {
            let wrong = text.get(warning.span.clone()).unwrap_or_default();
            let width = wrong.lines().next().map_or(1, |it| it.chars().count());
            let excerpt = Excerpt::of_line(line, warning.column - 1, width);
            let [line, carets] = excerpt.lines(Some(warning.line as u64));
            eprintln!("{line}\n{carets}");
        }
        eprintln!("warning: {warning}");
    }
}

/// The address of the file that a text was read from.
pub(crate) fn own_address(file: Option<&Path>) -> Option<String> {
    let file = file.filter(|path| *path != Path::new("-"))?;
    orrery_loader::file_iri(file)
}

/// A runtime on this thread: the plans of one query are polled one after the other, and starting
/// threads would cost more than a short query.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("cannot start the runtime: {error}")))
}

/// A runtime for a prepared query: multi-threaded if its plan is parallel.
pub(crate) fn runtime_for(query: &PreparedQuery, engine: &Engine) -> Result<Runtime, Failure> {
    if !query.is_parallel() {
        return runtime();
    }
    threads(engine)
}

/// A runtime with as many threads as the engine's.
pub(crate) fn threads(engine: &Engine) -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(engine.options().threads)
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("cannot start the runtime: {error}")))
}
