//! From batches of ids to batches of terms.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use futures::StreamExt;
use futures::stream::BoxStream;
use orrery_operators::context::QueryContext;
use orrery_term::{Term, TermId};

use super::{SolutionBatch, UNBOUND};
use crate::error::QueryError;

/// Ids of a query, coming in batches.
pub(crate) type IdStream = BoxStream<'static, Result<RecordBatch, QueryError>>;

/// Reads the terms of ids.
#[derive(Clone)]
pub(crate) struct Decoder {
    context: Arc<QueryContext>,
}

impl Decoder {
    pub(crate) fn new(context: Arc<QueryContext>) -> Self {
        Self { context }
    }

    pub(crate) fn context(&self) -> &Arc<QueryContext> {
        &self.context
    }

    /// The terms of ids that are sorted and distinct, in their order.
    pub(crate) fn terms(&self, ids: &[TermId]) -> Result<Vec<Term<'static>>, QueryError> {
        let mut terms = Vec::with_capacity(ids.len());
        self.context
            .terms(ids, |_, term| terms.push(term.into_owned()))?;
        debug_assert_eq!(terms.len(), ids.len());
        Ok(terms)
    }

    /// The solutions of a batch; `columns` says which column each variable has, if any.
    fn batch(
        &self,
        batch: &RecordBatch,
        columns: &[Option<usize>],
    ) -> Result<SolutionBatch, QueryError> {
        let rows = batch.num_rows();
        let mut ids: Vec<TermId> = Vec::new();
        for at in columns.iter().flatten() {
            let column = batch.column(*at).as_primitive::<UInt64Type>();
            ids.extend(column.iter().flatten().map(TermId::from_bits));
        }
        ids.sort_unstable();
        ids.dedup();
        let terms = self.terms(&ids)?;
        let numbers = columns
            .iter()
            .map(|at| match at {
                Some(at) => numbered(batch.column(*at).as_primitive::<UInt64Type>(), &ids),
                None => vec![UNBOUND; rows],
            })
            .collect();
        Ok(SolutionBatch::new(rows, numbers, terms))
    }
}

fn numbered(column: &arrow::array::UInt64Array, ids: &[TermId]) -> Vec<u32> {
    column
        .iter()
        .map(|value| value.map_or(UNBOUND, |bits| number_of(ids, TermId::from_bits(bits))))
        .collect()
}

/// The place of an id among sorted ids that contain it.
pub(crate) fn number_of(ids: &[TermId], id: TermId) -> u32 {
    let at = ids.binary_search(&id).unwrap_or_else(|at| at);
    u32::try_from(at).unwrap_or(UNBOUND)
}

/// Decodes a stream of ids; after an error nothing follows.
pub(crate) fn solutions(
    ids: IdStream,
    decoder: Decoder,
    columns: Vec<Option<usize>>,
) -> BoxStream<'static, Result<SolutionBatch, QueryError>> {
    ids.filter(|batch| {
        let has_rows = !matches!(batch, Ok(batch) if batch.num_rows() == 0);
        futures::future::ready(has_rows)
    })
    .map(move |batch| decoder.batch(&batch?, &columns))
    .boxed()
}
