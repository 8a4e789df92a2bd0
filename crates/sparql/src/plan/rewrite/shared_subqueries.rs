//! The rewrite of repeated subqueries, computed once.
//!
//! ```text
//! { SELECT ?country (MAX(?n) AS ?max) { { SELECT ?country ?product (COUNT(?r) AS ?n) {..} } } }
//! { SELECT ?country ?product (COUNT(?r) AS ?n) {..} }                      the same: read from one SharedExec
//! ```
//!
//! Two subqueries are the same if they are written alike but for the names of their variables: each
//! has a *text* in which variables are numbered as they come. Only what groups or removes
//! duplicates is looked at (the rest is cheap to compute again, or better computed from the other
//! side of a join), and only while the rows are expected to fit into [`SHARED_BYTES_MAX`]. What
//! gives another value each time (`RAND`, `UUID`), asks endpoints, or looks at an outer row has no
//! text.

use std::sync::Arc;

use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::repeated::{PlannedSubquery, RepeatedSubqueries, removes_rows};
use super::subquery_text::text_of;
use crate::algebra::{Derived, Group, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// Memory that the rows of one shared subquery are expected to take at most.
pub(in crate::plan) const SHARED_BYTES_MAX: f64 = (64 << 20) as f64;

impl Planner<'_> {
    /// Finds the repeated subqueries of the whole query.
    pub(in crate::plan) fn find_repeated(&mut self, query: &Group) {
        if self.repeated.is_some() {
            return;
        }
        let is_looked_for = self.tuning.rewrites;
        self.repeated = Some(RepeatedSubqueries::of(query, &self.table, is_looked_for));
    }

    /// Keeps a subquery that the planner itself has made for a like one that may follow. Where none
    /// does, what shares it goes again when the plan is spread
    /// ([`parallel`](crate::plan::parallel)).
    pub(in crate::plan) fn expect_again(&mut self, derived: &Derived) {
        if let Some(repeated) = self
            .repeated
            .as_mut()
            .filter(|repeated| repeated.may_repeat)
            && let Some((text, _)) = text_of(derived, &self.table)
        {
            *repeated.texts.entry(text).or_default() += 1;
        }
    }

    /// Whether a subquery is needed more than once, so that all of it is computed.
    pub(in crate::plan) fn is_repeated(&self, derived: &Derived) -> bool {
        let repeated = self.repeated.as_ref();
        repeated.is_some_and(|repeated| {
            !repeated.texts.is_empty()
                && text_of(derived, &self.table)
                    .is_some_and(|(text, _)| repeated.texts.contains_key(&text))
        })
    }

    /// A subquery that was planned before, or will be needed again; `None` if it stands there once.
    pub(in crate::plan) fn shared_subquery(
        &mut self,
        derived: &Derived,
        needed: &VarSet,
    ) -> Result<Option<Relation>> {
        let has_repeated = self
            .repeated
            .as_ref()
            .is_some_and(|repeated| !repeated.texts.is_empty());
        if !has_repeated || !removes_rows(derived) {
            return Ok(None);
        }
        let Some((text, numbered)) = text_of(derived, &self.table) else {
            return Ok(None);
        };
        let key = (text, self.is_set);
        let known = match &self.repeated {
            Some(repeated) if repeated.texts.contains_key(&key.0) => repeated.planned.get(&key),
            _ => return Ok(None),
        };
        let relation = match known {
            Some(PlannedSubquery::Apart) => return Ok(None),
            Some(PlannedSubquery::Shared(relation, then)) => {
                let (relation, then) = (relation.clone(), then.clone());
                self.renamed(relation, &then, &numbered)?
            }
            None => {
                let relation = self.modified(derived, &derived.visible, None)?;
                #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                let bytes = relation.rows * (relation.columns.len() * size_of::<u64>()) as f64;
                let is_small = bytes <= SHARED_BYTES_MAX && !relation.is_empty;
                let (planned, relation) = match is_small {
                    true => {
                        let shared = self.shared(&relation)?;
                        (PlannedSubquery::Shared(shared.clone(), numbered), shared)
                    }
                    false => (PlannedSubquery::Apart, relation),
                };
                if let Some(repeated) = &mut self.repeated {
                    repeated.planned.insert(key, planned);
                }
                relation
            }
        };
        let columns = relation.columns.iter().copied();
        let columns = columns.filter(|var| needed.contains(*var)).collect();
        self.with_columns(relation, columns).map(Some)
    }

    /// The relation under the names that variables have in another place.
    pub(in crate::plan) fn renamed(
        &mut self,
        relation: Relation,
        from: &[Var],
        to: &[Var],
    ) -> Result<Relation> {
        let new = |var: Var| {
            let number = from.iter().position(|known| *known == var);
            number
                .and_then(|number| to.get(number).copied())
                .unwrap_or(var)
        };
        let columns: Vec<Var> = relation.columns.iter().map(|var| new(*var)).collect();
        if columns == relation.columns {
            return Ok(relation);
        }
        let expressions: Vec<ProjectionExpr> = relation
            .columns
            .iter()
            .zip(&columns)
            .enumerate()
            .map(|(at, (old, new))| ProjectionExpr {
                expr: Arc::new(Column::new(self.table.name(*old), at)),
                alias: self.table.name(*new).to_string(),
            })
            .collect();
        let certain = VarSet::of(relation.certain.iter().map(new));
        let plan = ProjectionExec::try_new(expressions, relation.plan)?;
        self.relation(Arc::new(plan), columns, certain, relation.rows)
    }
}
