//! Parsing of an update to operations.
//!
//! The grammar is `orrery_syntax`'s. `DATA` blocks, which can be megabytes long, are turned into
//! numbered statements at once, so that the transaction has little left to do and the parser's tree
//! goes early.

use std::sync::{Arc, Weak};

use orrery_syntax::weight_statement;
use orrery_term::Term;
use orrery_term::language::{TagFinder, TagSyntax};
use oxrdf::NamedOrBlankNode;
use oxsdatatypes::DateTime;
use spargebra::algebra::GraphTarget;
use spargebra::term::{GraphName, GroundQuad, GroundTerm, NamedNode, Quad};
use spargebra::{GraphUpdateOperation, Update};

use super::services::{self, Services};
use super::{Operation, ParsedUpdate, Statements, TermNumber, UpdateOptions, data, weights};
use crate::engine::Engine;
use crate::error::QueryError;
use crate::parse::{self, Assumed, Refused, Stack};
use crate::results::literal_from_oxrdf;

/// Statements between two questions whether somebody still waits: about a millisecond of work.
const STATEMENTS_PER_LOOK: usize = 1 << 10;

impl Engine {
    /// Reads an update and fetches the documents that it loads:
    /// [`parse_update`](Self::parse_update) and [`ParsedUpdate::fetch_documents`].
    pub fn prepare_update(
        &self,
        text: &str,
        options: &UpdateOptions,
    ) -> Result<ParsedUpdate, QueryError> {
        let mut update = self.parse_update(text, options)?;
        update.fetch_documents(options)?;
        Ok(update)
    }

    /// Reads an update. Needs no lock, so it is done before the writer's turn has come.
    pub fn parse_update(
        &self,
        text: &str,
        options: &UpdateOptions,
    ) -> Result<ParsedUpdate, QueryError> {
        let text = parse::without_mark(text);
        let waiting = options.query.waiting.as_ref();
        if let Some(operations) = self.plain_data(text, waiting)? {
            return Ok(operations);
        }
        let parsed = match self.parsed(text, options, Stack::Ordinary) {
            Ok(update) => Ok(update),
            Err(Refused::Error(error)) => Err(error),
            Err(Refused::NeedsLargeStack) => parse::on_large_stack("parse-update", || {
                self.parsed(text, options, Stack::Large)
                    .map_err(Refused::into_error)
            }),
        };
        // What was read of the text is not what stands in it.
        require_waiting(waiting)?;
        parsed
    }

    /// The update, if it is nothing but plain `DATA` blocks; these do not depend on any option.
    fn plain_data(
        &self,
        text: &str,
        waiting: Option<&Weak<()>>,
    ) -> Result<Option<ParsedUpdate>, QueryError> {
        parse::check_length("update", text, self.options().update_bytes_max)?;
        let operations = data::read(text, &|| parse::is_abandoned(waiting));
        require_waiting(waiting)?;
        let Some(operations) = operations else {
            return Ok(None);
        };
        Ok(Some(ParsedUpdate::plain(operations)))
    }

    fn parsed(
        &self,
        text: &str,
        options: &UpdateOptions,
        stack: Stack,
    ) -> Result<ParsedUpdate, Refused> {
        let snapshot = self.database().snapshot();
        let assumed = Assumed {
            base_iri: options.query.base_iri.as_deref(),
            prefixes: options.query.assumed(&snapshot),
            waiting: options.query.waiting.as_ref(),
        };
        let update = parse::parse_update(text, assumed, stack)?;
        self.checked(text, update, options, stack)
            .map_err(Refused::Error)
    }

    fn checked(
        &self,
        text: &str,
        update: Update,
        options: &UpdateOptions,
        stack: Stack,
    ) -> Result<ParsedUpdate, QueryError> {
        let operations = numbered(update.operations, options.query.waiting.as_ref())?;
        let update = ParsedUpdate {
            services: self.services(&operations)?,
            operations,
            base_iri: update.base_iri.map(|iri| iri.into_inner()),
            needs_large_stack: stack == Stack::Large,
            language_tags: TagFinder::in_text(TagSyntax::At, text),
            now: DateTime::now(),
        };
        let of_protocol = &options.query;
        let has_protocol_dataset =
            !of_protocol.default_graphs.is_empty() || !of_protocol.named_graphs.is_empty();
        if has_protocol_dataset && update.has_dataset() {
            // SPARQL 1.1 Protocol, 2.2.3.
            return Err(QueryError::update_failed(
                "the request has using-graph-uri or using-named-graph-uri, and the update has USING or \
                 WITH; use one of them",
            ));
        }
        Ok(update)
    }

