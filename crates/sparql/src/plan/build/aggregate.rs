//! Plans of `GROUP BY` and aggregates.
//!
//! A bare count of one pattern is the length of a range, one by a variable that follows the
//! constants in some permutation the lengths of its runs; the different graphs or predicates of
//! everything are skipped through. Everything else is DataFusion's hash aggregation over ids, with
//! SPARQL's aggregate functions.

use std::sync::Arc;

use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use orrery_operators::count::CountExec;
use orrery_operators::run_counts::{RunCountsExec, RunCountsSpecification};
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression};

use crate::algebra::expression::variables;
use crate::algebra::{Group, Var, VarSet, VariableTable};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::statistics::operator_pattern;

impl Planner<'_> {
    /// `AggregateJoin(Group(keys, inner))`.
    pub(in crate::plan) fn aggregate(
        &mut self,
        inner: &Group,
        keys: &[Var],
        (aggregates, solution): (&[(Var, AggregateExpression)], &VarSet),
        needed: &VarSet,
    ) -> Result<Relation> {
        let aggregates: Vec<(Var, AggregateExpression)> = aggregates
            .iter()
            .filter(|(var, _)| needed.contains(*var))
            .map(|(var, aggregate)| (*var, self.plainer(inner, solution, aggregate)))
            .collect();
        if self.tuning.rewrites {
            if let Some(relation) = self.count(inner, keys, &aggregates)? {
                return Ok(relation);
            }
            if let Some(relation) = self.count_by_run(inner, keys, &aggregates)? {
                return Ok(relation);
            }
            if let Some(relation) = self.aggregate_eagerly(inner, keys, &aggregates)? {
                return Ok(relation);
            }
        }
        self.aggregate_at_once(inner, keys, (&aggregates, solution))
    }

    /// The same without dividing the group any further.
    pub(in crate::plan) fn aggregate_at_once(
        &mut self,
        inner: &Group,
        keys: &[Var],
        (aggregates, solution): (&[(Var, AggregateExpression)], &VarSet),
    ) -> Result<Relation> {
        if self.tuning.rewrites
            && let Some(relation) = self.aggregate_complement(inner, keys, aggregates)?
        {
            return Ok(relation);
        }
        if keys.is_empty() && aggregates.is_empty() {
            return self.unit();
        }
        let below = self.read_by(solution, keys, aggregates);
        let distinct = match keys.is_empty() && aggregates.iter().all(is_of_distinct_values) {
            true if self.tuning.rewrites => self.distinct_by_skipping(inner, &below)?,
            _ => None,
        };
        let (input, aggregates) = match distinct {
            Some(values) => {
                let of_values = |it| of_different(it, &values.certain, &self.table);
                let aggregates: Vec<_> = aggregates.iter().map(of_values).collect();
                (values, aggregates)
            }
            None => (self.group(inner, None, &below, None)?, aggregates.to_vec()),
        };
        // `COUNT(DISTINCT *)` counts by all columns.
        let columns = input.columns.iter().copied();
        let columns = columns.filter(|var| below.contains(*var)).collect();
        let input = self.with_columns(input, columns)?;
        let schema = input.plan.schema();
        let named: Vec<(String, AggregateExpression)> = aggregates
            .iter()
            .map(|(var, aggregate)| (self.table.name(*var).to_string(), aggregate.clone()))
            .collect();
        let functions = orrery_operators::aggregate::plan(&named, &schema, &self.context)?;
        let filters = vec![None; functions.len()];
        let group_by = PhysicalGroupBy::new_single(self.group_keys(&input, keys));
        let mut columns: Vec<Var> = keys.to_vec();
        columns.extend(aggregates.iter().map(|(var, _)| *var));
        let certain = input
            .certain
            .intersection(&VarSet::of(keys.iter().copied()));
        let grouped = VarSet::of(keys.iter().copied());
        let rows = self.different(inner, &grouped, input.rows)?;
        let plan = AggregateExec::try_new(
            AggregateMode::Single,
            group_by,
            functions,
            filters,
            input.plan,
            schema,
        )?;
        self.relation(
            orrery_operators::aggregate::grouped(plan),
            columns,
            certain,
            rows,
        )
    }

    /// The same aggregate with less to read: a count of a variable that every solution binds is one
    /// of the solutions, and so is one of different solutions where none comes twice.
    fn plainer(
        &self,
        inner: &Group,
        solution: &VarSet,
        aggregate: &AggregateExpression,
    ) -> AggregateExpression {
        let counts_solutions = self.tuning.rewrites
            && match aggregate {
                AggregateExpression::CountSolutions { distinct } => {
                    *distinct && inner.visible.is_subset(solution) && inner.is_set()
                }
                AggregateExpression::FunctionCall {
                    name: AggregateFunction::Count,
                    expr: Expression::Variable(variable),
                    distinct: false,
                } => {
                    let counted = self.table.get(variable.as_str());
                    counted.is_some_and(|var| inner.certain.contains(var))
                }
                AggregateExpression::FunctionCall { .. } => false,
            };
        match counts_solutions {
            true => AggregateExpression::CountSolutions { distinct: false },
            false => aggregate.clone(),
        }
    }

    /// Variables that keys and aggregates read of solutions with some variables.
    pub(in crate::plan) fn read_by(
        &self,
        solution: &VarSet,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> VarSet {
        let mut below = VarSet::of(keys.iter().copied());
        for (_, aggregate) in aggregates {
            match aggregate {
                AggregateExpression::CountSolutions { distinct: true } => {
                    below.extend(solution);
                }
                AggregateExpression::CountSolutions { distinct: false } => {}
                AggregateExpression::FunctionCall { expr, .. } => {
                    below.extend(&variables(expr, &self.table));
                }
            }
        }
        below
    }

    /// The count of one pattern, without touching its rows.
    fn count(
        &mut self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Relation>> {
        let ([(variable, aggregate)], true) = (aggregates, keys.is_empty()) else {
            return Ok(None);
        };
        let Some(quad) = inner.bare_quad() else {
            return Ok(None);
        };
        let name = Arc::clone(self.table.name(*variable));
        let plan = match (self.counts_rows(inner, aggregate), aggregate) {
            (true, _) => {
                let pattern = operator_pattern(quad, &self.table);
                CountExec::try_new(&self.context, &pattern, name)?
            }
            (
                false,
                AggregateExpression::FunctionCall {
                    name: AggregateFunction::Count,
                    expr: Expression::Variable(counted),
                    distinct: true,
                },
            ) => {
                let pattern = operator_pattern(quad, &self.table);
                CountExec::of_values(&self.context, &pattern, counted.as_str(), name)?
            }
            (false, _) => None,
        };
        match plan {
            Some(plan) => {
                let certain = VarSet::of([*variable]);
                Ok(Some(self.relation(plan, vec![*variable], certain, 1.0)?))
            }
            None => Ok(None),
        }
    }

    /// The counts of patterns by the one variable that they share, without a hash table.
    fn count_by_run(
        &mut self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Relation>> {
        let (&[key], true) = (keys, inner.is_join_of_items()) else {
            return Ok(None);
        };
        let Some(quads) = inner.bare_quads() else {
            return Ok(None);
        };
        let count_rows = |(_, aggregate): &_| self.counts_rows(inner, aggregate);
        if !aggregates.iter().all(count_rows) {
            return Ok(None);
        }
        let counts: Vec<Var> = aggregates.iter().map(|(var, _)| *var).collect();
        let patterns = quads.iter().map(|it| operator_pattern(it, &self.table));
        let specification = RunCountsSpecification {
            patterns: patterns.collect(),
            key: Arc::clone(self.table.name(key)),
            counts: self.names(&counts),
        };
        let Some(plan) = RunCountsExec::try_new(&self.context, specification)? else {
            return Ok(None);
        };
        let rows = self.group_rows(inner)?;
        let rows = self.different(inner, &VarSet::of([key]), rows)?;
        let columns: Vec<Var> = std::iter::once(key).chain(counts).collect();
        let certain = VarSet::of(columns.iter().copied());
        Ok(Some(self.relation(plan, columns, certain, rows)?))
    }

    /// Whether an aggregate counts the solutions of patterns.
    pub(in crate::plan) fn counts_rows(
        &self,
        inner: &Group,
        aggregate: &AggregateExpression,
    ) -> bool {
        match aggregate {
            AggregateExpression::CountSolutions { distinct } => !distinct,
            AggregateExpression::FunctionCall {
                name: AggregateFunction::Count,
                expr: Expression::Variable(variable),
                distinct: false,
            } => self
                .table
                .get(variable.as_str())
                .is_some_and(|var| inner.certain.contains(var)),
            AggregateExpression::FunctionCall { .. } => false,
        }
    }
}

/// An aggregate over different values, where all are different and none is unbound. What nothing
/// binds has no values.
fn of_different(
    (result, aggregate): &(Var, AggregateExpression),
    certain: &VarSet,
    table: &VariableTable,
) -> (Var, AggregateExpression) {
    let aggregate = match aggregate {
        AggregateExpression::FunctionCall {
            name: AggregateFunction::Count,
            expr: Expression::Variable(variable),
            ..
        } if table
            .get(variable.as_str())
            .is_some_and(|var| certain.contains(var)) =>
        {
            AggregateExpression::CountSolutions { distinct: false }
        }
        AggregateExpression::FunctionCall { name, expr, .. } => AggregateExpression::FunctionCall {
            name: name.clone(),
            expr: expr.clone(),
            distinct: false,
        },
        AggregateExpression::CountSolutions { .. } => aggregate.clone(),
    };
    (*result, aggregate)
}

/// Whether an aggregate looks at the different values of a variable only.
fn is_of_distinct_values((_, aggregate): &(Var, AggregateExpression)) -> bool {
    matches!(
        aggregate,
        AggregateExpression::FunctionCall {
            expr: Expression::Variable(_),
            distinct: true,
            ..
        }
    )
}
