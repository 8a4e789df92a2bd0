//! The row estimates of relations and joins.
//!
//! A scan tells its rows (it tries its conditions on some vectors) and the distinct values of its
//! columns (the file knows them). Of the rows of two relations that are joined, one of so many
//! pairs stays as there are values of what is equal: of the one of them with more values, for keys
//! refer to what is there. Where several columns are equal at once, they have together no more
//! values than the smaller relation has rows: that is a reference by a key of several columns.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{Column, JoinType, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};

use super::graph::{Graph, Semi};
use orrery_table_scan::StoredTable;

/// What passes a condition of which nothing is known.
const UNKNOWN_PART: f64 = 0.2;
/// What passes a condition about several relations.
const CONDITION_PART: f64 = 0.3;
/// What an anti join leaves, at least.
pub(super) const ANTI_PART_MIN: f64 = 0.1;
/// From so many rows on it counts what each of them costs.
const MANY_ROWS: f64 = 10_000.0;
/// Rows of what is not known.
const UNKNOWN_ROWS: f64 = 1_000.0;

/// What is known of the rows of a plan.
struct Known {
    rows: f64,
    /// Before any condition, of the table at the bottom.
    rows_of_table: f64,
}

/// What is known of an expression over it.
#[derive(Clone, Copy)]
struct Values {
    is_known: bool,
    /// Different values in the table at the bottom.
    of_table: f64,
    /// Among the rows that are left.
    left: f64,
}

/// Of one graph.
pub(super) struct Estimates {
    relations: Vec<f64>,
    /// Of each class the relations in it, and how many values it has.
    classes: Vec<(u32, f64)>,
    /// Where two relations are joined by several classes: by how much the product of their values
    /// is too large.
    corrections: Vec<(u32, f64)>,
    conditions: Vec<u32>,
    /// Of each semi join what it leaves, and its rows.
    semis: Vec<(f64, f64)>,
}

impl Estimates {
    /// `None` if a relation has none.
    pub(super) fn new(graph: &Graph, state: &dyn Session) -> Option<Self> {
        let known = graph.relations.iter().map(|part| known(&part.plan, state));
        let known: Vec<Known> = known.collect::<Option<_>>()?;
        let values = |relation: usize, expr: &Expr| {
            let of = &known[relation];
            values_of(&graph.relations[relation].plan, expr, of)
        };
        let mut classes = Vec::new();
        for class in &graph.classes {
            let mask = class.iter().map(|(relation, _)| 1_u32 << relation).sum();
            let all = class.iter().map(|(relation, expr)| values(*relation, expr));
            // What is not known is at most the number of rows, which says little.
            let known = all.clone().filter(|values| values.is_known);
            let count = match known.clone().next() {
                Some(_) => known.map(|values| values.of_table).fold(1.0, f64::max),
                None => all
                    .map(|values| values.of_table)
                    .fold(f64::INFINITY, f64::min),
            };
            classes.push((mask, count));
        }
        let mut corrections = Vec::new();
        for one in 0..known.len() {
            for other in one + 1..known.len() {
                let pair = 1_u32 << one | 1 << other;
                let shared = classes.iter().filter(|(mask, _)| mask & pair == pair);
                let counts: Vec<f64> = shared.map(|(_, count)| *count).collect();
                let product: f64 = counts.iter().product();
                let rows = known[one].rows_of_table.min(known[other].rows_of_table);
                if counts.len() > 1 && product > rows {
                    corrections.push((pair, product / rows.max(1.0)));
                }
            }
        }
        let semis = graph.semis.iter().map(|semi| {
            let right = match self::known(&semi.part.plan, state) {
                Some(right) => right,
                None => Known {
                    rows: UNKNOWN_ROWS,
                    rows_of_table: UNKNOWN_ROWS,
                },
            };
            (part_of_semi(semi, &right, graph, &values), right.rows)
        });
        Some(Self {
            semis: semis.collect(),
            relations: known.iter().map(|known| known.rows).collect(),
            classes,
            corrections,
            conditions: graph.conditions.iter().map(|(_, about)| *about).collect(),
        })
    }

