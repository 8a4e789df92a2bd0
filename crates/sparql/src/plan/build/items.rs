//! Plans of a group's items: ordered, then joined, with runs of patterns as one operator.

use std::sync::Arc;

use orrery_operators::graph_names::GraphNamesExec;
use orrery_operators::pattern::{PatternMode, PatternSpecification, PatternStep};
use orrery_operators::rows::RowsExec;
use spargebra::algebra::Expression;

use crate::algebra::expression::variables;
use crate::algebra::{Group, Item, Quad, Scope, Values, Var, VarSet};
use crate::error::Result;
use crate::plan::order::join_order::Order;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::statistics::operator_pattern;

/// A filter that waits until its variables are bound.
struct Pending<'g> {
    expression: &'g Expression,
    variables: VarSet,
}

impl Planner<'_> {
    /// Joins the items of a group to the seed.
    pub(in crate::plan) fn items(
        &mut self,
        group: &Group,
        seed: Option<Relation>,
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        if seed.is_none()
            && group.filters.is_empty()
            && let [Item::Derived(derived)] = group.items.as_slice()
        {
            return self.derived(derived, needed, fetch);
        }
        if !self.tuning.rewrites {
            return self.reference_items(group, seed, needed);
        }
        if seed.is_none()
            && let Some(joined) = self.places_join(group, needed)?
        {
            return Ok(joined);
        }
        let seed_variables = seed.as_ref().map(Relation::variables).unwrap_or_default();
        let everything = group.visible.union(&seed_variables);
        let with_conditions = self.with_mapped_conditions(group);
        let group = with_conditions.as_ref().unwrap_or(group);
        let with_chains = match self.is_set {
            true => self.with_chains(group, &seed_variables, needed)?,
            false => None,
        };
        let group = with_chains.as_ref().unwrap_or(group);
        let with_shared_matching = match &seed {
            None => self.with_shared_matching(group, needed)?,
            Some(_) => None,
        };
        let group = with_shared_matching.as_ref().unwrap_or(group);
        if fetch.is_some()
            && seed.is_none()
            && group.filters.is_empty()
            && let [Item::Union(branches)] = group.items.as_slice()
        {
            return self.union(branches, None, needed, fetch);
        }
        let mut estimates = Vec::with_capacity(group.items.len());
        for item in &group.items {
            let estimate = self.estimate(item)?;
            let is_impossible = match item {
                Item::Quad(quad) => quad.is_impossible() || estimate.rows == 0.0,
                Item::Values(values) => values.rows.is_empty(),
                Item::Graphs(scope) => self.lacks_graphs(scope)?,
                _ => false,
            };
            if is_impossible {
                return self.nothing(&everything.intersection(needed));
            }
            estimates.push(estimate);
        }
        let order = match (estimates.as_slice(), &seed) {
            // A point query has nothing to decide.
            ([only], None) if group.filters.is_empty() => Order::of_one(only.rows),
            _ => {
                let mut join = self.join_of(group, &estimates, seed.as_ref())?;
                let mut order = self.order_of(group, &mut join)?;
                services_last(group, &mut order);
                order
            }
        };
        self.follow(group, &order, seed, needed, fetch)
    }

    /// Whether a check for the existence of graphs fails.
    pub(in crate::plan) fn lacks_graphs(&self, scope: &Scope) -> Result<bool> {
        Ok(match scope {
            Scope::Named(graph) => !self.estimator.has_graph(*graph)?,
            Scope::Union(graphs) => graphs.is_empty(),
            Scope::Default | Scope::AllUnion | Scope::NamedVariable { .. } => scope.is_empty(),
        })
    }

    /// Builds the plan along the order.
    fn follow(
        &mut self,
        group: &Group,
        order: &Order,
        seed: Option<Relation>,
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        let mut pending: Vec<Pending<'_>> = group
            .filters
            .iter()
            .map(|expression| Pending {
                expression,
                variables: variables(expression, &self.table),
            })
            .collect();
        let seed_variables = seed.as_ref().map(Relation::variables).unwrap_or_default();
        let mut current = seed;
        let mut nodes = VarSet::default();
        let mut at = 0;
        while at < order.members.len() {
            let item = &group.items[order.members[at]];
            let run = order.members[at..]
                .iter()
                .take_while(|&&member| matches!(group.items[member], Item::Quad(_)))
                .count();
            let taken = run.max(1);
            let is_last = at + taken == order.members.len();
            let mut open = VarSet::default();
            for &member in &order.members[at + taken..] {
                open.extend(&group.items[member].visible());
            }
            let mut later = needed.union(&open);
            // Variables that patterns before have matched are nodes of the graph.
            for &member in &order.members[..at] {
                if let Item::Quad(quad) = &group.items[member] {
                    nodes.extend(&quad.nodes());
                }
            }
            if run > 0 {
                let quads: Vec<(&Quad, f64)> = order.members[at..at + run]
                    .iter()
                    .zip(&order.rows[at..at + run])
                    .filter_map(|(&member, &rows)| match &group.items[member] {
                        Item::Quad(quad) => Some((quad, rows)),
                        _ => None,
                    })
                    .collect();
                let fetch = fetch.filter(|_| is_last);
                current =
                    Some(self.patterns(current, &quads, &mut pending, (&later, &open), fetch)?);
            } else {
                for filter in &pending {
                    later.extend(&filter.variables);
                }
                let rows = order.rows[at];
                current = Some(self.join_item(current, item, (&later, &nodes), rows)?);
            }
            at += taken;
            if let Some(relation) = current.take() {
                let bound = relation.variables();
                let ready = take_ready(&mut pending, &bound, &relation.certain, &open);
                current = Some(self.filter(relation, &ready)?);
            }
            if current.as_ref().is_some_and(|relation| relation.is_empty) {
                let everything = group.visible.union(&seed_variables);
                return self.nothing(&everything.intersection(needed));
            }
        }
        let relation = match current {
            Some(relation) => relation,
            None => self.unit()?,
        };
        // What is left mentions variables that nothing binds.
        let rest: Vec<Expression> = pending.iter().map(|p| p.expression.clone()).collect();
        self.filter(relation, &rest)
    }

    /// A run of patterns as one operator.
    fn patterns(
        &mut self,
        input: Option<Relation>,
        quads: &[(&Quad, f64)],
        pending: &mut Vec<Pending<'_>>,
        (later, open): (&VarSet, &VarSet),
        fetch: Option<usize>,
    ) -> Result<Relation> {
        let mut bound = input.as_ref().map(Relation::variables).unwrap_or_default();
        let mut certain = input
            .as_ref()
            .map(|input| input.certain.clone())
            .unwrap_or_default();
        for (quad, _) in quads {
            let variables = quad.variables();
            bound.extend(&variables);
            certain.extend(&variables);
        }
        let filters = take_ready(pending, &bound, &certain, open);
        let mut carried = later.clone();
        for filter in pending.iter() {
            carried.extend(&filter.variables);
        }
        let columns: Vec<Var> = bound.intersection(&carried).iter().collect();
        let rows = quads.last().map_or(1.0, |(_, rows)| *rows);
        let specification = PatternSpecification {
            mode: PatternMode::Inner,
            steps: self.pattern_steps(quads),
            filters,
            given: Vec::new(),
            found: Vec::new(),
            output: self.names(&columns),
            fetch: fetch.filter(|_| pending.is_empty()),
            vector_rows: self.tuning.vector_rows,
            intersects: self.tuning.intersects,
        };
        let input = input.map(|input| input.plan);
        let plan = self.pattern_node(input, specification)?;
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        self.relation(plan, columns, certain, rows)
    }

    pub(in crate::plan) fn pattern_steps(&self, quads: &[(&Quad, f64)]) -> Vec<PatternStep> {
        quads
            .iter()
            .map(|(quad, rows)| {
                let mut step = PatternStep::new(operator_pattern(quad, &self.table));
                step.estimated_rows = Some(*rows);
                step.object_ranges.clone_from(&quad.object_ranges);
                step
            })
            .collect()
    }

    /// The patterns of a group that has nothing else, ordered for an input.
    pub(in crate::plan) fn ordered_quads<'g>(
        &mut self,
        group: &'g Group,
        input: &Relation,
    ) -> Result<Option<Vec<(&'g Quad, f64)>>> {
        let mut estimates = Vec::with_capacity(group.items.len());
        for item in &group.items {
            let estimate = self.estimate(item)?;
            if estimate.rows == 0.0 {
                return Ok(None);
            }
            estimates.push(estimate);
        }
        let mut join = self.join_of(group, &estimates, Some(input))?;
        let order = self.order_of(group, &mut join)?;
        let quads =
            order
                .members
                .iter()
                .zip(&order.rows)
                .filter_map(|(&member, &rows)| match &group.items[member] {
                    Item::Quad(quad) => Some((quad, rows)),
                    _ => None,
                });
        Ok(Some(quads.collect()))
    }

    /// Plans one item that is not a pattern, joined to what is there.
    fn join_item(
        &mut self,
        current: Option<Relation>,
        item: &Item,
        (later, nodes): (&VarSet, &VarSet),
        rows: f64,
    ) -> Result<Relation> {
        let visible = item.visible();
        match item {
            Item::Path(path) => {
                let current = match current {
                    Some(left) => Some(self.path_starts(left, path, nodes, later)?),
                    None => None,
                };
                return self.path(current, path, later, rows);
            }
            Item::Graphs(scope) if scope.variable().is_none() => {
                // The check was made when the estimates were.
                return match current {
                    Some(relation) => Ok(relation),
                    None => self.unit(),
                };
            }
            Item::Service(service) => return self.service(current, service, later, rows),
            Item::Search(search) => return self.search(current, search, later, rows),
            Item::Weights(weights) => return self.weights(current, weights, later, rows),
            _ => {}
        }
        let Some(left) = current else {
            return self.whole_item(item, later);
        };
        let keys = left.variables().intersection(&visible);
        let needed = later.union(&keys);
        if let Some(mut relation) = self.distributed(&left, item, &keys, later)? {
            relation.rows = rows;
            self.estimates.set(&relation.plan, rows);
            return Ok(relation);
        }
        if let Some((left, seed)) = self.seed_for(&left, item, &keys)? {
            let right = self.seeded_item(item, seed, &needed)?;
            return self.join(left, right, later, Some(rows));
        }
        let right = self.whole_item(item, &needed)?;
        self.join(left, right, later, Some(rows))
    }

    /// An item by itself.
    pub(in crate::plan) fn whole_item(&mut self, item: &Item, needed: &VarSet) -> Result<Relation> {
        match item {
            Item::Values(values) => self.values(values, needed),
            Item::Union(branches) => self.union(branches, None, needed, None),
            Item::Graphs(scope) => self.graphs(scope),
            Item::Group(group) => self.group(group, None, needed, None),
            Item::Derived(derived) => self.derived(derived, needed, None),
            Item::Service(service) => self.service(None, service, needed, service.rows),
            Item::Mapped(mapped) => self.mapped(mapped, needed),
            Item::Algorithm(algorithm) => self.algorithm(algorithm, needed),
            Item::Search(search) => self.search(None, search, needed, search.expected_rows()),
            Item::Weights(weights) => self.weights(None, weights, needed, weights.expected_rows()),
            Item::Path(path) => self.path(None, path, needed, 1.0),
            Item::Seed(seed) => Ok(self.seeds[seed.number].clone()),
            Item::Quad(quad) => {
                let rows = self.estimator.quad(quad, &self.table)?.rows;
                let open = VarSet::default();
                self.patterns(
                    None,
                    &[(quad, rows)],
                    &mut Vec::new(),
                    (needed, &open),
                    None,
                )
            }
        }
    }

    fn seeded_item(&mut self, item: &Item, seed: Relation, needed: &VarSet) -> Result<Relation> {
        match item {
            Item::Union(branches) => self.union(branches, Some(seed), needed, None),
            Item::Group(group) => self.group(group, Some(seed), needed, None),
            Item::Derived(derived) => self.seeded_subquery(derived, seed, needed),
            other => self.whole_item(other, needed),
        }
    }

    fn graphs(&mut self, scope: &Scope) -> Result<Relation> {
        let Scope::NamedVariable { variable, allowed } = scope else {
            return self.unit();
        };
        let plan = GraphNamesExec::try_new(
            Arc::clone(&self.context),
            Arc::clone(self.table.name(*variable)),
            allowed.clone(),
        )?;
        let rows = self.estimator.graph_names(scope)?;
        self.relation(plan, vec![*variable], VarSet::of([*variable]), rows)
    }

    fn values(&mut self, values: &Values, needed: &VarSet) -> Result<Relation> {
        let kept: Vec<usize> = (0..values.variables.len())
            .filter(|&at| needed.contains(values.variables[at]))
            .collect();
        let columns: Vec<Var> = kept.iter().map(|&at| values.variables[at]).collect();
        let rows: Vec<Vec<_>> = values
            .rows
            .iter()
            .map(|row| kept.iter().map(|&at| row[at]).collect())
            .collect();
        let certain = VarSet::of(
            columns
                .iter()
                .enumerate()
                .filter(|(at, _)| rows.iter().all(|row| row[*at].is_some()))
                .map(|(_, var)| *var),
        );
        let plan = RowsExec::try_new(&self.names(&columns), &rows)?;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let count = rows.len() as f64;
        self.relation(plan, columns, certain, count)
    }
}

/// Puts those services to the end whose endpoint other members bind, and searches whose ends they
/// bind.
fn services_last(group: &Group, order: &mut Order) {
    let waits = |member: &usize| match &group.items[*member] {
        Item::Service(service) => service.endpoint_variable().is_some(),
        Item::Search(_) => true,
        _ => false,
    };
    let (last, first): (Vec<usize>, Vec<usize>) = order.members.iter().partition(|m| waits(m));
    order.members = [first, last].concat();
}

/// The filters whose variables are all there, and will not be bound any further.
fn take_ready(
    pending: &mut Vec<Pending<'_>>,
    bound: &VarSet,
    certain: &VarSet,
    open: &VarSet,
) -> Vec<Expression> {
    let (ready, rest): (Vec<_>, Vec<_>) = std::mem::take(pending).into_iter().partition(|filter| {
        filter.variables.is_subset(bound) && !filter.variables.difference(certain).intersects(open)
    });
    *pending = rest;
    ready.into_iter().map(|p| p.expression.clone()).collect()
}
