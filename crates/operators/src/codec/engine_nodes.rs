//! The encoding of DataFusion's nodes that the planner uses, and no others.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::{JoinType, NullEquality};
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, PhysicalExpr};
use orrery_expressions::codec::PhysicalText;
use serde::{Deserialize, Serialize};

use super::aggregates::AggregationText;
use super::error::{CodecError, Result};
use super::inputs::{exactly, none, one, same_columns, wrong_inputs};
use super::texts::{Names, variables};
use crate::context::QueryContext;
use crate::nodes::OrderExec;
use crate::solutions::solution_schema;

type Plan = Arc<dyn ExecutionPlan>;

/// A node without its inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum EngineNode {
    Aggregate(AggregationText),
    Coalesce {
        fetch: Option<usize>,
    },
    Empty(Names),
    Filter(PhysicalText),
    HashJoin {
        kind: JoinKind,
        /// Pairs of columns that must be equal, of the left and the right side.
        on: Vec<(PhysicalText, PhysicalText)>,
        projection: Option<Vec<usize>>,
    },
    Limit {
        skip: usize,
        fetch: Option<usize>,
    },
    Merge {
        keys: Vec<SortKeyText>,
        fetch: Option<usize>,
    },
    /// Each column with its name.
    Projection(Vec<(PhysicalText, String)>),
    Sort {
        keys: Vec<SortKeyText>,
        fetch: Option<usize>,
        preserves_partitions: bool,
    },
    Union,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum JoinKind {
    Inner,
    Left,
    Right,
    LeftSemi,
    RightSemi,
    LeftAnti,
    RightAnti,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SortKeyText {
    expression: PhysicalText,
    is_descending: bool,
    are_nulls_first: bool,
}

fn described(expression: &Arc<dyn PhysicalExpr>) -> Result<PhysicalText> {
    Ok(PhysicalText::of(expression.as_ref())?)
}

fn keys_of(ordering: &LexOrdering) -> Result<Vec<SortKeyText>> {
    let key = |key: &PhysicalSortExpr| {
        Ok(SortKeyText {
            expression: described(&key.expr)?,
            is_descending: key.options.descending,
            are_nulls_first: key.options.nulls_first,
        })
    };
    ordering.iter().map(key).collect()
}

impl EngineNode {
    /// The description of a node, if it is one that the planner uses.
    pub(super) fn of(plan: &dyn ExecutionPlan) -> Result<Self> {
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return Ok(Self::Aggregate(AggregationText::of(aggregate)?));
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return of_join(join);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>()
            && filter.projection().is_none()
            && filter.fetch().is_none()
        {
            return Ok(Self::Filter(described(filter.predicate())?));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let column = |it: &ProjectionExpr| Ok((described(&it.expr)?, it.alias.clone()));
            let columns = projection.expr().iter().map(column);
            return Ok(Self::Projection(columns.collect::<Result<_>>()?));
        }
        let kept = plan.downcast_ref::<OrderExec>().map(OrderExec::sort);
        if let Some(sort) = kept.as_ref().or_else(|| plan.downcast_ref::<SortExec>()) {
            return Ok(Self::Sort {
                keys: keys_of(sort.expr())?,
                fetch: sort.fetch(),
                preserves_partitions: sort.preserve_partitioning(),
            });
        }
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            return Ok(Self::Merge {
                keys: keys_of(merge.expr())?,
                fetch: merge.fetch(),
            });
        }
        if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>()
            && limit.required_ordering().is_none()
        {
            return Ok(Self::Limit {
                skip: limit.skip(),
                fetch: limit.fetch(),
            });
        }
        if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
            return Ok(Self::Coalesce {
                fetch: coalesce.fetch(),
            });
        }
        if plan.is::<UnionExec>() {
            return Ok(Self::Union);
        }
        let partitions = plan.properties().partitioning.partition_count();
        if plan.is::<EmptyExec>() && partitions == 1 && are_ids(&plan.schema()) {
            let schema = plan.schema();
            let fields = schema.fields().iter();
            return Ok(Self::Empty(
                fields.map(|field| field.name().clone()).collect(),
            ));
        }
        Err(CodecError::CannotTravel(format!(
            "a node {} of such a form",
            plan.name()
        )))
    }

    /// The node over its inputs.
    pub(super) fn build(&self, inputs: Vec<Plan>, context: &Arc<QueryContext>) -> Result<Plan> {
        let expression = |text: &PhysicalText, schema: &SchemaRef| {
            text.build(schema, context.expressions())
                .map_err(CodecError::from)
        };
        Ok(match self {
            Self::Aggregate(text) => Arc::new(text.build(one(inputs)?, context)?),
            Self::Coalesce { fetch } => {
                Arc::new(CoalescePartitionsExec::new(one(inputs)?).with_fetch(*fetch))
            }
            Self::Empty(names) => {
                none(inputs)?;
                Arc::new(EmptyExec::new(solution_schema(&variables(names))))
            }
            Self::Filter(predicate) => {
                let input = of_ids(one(inputs)?)?;
                let predicate = expression(predicate, &input.schema())?;
                Arc::new(FilterExec::try_new(predicate, input)?)
            }
            Self::HashJoin {
                kind,
                on,
                projection,
            } => {
                let [left, right] = exactly(inputs)?;
                let (left, right) = (of_ids(left)?, of_ids(right)?);
                let pair = |(a, b): &(PhysicalText, PhysicalText)| {
                    let is_plain = |text| matches!(text, &PhysicalText::Column(..));
                    match is_plain(a) && is_plain(b) {
                        true => Ok((
                            expression(a, &left.schema())?,
                            expression(b, &right.schema())?,
                        )),
                        false => Err(CodecError::damaged("a join of computed keys")),
                    }
                };
                let on: Vec<_> = on.iter().map(pair).collect::<Result<_>>()?;
                if on.is_empty() {
                    return Err(CodecError::damaged("a hash join without keys"));
                }
                Arc::new(HashJoinExec::try_new(
                    left,
                    right,
                    on,
                    None,
                    &(*kind).into(),
                    projection.clone(),
                    PartitionMode::CollectLeft,
                    NullEquality::NullEqualsNothing,
                    false,
                )?)
            }
            Self::Limit { skip, fetch } => {
                Arc::new(GlobalLimitExec::new(one(inputs)?, *skip, *fetch))
            }
            Self::Merge { keys, fetch } => {
                let input = of_ids(one(inputs)?)?;
                let ordering = ordering(keys, &input.schema(), context)?;
                Arc::new(SortPreservingMergeExec::new(ordering, input).with_fetch(*fetch))
            }
            Self::Projection(columns) => {
                let input = of_ids(one(inputs)?)?;
                let schema = input.schema();
                let column = |(text, alias): &(PhysicalText, String)| {
                    let expr = expression(text, &schema)?;
                    match expr.data_type(&schema)? == DataType::UInt64 {
                        true => Ok(ProjectionExpr {
                            expr,
                            alias: alias.clone(),
                        }),
                        false => Err(CodecError::damaged(format!(
                            "the computed column {alias} is none of ids"
                        ))),
                    }
                };
                let columns = columns.iter().map(column).collect::<Result<Vec<_>>>()?;
                Arc::new(ProjectionExec::try_new(columns, input)?)
            }
            Self::Sort {
                keys,
                fetch,
                preserves_partitions,
            } => {
                let input = of_ids(one(inputs)?)?;
                let ordering = ordering(keys, &input.schema(), context)?;
                let sort = SortExec::new(ordering, input)
                    .with_preserve_partitioning(*preserves_partitions)
                    .with_fetch(*fetch);
                Arc::new(sort)
            }
            Self::Union => {
                same_columns(&inputs)?;
                match inputs.len() {
                    0 | 1 => return Err(wrong_inputs()),
                    _ => UnionExec::try_new(inputs)?,
                }
            }
        })
    }
}

