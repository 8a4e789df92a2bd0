//! The results of a query: solutions, a boolean, or triples.
//!
//! Ids become terms only here, a batch at a time: the distinct ids of a batch are sorted, so the
//! dictionary is read in its order and each term once, and rows refer to the batch's terms by
//! number. Dropping a stream stops its query. Who wants solutions in a format only gets them
//! [written](SolutionStream::written).

mod batch;
mod decode;
mod describe;
mod kept_terms;
mod numbering;
mod template;
mod triples;
mod written;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::{self, BoxStream, Stream, StreamExt};
use orrery_term::{Direction, Literal, LiteralKind, Term};
use oxrdf::BaseDirection;

use crate::error::QueryError;

pub use batch::SolutionBatch;
pub(crate) use decode::{Decoder, IdStream};
pub(crate) use describe::describe;
pub(crate) use template::{
    QuadTemplate, Template, for_each_quad_variable, for_each_template_variable,
};
pub(crate) use triples::construct;
pub use written::{SolutionWriter, WrittenCells, WrittenRows, WrittenStream};

use decode::{Room, Slices};

/// The answer of a query, by its form.
pub enum QueryResults {
    /// Of `SELECT`.
    Solutions(SolutionStream),
    /// Of `ASK`.
    Boolean(bool),
    /// Of `CONSTRUCT` and `DESCRIBE`.
    Triples(TripleStream),
}

impl QueryResults {
    /// The results, ended with [`QueryError::TooManyRows`] beyond this many solutions or triples.
    #[must_use]
    pub fn limited(self, rows_max: u64) -> Self {
        match self {
            Self::Solutions(mut stream) => {
                stream.slices.limit(rows_max);
                Self::Solutions(stream)
            }
            Self::Triples(stream) => {
                let batches = limited(stream.batches, Room::of(rows_max));
                Self::Triples(TripleStream::new(batches))
            }
            Self::Boolean(value) => Self::Boolean(value),
        }
    }
}

/// Batches of triples as far as there is room for them.
fn limited(
    batches: BoxStream<'static, Result<TripleBatch, QueryError>>,
    room: Room,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
    let cut = stream::try_unfold((batches, room), |(mut batches, mut room)| async move {
        let Some(mut batch) = batches.next().await.transpose()? else {
            return Ok(None);
        };
        let taken = room.take(batch.len())?;
        // What was cut shows that there is more: the next batch, if only of what was cut, is too
        // much.
        let rest = batch.split_off(taken);
        let batches = match rest.is_empty() {
            true => batches,
            false => stream::iter([Ok(rest)]).chain(batches).boxed(),
        };
        Ok(Some((batch, (batches, room))))
    });
    cut.boxed()
}

/// The solutions of a `SELECT`, in batches.
pub struct SolutionStream {
    variables: Arc<[String]>,
    slices: Slices,
}

impl SolutionStream {
    /// The solutions of ids; `columns` says which column each variable has, if any.
    pub(crate) fn new(
        variables: Arc<[String]>,
        ids: IdStream,
        decoder: Decoder,
        columns: &[Option<usize>],
    ) -> Self {
        Self {
            variables,
            slices: Slices::new(ids, decoder, columns),
        }
    }

    /// The projected variables in order, without `?`.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The next batch; `None` at the end. After an error nothing follows.
    pub async fn next(&mut self) -> Option<Result<SolutionBatch, QueryError>> {
        StreamExt::next(self).await
    }
}

impl Stream for SolutionStream {
    type Item = Result<SolutionBatch, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.slices.poll_decoded(cx)
    }
}

/// The triples of a `CONSTRUCT` or `DESCRIBE`, in batches.
pub struct TripleStream {
    batches: BoxStream<'static, Result<TripleBatch, QueryError>>,
}

impl TripleStream {
    pub(crate) fn new(batches: BoxStream<'static, Result<TripleBatch, QueryError>>) -> Self {
        Self { batches }
    }

    /// The next batch; `None` at the end. After an error nothing follows.
    pub async fn next(&mut self) -> Option<Result<TripleBatch, QueryError>> {
        self.batches.next().await
    }
}

impl Stream for TripleStream {
    type Item = Result<TripleBatch, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.poll_next_unpin(cx)
    }
}

/// Some triples with their terms.
#[derive(Clone, Debug, Default)]
pub struct TripleBatch {
    triples: Vec<[u32; 3]>,
    /// The graph of each triple, `None` for the default one; empty if all are of that.
    graphs: Vec<Option<u32>>,
    terms: Vec<Term<'static>>,
}

