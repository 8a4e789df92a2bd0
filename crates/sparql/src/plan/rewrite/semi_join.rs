//! The semi-join rewrite: the right side of a join begins from the left side's values.
//!
//! A union of two large predicates joined to three rows must not scan the predicates. The left
//! side is computed once and shared ([`SharedExec`]); its distinct values for the shared
//! variables seed the right side, whose patterns are then looked up; at last both are joined.
//! That keeps the meaning if every seeded group surely binds the shared variables in its items:
//! then the seed only removes solutions that would find no partner.
//!
//! ```text
//! a union: { A { B } UNION { C } }     { A B } UNION { A C }, with A computed once        (`distributed`)
//! a subquery: { A { SELECT ?x (COUNT(*) AS ?n) { B } GROUP BY ?x } }
//!                                      A joined to { SELECT .. { B, ?x one of those of A } GROUP BY ?x }
//! ```
//!
//! A join distributes over a union, so its branches can take the left rows with all their columns,
//! and there is nothing left to join, as long as no step in a branch could see a column that is not
//! its own. A seed reaches into a subquery through projections, `DISTINCT` and the keys of
//! groupings: groups of other keys find no partner.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::nodes::SharedExec;

use super::correlation::depends_on;
use super::eager_aggregation::RUN_ROW_COST;
use crate::algebra::{Derived, Group, Item, Modifier, Seed, StepKind, VarSet, VariableTable};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// Rows of a right side from which reducing is worth a second pass over the left.
const WORTH_ROWS: f64 = 1_000.0;
/// How many times larger than the left side the right must be.
const WORTH_RATIO: f64 = 4.0;
/// What a row of the left side costs that is kept, and of which the keys are made distinct, in rows
/// of a join (as `Order::cost` counts them).
const SHARED_COST: f64 = 4.0;
/// How many times what a subquery costs from the keys it has to cost as a whole: a HAVING, or the
/// keys of a group, are estimated wrongly by factors of three (BI Q3, where two was too little: 1.2
/// times the time), and a whole one has more threads.
const KEYED_GAIN_MIN: f64 = 4.0;

