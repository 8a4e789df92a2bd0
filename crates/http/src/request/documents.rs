//! RDF documents, as requests bring them and as `LOAD` names them.
//!
//! `LOAD <http...>` asks other machines within the server's allow-list; `LOAD <file:...>` reads
//! below the one directory that the server was started with, if there is one. Symbolic links are
//! resolved first and the result is checked, so none leads out of it.

use crate::request::media_type::MediaType;
use axum::http::{HeaderMap, header};
use orrery_http_client::{AllowList, Client, ClientOptions, Request};
use orrery_loader::{DocumentBounds, DocumentError, DocumentTerm, Format, read_document};
use orrery_service::errors::ServiceError;
use orrery_sparql::{DocumentSource, Engine, Statements, TermNumber, TooMuchText};
use orrery_storage::reason;
use orrery_term::Term;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Most memory that the statements of one document may take.
pub const DOCUMENT_MEMORY_BYTES: usize = 1 << 30;
/// Divisor of an engine's memory: most that one document may take.
const DOCUMENT_MEMORY_PART: u64 = 4;

/// Pause between two checks whether anyone still waits for a document.
const TIME_PER_LOOK: Duration = Duration::from_millis(10);

/// The `Accept` header: our parsers' formats.
const ACCEPT: &str = "text/turtle, application/n-triples, application/n-quads, application/trig, \
                      application/rdf+xml;q=0.9, application/ld+json;q=0.8";

/// Sources of the documents that `LOAD` names: other machines, and a directory.
#[derive(Debug)]
pub struct Documents {
    /// The client of other machines, within its allow-list, on a runtime of its own.
    remote: Option<(Client, Runtime)>,
    /// `file:` IRIs below this directory are read.
    directory: Option<PathBuf>,
    /// The engine whose memory counts a document while it is read; without one it is only limited.
    engine: Option<Arc<Engine>>,
}

impl Documents {
    /// Allows documents below a directory, and at the addresses of a list; without either, none.
    pub fn new(directory: Option<PathBuf>, allow: AllowList) -> Result<Self, String> {
        if let Some(directory) = directory.as_deref().filter(|path| !path.is_dir()) {
            return Err(format!(
                "there is no directory {} for LOAD to read from; make it, or leave out --load-dir",
                directory.display()
            ));
        }
        let remote = if allow.is_empty() {
            None
        } else {
            let client = Client::new(ClientOptions {
                allow,
                ..ClientOptions::default()
            });
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("orrery-fetch")
                .enable_all()
                .build();
            Some((
                client.map_err(|error| error.to_string())?,
                runtime.map_err(|error| error.to_string())?,
            ))
        };
        Ok(Self {
            remote,
            directory,
            engine: None,
        })
    }

    /// Counts documents as memory of an engine.
    pub fn counted_in(mut self, engine: &Arc<Engine>) -> Self {
        self.engine = Some(Arc::clone(engine));
        self
    }
}

impl Drop for Documents {
    /// Dropping a runtime waits for its threads, which async code may not do.
    fn drop(&mut self) {
        if let Some((_, runtime)) = self.remote.take() {
            runtime.shutdown_background();
        }
    }
}

impl DocumentSource for Documents {
    fn load(&self, iri: &str, waiting: Option<&Weak<()>>) -> Result<Statements, String> {
        let url = orrery_http_client::Url::parse(iri).map_err(|error| error.to_string())?;
        if url.scheme() == "file" {
            return self.load_file(&url, waiting);
        }
        let Some((client, runtime)) = &self.remote else {
            return Err("no host is allowed; allow it with --load-allow HOST".to_owned());
        };
        let asked = client.send(Request::get(iri, ACCEPT));
        let response = runtime.block_on(async {
            tokio::select! {
                answered = asked => answered.map_err(|error| error.to_string()),
                () = abandoned(waiting.cloned()) => Err(DocumentError::Abandoned.to_string()),
            }
        })?;
        let base = response.url.to_string();
        let by_type = response.content_type.as_deref().and_then(format_of_type);
        let format = by_type
            .or_else(|| Format::from_path(Path::new(response.url.path())))
            .ok_or_else(|| {
                format!(
                    "it came as {}, which is no RDF format",
                    response.content_type.as_deref().unwrap_or("no known type")
                )
            })?;
        let given_up = abandoned(waiting.cloned());
        let input = response.body.into_reader(runtime.handle(), given_up);
        self.statements(input, (&base, &base), format, waiting)
    }
}

