//! A filter under a top-N sort, by the ids of its first key.
//!
//! A top-k makes a sort key of every row, for which terms may have to be read. But unbound sorts
//! before blank nodes, those before IRIs and those before literals (SPARQL 1.1, 15.1), and the ids
//! of the dictionary's IRIs ascend with their text. So most rows can be left out by their id alone:
//! those that surely come after as many others as are asked for.
//!
//! Keeps one number a row that is asked for. Rows equal to the last of them stay, for further keys
//! may decide; so do terms whose place an id does not tell.

use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::UInt64Type;
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_term::{TermId, TermKind};

use super::batch_by_batch::batch_by_batch;
use crate::solutions::partitioned_plan_properties;
use orrery_plan_node::{Inputs, alike_input, node_methods};

/// The limit of asked rows beyond which the sort is no small part of the work.
pub const ROWS_ASKED_MAX: usize = 10_000;

/// Leaves out rows that cannot be among the first ones.
#[derive(Clone, Debug)]
pub struct CandidatesExec {
    input: Arc<dyn ExecutionPlan>,
    pub(crate) column: usize,
    pub(crate) is_descending: bool,
    pub(crate) rows_asked: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CandidatesExec {
    /// The filter under a sort by this column first, of which `rows_asked` rows are read. Each
    /// partition of the input is looked at by itself.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        column: usize,
        is_descending: bool,
        rows_asked: usize,
    ) -> Self {
        let partitions = input.properties().partitioning.partition_count();
        Self {
            properties: partitioned_plan_properties(&input.schema(), partitions),
            input,
            column,
            is_descending,
            rows_asked,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The input.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

/// The places of the best rows so far, the last of them on top.
struct BestPlaces {
    places: BinaryHeap<u64>,
    rows_asked: usize,
    is_descending: bool,
}

impl BestPlaces {
    /// Which of the rows may be among the first ones.
    fn keep(&mut self, ids: &UInt64Array) -> BooleanArray {
        let kept = ids.iter().map(|id| {
            let Some(place) = place_of(id.map(TermId::from_bits)) else {
                return true;
            };
            self.is_candidate(if self.is_descending { !place } else { place })
        });
        BooleanArray::from(kept.collect::<Vec<bool>>())
    }

    fn is_candidate(&mut self, place: u64) -> bool {
        if self.places.len() < self.rows_asked {
            self.places.push(place);
            return true;
        }
        let Some(mut last) = self.places.peek_mut() else {
            return false;
        };
        if place < *last {
            *last = place;
            return true;
        }
        place == *last
    }
}

/// A number that ascends with the order of terms, as far as the id tells; the same for all
/// literals.
fn place_of(id: Option<TermId>) -> Option<u64> {
    const UNBOUND: u64 = 0;
    const BLANK_NODE: u64 = 1 << 60;
    const IRI: u64 = 2 << 60;
    const LITERAL: u64 = 3 << 60;
    let Some(id) = id else {
        return Some(UNBOUND);
    };
    match id.kind() {
        TermKind::BlankNode => Some(BLANK_NODE),
        TermKind::Iri => Some(IRI | id.payload()),
        TermKind::Literal
        | TermKind::Boolean
        | TermKind::Integer
        | TermKind::Decimal
        | TermKind::Double
        | TermKind::DoublePlain
        | TermKind::Date
        | TermKind::DateTime
        | TermKind::ShortString => Some(LITERAL),
        TermKind::Special | TermKind::TripleTerm | TermKind::Delta | TermKind::QueryLocal => None,
    }
}

impl DisplayAs for CandidatesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let name = schema.field(self.column).name();
        let order = if self.is_descending { "last" } else { "first" };
        write!(f, "CandidatesExec: {order} {} by ?{name}", self.rows_asked)
    }
}

impl Inputs for CandidatesExec {
    fn reads_partitions(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.swap_remove(0);
        let Self {
            column,
            is_descending,
            rows_asked,
            ..
        } = *self;
        Ok(Arc::new(Self::new(
            input,
            column,
            is_descending,
            rows_asked,
        )))
    }

    alike_input!();
}

impl ExecutionPlan for CandidatesExec {
    node_methods!("CandidatesExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let column = self.column;
        let mut best = BestPlaces {
            places: BinaryHeap::new(),
            rows_asked: self.rows_asked,
            is_descending: self.is_descending,
        };
        batch_by_batch(
            &self.input,
            self.input.schema(),
            &self.metrics,
            partition,
            context,
            move |batch| {
                let kept = best.keep(batch.column(column).as_primitive::<UInt64Type>());
                Ok(filter_record_batch(batch, &kept)?)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(is_descending: bool, rows_asked: usize, ids: &[Option<u64>]) -> Vec<usize> {
        let mut best = BestPlaces {
            places: BinaryHeap::new(),
            rows_asked,
            is_descending,
        };
        let kept = best.keep(&UInt64Array::from(ids.to_vec()));
        (0..ids.len()).filter(|row| kept.value(*row)).collect()
    }

    #[test]
    fn only_rows_that_surely_come_later_are_left_out() {
        let iri = |rank: u64| Some((TermKind::Iri as u64) << 60 | rank);
        let number = |number| TermId::integer(number).map(TermId::bits);
        let local = Some(TermId::query_local(0).bits());
        let blank = Some((TermKind::BlankNode as u64) << 60 | 9);
        let ids = [
            number(5),
            iri(7),
            number(1),
            iri(3),
            local,
            iri(7),
            iri(9),
            blank,
            None,
            iri(3),
            iri(4),
        ];
        // After row 3 the best two are the IRIs 3 and 7; after row 8 unbound and the blank node.
        assert_eq!(kept(false, 2, &ids), [0, 1, 2, 3, 4, 5, 7, 8]);
        assert_eq!(kept(true, 2, &ids), [0, 1, 2, 4]);
        assert_eq!(kept(false, 100, &ids).len(), ids.len());
    }
}
