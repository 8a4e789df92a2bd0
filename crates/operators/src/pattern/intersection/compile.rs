//! The compilation of a group of patterns to an [`IntersectionProgram`].

use std::sync::{Arc, OnceLock};

use datafusion_common::{DataFusionError, Result};
use orrery_storage::{Permutation, QuadPosition};

use super::super::compiler::access::KnownPosition;
use super::super::compiler::arrange::common_ranges;
use super::super::compiler::step_compiler::StepCompiler;
use super::super::program::{
    AdjacentStep, IntersectionProgram, Key, SetScanProgram, SideProgram, StepProgram,
};
use super::matches::VALUE_COLUMN;

/// Compiles patterns that [`arrange`](super::super::compiler::arrange) has put together: each has
/// one unknown variable, and it is the same one.
pub(in super::super) fn compile(
    mut members: Vec<StepCompiler<'_>>,
) -> Result<(StepProgram, Vec<Arc<str>>)> {
    let mut sides = Vec::with_capacity(members.len());
    let mut variable = None;
    for member in &members {
        let (side, binds) = side(member)?;
        sides.push(side);
        variable = Some(binds);
    }
    let ranges = common_ranges(members.iter().map(|member| member.step));
    let (Some(first), Some(variable), Some(side)) = (members.first(), variable, sides.first())
    else {
        return Err(not_arranged());
    };
    let (carried, mut layout) = first.carried();
    let mut produced = Vec::new();
    if first.is_live(&variable) {
        produced.push(0);
        layout.push(variable);
    }
    let (index, prefix) = (side.index.clone(), side.prefix.to_vec());
    let by_set = match only_dependent(&sides) {
        Some(dependent) => set_scan(members.swap_remove(dependent), dependent, &sides)?,
        None => None,
    };
    let program = StepProgram {
        index,
        prefix,
        between: None,
        reads: vec![VALUE_COLUMN],
        checks: Vec::new(),
        merge: None,
        carried,
        produced,
        filters: Vec::new(),
        first_match_only: false,
        existence_of: None,
        adjacent: None,
        members: Vec::new(),
        intersection: Some(IntersectionProgram {
            adjacent: sides.iter().filter_map(AdjacentStep::of_side).collect(),
            sides,
            ranges,
            by_set,
        }),
    };
    Ok((program, layout))
}

/// One pattern and the variable that it binds.
fn side(member: &StepCompiler<'_>) -> Result<(SideProgram, Arc<str>)> {
    let demand = member.graph_demand();
    let positions = member.positions(&demand);
    let free = |position| match positions.at(position) {
        KnownPosition::Free(variable) => Some((position, Arc::clone(variable))),
        KnownPosition::Fixed(_) | KnownPosition::Ignored => None,
    };
    let unknown = [
        QuadPosition::Subject,
        QuadPosition::Predicate,
        QuadPosition::Object,
    ]
    .into_iter()
    .find_map(free);
    let Some((position, variable)) = unknown else {
        return Err(not_arranged());
    };
    // The graph is the last column of each.
    let permutation = match position {
        QuadPosition::Subject => Permutation::Posg,
        QuadPosition::Predicate => Permutation::Ospg,
        QuadPosition::Object | QuadPosition::Graph => Permutation::Psog,
    };
    let index = member.context.view().index(permutation);
    let prefix = positions.prefix(permutation);
    let (Some(index), &[first, second]) = (index, &prefix[..]) else {
        return Err(not_arranged());
    };
    let graph = match demand.known {
        KnownPosition::Fixed(key) => Some(key),
        KnownPosition::Free(_) | KnownPosition::Ignored => None,
    };
    let side = SideProgram {
        index,
        prefix: [first, second],
        graph,
        one_of: demand.one_of,
        merges: demand.merges,
    };
    Ok((side, variable))
}

/// The side that depends on the chunk, if all others are the same for every row.
fn only_dependent(sides: &[SideProgram]) -> Option<usize> {
    let depends = |(_, side): &(usize, &SideProgram)| !side.key_columns().is_empty();
    let mut dependent = sides.iter().enumerate().filter(depends);
    match (dependent.next(), dependent.next()) {
        (Some((number, _)), None) => Some(number),
        _ => None,
    }
}

/// The pattern of one side as a scan that drops what is not among the values of the others.
fn set_scan(
    member: StepCompiler<'_>,
    number: usize,
    sides: &[SideProgram],
) -> Result<Option<Box<SetScanProgram>>> {
    let side = &sides[number];
    // A scan is for one key behind constants.
    let [Key::Constant(_), Key::Column(_)] = side.prefix else {
        return Ok(None);
    };
    let (mut step, _) = member.compile()?;
    if !step.index.is_same(&side.index) || step.prefix != side.prefix {
        return Ok(None);
    }
    let found = step.reads.iter().position(|&read| read == VALUE_COLUMN);
    let read = found.unwrap_or_else(|| {
        step.reads.push(VALUE_COLUMN);
        step.reads.len() - 1
    });
    Ok(Some(Box::new(SetScanProgram {
        side: number,
        step,
        read,
        values: OnceLock::new(),
    })))
}

fn not_arranged() -> DataFusionError {
    DataFusionError::Internal("these patterns do not bind one variable together".to_owned())
}