impl Documents {
    fn load_file(
        &self,
        url: &orrery_http_client::Url,
        waiting: Option<&Weak<()>>,
    ) -> Result<Statements, String> {
        let Some(directory) = &self.directory else {
            return Err(
                "files are not loaded; start with --load-dir DIR to allow one directory".to_owned(),
            );
        };
        // The message does not say where that directory is.
        let refused = || "it is not a file below the directory of --load-dir".to_owned();
        let path = url.to_file_path().map_err(|()| refused())?;
        // Missing files and files elsewhere look the same from outside.
        let path = path.canonicalize().map_err(|_| refused())?;
        let root = directory.canonicalize().map_err(|_| refused())?;
        if !path.starts_with(&root) || !path.is_file() {
            return Err(refused());
        }
        let format = Format::from_path(&path)
            .ok_or_else(|| "its name tells no RDF format (such as .ttl)".to_owned())?;
        let file = File::open(&path).map_err(|error| reason(&error))?;
        self.statements(file, (url.as_str(), url.as_str()), format, waiting)
    }

    fn statements(
        &self,
        input: impl Read + Send + 'static,
        (name, base_iri): (&str, &str),
        format: Format,
        waiting: Option<&Weak<()>>,
    ) -> Result<Statements, String> {
        let held = self
            .engine
            .as_ref()
            .map(|engine| engine.hold_memory("a document of LOAD"));
        let memory_bytes = self
            .engine
            .as_ref()
            .map_or(DOCUMENT_MEMORY_BYTES, |engine| {
                document_memory_bytes(engine)
            });
        let hold = |bytes: usize| held.as_ref().is_none_or(|held| held.resize(bytes).is_ok());
        let bounds = DocumentBounds {
            memory_bytes,
            hold: &mut { hold },
            waiting: waiting.cloned(),
        };
        let document = read_document(input, name, format, Some(base_iri), bounds).map_err(
            |error| match error {
                DocumentError::TooLarge { .. } => format!("{error}; load it with `orrery load`"),
                other => other.to_string(),
            },
        )?;
        if !hold(document.memory_bytes() * 2) {
            return Err("there is not enough memory for it; load it with `orrery load`".to_owned());
        }
        if let Some(warning) = document.warning() {
            tracing::warn!("LOAD: {warning}");
        }
        let mut statements = Statements::new();
        add(&document, "", &mut statements).map_err(|error| error.to_string())?;
        Ok(statements)
    }
}

/// Completes when nobody waits any more: the last holder has dropped it.
async fn abandoned(waiting: Option<Weak<()>>) {
    let Some(waiting) = waiting else {
        return std::future::pending().await;
    };
    while waiting.strong_count() > 0 {
        tokio::time::sleep(TIME_PER_LOOK).await;
    }
}

/// Most memory of an engine that the statements of one document may take.
pub(crate) fn document_memory_bytes(engine: &Engine) -> usize {
    let part = engine.options().memory_bytes / DOCUMENT_MEMORY_PART;
    usize::try_from(part).map_or(DOCUMENT_MEMORY_BYTES, |part| {
        part.min(DOCUMENT_MEMORY_BYTES)
    })
}

/// The graphs that the statements of a document go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement<'n> {
    /// The graphs that the statements name.
    AsWritten,
    /// One graph for all; the default graph has no name.
    Graph(Option<&'n str>),
}

/// Adds a document to statements; its blank nodes are those of the same `scope`.
pub(crate) fn add(
    document: &orrery_loader::Document,
    scope: &str,
    statements: &mut Statements,
) -> Result<(), TooMuchText> {
    add_placed(document, scope, Placement::AsWritten, statements).map(drop)
}

