//! From a specification to a [`Program`]: which columns live where, which permutation each
//! step walks, what is left to check.
//!
//! Chunk 0 is made from the input, chunk `i` is what step `i` gives. A variable is kept in a
//! chunk only while something later reads it. A program is good for all input rows in which the
//! same variables are unbound: those count as free here, and the pattern binds them.

use std::sync::Arc;

use datafusion_common::Result;
use orrery_storage::QuadPosition;
use orrery_term::TermId;

use super::access::{self, Known, Positions, Wishes};
use super::adjacent::AdjacentStep;
use super::arrange::arrange;
use super::filter::{ChunkFilter, expression_variables};
use super::intersection;
use super::program::{Check, Key, OutputColumn, Program, ROW_NUMBER, StepProgram};
use super::{
    GraphScope, ObjectRanges, PatternMode, PatternSpecification, PatternStep, QuadPattern, Slot,
};
use crate::context::QueryContext;

/// The id after the default graph's: where the named graphs begin.
const FIRST_NAMED_GRAPH: TermId = TermId::from_bits(TermId::DEFAULT_GRAPH.bits() + 1);

/// Compiles a specification for input batches in which the variables marked in `unbound` (one
/// mark per input variable) have no value.
pub(super) fn compile(
    context: &Arc<QueryContext>,
    specification: &PatternSpecification,
    input: &[Arc<str>],
    unbound: &[bool],
) -> Result<Program> {
    let is_existence = is_existence(&specification.mode);
    let counts_rows = specification.mode != PatternMode::Inner;
    let bound_input: Vec<&Arc<str>> = (0..input.len())
        .filter(|&column| !unbound[column])
        .map(|column| &input[column])
        .collect();
    let groups = arrange(
        &specification.steps,
        &bound_input,
        context.snapshot().has_named_graphs(),
        specification.intersects,
    );
    let liveness = Liveness::analyze(specification, &groups, &bound_input, counts_rows);

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
    let entry_filters = filters_at(context, specification, &liveness, 0, &layout)?;

    let step = |number: usize| &specification.steps[number];
    let mut steps = Vec::with_capacity(groups.len());
    for (number, group) in groups.iter().enumerate() {
        context.patience().check()?;
        let next = groups.get(number + 1).map(|group| step(group[0]));
        let compilers: Vec<StepCompiler<'_>> = group
            .iter()
            .map(|&member| {
                StepCompiler::new(context, step(member), next, &layout, &liveness, number + 1)
            })
            .collect();
        let (mut program, next_layout) = match <[StepCompiler<'_>; 1]>::try_from(compilers) {
            Ok([alone]) => alone.compile()?,
            Err(together) => intersection::compile(together)?,
        };
        program.members.clone_from(group);
        program.filters = filters_at(context, specification, &liveness, number + 1, &next_layout)?;
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
        let snapshot = context.snapshot();
        program.adjacent = AdjacentStep::of(&program, snapshot, false);
        if let Some(by_set) = program.set_scan_mut() {
            by_set.step.adjacent = AdjacentStep::of(&by_set.step, snapshot, true);
        }
        steps.push(Arc::new(program));
        layout = next_layout;
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
    })
}

/// Whether only the existence of a match counts.
pub(super) fn is_existence(mode: &PatternMode) -> bool {
    match mode {
        PatternMode::Inner | PatternMode::Optional => false,
        PatternMode::Semi | PatternMode::Anti | PatternMode::Mark(_) => true,
    }
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

fn filters_at(
    context: &Arc<QueryContext>,
    specification: &PatternSpecification,
    liveness: &Liveness<'_>,
    stage: usize,
    layout: &[Arc<str>],
) -> Result<Vec<ChunkFilter>> {
    specification
        .filters
        .iter()
        .zip(&liveness.filter_stages)
        .filter(|(_, filter_stage)| **filter_stage == stage)
        .map(|(filter, _)| ChunkFilter::compile(filter, layout, context))
        .collect()
}

/// Which variables each chunk must carry, and after which step each filter can run.
struct Liveness<'a> {
    live: Vec<Vec<&'a str>>,
    filter_stages: Vec<usize>,
}

