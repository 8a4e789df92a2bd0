//! The compilation of a specification to a [`Program`]: columns, permutations, remaining checks.
//!
//! Chunk 0 is made from the input, chunk `i` is what step `i` gives. A variable is kept in a
//! chunk only while something later reads it. A program is good for all input rows in which the
//! same variables are unbound: those count as free here, and the pattern binds them.

use std::sync::Arc;

use datafusion_common::Result;
use orrery_expressions::for_each_child;
use spargebra::algebra::Expression;

use crate::context::QueryContext;
use crate::pattern::compiler::arrange::arrange;
use crate::pattern::compiler::liveness::Liveness;
use crate::pattern::compiler::step_compiler::StepCompiler;
use crate::pattern::filter::{ChunkFilter, expression_variables};
use crate::pattern::intersection;
use crate::pattern::program::{AdjacentStep, OutputColumn, Program, ROW_NUMBER};
use crate::pattern::specification::{PatternMode, PatternSpecification};

/// What of a program does not depend on the constants of its specification, but on where there are
/// any, and on whether there are named graphs.
#[derive(Debug)]
pub(crate) struct Arrangement {
    groups: Vec<Vec<usize>>,
    liveness: Liveness,
}

/// The arrangement for input batches in which the variables marked in `unbound` have no value.
pub(crate) fn arranged(
    context: &QueryContext,
    specification: &PatternSpecification,
    input: &[Arc<str>],
    unbound: &[bool],
) -> Arrangement {
    let counts_rows = specification.mode != PatternMode::Inner;
    let bound_input: Vec<&Arc<str>> = (0..input.len())
        .filter(|&column| !unbound[column])
        .map(|column| &input[column])
        .collect();
    let groups = arrange(
        &specification.steps,
        &bound_input,
        context.view().has_named_graphs(),
        specification.intersects,
    );
    let liveness = Liveness::analyze(specification, &groups, &bound_input, counts_rows);
    Arrangement { groups, liveness }
}

/// Compiles a specification for input batches in which the variables marked in `unbound` (one
/// mark per input variable) have no value.
pub(crate) fn compile(
    context: &Arc<QueryContext>,
    specification: &PatternSpecification,
    input: &[Arc<str>],
    unbound: &[bool],
    Arrangement { groups, liveness }: &Arrangement,
) -> Result<Program> {
    let is_existence = specification.mode.is_existence();
    let counts_rows = specification.mode != PatternMode::Inner;

    let entry_columns: Vec<usize> = (0..input.len())
        .filter(|&column| !unbound[column] && liveness.is_live(0, &input[column]))
        .collect();
    let mut layout: Vec<Arc<str>> = entry_columns
        .iter()
        .map(|&column| Arc::clone(&input[column]))
        .collect();
    if counts_rows {
        layout.push(Arc::from(ROW_NUMBER));
    }
    let entry_filters = filters_at(context, specification, liveness, 0, &layout)?;

    let step = |number: usize| &specification.steps[number];
    let mut steps = Vec::with_capacity(groups.len());
    let mut found = vec![None; specification.found.len()];
    for (number, group) in groups.iter().enumerate() {
        context.patience().check()?;
        let next = groups.get(number + 1).map(|group| step(group[0]));
        let read_terms = read_terms(specification, liveness, number + 1);
        let compilers: Vec<StepCompiler<'_>> = group
            .iter()
            .map(|&member| {
                let variables = (layout.as_slice(), read_terms.as_slice());
                StepCompiler::new(context, step(member), next, variables, liveness, number + 1)
            })
            .collect();
        let (mut program, next_layout) = match <[StepCompiler<'_>; 1]>::try_from(compilers) {
            Ok([alone]) => alone.compile()?,
            Err(together) => intersection::compile(together)?,
        };
        program.members.clone_from(group);
        program.filters = filters_at(context, specification, liveness, number + 1, &next_layout)?;
        if is_existence {
            // A second match of the same triple does no harm.
            program.merge = None;
        }
        let existence_of = is_existence
            .then(|| layout.iter().position(|name| &**name == ROW_NUMBER))
            .flatten();
        program.existence_of = existence_of;
        if let Some(by_set) = program.set_scan_mut() {
            by_set.step.existence_of = existence_of;
            if is_existence {
                by_set.step.merge = None;
            }
        }
        program.first_match_only = is_existence
            && program.produced.is_empty()
            && program.checks.is_empty()
            && program.intersection.is_none();
        if program.first_match_only {
            program.reads.clear();
        }
        let view = context.view();
        program.adjacent = AdjacentStep::of(&program, view, false);
        if let Some(by_set) = program.set_scan_mut() {
            by_set.step.adjacent = AdjacentStep::of(&by_set.step, view, true);
        }
        steps.push(Arc::new(program));
        layout = next_layout;
        for (place, ids) in found.iter_mut().zip(&specification.found) {
            let column = layout.iter().position(|name| name == ids.variable());
            *place = place.or(column.map(|column| (number, column)));
        }
    }
    let output = specification
        .output
        .iter()
        .map(|name| output_column(name, &layout, input, unbound, counts_rows))
        .collect();
    Ok(Program {
        entry_columns,
        counts_rows,
        entry_filters,
        steps,
        output,
        row_number: layout.iter().position(|name| &**name == ROW_NUMBER),
        found,
    })
}

fn output_column(
    name: &Arc<str>,
    layout: &[Arc<str>],
    input: &[Arc<str>],
    unbound: &[bool],
    counts_rows: bool,
) -> OutputColumn {
    let in_input = input.iter().position(|variable| variable == name);
    match in_input {
        Some(column) if counts_rows && !unbound[column] => return OutputColumn::Input(column),
        _ => {}
    }
    match layout.iter().position(|variable| variable == name) {
        Some(column) => OutputColumn::Chunk(column),
        None => OutputColumn::Unbound,
    }
}

/// The variables of the filters at a stage that call a function: those read the terms.
fn read_terms<'s>(
    specification: &'s PatternSpecification,
    liveness: &Liveness,
    stage: usize,
) -> Vec<&'s str> {
    let filters = specification.filters.iter().zip(&liveness.filter_stages);
    filters
        .filter(|(filter, filter_stage)| **filter_stage == stage && calls_function(filter))
        .flat_map(|(filter, _)| expression_variables(filter))
        .collect()
}

fn calls_function(expression: &Expression) -> bool {
    let mut pending = vec![expression];
    while let Some(expression) = pending.pop() {
        if matches!(expression, Expression::FunctionCall(..)) {
            return true;
        }
        for_each_child(expression, &mut |child| pending.push(child));
    }
    false
}

fn filters_at(
    context: &Arc<QueryContext>,
    specification: &PatternSpecification,
    liveness: &Liveness,
    stage: usize,
    layout: &[Arc<str>],
) -> Result<Vec<ChunkFilter>> {
    let given = specification.given.iter().zip(&liveness.given_stages);
    // The cheaper ones first.
    let given = given
        .filter(|(_, given_stage)| **given_stage == stage)
        .map(|(ids, _)| Ok(ChunkFilter::given(ids, layout)));
    let filters = specification.filters.iter().zip(&liveness.filter_stages);
    let filters = filters
        .filter(|(_, filter_stage)| **filter_stage == stage)
        .map(|(filter, _)| ChunkFilter::compile(filter, layout, context));
    given.chain(filters).collect()
}