    /// Of a set of parts.
    pub(super) fn rows(&self, set: u32) -> f64 {
        let has = |place: usize| set & 1 << place != 0;
        let mut rows = 1.0;
        for (place, of) in self.relations.iter().enumerate() {
            if has(place) {
                rows *= of;
            }
        }
        for (mask, count) in &self.classes {
            let joined = (mask & set).count_ones().saturating_sub(1);
            rows /= count.powi(joined as i32);
        }
        for (pair, factor) in &self.corrections {
            if pair & set == *pair {
                rows *= factor;
            }
        }
        for about in &self.conditions {
            if about & set == *about && about.count_ones() > 1 {
                rows *= CONDITION_PART;
            }
        }
        for (place, (part, _)) in self.semis.iter().enumerate() {
            if has(self.relations.len() + place) {
                rows *= part;
            }
        }
        rows.max(1.0)
    }

    /// Of what a semi join looks in.
    pub(super) fn semi_rows(&self, place: usize) -> f64 {
        self.semis.get(place).map_or(UNKNOWN_ROWS, |semi| semi.1)
    }
}

/// Rows of each key of a plan, on average; `None` if they are not known, or few.
pub(super) fn rows_per_key(plan: &LogicalPlan, keys: &[Expr], state: &dyn Session) -> Option<f64> {
    let known = known(plan, state).filter(|known| known.rows >= MANY_ROWS)?;
    let counts = keys.iter().map(|key| {
        let values = values_of(plan, key, &known);
        values.is_known.then_some(values.left)
    });
    let keys = counts.product::<Option<f64>>()?;
    Some(known.rows / keys.clamp(1.0, known.rows))
}

/// What a semi join leaves of what it is over.
fn part_of_semi(
    semi: &Semi,
    right: &Known,
    graph: &Graph,
    values: &impl Fn(usize, &Expr) -> Values,
) -> f64 {
    let part = semi.on.iter().map(|(left, of_right)| {
        let mut columns = left.column_refs().into_iter();
        let relation = columns.next().and_then(|column| {
            let has = |it: &super::graph::Part| it.plan.schema().has_column(column);
            graph.relations.iter().position(has)
        });
        let all = relation.map_or(UNKNOWN_ROWS, |relation| values(relation, left).of_table);
        let there = values_of(&semi.part.plan, of_right, right).left;
        (there / all.max(1.0)).min(1.0)
    });
    let part = part.fold(1.0, f64::min);
    match semi.is_anti {
        true => (1.0 - part).max(ANTI_PART_MIN),
        false => part,
    }
}

/// The rows of a plan.
fn known(plan: &LogicalPlan, state: &dyn Session) -> Option<Known> {
    let of = |rows: f64| Known {
        rows,
        rows_of_table: rows,
    };
    match plan {
        LogicalPlan::TableScan(scan) => known_of_scan(scan, state),
        LogicalPlan::SubqueryAlias(alias) => known(&alias.input, state),
        LogicalPlan::Projection(projection) => known(&projection.input, state),
        LogicalPlan::Sort(sort) => known(&sort.input, state),
        LogicalPlan::Filter(filter) => {
            let below = known(&filter.input, state)?;
            Some(Known {
                rows: below.rows * UNKNOWN_PART,
                ..below
            })
        }
        LogicalPlan::Aggregate(aggregate) => {
            let below = known(&aggregate.input, state)?;
            let counts = aggregate
                .group_expr
                .iter()
                .map(|expr| values_of(&aggregate.input, expr, &below).left);
            Some(of(counts.product::<f64>().clamp(1.0, below.rows.max(1.0))))
        }
        LogicalPlan::Limit(limit) => known(&limit.input, state),
        LogicalPlan::Join(join) => {
            let (left, right) = (known(&join.left, state)?, known(&join.right, state)?);
            let joined = || {
                let counts = join.on.iter().map(|(one, other)| {
                    let one = values_of(&join.left, one, &left).of_table;
                    one.max(values_of(&join.right, other, &right).of_table)
                });
                left.rows * right.rows / counts.fold(1.0, f64::max)
            };
            Some(of(match join.join_type {
                JoinType::Inner => joined(),
                JoinType::Left => joined().max(left.rows),
                JoinType::Right => joined().max(right.rows),
                JoinType::Full => joined().max(left.rows).max(right.rows),
                JoinType::LeftSemi | JoinType::LeftAnti => left.rows / 2.0,
                JoinType::RightSemi | JoinType::RightAnti => right.rows / 2.0,
                JoinType::LeftMark => left.rows,
                JoinType::RightMark => right.rows,
            }))
        }
        LogicalPlan::EmptyRelation(_) => Some(of(1.0)),
        LogicalPlan::Values(values) => Some(of(values.values.len() as f64)),
        plan => {
            let inputs = plan.inputs();
            let rows = inputs.iter().map(|input| known(input, state));
            let rows = rows.map(|known| Some(known?.rows));
            let rows: f64 = rows.collect::<Option<Vec<f64>>>()?.into_iter().sum();
            (!inputs.is_empty()).then(|| of(rows))
        }
    }
}

