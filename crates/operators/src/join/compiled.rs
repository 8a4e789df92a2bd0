//! A compiled join: shared columns, and the source of each output variable.

use std::sync::Arc;

use arrow::array::{Array, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::build::{SHARED_VARIABLES_MAX, VariableSet, all_of};
use super::specification::{JoinMode, JoinSpecification, Uncounted};
use crate::context::QueryContext;
use crate::error::Error;
use crate::pattern::{ChunkFilter, expression_variables};
use crate::solutions::solution_schema;
use crate::touch_counter::TouchCounter;

/// Where a variable of a merged solution comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum MergedColumn {
    /// Only the left side has it.
    Left(usize),
    /// Only the right side has it.
    Right(usize),
    /// Both have it: the left value, or the right one if that is unbound.
    Both { left: usize, right: usize },
}

/// Where an output variable comes from when a left solution is not merged with a right one.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutputColumn {
    /// The left side.
    Left(usize),
    /// Whether there was a match.
    Mark,
    /// It is unbound.
    NotLeft,
}

/// A compiled join.
#[derive(Debug)]
pub(super) struct CompiledJoin {
    pub(super) specification: JoinSpecification,
    pub(super) schema: SchemaRef,
    /// The columns of the shared variables on either side, in the same order.
    pub(super) left_shared: Vec<usize>,
    pub(super) right_shared: Vec<usize>,
    pub(super) right_columns: usize,
    /// The variables of merged solutions that the output and the filters read.
    pub(super) merged: Vec<MergedColumn>,
    pub(super) filters: Vec<ChunkFilter>,
    /// For every output variable its place in `merged`.
    pub(super) merged_output: Vec<Option<usize>>,
    pub(super) output: Vec<OutputColumn>,
    pub(super) counted: CountedVariables,
    /// Pairs that the filters dropped.
    pub(super) dropped: TouchCounter,
}

/// Which shared variables `MINUS` counts, by their places among the shared ones.
#[derive(Debug, Default)]
pub(super) struct CountedVariables {
    /// In every row.
    pub(super) always: VariableSet,
    /// In rows where this column of the left side is null.
    pub(super) unless: Vec<(VariableSet, usize)>,
}

impl CountedVariables {
    fn new(mode: &JoinMode, shared: &[&str], left: &[Arc<str>]) -> Self {
        let mut counted = Self {
            always: all_of(shared.len()),
            unless: Vec::new(),
        };
        let JoinMode::Minus(uncounted) = mode else {
            return counted;
        };
        for Uncounted { variable, witness } in uncounted {
            let Some(at) = shared.iter().position(|name| *name == &**variable) else {
                continue;
            };
            counted.always &= !(1 << at);
            let witness = witness.as_deref().and_then(|name| place(name, left));
            counted
                .unless
                .extend(witness.map(|column| (1 << at, column)));
        }
        counted
    }

    /// The variables that count for a left row.
    pub(super) fn in_row(&self, left: &[UInt64Array], row: usize) -> VariableSet {
        let unless = self.unless.iter();
        let more = unless.filter(|(_, witness)| left[*witness].is_null(row));
        more.fold(self.always, |counted, (variable, _)| counted | variable)
    }
}

fn place(name: &str, variables: &[Arc<str>]) -> Option<usize> {
    variables.iter().position(|variable| **variable == *name)
}

impl CompiledJoin {
    pub(super) fn new(
        context: &Arc<QueryContext>,
        left: &[Arc<str>],
        right: &[Arc<str>],
        specification: JoinSpecification,
    ) -> Result<Self, Error> {
        let (left_shared, right_shared): (Vec<usize>, Vec<usize>) = left
            .iter()
            .enumerate()
            .filter_map(|(column, name)| Some((column, place(name, right)?)))
            .unzip();
        if left_shared.len() > SHARED_VARIABLES_MAX {
            return Err(Error::Unsupported(format!(
                "a join on {} variables, at most {SHARED_VARIABLES_MAX} are possible",
                left_shared.len()
            )));
        }
        let (names, merged) = merged_columns(&specification, left, right);
        let filters = specification
            .filters
            .iter()
            .map(|filter| ChunkFilter::compile(filter, &names, context))
            .collect::<Result<_>>()?;
        let output = specification
            .output
            .iter()
            .map(|name| match (&specification.mode, place(name, left)) {
                (JoinMode::Mark(mark), _) if mark == name => OutputColumn::Mark,
                (_, Some(column)) => OutputColumn::Left(column),
                (_, None) => OutputColumn::NotLeft,
            })
            .collect();
        let merged_output = specification.output.iter();
        let shared: Vec<&str> = left_shared.iter().map(|&column| &*left[column]).collect();
        let counted = CountedVariables::new(&specification.mode, &shared, left);
        Ok(Self {
            schema: solution_schema(&specification.output),
            merged_output: merged_output.map(|name| place(name, &names)).collect(),
            left_shared,
            right_shared,
            right_columns: right.len(),
            merged,
            filters,
            output,
            counted,
            dropped: TouchCounter::default(),
            specification,
        })
    }
}

/// The variables of merged solutions that something reads, and where they come from.
fn merged_columns(
    specification: &JoinSpecification,
    left: &[Arc<str>],
    right: &[Arc<str>],
) -> (Vec<Arc<str>>, Vec<MergedColumn>) {
    let gives_merged = !specification.mode.is_existence();
    let for_output = specification.output.iter().map(|name| &**name);
    let for_filters = specification.filters.iter().flat_map(expression_variables);
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut merged = Vec::new();
    for name in for_output.filter(|_| gives_merged).chain(for_filters) {
        let column = match (place(name, left), place(name, right)) {
            (Some(left), Some(right)) => MergedColumn::Both { left, right },
            (Some(left), None) => MergedColumn::Left(left),
            (None, Some(right)) => MergedColumn::Right(right),
            (None, None) => continue,
        };
        if place(name, &names).is_none() {
            names.push(Arc::from(name));
            merged.push(column);
        }
    }
    (names, merged)
}
