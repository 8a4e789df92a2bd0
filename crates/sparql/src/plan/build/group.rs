//! Plans of groups: rewriting, joined items, steps on top.

use crate::algebra::{Group, Step, StepKind, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

impl Planner<'_> {
    /// Plans a group: its solutions with the `needed` variables, as far as it binds them.
    ///
    /// With a `seed`, the group is joined to the seed's rows, and everything in it sees their
    /// columns. `fetch` says that no more rows will be read.
    pub(crate) fn group(
        &mut self,
        group: &Group,
        seed: Option<Relation>,
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        self.find_repeated(group);
        let outside = seed.as_ref().map(Relation::variables).unwrap_or_default();
        let group = &*self.with_filters_rewritten(group, &outside)?;
        let group = &*self.with_cheap_optionals_first(group)?;
        let mut needs = vec![needed.clone()];
        for step in group.steps.iter().rev() {
            let mut before = needs.last().cloned().unwrap_or_default();
            before.extend(&step.mentioned(&self.table));
            needs.push(before);
        }
        let below = needs.pop().unwrap_or_default();
        // Without a seed, which may have the variable already, a new value drops no row.
        let keeps_rows = |step: &Step| matches!(step.kind, StepKind::Bind { .. });
        let is_limited =
            group.steps.is_empty() || (seed.is_none() && group.steps.iter().all(keeps_rows));
        let fetch_below = fetch.filter(|_| is_limited);
        let was_set = self.is_set;
        self.is_set = was_set && !group.is_volatile();
        let asked = std::mem::replace(&mut self.rows_asked, fetch);
        let relation = self.items(group, seed, &below, fetch_below);
        let relation = relation.and_then(|items| self.steps(group, items, needs, needed));
        self.rows_asked = asked;
        self.is_set = was_set;
        relation
    }

    /// The steps of a group over its items; `needs` are the variables needed after each, the last
    /// one's first.
    fn steps(
        &mut self,
        group: &Group,
        items: Relation,
        mut needs: Vec<VarSet>,
        needed: &VarSet,
    ) -> Result<Relation> {
        let mut relation = items;
        for step in &group.steps {
            let after = needs.pop().unwrap_or_default();
            if self.says_nothing(step, &after) {
                continue;
            }
            relation = self.step(step, relation, &after)?;
            if relation.is_empty && self.tuning.rewrites {
                return self.nothing(&group.visible.intersection(needed));
            }
        }
        Ok(relation)
    }

    pub(in crate::plan) fn step(
        &mut self,
        step: &Step,
        left: Relation,
        needed: &VarSet,
    ) -> Result<Relation> {
        match &step.kind {
            StepKind::Optional {
                group,
                filters,
                guard,
            } => self.optional(left, group, filters, *guard, needed),
            StepKind::OptionalIf { group, conditions } => {
                self.optional_if(left, group, conditions, needed)
            }
            StepKind::Minus { group, substituted } => self.minus(left, group, substituted, needed),
            StepKind::Bind {
                variable,
                expression,
                is_certain,
            } => {
                let mut relation = self.bind(left, *variable, expression, needed)?;
                if *is_certain && relation.column(*variable).is_some() {
                    relation.certain.insert(*variable);
                }
                Ok(relation)
            }
            StepKind::Filter(expression) => self.filter(left, std::slice::from_ref(expression)),
            StepKind::Exists {
                group,
                filters,
                is_negated,
            } => self.exists(left, group, filters, *is_negated, needed),
            StepKind::Lateral {
                group,
                starts_from_rows,
            } => self.lateral(left, group, *starts_from_rows, needed),
            StepKind::Mark { variable, group } => self.mark(left, *variable, group, needed),
        }
    }
}