impl<'a> Liveness<'a> {
    fn analyze(
        specification: &'a PatternSpecification,
        groups: &[Vec<usize>],
        bound_input: &[&'a Arc<str>],
        counts_rows: bool,
    ) -> Self {
        let steps = &specification.steps;
        // Where each variable is bound first, in the order of the names.
        let mut bound_at: Vec<(&str, usize)> =
            bound_input.iter().map(|name| (&***name, 0)).collect();
        let variables_of = |group: &[usize]| -> Vec<&'a Arc<str>> {
            let patterns = group.iter().map(|&step| &steps[step].pattern);
            patterns.flat_map(QuadPattern::variables).collect()
        };
        for (number, group) in groups.iter().enumerate() {
            let variables = variables_of(group).into_iter();
            bound_at.extend(variables.map(|variable| (&**variable, number + 1)));
        }
        bound_at.sort_unstable();
        bound_at.dedup_by_key(|(name, _)| *name);
        let stage_of = |variable: &str| {
            let found = bound_at.binary_search_by_key(&variable, |(name, _)| name);
            found.ok().map(|place| bound_at[place].1)
        };

        let filter_variables: Vec<Vec<&str>> = specification
            .filters
            .iter()
            .map(expression_variables)
            .collect();
        let filter_stages: Vec<usize> = filter_variables
            .iter()
            .map(|names| names.iter().filter_map(|name| stage_of(name)).max())
            .map(Option::unwrap_or_default)
            .collect();

        // Backwards from the output: what chunk i carries is what its filters and everything later reads.
        let mut live: Vec<Vec<&str>> = vec![Vec::new(); groups.len() + 1];
        let mut wanted: Vec<&str> = Vec::new();
        if !is_existence(&specification.mode) {
            // With numbered rows the input columns are fetched from the input at the end.
            wanted.extend(
                specification
                    .output
                    .iter()
                    .map(|name| &**name)
                    .filter(|name| !(counts_rows && stage_of(name) == Some(0))),
            );
        }
        for stage in (0..=groups.len()).rev() {
            for (names, filter_stage) in filter_variables.iter().zip(&filter_stages) {
                if *filter_stage == stage {
                    wanted.extend(names);
                }
            }
            wanted.sort_unstable();
            wanted.dedup();
            // What is bound later is not wanted before either.
            wanted.retain(|name| stage_of(name).is_some_and(|bound| bound <= stage));
            live[stage].clone_from(&wanted);
            if stage > 0 {
                let read = variables_of(&groups[stage - 1]);
                wanted.extend(read.into_iter().map(|name| &**name));
            }
        }
        Self {
            live,
            filter_stages,
        }
    }

    fn is_live(&self, stage: usize, variable: &str) -> bool {
        // In ascending order.
        variable == ROW_NUMBER || self.live[stage].binary_search(&variable).is_ok()
    }
}

/// What the graph scope asks of a step besides a value for the graph position.
pub(super) struct GraphDemand {
    pub(super) known: Known,
    /// The graph must be one of these.
    pub(super) one_of: Option<Arc<[TermId]>>,
    /// The same triple in several graphs matches once.
    pub(super) merges: bool,
    /// No quad can match.
    is_empty: bool,
}

/// Compiles one step on what the steps before it leave.
pub(super) struct StepCompiler<'a> {
    pub(super) context: &'a Arc<QueryContext>,
    pub(super) step: &'a PatternStep,
    next: Option<&'a PatternStep>,
    layout: &'a [Arc<str>],
    liveness: &'a Liveness<'a>,
    stage: usize,
    reads: Vec<usize>,
    checks: Vec<Check>,
}