impl Planner<'_> {
    /// The shared left side and the seed for an item, if reducing it is right and pays.
    pub(in crate::plan) fn seed_for(
        &mut self,
        left: &Relation,
        item: &Item,
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        let is_sound = match item {
            Item::Union(branches) => branches.iter().all(|b| keys.is_subset(&b.items_certain)),
            Item::Group(group) => keys.is_subset(&group.items_certain),
            Item::Quad(_)
            | Item::Path(_)
            | Item::Values(_)
            | Item::Graphs(_)
            | Item::Seed(_)
            | Item::Mapped(_)
            | Item::Search(_)
            | Item::Algorithm(_)
            | Item::Weights(_)
            | Item::Service(_) => false,
            Item::Derived(derived) => return self.seed_for_subquery(left, derived, keys),
        };
        if !is_sound {
            return self.seed_for_services(left, item.groups(), keys);
        }
        let rows = self.estimate(item)?.rows;
        self.seed(left, keys, rows)
    }

    /// The join of the left side with the groups of an item, each of which starts from the rows of
    /// the left side, if that is right and pays.
    pub(in crate::plan) fn distributed(
        &mut self,
        left: &Relation,
        item: &Item,
        keys: &VarSet,
        needed: &VarSet,
    ) -> Result<Option<Relation>> {
        let groups = item.groups();
        let hidden = left.variables().difference(keys);
        let is_sound = groups.iter().all(|group| {
            keys.is_subset(&group.items_certain) && !may_see(group, &hidden, &self.table)
        });
        if groups.is_empty() || !is_sound {
            return Ok(None);
        }
        let rows = self.estimate(item)?.rows;
        if !self.is_worth_reducing(left, keys, rows) {
            return Ok(None);
        }
        match groups {
            [only] => self.group(only, Some(left.clone()), needed, None),
            branches => {
                let shared = self.shared(left)?;
                self.union(branches, Some(shared), needed, None)
            }
        }
        .map(Some)
    }

    /// The shared left side and the seed for a subquery, if reducing it is right and pays.
    fn seed_for_subquery(
        &mut self,
        left: &Relation,
        derived: &Derived,
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        let keys = keys.intersection(&left.certain);
        let keys = keys.intersection(&derived.seedable());
        if keys.is_empty() || self.is_repeated(derived) {
            return Ok(None);
        }
        let is_cheaper = match self.tuning.reduces_always {
            true => true,
            false => self.is_cheaper_by_keys(left, derived, &keys)?,
        };
        let is_possible = self.tuning.rewrites && keys.is_subset(&left.certain) && !left.is_empty;
        match is_possible && is_cheaper {
            true => self.seed_of(left, &keys).map(Some),
            false => Ok(None),
        }
    }

    /// Whether looking up what the keys of the left side lead to costs much less than computing a
    /// subquery as a whole. What a range bounds is read as it stands in the one case; in the other
    /// the keys lead to what lies outside of it, too, which the order of the join tells.
    fn is_cheaper_by_keys(
        &self,
        left: &Relation,
        derived: &Derived,
        keys: &VarSet,
    ) -> Result<bool> {
        // What filters make of ranges is read as ranges.
        let group = &*self.with_filters_rewritten(derived.innermost(), &VarSet::default())?;
        let estimates = self.estimates_of(group)?;
        let whole = self.join_of(group, &estimates, None)?;
        let members: Vec<usize> = (0..group.items.len()).collect();
        let rows = whole.rows(&members).filtered;
        if rows <= WORTH_ROWS && estimates.iter().all(|it| it.work <= WORTH_ROWS) {
            return Ok(false);
        }
        let whole_cost = match self.runs_of_subquery(derived) {
            true => rows * RUN_ROW_COST,
            false => whole.order().cost + rows,
        };
        let seed = Relation {
            columns: keys.iter().collect(),
            certain: keys.clone(),
            ..left.clone()
        };
        let keyed = self.join_of(group, &estimates, Some(&seed))?;
        let keyed_cost =
            left.rows * SHARED_COST + keyed.order().cost + keyed.rows(&members).filtered;
        self.context.patience().check()?;
        Ok(whole_cost > keyed_cost * KEYED_GAIN_MIN)
    }

    /// Whether a subquery only counts the rows of one pattern by a variable whose values are runs
    /// of a permutation.
    fn runs_of_subquery(&self, derived: &Derived) -> bool {
        match (&derived.modifier, derived.inner.only_derived()) {
            (_, Some(below)) => self.runs_of_subquery(below),
            (
                Modifier::Aggregate {
                    keys, aggregates, ..
                },
                None,
            ) => {
                let counts = |(_, it): &_| self.counts_rows(&derived.inner, it);
                aggregates.iter().all(counts) && self.has_runs_by(&derived.inner, keys)
            }
            (
                Modifier::Project(_)
                | Modifier::Distinct
                | Modifier::Order(_)
                | Modifier::Slice { .. },
                None,
            ) => false,
        }
    }

    /// A subquery, of which only solutions with the values of the seed are needed.
    pub(in crate::plan) fn seeded_subquery(
        &mut self,
        derived: &Derived,
        seed: Relation,
        needed: &VarSet,
    ) -> Result<Relation> {
        let item = Item::Seed(Seed {
            number: self.seeds.len(),
            visible: seed.variables(),
            certain: seed.certain.clone(),
            substituted: Vec::new(),
        });
        self.seeds.push(seed);
        let mut seeded = derived.clone();
        seeded.push_innermost(item);
        self.derived(&seeded, needed, None)
    }

    /// The shared left side and the seed for groups that ask other endpoints.
    ///
    /// A row of the left side is compatible with exactly one row of the seed, its own, so that
    /// it meets the same solutions as without, as long as nothing inside looks at a variable before
    /// it is bound there.
    fn seed_for_services(
        &mut self,
        left: &Relation,
        groups: &[Group],
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        let keys = keys.intersection(&left.certain);
        // A solution that leaves a key unbound meets several rows of the seed, and a volatile step
        // would give it a value for each.
        let is_sound = groups
            .iter()
            .all(|g| !depends_on(g, &keys, &self.table) && !g.is_volatile());
        if keys.is_empty() || left.is_empty || !is_sound || !groups.iter().any(asks_by_key) {
            return Ok(None);
        }
        self.seed_of(left, &keys).map(Some)
    }

    /// The shared left side and the seed for a group whose solutions are only looked at where they
    /// are compatible with a row of the left side, as [`Planner::seed_for_group`] else.
    pub(in crate::plan) fn seed_for_compatible_group(
        &mut self,
        left: &Relation,
        group: &Group,
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        let seed = self.seed_for_services(left, std::slice::from_ref(group), keys)?;
        match seed {
            Some(seed) => Ok(Some(seed)),
            None => self.seed_for_group(left, group, keys),
        }
    }

    /// The shared left side and the seed for a group, if reducing it is right and pays.
    pub(in crate::plan) fn seed_for_group(
        &mut self,
        left: &Relation,
        group: &Group,
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        if !keys.is_subset(&group.items_certain) {
            return Ok(None);
        }
        let rows = self.group_rows(group)?;
        self.seed(left, keys, rows)
    }

    fn seed(
        &mut self,
        left: &Relation,
        keys: &VarSet,
        rows: f64,
    ) -> Result<Option<(Relation, Relation)>> {
        match self.is_worth_reducing(left, keys, rows) {
            true => self.seed_of(left, keys).map(Some),
            false => Ok(None),
        }
    }

    /// Whether a right side of so many rows is better started from the left's values for the keys,
    /// which have to be certain.
    fn is_worth_reducing(&self, left: &Relation, keys: &VarSet, rows: f64) -> bool {
        let is_much = rows > WORTH_ROWS && rows > left.rows * WORTH_RATIO;
        let is_possible = !keys.is_empty() && keys.is_subset(&left.certain) && !left.is_empty;
        self.tuning.rewrites && is_possible && (is_much || self.tuning.reduces_always)
    }

    fn seed_of(&mut self, left: &Relation, keys: &VarSet) -> Result<(Relation, Relation)> {
        let shared = self.shared(left)?;
        let keyed = self.with_columns(shared.clone(), keys.iter().collect())?;
        let seed = self.distinct(keyed, left.rows)?;
        Ok((shared, seed))
    }

    /// The same relation, computed once however often it is read.
    pub(in crate::plan) fn shared(&mut self, relation: &Relation) -> Result<Relation> {
        let plan: Arc<dyn ExecutionPlan> = Arc::new(SharedExec::new(Arc::clone(&relation.plan)));
        self.relation(
            plan,
            relation.columns.clone(),
            relation.certain.clone(),
            relation.rows,
        )
    }
}

