//! Plans of path searches and graph algorithms over the plans of their edges.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::algorithms::{AlgorithmExec, AlgorithmSpecification};
use orrery_operators::search::{
    FrontierExec, PlainEdges, PlainStep, SearchColumn, SearchExec, SearchInputs,
    SearchSpecification,
};

use crate::algebra::{GraphAlgorithm, Group, Item, PathSearch, Quad, Scope, Slot, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::statistics::{operator_scope, operator_slot};

/// Edges up to which all of them are computed at once: a level of a search costs as much as some
/// hundred.
const WHOLE_EDGES_MAX: f64 = 1_000.0;
/// Nodes that a level of a search is expected to have.
const FRONTIER_NODES: f64 = 32.0;

impl Planner<'_> {
    /// `Join(current, search)`: from the ends that the rows have.
    pub(in crate::plan) fn search(
        &mut self,
        current: Option<Relation>,
        search: &PathSearch,
        later: &VarSet,
        rows: f64,
    ) -> Result<Relation> {
        let Some(left) = current else {
            return self.searched(None, search, later, rows);
        };
        let shared = left.variables().intersection(&search.visible());
        if shared.is_subset(&search.bindable()) {
            return self.searched(Some(left), search, later, rows);
        }
        let right = self.searched(None, search, &later.union(&shared), rows)?;
        self.join(left, right, later, Some(rows))
    }

    fn searched(
        &mut self,
        input: Option<Relation>,
        search: &PathSearch,
        later: &VarSet,
        rows: f64,
    ) -> Result<Relation> {
        let mut wanted = search.ends.to_vec();
        wanted.extend(&search.exported);
        wanted.extend(search.weight);
        // An edge counts once, however often its pattern matches.
        let was_set = std::mem::replace(&mut self.is_set, true);
        let edges = self.edges_of(&search.edges, None, &wanted);
        let plain = self.plain_edges(search);
        let by_frontier = match plain.is_none() && is_seedable(search) {
            true => {
                let [start, end] = search.ends;
                let from = self.edges_of(&search.edges, Some(start), &wanted);
                let to = self.edges_of(&search.edges, Some(end), &wanted);
                Some((from, to))
            }
            false => None,
        };
        self.is_set = was_set;
        let edges = edges?;
        let begins_whole = edges.rows <= WHOLE_EDGES_MAX;
        let by_frontier = match by_frontier {
            Some((from, to)) => Some([from?.plan, to?.plan]),
            None => None,
        };
        let mut bound = search.visible();
        let mut certain = search.certain();
        if let Some(input) = &input {
            bound.extend(&input.variables());
            certain.extend(&input.certain);
        }
        let columns: Vec<Var> = bound.intersection(later).iter().collect();
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        let output = columns.iter().map(|var| {
            let name = Arc::clone(self.table.name(*var));
            (name, column_of(search, *var))
        });
        let specification = SearchSpecification {
            kind: search.kind,
            is_cyclic: search.is_cyclic,
            is_weighted: search.weight.is_some(),
            is_bidirectional: search.is_bidirectional,
            allows_empty: search.allows_empty,
            is_by_path: search.is_by_path || !search.output.iter().any(|it| it.1.is_of_edge()),
            source: operator_slot(search.source, &self.table),
            destination: operator_slot(search.destination, &self.table),
            length_min: search.length_min,
            length_max: search.length_max,
            offset: search.offset,
            limit: search.limit,
            begins_whole,
            plain,
            exported: search.exported.len(),
            output: output.collect(),
        };
        let inputs = SearchInputs {
            input: input.map(|input| input.plan),
            edges: edges.plan,
            by_frontier,
        };
        let plan = SearchExec::try_new(Arc::clone(&self.context), inputs, specification)?;
        self.relation(plan, columns, certain, rows)
    }

    /// An algorithm over a graph.
    pub(in crate::plan) fn algorithm(
        &mut self,
        algorithm: &GraphAlgorithm,
        needed: &VarSet,
    ) -> Result<Relation> {
        let was_set = std::mem::replace(&mut self.is_set, true);
        let edges = self.edges_of(&algorithm.edges, None, &algorithm.ends);
        self.is_set = was_set;
        let edges = edges?;
        // Each edge may bring a node, and mostly brings none.
        const EDGES_PER_NODE: f64 = 4.0;
        let rows = (edges.rows / EDGES_PER_NODE).max(1.0);
        let wanted = algorithm.output.iter();
        let wanted: Vec<_> = wanted.filter(|(var, _)| needed.contains(*var)).collect();
        let columns: Vec<Var> = wanted.iter().map(|(var, _)| *var).collect();
        let output = wanted.iter().map(|(var, column)| {
            let name = Arc::clone(self.table.name(*var));
            (name, *column)
        });
        let specification = AlgorithmSpecification {
            algorithm: algorithm.algorithm,
            output: output.collect(),
        };
        let plan = AlgorithmExec::over(Arc::clone(&self.context), edges.plan, specification);
        let certain = VarSet::of(columns.iter().copied());
        self.relation(plan, columns, certain, rows)
    }

    /// What the edges are, if they are triples of some predicates and nothing else.
    fn plain_edges(&self, search: &PathSearch) -> Option<PlainEdges> {
        let is_bare = search.edges.is_join_of_items()
            && search.exported.is_empty()
            && search.weight.is_none();
        let ([item], true) = (search.edges.items.as_slice(), is_bare) else {
            return None;
        };
        let mut quads = Vec::new();
        if !quads_of(item, &mut quads) {
            return None;
        }
        let scope = &quads.first()?.scope;
        let [start, end] = search.ends;
        let mut steps = Vec::with_capacity(quads.len());
        for quad in &quads {
            let Slot::Constant(predicate) = quad.predicate else {
                return None;
            };
            let ends = (quad.subject.variable()?, quad.object.variable()?);
            let is_turned = ends == (end, start);
            let is_plain = (is_turned || ends == (start, end))
                && quad.object_ranges.is_none()
                && quad.scope == *scope;
            if !is_plain {
                return None;
            }
            let step = PlainStep {
                predicate,
                is_turned,
            };
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        let is_one_graph = !matches!(scope, Scope::NamedVariable { .. });
        is_one_graph.then(|| PlainEdges {
            steps: steps.into(),
            graph: operator_scope(scope, &self.table),
        })
    }

    /// The edges, all or those at the nodes of a frontier.
    fn edges_of(
        &mut self,
        edges: &Group,
        frontier: Option<Var>,
        wanted: &[Var],
    ) -> Result<Relation> {
        let needed = VarSet::of(wanted.iter().copied());
        let seed = match frontier {
            Some(var) => {
                let plan: Arc<dyn ExecutionPlan> = FrontierExec::leaf(self.table.name(var));
                let certain = VarSet::of([var]);
                Some(self.relation(plan, vec![var], certain, FRONTIER_NODES)?)
            }
            None => None,
        };
        let relation = self.group(edges, seed, &needed, None)?;
        self.with_columns(relation, wanted.to_vec())
    }
}

fn column_of(search: &PathSearch, var: Var) -> SearchColumn {
    if search.source.variable() == Some(var) {
        return SearchColumn::Source;
    }
    if search.destination.variable() == Some(var) {
        return SearchColumn::Destination;
    }
    let own = search.output.iter().find(|(name, _)| *name == var);
    own.map_or(SearchColumn::Input, |(_, column)| *column)
}

/// The patterns that an item is alternatives of; whether it is nothing else.
fn quads_of<'i>(item: &'i Item, quads: &mut Vec<&'i Quad>) -> bool {
    match item {
        Item::Quad(quad) => {
            quads.push(quad);
            true
        }
        Item::Union(branches) => branches.iter().all(|branch| {
            let is_bare = branch.is_join_of_items();
            matches!(branch.items.as_slice(), [item] if is_bare && quads_of(item, quads))
        }),
        _ => false,
    }
}

/// Whether the edges at some nodes are found from these: all that is joined binds nothing but by
/// patterns, and both ends surely.
fn is_seedable(search: &PathSearch) -> bool {
    let ends = VarSet::of(search.ends);
    ends.is_subset(&search.edges.items_certain) && is_matched(&search.edges)
}

fn is_matched(group: &Group) -> bool {
    group.items.iter().all(|item| match item {
        Item::Quad(_) | Item::Path(_) | Item::Values(_) | Item::Graphs(_) | Item::Weights(_) => {
            true
        }
        Item::Union(_) | Item::Group(_) => item.groups().iter().all(is_matched),
        Item::Derived(_)
        | Item::Service(_)
        | Item::Mapped(_)
        | Item::Search(_)
        | Item::Algorithm(_)
        | Item::Seed(_) => false,
    })
}