impl<'a> StepCompiler<'a> {
    fn new(
        context: &'a Arc<QueryContext>,
        step: &'a PatternStep,
        next: Option<&'a PatternStep>,
        layout: &'a [Arc<str>],
        liveness: &'a Liveness<'a>,
        stage: usize,
    ) -> Self {
        Self {
            context,
            step,
            next,
            layout,
            liveness,
            stage,
            reads: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// The step by itself, and the variables of the chunks that it gives.
    pub(super) fn compile(mut self) -> Result<(StepProgram, Vec<Arc<str>>)> {
        let demand = self.graph_demand();
        let positions = self.positions(&demand);
        let next_keys = self.next_keys(&positions);
        let index = access::choose(
            self.context.snapshot(),
            &positions,
            &Wishes {
                has_object_ranges: self.step.object_ranges.is_some(),
                next_keys: &next_keys,
                merges_graphs: demand.merges,
            },
        )?;
        let columns = index.permutation().columns();
        let mut prefix = positions.prefix(index.permutation());
        let mut between = self.between(&positions, &prefix, columns.get(prefix.len()));
        if demand.is_empty {
            prefix.clear();
            between = Some(Vec::new());
        }

        let mut bound: Vec<(&Arc<str>, usize)> = Vec::new();
        for (column, position) in columns.into_iter().enumerate() {
            match positions.at(position) {
                Known::Fixed(_) if column < prefix.len() => {}
                Known::Fixed(Key::Constant(term)) => {
                    let read = self.read(column);
                    self.checks.push(Check::Constant { read, term: *term });
                }
                Known::Fixed(Key::Column(from)) => {
                    let read = self.read(column);
                    self.checks.push(Check::Column {
                        read,
                        column: *from,
                    });
                }
                Known::Free(variable) => {
                    if let Some((_, first)) = bound.iter().find(|(name, _)| *name == variable) {
                        let left = self.read(*first);
                        let right = self.read(column);
                        self.checks.push(Check::Same { left, right });
                    } else {
                        bound.push((variable, column));
                    }
                }
                Known::Ignored => {}
            }
            let is_bounded = between.is_some() && column == prefix.len();
            match position {
                QuadPosition::Object if !is_bounded => self.check_object_ranges(column),
                QuadPosition::Graph => self.check_graph(column, &demand, &positions, is_bounded),
                QuadPosition::Subject | QuadPosition::Predicate | QuadPosition::Object => {}
            }
        }
        let merge = demand.merges.then(|| {
            (prefix.len()..columns.len())
                .filter(|&column| columns[column] != QuadPosition::Graph)
                .map(|column| self.read(column))
                .collect()
        });

        let (carried, mut layout) = self.carried();
        let mut produced = Vec::new();
        for (variable, column) in bound {
            if self.is_live(variable) {
                produced.push(self.read(column));
                layout.push(Arc::clone(variable));
            }
        }
        let program = StepProgram {
            index,
            prefix,
            between,
            reads: self.reads,
            checks: self.checks,
            merge,
            carried,
            produced,
            filters: Vec::new(),
            first_match_only: false,
            existence_of: None,
            adjacent: None,
            members: Vec::new(),
            intersection: None,
        };
        Ok((program, layout))
    }

    /// The position of a permutation's column among the columns read.
    fn read(&mut self, column: usize) -> usize {
        if let Some(read) = self.reads.iter().position(|&read| read == column) {
            return read;
        }
        self.reads.push(column);
        self.reads.len() - 1
    }

    /// What is known of the pattern when the step begins.
    pub(super) fn positions(&self, demand: &GraphDemand) -> Positions {
        let pattern = &self.step.pattern;
        Positions([
            self.known(&pattern.subject),
            self.known(&pattern.predicate),
            self.known(&pattern.object),
            demand.known.clone(),
        ])
    }

    fn known(&self, slot: &Slot) -> Known {
        match slot {
            Slot::Constant(term) => Known::Fixed(Key::Constant(*term)),
            Slot::Variable(name) => self.known_variable(name),
        }
    }

    fn known_variable(&self, name: &Arc<str>) -> Known {
        match self.layout.iter().position(|variable| variable == name) {
            Some(column) => Known::Fixed(Key::Column(column)),
            None => Known::Free(Arc::clone(name)),
        }
    }

    pub(super) fn graph_demand(&self) -> GraphDemand {
        let has_named_graphs = self.context.snapshot().has_named_graphs();
        let plain = |known| GraphDemand {
            known,
            one_of: None,
            merges: false,
            is_empty: false,
        };
        match &self.step.pattern.graph {
            GraphScope::Default if has_named_graphs => {
                plain(Known::Fixed(Key::Constant(TermId::DEFAULT_GRAPH)))
            }
            GraphScope::Default => plain(Known::Ignored),
            GraphScope::AllUnion => GraphDemand {
                merges: has_named_graphs,
                ..plain(Known::Ignored)
            },
            GraphScope::Named(graph) => plain(Known::Fixed(Key::Constant(*graph))),
            GraphScope::Union(graphs) => match &**graphs {
                [] => GraphDemand {
                    is_empty: true,
                    ..plain(Known::Ignored)
                },
                [graph] => plain(Known::Fixed(Key::Constant(*graph))),
                several => GraphDemand {
                    one_of: Some(ascending(several)),
                    merges: true,
                    ..plain(Known::Ignored)
                },
            },
            GraphScope::NamedVariable { variable, allowed } => GraphDemand {
                one_of: allowed.as_deref().map(ascending_names),
                is_empty: !has_named_graphs,
                ..plain(self.known_variable(variable))
            },
        }
    }

    /// The variables that this step binds and the next step looks up.
    fn next_keys(&self, positions: &Positions) -> Vec<Arc<str>> {
        let Some(next) = self.next else {
            return Vec::new();
        };
        let wanted = next.pattern.variables();
        positions
            .0
            .iter()
            .filter_map(|known| match known {
                Known::Free(variable) if wanted.contains(&variable) => Some(Arc::clone(variable)),
                Known::Free(_) | Known::Fixed(_) | Known::Ignored => None,
            })
            .collect()
    }

    /// Bounds on the first column after a prefix of constants.
    fn between(
        &self,
        positions: &Positions,
        prefix: &[Key],
        next: Option<&QuadPosition>,
    ) -> Option<Vec<(TermId, TermId)>> {
        let is_constant = prefix.iter().all(|key| matches!(key, Key::Constant(_)));
        let next = *next?;
        if !is_constant || !matches!(positions.at(next), Known::Free(_)) {
            return None;
        }
        match next {
            QuadPosition::Object => {
                let ranges = self.step.object_ranges.as_ref()?;
                Some(ranges.intervals().to_vec())
            }
            // Only GRAPH ?g leaves the graph free.
            QuadPosition::Graph => Some(vec![(FIRST_NAMED_GRAPH, TermId::MAX)]),
            QuadPosition::Subject | QuadPosition::Predicate => None,
        }
    }

    fn check_object_ranges(&mut self, column: usize) {
        if let Some(ranges) = &self.step.object_ranges {
            let ranges: ObjectRanges = ranges.clone();
            let read = self.read(column);
            self.checks.push(Check::Ranges { read, ranges });
        }
    }

    fn check_graph(
        &mut self,
        column: usize,
        demand: &GraphDemand,
        positions: &Positions,
        is_bounded: bool,
    ) {
        if let Some(terms) = &demand.one_of {
            let terms = Arc::clone(terms);
            let read = self.read(column);
            self.checks.push(Check::OneOf { read, terms });
        } else if matches!(positions.at(QuadPosition::Graph), Known::Free(_)) && !is_bounded {
            let read = self.read(column);
            self.checks.push(Check::NotDefaultGraph { read });
        }
    }

    /// Whether something after this step reads the variable.
    pub(super) fn is_live(&self, variable: &str) -> bool {
        self.liveness.is_live(self.stage, variable)
    }

    /// The columns of the incoming chunk that something after this step reads.
    pub(super) fn carried(&self) -> (Vec<usize>, Vec<Arc<str>>) {
        let columns: Vec<usize> = (0..self.layout.len())
            .filter(|&column| self.liveness.is_live(self.stage, &self.layout[column]))
            .collect();
        let names = columns
            .iter()
            .map(|&column| Arc::clone(&self.layout[column]))
            .collect();
        (columns, names)
    }
}

/// The default graph has no name, so no variable is bound to it.
fn ascending_names(graphs: &[TermId]) -> Arc<[TermId]> {
    let named = graphs.iter().copied();
    let named: Vec<TermId> = named
        .filter(|graph| *graph != TermId::DEFAULT_GRAPH)
        .collect();
    ascending(&named)
}

fn ascending(terms: &[TermId]) -> Arc<[TermId]> {
    let mut terms = terms.to_vec();
    terms.sort_unstable();
    terms.dedup();
    terms.into()
}
