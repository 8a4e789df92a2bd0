//! The compilation of one quad pattern to a [`StepProgram`]: permutation, known columns, remaining
//! checks. The graph scope becomes keys and checks here.

use std::sync::Arc;

use datafusion_common::Result;
use orrery_storage::QuadPosition;
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::pattern::compiler::access::{self, AccessNeeds, KnownPosition, Positions};
use crate::pattern::compiler::liveness::Liveness;
use crate::pattern::program::{Check, Key, StepProgram};
use crate::pattern::specification::{GraphScope, ObjectRanges, PatternStep, Slot};

/// The id after the default graph's: where the named graphs begin.
const FIRST_NAMED_GRAPH: TermId = TermId::from_bits(TermId::DEFAULT_GRAPH.bits() + 1);

/// What the graph scope asks of a step besides a value for the graph position.
pub(crate) struct GraphDemand {
    pub(crate) known: KnownPosition,
    /// The graph must be one of these.
    pub(crate) one_of: Option<Arc<[TermId]>>,
    /// The same triple in several graphs matches once.
    pub(crate) merges: bool,
    /// No quad can match.
    is_empty: bool,
}

/// Compiles one step on what the steps before it leave.
pub(crate) struct StepCompiler<'a> {
    pub(crate) context: &'a Arc<QueryContext>,
    pub(crate) step: &'a PatternStep,
    next: Option<&'a PatternStep>,
    /// The variables of which a filter after this step reads the terms.
    read_terms: &'a [&'a str],
    layout: &'a [Arc<str>],
    liveness: &'a Liveness,
    stage: usize,
    reads: Vec<usize>,
    checks: Vec<Check>,
}

impl<'a> StepCompiler<'a> {
    pub(crate) fn new(
        context: &'a Arc<QueryContext>,
        step: &'a PatternStep,
        next: Option<&'a PatternStep>,
        (layout, read_terms): (&'a [Arc<str>], &'a [&'a str]),
        liveness: &'a Liveness,
        stage: usize,
    ) -> Self {
        Self {
            context,
            step,
            next,
            read_terms,
            layout,
            liveness,
            stage,
            reads: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// The step by itself, and the variables of the chunks that it gives.
    pub(crate) fn compile(mut self) -> Result<(StepProgram, Vec<Arc<str>>)> {
        let demand = self.graph_demand();
        let positions = self.positions(&demand);
        let next_keys = self.next_keys(&positions);
        let index = access::choose(
            self.context.view(),
            &positions,
            &AccessNeeds {
                has_object_ranges: self.step.object_ranges.is_some(),
                next_keys: &next_keys,
                read_terms: self.read_terms,
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
                KnownPosition::Fixed(_) if column < prefix.len() => {}
                KnownPosition::Fixed(Key::Constant(term)) => {
                    let read = self.read(column);
                    self.checks.push(Check::Constant { read, term: *term });
                }
                KnownPosition::Fixed(Key::Column(from)) => {
                    let read = self.read(column);
                    self.checks.push(Check::Column {
                        read,
                        column: *from,
                    });
                }
                KnownPosition::Free(variable) => {
                    if let Some((_, first)) = bound.iter().find(|(name, _)| *name == variable) {
                        let left = self.read(*first);
                        let right = self.read(column);
                        self.checks.push(Check::Same { left, right });
                    } else {
                        bound.push((variable, column));
                    }
                }
                KnownPosition::Ignored => {}
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
    pub(crate) fn positions(&self, demand: &GraphDemand) -> Positions {
        let pattern = &self.step.pattern;
        Positions([
            self.known(&pattern.subject),
            self.known(&pattern.predicate),
            self.known(&pattern.object),
            demand.known.clone(),
        ])
    }

    fn known(&self, slot: &Slot) -> KnownPosition {
        match slot {
            Slot::Constant(term) => KnownPosition::Fixed(Key::Constant(*term)),
            Slot::Variable(name) => self.known_variable(name),
        }
    }

    fn known_variable(&self, name: &Arc<str>) -> KnownPosition {
        match self.layout.iter().position(|variable| variable == name) {
            Some(column) => KnownPosition::Fixed(Key::Column(column)),
            None => KnownPosition::Free(Arc::clone(name)),
        }
    }

    pub(crate) fn graph_demand(&self) -> GraphDemand {
        let has_named_graphs = self.context.view().has_named_graphs();
        let plain = |known| GraphDemand {
            known,
            one_of: None,
            merges: false,
            is_empty: false,
        };
        match &self.step.pattern.graph {
            GraphScope::Default if has_named_graphs => {
                plain(KnownPosition::Fixed(Key::Constant(TermId::DEFAULT_GRAPH)))
            }
            GraphScope::Default => plain(KnownPosition::Ignored),
            GraphScope::AllUnion => GraphDemand {
                merges: has_named_graphs,
                ..plain(KnownPosition::Ignored)
            },
            GraphScope::Named(graph) => plain(KnownPosition::Fixed(Key::Constant(*graph))),
            GraphScope::Union(graphs) => match &**graphs {
                [] => GraphDemand {
                    is_empty: true,
                    ..plain(KnownPosition::Ignored)
                },
                [graph] => plain(KnownPosition::Fixed(Key::Constant(*graph))),
                several => GraphDemand {
                    one_of: Some(ascending(several)),
                    merges: true,
                    ..plain(KnownPosition::Ignored)
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
                KnownPosition::Free(variable) if wanted.contains(&variable) => {
                    Some(Arc::clone(variable))
                }
                KnownPosition::Free(_) | KnownPosition::Fixed(_) | KnownPosition::Ignored => None,
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
        if !is_constant || !matches!(positions.at(next), KnownPosition::Free(_)) {
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
        } else if matches!(positions.at(QuadPosition::Graph), KnownPosition::Free(_)) && !is_bounded
        {
            let read = self.read(column);
            self.checks.push(Check::NotDefaultGraph { read });
        }
    }

    /// Whether something after this step reads the variable.
    pub(crate) fn is_live(&self, variable: &str) -> bool {
        self.liveness.is_live(self.stage, variable)
    }

    /// The columns of the incoming chunk that something after this step reads.
    pub(crate) fn carried(&self) -> (Vec<usize>, Vec<Arc<str>>) {
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