fn of_join(join: &HashJoinExec) -> Result<EngineNode> {
    let kind = match join.join_type() {
        JoinType::Inner => Some(JoinKind::Inner),
        JoinType::Left => Some(JoinKind::Left),
        JoinType::Right => Some(JoinKind::Right),
        JoinType::LeftSemi => Some(JoinKind::LeftSemi),
        JoinType::RightSemi => Some(JoinKind::RightSemi),
        JoinType::LeftAnti => Some(JoinKind::LeftAnti),
        JoinType::RightAnti => Some(JoinKind::RightAnti),
        JoinType::Full | JoinType::LeftMark | JoinType::RightMark => None,
    };
    let is_usual = join.filter().is_none()
        && *join.partition_mode() == PartitionMode::CollectLeft
        && join.null_equality() == NullEquality::NullEqualsNothing
        && !join.null_aware
        && join.fetch().is_none();
    let Some(kind) = kind.filter(|_| is_usual) else {
        return Err(CodecError::CannotTravel(
            "a hash join of a form that the planner does not make".to_owned(),
        ));
    };
    let pairs = join.on().iter();
    Ok(EngineNode::HashJoin {
        kind,
        on: pairs
            .map(|(left, right)| Ok((described(left)?, described(right)?)))
            .collect::<Result<_>>()?,
        projection: join.projection.as_ref().map(|columns| columns.to_vec()),
    })
}

impl From<JoinKind> for JoinType {
    fn from(kind: JoinKind) -> Self {
        match kind {
            JoinKind::Inner => Self::Inner,
            JoinKind::Left => Self::Left,
            JoinKind::Right => Self::Right,
            JoinKind::LeftSemi => Self::LeftSemi,
            JoinKind::RightSemi => Self::RightSemi,
            JoinKind::LeftAnti => Self::LeftAnti,
            JoinKind::RightAnti => Self::RightAnti,
        }
    }
}

fn ordering(
    keys: &[SortKeyText],
    schema: &SchemaRef,
    context: &Arc<QueryContext>,
) -> Result<LexOrdering> {
    let key = |key: &SortKeyText| {
        Ok(PhysicalSortExpr {
            expr: key.expression.build(schema, context.expressions())?,
            options: SortOptions {
                descending: key.is_descending,
                nulls_first: key.are_nulls_first,
            },
        })
    };
    let keys = keys.iter().map(key).collect::<Result<Vec<_>>>()?;
    LexOrdering::new(keys).ok_or_else(|| CodecError::damaged("a sort without keys"))
}

fn are_ids(schema: &SchemaRef) -> bool {
    let mut fields = schema.fields().iter();
    fields.all(|field| *field.data_type() == DataType::UInt64)
}

/// An input that has columns of ids only.
fn of_ids(input: Plan) -> Result<Plan> {
    match are_ids(&input.schema()) {
        true => Ok(input),
        false => Err(CodecError::damaged(
            "a node reads a column that is none of ids",
        )),
    }
}
