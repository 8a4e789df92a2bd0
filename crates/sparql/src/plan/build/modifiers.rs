//! Plans of solution modifiers: projection, `DISTINCT`, `ORDER BY`, `LIMIT` and `OFFSET`.
//!
//! A limit is pushed down as *fetch*: a sort under it keeps only that many rows (top-k), a pattern
//! stops early. First rows that could fill the memory (a large `OFFSET`) are sorted with all
//! others, which spills. `DISTINCT` over a sort whose keys it keeps is done before the sort, so
//! that the sort stays a top-k; else the streaming distinct keeps the order.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion_common::ScalarValue;
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::PhysicalExpr;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::expressions::{Column, Literal};
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::sorts::sort::SortExec;

use orrery_operators::aggregate::grouped;
use orrery_operators::nodes::{CandidatesExec, DistinctExec, LimitOfEachExec, ROWS_ASKED_MAX};
use orrery_operators::pattern::ordered::{FirstRows, OrderedExec};
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression};

use crate::algebra::expression::{is_volatile, variables};
use crate::algebra::{Derived, Group, Modifier, OrderKey, Step, StepKind, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::plan::rewrite::distinct_skip_scan::below_projections;

impl Planner<'_> {
    /// A group under a modifier. `fetch`: no more rows will be read.
    pub(in crate::plan) fn derived(
        &mut self,
        derived: &Derived,
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        let was_set = self.is_set;
        self.is_set = match &derived.modifier {
            Modifier::Project(_) | Modifier::Order(_) => was_set,
            Modifier::Distinct => true,
            Modifier::Aggregate { aggregates, .. } => {
                aggregates.iter().all(|(_, it)| ignores_duplicates(it))
            }
            // It counts.
            Modifier::Slice { .. } => false,
        };
        let common = match fetch {
            None => self.shared_subquery(derived, needed),
            Some(_) => Ok(None),
        };
        let relation = match common {
            Ok(None) => self.modified(derived, needed, fetch),
            Ok(Some(relation)) => Ok(relation),
            Err(error) => Err(error),
        };
        self.is_set = was_set;
        relation
    }

    pub(in crate::plan) fn modified(
        &mut self,
        derived: &Derived,
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        match &derived.modifier {
            Modifier::Project(projected) => {
                let projected = VarSet::of(projected.iter().copied());
                let needed = needed.intersection(&projected);
                self.group(&derived.inner, None, &needed, fetch)
            }
            // One row is different from all others that are read.
            Modifier::Distinct if fetch == Some(1) && self.tuning.rewrites => {
                self.group(&derived.inner, None, needed, fetch)
            }
            Modifier::Distinct => self.distinct_of(&derived.inner, &derived.visible, fetch),
            Modifier::Order(keys) => self.ordered(&derived.inner, keys, needed, fetch),
            Modifier::Slice {
                offset,
                limit,
                of_each,
            } => match of_each.as_slice() {
                [] => self.slice(&derived.inner, *offset, *limit, (needed, fetch)),
                keys => self.slice_of_each(&derived.inner, (*offset, *limit), keys, needed),
            },
            Modifier::Aggregate {
                keys,
                aggregates,
                solution,
            } => self.aggregate(&derived.inner, keys, (aggregates, solution), needed),
        }
    }

    /// A group in an order.
    fn ordered(
        &mut self,
        inner: &Group,
        keys: &[OrderKey],
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        match self.nearest_first(inner, keys, needed, fetch)? {
            Some(nearest) => Ok(nearest),
            None => self.ordered_of_all(inner, keys, needed, fetch),
        }
    }

    /// The same by a look at all of its solutions. Of values that the order does not read, only
    /// those of rows that are asked for are computed.
    pub(in crate::plan) fn ordered_of_all(
        &mut self,
        inner: &Group,
        keys: &[OrderKey],
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        let mut read = VarSet::default();
        for key in keys {
            read.extend(&variables(&key.expression, &self.table));
        }
        let late = match fetch {
            Some(_) if self.tuning.rewrites => late_steps(inner, &read),
            _ => 0,
        };
        let (early, late) = inner.steps.split_at(inner.steps.len() - late);
        let mut needs = vec![needed.clone()];
        for step in late.iter().rev() {
            let mut before = needs.last().cloned().unwrap_or_default();
            before.extend(&step.mentioned(&self.table));
            needs.push(before);
        }
        read.extend(&needs.pop().unwrap_or_default());
        let inner = match late {
            [] => Cow::Borrowed(inner),
            [..] => Cow::Owned(Group {
                steps: early.to_vec(),
                ..inner.clone()
            }),
        };
        let input = self.group(&inner, None, &read, None)?;
        let mut relation = self.sort(input, keys, fetch)?;
        for step in late {
            let after = needs.pop().unwrap_or_default();
            relation = self.step(step, relation, &after)?;
        }
        Ok(relation)
    }

    fn slice(
        &mut self,
        inner: &Group,
        offset: usize,
        limit: Option<usize>,
        (needed, fetch): (&VarSet, Option<usize>),
    ) -> Result<Relation> {
        if limit == Some(0) {
            return self.nothing(&inner.visible.intersection(needed));
        }
        let limit = match (limit, fetch) {
            (Some(limit), Some(fetch)) => Some(limit.min(fetch)),
            (limit, fetch) => limit.or(fetch),
        };
        let below = limit
            .filter(|_| self.tuning.rewrites)
            .map(|limit| limit.saturating_add(offset));
        let input = self.group(inner, None, needed, below)?;
        self.limited(input, offset, limit)
    }

    /// Some of the rows with the same values of one or two variables that all bind, in their order.
    fn slice_of_each(
        &mut self,
        inner: &Group,
        (offset, limit): (usize, Option<usize>),
        keys: &[Var],
        needed: &VarSet,
    ) -> Result<Relation> {
        if limit == Some(0) {
            return self.nothing(&inner.visible.intersection(needed));
        }
        let each = VarSet::of(keys.iter().copied());
        let input = self.group(inner, None, &needed.union(&each), None)?;
        let columns = keys.iter().map(|key| input.column(*key));
        let columns: Option<Vec<usize>> = columns.collect();
        let Some(columns) = columns.filter(|_| !input.is_empty) else {
            return Ok(input);
        };
        let keys = self.different(inner, &each, input.rows)?;
        let rows = at_most(input.rows / keys.max(1.0), limit) * keys;
        let plan = Arc::new(LimitOfEachExec::new(input.plan, columns, offset, limit));
        self.relation(plan, input.columns, input.certain, rows)
    }

    /// Some rows of a relation.
    pub(crate) fn limited(
        &mut self,
        input: Relation,
        offset: usize,
        limit: Option<usize>,
    ) -> Result<Relation> {
        if input.is_empty || (offset == 0 && limit.is_none()) {
            return Ok(input);
        }
        let rows = at_most(input.rows, limit);
        let plan = Arc::new(GlobalLimitExec::new(input.plan, offset, limit));
        self.relation(plan, input.columns, input.certain, rows)
    }

    fn sort(
        &mut self,
        input: Relation,
        keys: &[OrderKey],
        fetch: Option<usize>,
    ) -> Result<Relation> {
        // Rows without columns are all alike, and DataFusion's sort loses them.
        if input.is_empty || input.columns.is_empty() {
            return Ok(input);
        }
        let schema = input.plan.schema();
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            order.push(PhysicalSortExpr {
                expr: self.compile(&key.expression, &schema)?.into_sort_key(),
                options: SortOptions {
                    descending: key.is_descending,
                    // SPARQL 1.1, 15.1: unbound sorts before everything.
                    nulls_first: !key.is_descending,
                },
            });
        }
        let Some(order) = LexOrdering::new(order) else {
            return Ok(input);
        };
        let rows = at_most(input.rows, fetch);
        let input = self.first_rows(input, keys, fetch)?;
        let kept = fetch.filter(|fetch| {
            let columns = input.columns.len();
            self.context.fits_while_sorting(*fetch, columns, keys.len())
        });
        // What is beyond the rows that are asked for is cut off above.
        let plan = SortExec::new(order, input.plan).with_fetch(kept);
        self.relation(Arc::new(plan), input.columns, input.certain, rows)
    }

    /// The rows that can be among the first ones of a sort, as far as that is known before it.
    fn first_rows(
        &mut self,
        input: Relation,
        keys: &[OrderKey],
        fetch: Option<usize>,
    ) -> Result<Relation> {
        let first = keys.first().and_then(|key| match &key.expression {
            Expression::Variable(variable) => {
                let var = self.table.get(variable.as_str())?;
                Some((input.column(var)?, key.is_descending))
            }
            _ => None,
        });
        let fetch = fetch.filter(|fetch| self.tuning.rewrites && *fetch <= ROWS_ASKED_MAX);
        let (Some((column, is_descending)), Some(fetch)) = (first, fetch) else {
            return Ok(input);
        };
        let wanted = FirstRows {
            variable: Arc::clone(self.table.name(input.columns[column])),
            is_descending,
            rows: fetch,
            rows_in_all: input.rows,
        };
        if let Some(plan) = OrderedExec::try_new(&input.plan, wanted)? {
            let rows = at_most(input.rows, Some(fetch));
            return self.relation(plan, input.columns, input.certain, rows);
        }
        let plan = CandidatesExec::new(input.plan, column, is_descending, fetch);
        let rows = records(input.rows, fetch);
        self.relation(Arc::new(plan), input.columns, input.certain, rows)
    }

    /// `Distinct(inner)` over exactly the visible variables.
    fn distinct_of(
        &mut self,
        inner: &Group,
        visible: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        let columns: Vec<Var> = visible.iter().collect();
        if !self.tuning.rewrites {
            let input = self.group(inner, None, visible, None)?;
            let rows = self.different(inner, visible, input.rows)?;
            let input = self.with_columns(input, columns)?;
            return self.distinct_in_order(input, rows);
        }
        if let Some(relation) = self.distinct_by_skipping(inner, visible)? {
            return Ok(relation);
        }
        // Without a limit all solutions would be read.
        if fetch.is_none() {
            let body = below_projections(inner);
            if let Some(relation) = self.aggregate_eagerly(body, &columns, &[])? {
                return Ok(relation);
            }
        }
        let Some((keys, body)) = order_under_projection(inner) else {
            let input = self.group(inner, None, visible, None)?;
            let input = self.with_columns(input, columns)?;
            let rows = self.different(inner, visible, input.rows)?;
            return match fetch {
                Some(_) => self.distinct_in_order(input, rows),
                None => self.distinct(input, rows),
            };
        };
        let is_kept = keys
            .iter()
            .all(|key| variables(&key.expression, &self.table).is_subset(visible));
        if is_kept {
            let input = self.group(body, None, visible, None)?;
            let input = self.with_columns(input, columns)?;
            let rows = self.different(body, visible, input.rows)?;
            let distinct = self.distinct(input, rows)?;
            return self.sort(distinct, keys, fetch);
        }
        let input = self.group(inner, None, visible, None)?;
        let rows = self.different(inner, visible, input.rows)?;
        let input = self.with_columns(input, columns)?;
        self.distinct_in_order(input, rows)
    }

    /// Distinct rows, so many as it seems, in no order; spills when large.
    pub(in crate::plan) fn distinct(&mut self, input: Relation, rows: f64) -> Result<Relation> {
        if input.is_empty {
            return Ok(input);
        }
        if input.columns.is_empty() {
            return self.limited(input, 0, Some(1));
        }
        let keys = self.group_keys(&input, &input.columns.clone());
        let schema = input.plan.schema();
        let plan = AggregateExec::try_new(
            AggregateMode::Single,
            PhysicalGroupBy::new_single(keys),
            Vec::new(),
            Vec::new(),
            input.plan,
            schema,
        )?;
        self.relation(grouped(plan), input.columns, input.certain, rows)
    }

    /// Distinct rows as they come, each where it was first; kept in memory.
    fn distinct_in_order(&mut self, input: Relation, rows: f64) -> Result<Relation> {
        if input.is_empty {
            return Ok(input);
        }
        let plan = Arc::new(DistinctExec::new(input.plan));
        self.relation(plan, input.columns, input.certain, rows)
    }

    /// Columns as keys of an aggregation; null where there is no such column.
    pub(in crate::plan) fn group_keys(
        &self,
        input: &Relation,
        keys: &[Var],
    ) -> Vec<(Arc<dyn PhysicalExpr>, String)> {
        keys.iter()
            .map(|var| {
                let name = self.table.name(*var);
                let key: Arc<dyn PhysicalExpr> = match input.column(*var) {
                    Some(at) => Arc::new(Column::new(name, at)),
                    None => Arc::new(Literal::new(ScalarValue::UInt64(None))),
                };
                (key, name.to_string())
            })
            .collect()
    }
}

