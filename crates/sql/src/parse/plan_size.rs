//! The size limit of plans, which counts a shared subquery once per use.
//!
//! ```text
//! WITH a AS (...), b AS (SELECT ... FROM a p, a q), c AS (SELECT ... FROM b p, b q), ...      2, 4, 8, ... times a
//! ```
//!
//! The logical plan shares equal parts, so that it is small; its optimizers and the physical plan
//! copy each use. So nodes are counted as often as they are used, while shared nodes are visited
//! once, before anything else walks the plan.
//!
//! ```text
//! WITH a AS (SELECT x + x AS x FROM t), b AS (SELECT x + x AS x FROM a), ... SELECT * FROM z WHERE x > 0
//!     x is 2, 4, 8, ... additions of t's
//! ```
//!
//! Conditions are pushed below projections, where each column becomes its expression; so each
//! column is counted with all that it is made of, by the columns of the tables. What is computed
//! once, as an aggregate is, counts as one. Types are counted too: a structure of two structures of
//! two structures and so on is small only while it is shared. Within one text that comes late: the
//! engine has hashed the types by then, 2^n parts of them.

use std::collections::HashMap;
use std::rc::Rc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, JoinType};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use crate::execute::stopping::require_somebody_here;
use crate::parse::looks::{Looks, REPEATED_MAX};
use crate::plan::walk::{Walk, WalkPlan};
use crate::{Error, Result, SqlState};

/// Nodes of a plan.
const NODES_MAX: u64 = 50_000;
/// Nodes below each other: a plan is dropped by recursion.
const DEPTH_MAX: u32 = 4_000;
/// Looks at nodes. A check of the engine goes into the plan of a subquery twice: by way of the
/// nodes, and by way of their expressions; so a subquery within a subquery is looked at four times.
const VISITS_MAX: u64 = 200_000;
/// Nodes of an expression, with those of the columns that it reads.
const EXPRESSION_MAX: u64 = 100_000;
/// The same of all expressions of a statement together.
const EXPRESSIONS_MAX: u64 = 1_000_000;
/// Looks beyond the first ones at all expressions of a statement together: each node of a plan
/// looks again at what those below have computed.
const ALL_REPEATED_MAX: u64 = 5 * REPEATED_MAX;
/// Columns of all nodes together: each pass of a rule makes the columns of each join anew, and
/// there are some hundred passes.
const COLUMNS_MAX: u64 = 1_000_000;
/// Types within a type.
const TYPES_MAX: usize = 1_000;

/// Refuses a plan that is too large to be worked on.
pub(crate) fn refuse_large(plan: &LogicalPlan) -> Result<()> {
    let size = size(plan, &mut HashMap::new()).map_err(|error| Error::of_run(&error))?;
    if size.nodes > NODES_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            format!("a plan has more than {NODES_MAX} nodes"),
        )
        .with_detail("Views and common table expressions count as often as they are named."));
    }
    if size.visits > VISITS_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            "subqueries are nested in the expressions of each other too deeply",
        ));
    }
    if size.depth > DEPTH_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            format!("a plan is more than {DEPTH_MAX} nodes deep"),
        ));
    }
    if size.columns_of_nodes > COLUMNS_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            format!("the nodes of a plan have more than {COLUMNS_MAX} columns together"),
        )
        .with_detail("Each join has all columns of the tables that are joined before it.")
        .with_hint("Join fewer tables, or subqueries of the columns that are needed."));
    }
    if size.looks.repeated() > ALL_REPEATED_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            "functions and CASE are nested in each other too deeply in too many expressions, with those of the columns that they read",
        ));
    }
    if size.looks.once > EXPRESSIONS_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            format!(
                "the expressions of a statement have more than {EXPRESSIONS_MAX} parts together, with those of the columns that they read"
            ),
        ));
    }
    Ok(())
}

/// Bytes of a node of a plan, of a column of its schema, and of a part of an expression: about what
/// they take with the names in them.
const NODE_BYTES: usize = 1_024;
const COLUMN_BYTES: usize = 160;
const PART_BYTES: usize = 240;

