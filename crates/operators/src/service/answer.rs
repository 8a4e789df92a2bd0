//! The streaming decoder of an endpoint's answer into rows of ids.
//!
//! A task receives the bytes; a blocking thread parses them, for the parsers read from
//! [`io::Read`], and interns the terms; chunks of rows come back through a bounded channel.
//! Dropping the [`ServiceAnswer`] ends both.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use orrery_term::language::{TagFinder, TagSyntax};
use orrery_term::nesting::Nesting;
use orrery_term::{Direction, Term, TermId, Triple};
use oxrdf::BaseDirection;
use sparesults::{
    QueryResultsFormat, QueryResultsParseError, QueryResultsParser, QuerySolution,
    ReaderQueryResultsParserOutput,
};
use tokio::sync::mpsc;

use super::compiled::CompiledService;
use super::endpoints::{RemoteAnswer, RemoteFailure};
use crate::context::QueryContext;
use crate::error::Error;

/// Rows of one chunk.
const CHUNK_ROWS: usize = 512;
/// Chunks that are parsed ahead.
const CHUNKS_AHEAD: usize = 2;
/// Pieces of bytes that are received ahead.
const PIECES_AHEAD: usize = 4;
/// What remembering a blank node costs beside its label.
const BLANK_NODE_BYTES: usize = 64;

/// The media types that are understood.
pub(super) const ACCEPT: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.9, text/tab-separated-values;q=0.5";

/// Why an answer ends early.
#[derive(Debug)]
pub(super) enum AnswerError {
    /// The endpoint's fault, which `SILENT` forgives.
    Remote(RemoteFailure),
    /// Ours.
    Local(Error),
}

impl From<Error> for AnswerError {
    fn from(error: Error) -> Self {
        Self::Local(error)
    }
}

impl From<RemoteFailure> for AnswerError {
    fn from(failure: RemoteFailure) -> Self {
        Self::Remote(failure)
    }
}

/// Some rows: the bits of an id per variable, all set where the variable is unbound.
#[derive(Debug, Default)]
pub(super) struct AnswerChunk {
    pub(super) ids: Vec<u64>,
    pub(super) rows: usize,
}

/// An answer that is being received.
pub(super) struct ServiceAnswer {
    chunks: mpsc::Receiver<Result<AnswerChunk, AnswerError>>,
    receiving: tokio::task::JoinHandle<()>,
}

impl Drop for ServiceAnswer {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

impl ServiceAnswer {
    /// Begins to receive and to parse.
    pub(super) fn start(
        plan: &Arc<CompiledService>,
        answer: RemoteAnswer,
        reservation: MemoryReservation,
    ) -> Result<Self, RemoteFailure> {
        let format = format_of(answer.content_type.as_deref())?;
        let (piece_sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let mut body = answer.body;
        let receiving = tokio::spawn(async move {
            while let Some(piece) = body.next().await {
                if piece_sender.send(piece).await.is_err() {
                    break;
                }
            }
        });
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        let mut parsing = Parsing {
            plan: Arc::clone(plan),
            blank_nodes: HashMap::new(),
            reservation,
            rows: 0,
        };
        tokio::task::spawn_blocking(move || {
            let reader = PieceReader {
                pieces,
                piece: Bytes::new(),
                tags: TagFinder::new(syntax_of(format)),
                nesting: Nesting::of(syntax_of(format)),
                context: Arc::clone(&parsing.plan.context),
            };
            if let Err(error) = parsing.run(format, reader, &sender) {
                // Nobody may be waiting any more.
                let _ = sender.blocking_send(Err(error));
            }
        });
        Ok(Self { chunks, receiving })
    }

    /// The next rows; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<AnswerChunk>, AnswerError> {
        self.chunks.recv().await.transpose()
    }
}

fn format_of(content_type: Option<&str>) -> Result<QueryResultsFormat, RemoteFailure> {
    let Some(content_type) = content_type else {
        // What was asked for first.
        return Ok(QueryResultsFormat::Json);
    };
    match QueryResultsFormat::from_media_type(content_type) {
        Some(QueryResultsFormat::Csv) | None => Err(RemoteFailure::new(format!(
            "its answer is '{}', which holds no solutions that could be read",
            content_type.escape_default()
        ))),
        Some(format) => Ok(format),
    }
}

/// How an answer writes language tags.
fn syntax_of(format: QueryResultsFormat) -> TagSyntax {
    match format {
        QueryResultsFormat::Xml => TagSyntax::Xml,
        QueryResultsFormat::Json => TagSyntax::JsonResults,
        _ => TagSyntax::At,
    }
}

/// The state of the thread.
struct Parsing {
    plan: Arc<CompiledService>,
    blank_nodes: HashMap<String, u64>,
    reservation: MemoryReservation,
    rows: usize,
}

impl Parsing {
    fn run(
        &mut self,
        format: QueryResultsFormat,
        reader: PieceReader,
        sender: &mpsc::Sender<Result<AnswerChunk, AnswerError>>,
    ) -> Result<(), AnswerError> {
        let parser = QueryResultsParser::from_format(format);
        let solutions = match parser.for_reader(reader).map_err(failure)? {
            ReaderQueryResultsParserOutput::Solutions(solutions) => solutions,
            ReaderQueryResultsParserOutput::Boolean(_) => {
                return Err(
                    RemoteFailure::new("its answer is a truth value, not solutions").into(),
                );
            }
        };
        let answered = solutions.variables();
        let columns: Vec<Option<usize>> = self
            .plan
            .specification
            .variables
            .iter()
            .map(|wanted| answered.iter().position(|name| *name == wanted.name))
            .collect();
        let mut chunk = AnswerChunk::default();
        for solution in solutions {
            self.row(&solution.map_err(failure)?, &columns, &mut chunk)?;
            if chunk.rows == CHUNK_ROWS {
                let full = std::mem::take(&mut chunk);
                if sender.blocking_send(Ok(full)).is_err() {
                    return Ok(());
                }
            }
        }
        if chunk.rows > 0 {
            let _ = sender.blocking_send(Ok(chunk));
        }
        Ok(())
    }