/// How many of the last steps only give variables values that a sort does not read.
fn late_steps(group: &Group, read: &VarSet) -> usize {
    let is_late = |step: &&Step| match &step.kind {
        // What gives another value each time is given to all rows, lest duplicates among them count
        // for nothing.
        StepKind::Bind {
            variable,
            expression,
            ..
        } => !read.contains(*variable) && !is_volatile(expression),
        StepKind::Optional { .. }
        | StepKind::OptionalIf { .. }
        | StepKind::Lateral { .. }
        | StepKind::Minus { .. }
        | StepKind::Filter(_)
        | StepKind::Exists { .. }
        | StepKind::Mark { .. } => false,
    };
    group.steps.iter().rev().take_while(is_late).count()
}

/// Whether an aggregate is the same however often a solution comes.
fn ignores_duplicates(aggregate: &AggregateExpression) -> bool {
    match aggregate {
        AggregateExpression::CountSolutions { distinct } => *distinct,
        AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        } => {
            let is_extreme = matches!(name, AggregateFunction::Min | AggregateFunction::Max);
            (*distinct || is_extreme) && !is_volatile(expr)
        }
    }
}

/// So many rows, or the limit.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn at_most(rows: f64, limit: Option<usize>) -> f64 {
    limit.map_or(rows, |limit| rows.min(limit as f64))
}

/// How many of so many rows in random order are among the first `fetch` when they come.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn records(rows: f64, fetch: usize) -> f64 {
    let fetch = (fetch as f64).max(1.0);
    rows.min(fetch * (1.0 + (rows / fetch).max(1.0).ln()))
}

/// The sort keys and what is sorted, if the group is just a projection of a sort.
fn order_under_projection(group: &Group) -> Option<(&[OrderKey], &Group)> {
    let projection = group.only_derived()?;
    let Modifier::Project(_) = projection.modifier else {
        return None;
    };
    let order = projection.inner.only_derived()?;
    match &order.modifier {
        Modifier::Order(keys) => Some((keys, &order.inner)),
        _ => None,
    }
}