fn known_of_scan(scan: &TableScan, state: &dyn Session) -> Option<Known> {
    let provider = source_as_provider(&scan.source).ok()?;
    let table = provider.downcast_ref::<StoredTable>();
    let Some(table) = table else {
        let rows = provider.statistics()?.num_rows.get_value().copied()? as f64;
        return Some(Known {
            rows,
            rows_of_table: rows,
        });
    };
    let (rows, rows_of_table) = table.reckoned(&scan.filters, state)?;
    Some(Known {
        rows,
        rows_of_table,
    })
}

/// The values of an expression over a plan; as many as rows, if nothing is known.
fn values_of(plan: &LogicalPlan, expr: &Expr, known: &Known) -> Values {
    let column = match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => return values_of(plan, &alias.expr, known),
        Expr::Cast(cast) => return values_of(plan, &cast.expr, known),
        _ => None,
    };
    let found = column.and_then(|column| values_of_column(plan, column));
    let of_table = found.unwrap_or(known.rows_of_table).max(1.0);
    Values {
        is_known: found.is_some(),
        of_table,
        left: left_of(of_table, known.rows),
    }
}

/// How many of so many values some rows have: of many values fewer are met by few rows.
pub(super) fn left_of(values: f64, rows: f64) -> f64 {
    let values = values.max(1.0);
    let left = values * (1.0 - (-rows / values).exp());
    left.clamp(1.0, rows.max(1.0))
}

/// Different values of a column, in the table where it comes from.
fn values_of_column(plan: &LogicalPlan, column: &Column) -> Option<f64> {
    let place = plan.schema().maybe_index_of_column(column)?;
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            let table = provider.downcast_ref::<StoredTable>()?;
            let place = match &scan.projection {
                Some(projection) => *projection.get(place)?,
                None => place,
            };
            table.distinct(place)
        }
        LogicalPlan::SubqueryAlias(alias) => of_input(&alias.input, place),
        LogicalPlan::Filter(filter) => of_input(&filter.input, place),
        LogicalPlan::Sort(sort) => of_input(&sort.input, place),
        LogicalPlan::Limit(limit) => of_input(&limit.input, place),
        LogicalPlan::Projection(projection) => {
            of_expr(&projection.input, projection.expr.get(place)?)
        }
        LogicalPlan::Aggregate(aggregate) => {
            of_expr(&aggregate.input, aggregate.group_expr.get(place)?)
        }
        LogicalPlan::Join(join) => {
            let left = join.left.schema().has_column(column);
            let side: &Arc<LogicalPlan> = if left { &join.left } else { &join.right };
            values_of_column(side, column)
        }
        _ => None,
    }
}

fn of_input(input: &LogicalPlan, place: usize) -> Option<f64> {
    let column = Column::from(input.schema().qualified_field(place));
    values_of_column(input, &column)
}

fn of_expr(input: &LogicalPlan, expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Column(column) => values_of_column(input, column),
        Expr::Alias(alias) => of_expr(input, &alias.expr),
        Expr::Literal(ScalarValue::Null, _) => Some(1.0),
        _ => None,
    }
}