impl TripleBatch {
    pub(crate) fn new(triples: Vec<[u32; 3]>, terms: Vec<Term<'static>>) -> Self {
        Self {
            triples,
            graphs: Vec::new(),
            terms,
        }
    }

    /// The same triples, each of a graph.
    fn of_graphs(self, graphs: Vec<Option<u32>>) -> Self {
        debug_assert_eq!(graphs.len(), self.triples.len());
        Self { graphs, ..self }
    }

    /// Takes away what comes from a triple on.
    fn split_off(&mut self, at: usize) -> Self {
        let triples = self.triples.split_off(at);
        Self {
            graphs: self.graphs.split_off(at.min(self.graphs.len())),
            terms: match triples.is_empty() {
                true => Vec::new(),
                false => self.terms.clone(),
            },
            triples,
        }
    }

    /// Number of triples.
    pub fn len(&self) -> usize {
        self.triples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.triples.is_empty()
    }

    /// Subject, predicate and object of each triple.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (&Term<'static>, &Term<'static>, &Term<'static>)> + '_ {
        self.triples.iter().map(|triple| {
            let [subject, predicate, object] = triple.map(|number| &self.terms[number as usize]);
            (subject, predicate, object)
        })
    }
}

type QuadOfTerms<'b> = (
    &'b Term<'static>,
    &'b Term<'static>,
    &'b Term<'static>,
    Option<&'b Term<'static>>,
);

impl TripleBatch {
    /// The results with the graph of each triple, `None` for the default one.
    pub fn quads(&self) -> impl Iterator<Item = QuadOfTerms<'_>> + '_ {
        self.iter().enumerate().map(|(at, (s, p, o))| {
            let graph = self.graphs.get(at).copied().flatten();
            (s, p, o, graph.map(|number| &self.terms[number as usize]))
        })
    }
}

/// A term as the ox* serializers take it. Blank nodes are called `b<number>`.
pub fn term_to_oxrdf(term: &Term<'_>) -> oxrdf::Term {
    match term {
        Term::BlankNode(number) => oxrdf::BlankNode::new_unchecked(format!("b{number}")).into(),
        Term::Iri(iri) => oxrdf::NamedNode::new_unchecked(iri.as_ref()).into(),
        Term::Literal(literal) => literal_to_oxrdf(literal).into(),
        Term::Triple(triple) => {
            let [subject, predicate, object] = triple.parts().map(term_to_oxrdf);
            // What a `Triple` guarantees its parts to be.
            let subject: oxrdf::NamedOrBlankNode = match subject {
                oxrdf::Term::BlankNode(node) => node.into(),
                node => named_or_empty(node).into(),
            };
            let predicate = named_or_empty(predicate);
            oxrdf::Triple::new(subject, predicate, object).into()
        }
    }
}

fn named_or_empty(term: oxrdf::Term) -> oxrdf::NamedNode {
    match term {
        oxrdf::Term::NamedNode(node) => node,
        _ => oxrdf::NamedNode::new_unchecked(""),
    }
}

fn literal_to_oxrdf(literal: &Literal<'_>) -> oxrdf::Literal {
    let lexical = literal.lexical.as_ref();
    match &literal.kind {
        LiteralKind::String => oxrdf::Literal::new_simple_literal(lexical),
        LiteralKind::Language(tag) => {
            oxrdf::Literal::new_language_tagged_literal_unchecked(lexical, tag.as_ref())
        }
        LiteralKind::Directional(tag, direction) => {
            let direction = match direction {
                Direction::LeftToRight => BaseDirection::Ltr,
                Direction::RightToLeft => BaseDirection::Rtl,
            };
            oxrdf::Literal::new_directional_language_tagged_literal_unchecked(
                lexical,
                tag.as_ref(),
                direction,
            )
        }
        LiteralKind::Typed(datatype) => oxrdf::Literal::new_typed_literal(
            lexical,
            oxrdf::NamedNode::new_unchecked(datatype.as_ref()),
        ),
    }
}

/// The reverse of [`term_to_oxrdf`] for terms that a query text can hold.
pub(crate) fn literal_from_oxrdf(literal: &oxrdf::Literal) -> Term<'_> {
    if let Some(tag) = literal.language() {
        return match literal.direction() {
            None => Term::language(literal.value(), tag),
            Some(BaseDirection::Ltr) => {
                Term::directional(literal.value(), tag, Direction::LeftToRight)
            }
            Some(BaseDirection::Rtl) => {
                Term::directional(literal.value(), tag, Direction::RightToLeft)
            }
        };
    }
    Term::typed(
        literal.value(),
        literal.datatype().into_owned().into_string(),
    )
}