impl Derived {
    /// The variables whose values may be given to the innermost group, for solutions with other
    /// values of them are not needed.
    pub(in crate::plan) fn seedable(&self) -> VarSet {
        let below = match self.inner.items.as_slice() {
            [Item::Derived(below)] => below.seedable(),
            _ => self.inner.items_certain.clone(),
        };
        let through = below.iter().map(|var| VarSet::of([var]));
        let through = through.filter(|var| self.lets_through(var));
        through
            .fold(VarSet::default(), |all, var| all.union(&var))
            .intersection(&self.visible)
    }

    /// The group below the modifiers.
    pub(in crate::plan) fn innermost(&self) -> &Group {
        match self.inner.items.as_slice() {
            [Item::Derived(below)] => below.innermost(),
            _ => &self.inner,
        }
    }

    fn push_innermost(&mut self, item: Item) {
        match self.inner.items.as_mut_slice() {
            [Item::Derived(below)] => below.push_innermost(item),
            _ => self.inner.push(item),
        }
    }
}

/// Whether a step of a group could see columns that the group does not know of, or give another
/// value for each row that has them.
fn may_see(group: &Group, hidden: &VarSet, table: &VariableTable) -> bool {
    group.is_volatile()
        || group.outer.intersects(hidden)
        || group.steps.iter().any(|step| match &step.kind {
            StepKind::Bind { .. } | StepKind::Filter(_) | StepKind::Optional { .. } => {
                step.mentioned(table).intersects(hidden)
            }
            StepKind::OptionalIf { .. }
            | StepKind::Minus { .. }
            | StepKind::Exists { .. }
            | StepKind::Lateral { .. }
            | StepKind::Mark { .. } => true,
        })
}

/// Whether a group asks an endpoint for what belongs to keys.
fn asks_by_key(group: &Group) -> bool {
    let asks = |item: &Item| {
        matches!(item, Item::Service(service)
            if service.is_repeatable || service.endpoint_variable().is_some())
    };
    group.items.iter().any(asks) || group.inner_groups().any(asks_by_key)
}