    fn row(
        &mut self,
        solution: &QuerySolution,
        columns: &[Option<usize>],
        chunk: &mut AnswerChunk,
    ) -> Result<(), AnswerError> {
        self.rows += 1;
        let limit = self.plan.options.answer_rows_max;
        if self.rows > limit {
            return Err(RemoteFailure::new(format!(
                "its answer has more than {limit} solutions; ask for less, or raise the limit (--service-rows-max)"
            ))
            .into());
        }
        let plan = Arc::clone(&self.plan);
        for (variable, column) in plan.specification.variables.iter().zip(columns) {
            let term = column.and_then(|column| solution.values()[column].as_ref());
            let id = match term {
                Some(term) => self.id(term)?.bits(),
                None if variable.is_certain => {
                    return Err(RemoteFailure::new(format!(
                        "a solution leaves {} unbound, which the pattern binds",
                        variable.name
                    ))
                    .into());
                }
                None => u64::MAX,
            };
            chunk.ids.push(id);
        }
        chunk.rows += 1;
        Ok(())
    }

    fn id(&mut self, term: &oxrdf::Term) -> Result<TermId, AnswerError> {
        let term = self.term(term)?;
        Ok(self.plan.context.intern(&term)?)
    }

    fn term<'t>(&mut self, term: &'t oxrdf::Term) -> Result<Term<'t>, AnswerError> {
        Ok(match term {
            oxrdf::Term::NamedNode(node) => Term::iri(node.as_str()),
            oxrdf::Term::BlankNode(node) => self.blank_node(node)?,
            oxrdf::Term::Literal(literal) => literal_of(literal),
            oxrdf::Term::Triple(triple) => {
                let subject = match &triple.subject {
                    oxrdf::NamedOrBlankNode::NamedNode(node) => Term::iri(node.as_str()),
                    oxrdf::NamedOrBlankNode::BlankNode(node) => self.blank_node(node)?,
                };
                let predicate = Term::iri(triple.predicate.as_str());
                let object = self.term(&triple.object)?;
                let triple = Triple::new(subject, predicate, object)
                    .map_err(|error| RemoteFailure::new(format!("in a solution: {error}")))?;
                Term::Triple(Box::new(triple))
            }
        })
    }

    fn blank_node(&mut self, node: &oxrdf::BlankNode) -> Result<Term<'static>, AnswerError> {
        let label = node.as_str();
        if let Some(&number) = self.blank_nodes.get(label) {
            return Ok(Term::BlankNode(number));
        }
        self.reservation
            .try_grow(label.len() + BLANK_NODE_BYTES)
            .map_err(Error::from)?;
        let number = self.plan.context.fresh_blank_node();
        self.blank_nodes.insert(label.to_owned(), number);
        Ok(Term::BlankNode(number))
    }
}

fn literal_of(literal: &oxrdf::Literal) -> Term<'_> {
    let value = literal.value();
    match (literal.language(), literal.direction()) {
        (Some(tag), None) => Term::language(value, tag),
        (Some(tag), Some(BaseDirection::Ltr)) => {
            Term::directional(value, tag, Direction::LeftToRight)
        }
        (Some(tag), Some(BaseDirection::Rtl)) => {
            Term::directional(value, tag, Direction::RightToLeft)
        }
        (None, _) => Term::typed(value, literal.datatype().into_owned().into_string()),
    }
}

fn failure(error: QueryResultsParseError) -> AnswerError {
    if let QueryResultsParseError::Io(error) = &error
        && let Some(inner) = error.get_ref()
        && let Some(failure) = inner.downcast_ref::<RemoteFailure>()
    {
        return AnswerError::Remote(failure.clone());
    }
    AnswerError::Remote(RemoteFailure::new(format!(
        "its answer cannot be read: {error}"
    )))
}

/// The received bytes for a parser that blocks.
struct PieceReader {
    pieces: mpsc::Receiver<Result<Bytes, RemoteFailure>>,
    piece: Bytes,
    /// The parsers put language tags into lower case.
    tags: TagFinder,
    nesting: Nesting,
    context: Arc<QueryContext>,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                None => return Ok(0),
                Some(piece) => {
                    self.piece = piece.map_err(io::Error::other)?;
                    self.nesting.push(&self.piece)?;
                    if self.tags.push(&self.piece) {
                        self.context.note_language_tags(self.tags.found());
                    }
                }
            }
        }
        let length = self.piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