    /// What the operations ask other endpoints by, if they do.
    fn services(&self, operations: &[Operation]) -> Result<Option<Arc<Services>>, QueryError> {
        let asks = operations.iter().any(|operation| match operation {
            Operation::Other(GraphUpdateOperation::DeleteInsert { pattern, .. }) => {
                services::asks(pattern)
            }
            _ => false,
        });
        if !asks {
            return Ok(None);
        }
        match &self.options().service {
            Some(options) => Ok(Some(Services::new(options, self.memory_pool()))),
            // Also of SERVICE SILENT: that nobody was asked does not mean that everything matches.
            None => Err(QueryError::unsupported(
                "SERVICE in an update: no other endpoint is asked unless it is allowed with --service-allow",
            )),
        }
    }
}

/// Puts documents in place of the operations that name them; a failed `LOAD SILENT` goes.
impl ParsedUpdate {
    /// Whether there are documents to fetch.
    pub fn loads_documents(&self) -> bool {
        let is_load =
            |it: &Operation| matches!(it, Operation::Other(GraphUpdateOperation::Load { .. }));
        self.operations.iter().any(is_load)
    }

    /// Fetches the documents of all `LOAD`s, before the writers' turn has come. Blocks until all
    /// are there, or nobody waits any more.
    pub fn fetch_documents(&mut self, options: &UpdateOptions) -> Result<(), QueryError> {
        options.check_may_write()?;
        let mut operations = self.operations.iter();
        operations.try_for_each(|operation| operation.check(&options.writes))?;
        for operation in &mut self.operations {
            let Operation::Other(GraphUpdateOperation::Load {
                silent,
                source,
                destination,
            }) = operation
            else {
                continue;
            };
            let loaded = load(source.as_str(), destination, options);
            require_waiting(options.query.waiting.as_ref())?;
            *operation = match loaded {
                Ok(statements) => Operation::Loaded(statements),
                Err(_) if *silent => Operation::Loaded(Statements::new()),
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }
}

fn load(
    source: &str,
    destination: &GraphName,
    options: &UpdateOptions,
) -> Result<Statements, QueryError> {
    let failed = |reason: String| QueryError::update_failed(format!("LOAD <{source}>: {reason}"));
    let Some(documents) = &options.documents else {
        return Err(failed("loading of documents is off".to_owned()));
    };
    // A thread of its own: this one may be a runtime's, which must not wait for another.
    let waiting = options.query.waiting.as_ref();
    let load = || documents.load(source, waiting);
    let loaded = std::thread::scope(|scope| scope.spawn(load).join());
    let mut statements = loaded
        .unwrap_or_else(|_| Err("reading it panicked".to_owned()))
        .map_err(failed)?;
    if let GraphName::NamedNode(graph) = destination
        && !statements.move_to_graph(&Term::iri(graph.as_str()))?
    {
        return Err(failed(
            "the document has named graphs; load it without INTO GRAPH".to_owned(),
        ));
    }
    Ok(statements)
}

/// Fails where nobody waits any more; no one is there to read why.
fn require_waiting(waiting: Option<&Weak<()>>) -> Result<(), QueryError> {
    match parse::is_abandoned(waiting) {
        true => Err(QueryError::update_failed("nobody waits for it any more")),
        false => Ok(()),
    }
}

/// Turns the data of operations into numbered statements.
fn numbered(
    operations: Vec<GraphUpdateOperation>,
    waiting: Option<&Weak<()>>,
) -> Result<Vec<Operation>, QueryError> {
    let operations = operations.into_iter().map(|operation| {
        Ok(match operation {
            GraphUpdateOperation::InsertData { data } => {
                Operation::InsertData(statements(&data, waiting)?)
            }
            GraphUpdateOperation::DeleteData { data } => {
                Operation::DeleteData(ground_statements(&data, waiting)?)
            }
            other => match weight_statement(&other) {
                Some(statement) => Operation::Weight(weights::checked(statement)?),
                None => Operation::Other(other),
            },
        })
    });
    operations.collect()
}

/// What the grammar makes of a text.
#[cfg(test)]
pub(super) fn operations_by_grammar(
    text: &str,
    base_iri: Option<&str>,
) -> Result<Vec<Operation>, QueryError> {
    let assumed = Assumed {
        base_iri,
        prefixes: None,
        waiting: None,
    };
    let update = parse::parse_update(text, assumed, Stack::Large).map_err(Refused::into_error)?;
    numbered(update.operations, None)
}

fn statements(data: &[Quad], waiting: Option<&Weak<()>>) -> Result<Statements, QueryError> {
    let mut statements = Statements::new();
    for (number, quad) in data.iter().enumerate() {
        look_who_waits(number, waiting)?;
        let subject = node(&mut statements, &quad.subject)?;
        let predicate = iri(&mut statements, &quad.predicate)?;
        let object = object(&mut statements, &quad.object)?;
        let graph = graph(&mut statements, &quad.graph_name)?;
        statements.quad([subject, predicate, object, graph]);
    }
    Ok(statements)
}

/// Looks at one statement in many.
fn look_who_waits(number: usize, waiting: Option<&Weak<()>>) -> Result<(), QueryError> {
    match number.is_multiple_of(STATEMENTS_PER_LOOK) {
        true => require_waiting(waiting),
        false => Ok(()),
    }
}

fn ground_statements(
    data: &[GroundQuad],
    waiting: Option<&Weak<()>>,
) -> Result<Statements, QueryError> {
    let mut statements = Statements::new();
    for (number, quad) in data.iter().enumerate() {
        look_who_waits(number, waiting)?;
        let subject = iri(&mut statements, &quad.subject)?;
        let predicate = iri(&mut statements, &quad.predicate)?;
        let object = match &quad.object {
            GroundTerm::NamedNode(node) => iri(&mut statements, node)?,
            GroundTerm::Literal(literal) => statements.term(&literal_from_oxrdf(literal))?,
            triple @ GroundTerm::Triple(_) => object(&mut statements, &triple.clone().into())?,
        };
        let graph = graph(&mut statements, &quad.graph_name)?;
        statements.quad([subject, predicate, object, graph]);
    }
    Ok(statements)
}

fn node(statements: &mut Statements, node: &NamedOrBlankNode) -> Result<TermNumber, QueryError> {
    match node {
        NamedOrBlankNode::NamedNode(node) => iri(statements, node),
        NamedOrBlankNode::BlankNode(node) => Ok(statements.blank_node(node.as_str())),
    }
}

fn object(statements: &mut Statements, term: &oxrdf::Term) -> Result<TermNumber, QueryError> {
    match term {
        oxrdf::Term::NamedNode(node) => iri(statements, node),
        oxrdf::Term::BlankNode(node) => Ok(statements.blank_node(node.as_str())),
        oxrdf::Term::Literal(literal) => Ok(statements.term(&literal_from_oxrdf(literal))?),
        oxrdf::Term::Triple(triple) => {
            let subject = node(statements, &triple.subject)?;
            let predicate = iri(statements, &triple.predicate)?;
            let object = object(statements, &triple.object)?;
            Ok(statements.triple([subject, predicate, object]))
        }
    }
}

fn iri(statements: &mut Statements, node: &NamedNode) -> Result<TermNumber, QueryError> {
    Ok(statements.term(&Term::iri(node.as_str()))?)
}

fn graph(statements: &mut Statements, name: &GraphName) -> Result<TermNumber, QueryError> {
    match name {
        GraphName::DefaultGraph => Ok(Statements::DEFAULT_GRAPH),
        GraphName::NamedNode(node) => iri(statements, node),
    }
}

impl Operation {
    /// `CLEAR SILENT` of one graph.
    pub(super) fn clear(graph: Option<&str>) -> Self {
        Self::Other(GraphUpdateOperation::Clear {
            silent: true,
            graph: match graph {
                Some(name) => GraphTarget::NamedNode(NamedNode::new_unchecked(name)),
                None => GraphTarget::DefaultGraph,
            },
        })
    }
}