/// Adds a document to statements in its placement.
///
/// False, with only some of it added, if a statement names another graph than the one for all.
pub(crate) fn add_placed(
    document: &orrery_loader::Document,
    scope: &str,
    placement: Placement<'_>,
    statements: &mut Statements,
) -> Result<bool, TooMuchText> {
    let graph = match placement {
        Placement::AsWritten => None,
        Placement::Graph(None) => Some(Statements::DEFAULT_GRAPH),
        Placement::Graph(Some(name)) => Some(statements.term(&Term::iri(name))?),
    };
    statements.note_language_tags(document.language_tags());
    statements.note_prefixes(document.prefixes());
    let mut numbers = Vec::new();
    for term in document.terms() {
        numbers.push(match term {
            DocumentTerm::DefaultGraph | DocumentTerm::Unused => Statements::DEFAULT_GRAPH,
            DocumentTerm::BlankNode(label) => statements.blank_node(&format!("{scope}{label}")),
            DocumentTerm::Inline(id) => statements.id(id),
            DocumentTerm::Key(key) => statements.key(key)?,
            DocumentTerm::Triple(triple) => of_triple(&triple, &numbers, statements)?,
        });
    }
    for quad in document.quads() {
        let mut quad = quad.map(|number| numbers[number as usize]);
        if let Some(graph) = graph {
            if ![Statements::DEFAULT_GRAPH, graph].contains(&quad[3]) {
                return Ok(false);
            }
            quad[3] = graph;
        }
        statements.quad(quad);
    }
    Ok(true)
}

/// The number of a triple term, or of a part of one, whose blank nodes are numbers in `numbers`.
fn of_triple(
    term: &Term<'_>,
    numbers: &[TermNumber],
    statements: &mut Statements,
) -> Result<TermNumber, TooMuchText> {
    match term {
        Term::BlankNode(number) => Ok(usize::try_from(*number)
            .ok()
            .and_then(|number| numbers.get(number).copied())
            .unwrap_or(Statements::DEFAULT_GRAPH)),
        Term::Iri(_) | Term::Literal(_) => statements.term(term),
        Term::Triple(triple) => {
            let [subject, predicate, object] = triple
                .parts()
                .map(|part| of_triple(part, numbers, statements));
            Ok(statements.triple([subject?, predicate?, object?]))
        }
    }
}

/// The format of a request's body.
pub(crate) fn format_of_body(headers: &HeaderMap) -> Result<Format, ServiceError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Err(ServiceError::unsupported_media_type(format!(
            "the request has no Content-Type; send {KNOWN}"
        )));
    };
    let text = value.to_str().unwrap_or_default();
    format_of_type(text).ok_or_else(|| {
        ServiceError::unsupported_media_type(format!("`{text}` is no format of RDF; send {KNOWN}"))
    })
}

const KNOWN: &str = "text/turtle, application/n-triples, application/n-quads, application/trig, \
                     application/rdf+xml or application/ld+json";

/// The format of a media type; its parameters do not matter.
pub(crate) fn format_of_type(content_type: &str) -> Option<Format> {
    Some(match MediaType::parse(content_type).essence() {
        "text/turtle" | "application/turtle" | "application/x-turtle" => Format::Turtle,
        "application/n-triples" => Format::NTriples,
        "application/n-quads" | "text/x-nquads" => Format::NQuads,
        "application/trig" | "application/x-trig" => Format::TriG,
        "application/rdf+xml" | "application/xml" | "text/xml" => Format::RdfXml,
        "application/ld+json" | "application/json" => Format::JsonLd,
        _ => return None,
    })
}

/// Whether a format names the graphs of its statements, and is used for that.
pub(crate) fn has_graphs(format: Format) -> bool {
    match format {
        Format::NQuads | Format::TriG => true,
        Format::NTriples | Format::Turtle | Format::RdfXml | Format::JsonLd => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_below_the_directory_only() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("open");
        std::fs::create_dir(&inside).unwrap();
        let triple = "<a> <http://e/p> <b> .";
        std::fs::write(inside.join("a.ttl"), triple).unwrap();
        std::fs::write(home.path().join("secret.ttl"), triple).unwrap();
        std::os::unix::fs::symlink(home.path().join("secret.ttl"), inside.join("link.ttl"))
            .unwrap();
        let documents = Documents::new(Some(inside.clone()), AllowList::default()).unwrap();
        let load =
            |path: &str| documents.load(&format!("file://{}/{path}", inside.display()), None);
        assert_eq!(load("a.ttl").unwrap().len(), 1);
        for path in [
            "../secret.ttl",
            "link.ttl",
            "%2e%2e/secret.ttl",
            "missing.ttl",
            "",
        ] {
            assert!(load(path).is_err(), "{path}");
        }
        let none = Documents::new(None, AllowList::default()).unwrap();
        assert!(none.load("file:///etc/passwd", None).is_err());
        assert!(none.load("http://example.org/", None).is_err());
    }
}