/// About what a plan takes in memory. Parts that are shared count as often as they are named.
pub(crate) fn bytes_of_plan(plan: &LogicalPlan) -> usize {
    let mut bytes = 0;
    // Nothing in it fails.
    let _ = plan.apply_with_subqueries_by(&mut |node| {
        bytes += NODE_BYTES + node.schema().fields().len() * COLUMN_BYTES;
        node.apply_expressions_by(&mut |expression| {
            expression.apply_by(&mut |part| {
                bytes += PART_BYTES
                    + match part {
                        Expr::Literal(value, _) => value.size(),
                        _ => 0,
                    };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    bytes
}

#[derive(Clone)]
struct Size {
    nodes: u64,
    visits: u64,
    depth: u32,
    columns_of_nodes: u64,
    /// At all expressions; those of every day have none that are repeated.
    looks: Looks,
    /// Of each column of the output, the looks at its expression.
    columns: Rc<[Looks]>,
}

/// The size of a plan; `known` has those of parts by their place in memory, where they stay while
/// the plan is borrowed.
#[recursive::recursive]
fn size(
    plan: &LogicalPlan,
    known: &mut HashMap<*const LogicalPlan, Size>,
) -> Result<Size, DataFusionError> {
    if let Some(size) = known.get(&std::ptr::from_ref(plan)) {
        return Ok(size.clone());
    }
    require_somebody_here()?;
    let (mut nodes, mut visits, mut depth) = (1_u64, 1_u64, 0);
    let mut columns_of_nodes = plan.schema().fields().len() as u64;
    let mut looks = Looks::default();
    let mut add = |part: &Size, times: u64| {
        columns_of_nodes = columns_of_nodes.saturating_add(part.columns_of_nodes);
        looks.add(&part.looks);
        nodes = nodes.saturating_add(part.nodes);
        visits = visits.saturating_add(part.visits.saturating_mul(times));
        depth = depth.max(part.depth);
    };
    let mut inputs = Vec::new();
    for input in plan.inputs() {
        let size = size(input, known)?;
        add(&size, 1);
        inputs.push((input.schema().as_ref(), size.columns));
    }
    plan.apply_subqueries(|subquery| {
        // The node that is given is made for this call; its plan is the one that stays.
        if let LogicalPlan::Subquery(subquery) = subquery {
            add(&size(&subquery.subquery, known)?, 2);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let size = Size {
        nodes,
        visits,
        depth: depth.saturating_add(1),
        columns_of_nodes,
        columns: columns(plan, &inputs, &mut looks)?,
        looks,
    };
    known.insert(std::ptr::from_ref(plan), size.clone());
    Ok(size)
}

/// The schema of an input with the sizes of its columns.
type Input<'a> = (&'a DFSchema, Rc<[Looks]>);

/// The sizes of a node's columns; `all` takes those of its expressions in. Fails where one, a
/// condition or a type is too large.
fn columns(
    plan: &LogicalPlan,
    inputs: &[Input<'_>],
    all: &mut Looks,
) -> Result<Rc<[Looks]>, DataFusionError> {
    for field in plan.schema().fields() {
        if types_within(field.data_type(), 0) > TYPES_MAX {
            return Err(too_large(format!(
                "the type of the column \"{}\" has more than {TYPES_MAX} parts",
                field.name()
            )));
        }
    }
    let mut sizes = Vec::new();
    // Rows that are written down read no columns.
    if !matches!(plan, LogicalPlan::Values(_)) {
        plan.apply_expressions_by(&mut |expression| {
            let size = expression_size(expression, inputs)?;
            if size.repeated() > REPEATED_MAX {
                return Err(too_large(
                    "functions and CASE are nested in each other too deeply, with those of the columns that they read".to_owned(),
                ));
            }
            if size.once > EXPRESSION_MAX {
                return Err(too_large(format!(
                    "an expression has more than {EXPRESSION_MAX} parts, with those of the columns that it reads"
                )));
            }
            all.add(&size.without_few_repeated());
            sizes.push(size);
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let count = plan.schema().fields().len();
    let of_inputs = || inputs.iter().flat_map(|(_, sizes)| sizes.iter().copied());
    let mut columns: Vec<Looks> = match plan {
        LogicalPlan::Projection(_) => sizes,
        LogicalPlan::Aggregate(aggregate) => {
            sizes.truncate(aggregate.group_expr.len());
            sizes
        }
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => inputs
                .last()
                .map_or(Vec::new(), |(_, right)| right.to_vec()),
            _ => of_inputs().collect(),
        },
        LogicalPlan::Union(_) => {
            let mut largest = vec![Looks::LEAF; count];
            for (_, sizes) in inputs {
                for (largest, size) in largest.iter_mut().zip(sizes.iter()) {
                    *largest = largest.max(*size);
                }
            }
            largest
        }
        _ => of_inputs().collect(),
    };
    columns.resize(count, Looks::LEAF);
    Ok(columns.into())
}

/// The nodes of an expression but for values, each column with those that it is made of, and the
/// looks at them.
#[recursive::recursive]
fn expression_size(expression: &Expr, inputs: &[Input<'_>]) -> Result<Looks, DataFusionError> {
    let mut parts = Looks::default();
    expression.apply_children(|part| {
        parts.add(&expression_size(part, inputs)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(match expression {
        Expr::Column(column) => inputs
            .iter()
            .find_map(|(schema, sizes)| {
                let place = schema.maybe_index_of_column(column)?;
                sizes.get(place).copied()
            })
            .unwrap_or(Looks::LEAF),
        // The values of a list stand in the text.
        Expr::Literal(..) => parts,
        Expr::Case(_) => parts.in_case(),
        Expr::ScalarFunction(call) => parts.in_function(call.func.name()),
        Expr::BinaryExpr(BinaryExpr { op, .. }) if is_function(*op) => parts.in_function(""),
        _ => parts.in_other(),
    })
}

/// Whether a function takes the place of an operator.
fn is_function(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::StringConcat
    )
}

fn too_large(what: String) -> DataFusionError {
    Error::new(SqlState::StatementTooComplex, what).into()
}

/// The types within a type, counted no further than a little beyond [`TYPES_MAX`].
fn types_within(datatype: &DataType, before: usize) -> usize {
    let count = before + 1;
    if count > TYPES_MAX {
        return count;
    }
    match datatype {
        DataType::Struct(fields) => fields
            .iter()
            .fold(count, |count, field| types_within(field.data_type(), count)),
        DataType::Union(fields, _) => fields.iter().fold(count, |count, (_, field)| {
            types_within(field.data_type(), count)
        }),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => types_within(field.data_type(), count),
        DataType::Dictionary(_, value) => types_within(value, count),
        _ => count,
    }
}
