//! The choice of a hash join's build side, by row estimates of physical plans.
//!
//! DataFusion reckons that a semi join leaves all rows, so that what is above it seems large. Here
//! the rows of joins and groups are reckoned from the distinct values that tables know, as
//! [`estimate`](super::estimate) does for their order; and in one walk, while nodes by themselves
//! walk all that is below each of them.
//!
//! ```text
//! scan -> rows that pass, distinct values of each column in the table -> the same of each node above
//! ```

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, JoinType, Result, Statistics};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::operator_statistics::{
    DefaultStatisticsProvider, ExtendedStatistics, FilterStatisticsProvider,
    LimitStatisticsProvider, PassthroughStatisticsProvider, ProjectionStatisticsProvider,
    StatisticsProvider, StatisticsRegistry, StatisticsResult, UnionStatisticsProvider,
};

use super::estimate::{ANTI_PART_MIN, left_of};
use crate::execute::stopping::require_somebody_here;

/// What reckons for each node.
pub(crate) fn statistics() -> StatisticsRegistry {
    StatisticsRegistry::with_providers(vec![
        Arc::new(Sides),
        Arc::new(FilterStatisticsProvider),
        Arc::new(ProjectionStatisticsProvider),
        Arc::new(PassthroughStatisticsProvider),
        Arc::new(LimitStatisticsProvider),
        Arc::new(UnionStatisticsProvider),
        Arc::new(DefaultStatisticsProvider),
    ])
}

/// Joins and groups.
#[derive(Debug)]
struct Sides;

impl StatisticsProvider for Sides {
    fn compute_statistics(
        &self,
        plan: &dyn ExecutionPlan,
        below: &[ExtendedStatistics],
    ) -> Result<StatisticsResult> {
        // For each node, and for all below it again with each join above.
        require_somebody_here()?;
        let told = match below {
            [left, right] => plan
                .downcast_ref::<HashJoinExec>()
                .and_then(|join| joined(join, left.base(), right.base())),
            [input] => plan
                .downcast_ref::<AggregateExec>()
                .and_then(|groups| grouped(groups, input.base())),
            _ => None,
        };
        Ok(match told {
            Some(told) => StatisticsResult::Computed(told.into()),
            None => StatisticsResult::Delegate,
        })
    }
}

fn rows_of(side: &Statistics) -> Option<f64> {
    side.num_rows.get_value().map(|rows| *rows as f64)
}

/// How many values a column has in its table.
fn values(side: &Statistics, key: &PhysicalExprRef) -> Option<f64> {
    let column = key.downcast_ref::<Column>()?;
    let known = side.column_statistics.get(column.index())?;
    known.distinct_count.get_value().map(|it| *it as f64)
}

fn joined(join: &HashJoinExec, left: &Statistics, right: &Statistics) -> Option<Statistics> {
    let (left_rows, right_rows) = (rows_of(left)?, rows_of(right)?);
    let mut pairs = 1.0_f64;
    // The part of each side that finds something on the other.
    let (mut left_part, mut right_part) = (1.0_f64, 1.0_f64);
    for (one, other) in join.on() {
        let one = values(left, one).unwrap_or(left_rows).max(1.0);
        let other = values(right, other).unwrap_or(right_rows).max(1.0);
        pairs *= one.max(other);
        left_part = left_part.min(left_of(other, right_rows) / one);
        right_part = right_part.min(left_of(one, left_rows) / other);
    }
    // Several columns together have no more values than the larger side has rows.
    let pairs = match join.on().len() {
        1 => pairs,
        _ => pairs.min(left_rows.max(right_rows)),
    };
    let inner = left_rows * right_rows / pairs.max(1.0);
    let anti = |part: f64| (1.0 - part).max(ANTI_PART_MIN);
    let rows = match join.join_type() {
        JoinType::Inner => inner,
        JoinType::Left => inner.max(left_rows),
        JoinType::Right => inner.max(right_rows),
        JoinType::Full => inner.max(left_rows + right_rows - inner),
        JoinType::LeftSemi => left_rows * left_part.min(1.0),
        JoinType::RightSemi => right_rows * right_part.min(1.0),
        JoinType::LeftAnti => left_rows * anti(left_part),
        JoinType::RightAnti => right_rows * anti(right_part),
        JoinType::LeftMark => left_rows,
        JoinType::RightMark => right_rows,
    };
    let of = |side: &Statistics| side.column_statistics.clone();
    let mut columns = match join.join_type() {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            [of(left), of(right)].concat()
        }
        JoinType::LeftSemi | JoinType::LeftAnti => of(left),
        JoinType::RightSemi | JoinType::RightAnti => of(right),
        JoinType::LeftMark => [of(left), vec![ColumnStatistics::new_unknown()]].concat(),
        JoinType::RightMark => [of(right), vec![ColumnStatistics::new_unknown()]].concat(),
    };
    if let Some(projection) = &join.projection {
        let given = projection.iter().map(|place| columns.get(*place).cloned());
        columns = given.collect::<Option<_>>()?;
    }
    told(join, rows, columns)
}

fn grouped(groups: &AggregateExec, input: &Statistics) -> Option<Statistics> {
    let keys = groups.group_expr();
    // Of each thread its own groups, and several lists of keys, are reckoned by the node.
    if matches!(groups.mode(), AggregateMode::Partial) || keys.groups().len() != 1 {
        return None;
    }
    let rows = rows_of(input)?;
    let mut columns = Vec::new();
    let mut count = 1.0_f64;
    for (key, _) in keys.expr() {
        let values = values(input, key);
        count *= values.map_or(rows, |values| left_of(values, rows));
        let known = values.map(|values| values as usize);
        columns.push(ColumnStatistics {
            distinct_count: known.map_or(Precision::Absent, Precision::Inexact),
            ..ColumnStatistics::new_unknown()
        });
    }
    let fields = groups.schema().fields().len();
    columns.resize_with(fields, ColumnStatistics::new_unknown);
    told(groups, count.min(rows.max(1.0)), columns)
}

/// `None` where columns were counted wrong.
fn told(
    plan: &dyn ExecutionPlan,
    rows: f64,
    column_statistics: Vec<ColumnStatistics>,
) -> Option<Statistics> {
    (plan.schema().fields().len() == column_statistics.len()).then(|| Statistics {
        num_rows: Precision::Inexact(rows.ceil() as usize),
        total_byte_size: Precision::Absent,
        column_statistics,
    })
}
