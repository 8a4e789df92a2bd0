//! `WITH ORDINALITY`: row numbers for functions in FROM.
//!
//! DataFusion reads the words and forgets them. Here the number is one more column, `ordinality`,
//! which a list of columns may name:
//!
//! ```text
//! f(x) WITH ORDINALITY AS t(a, n)    ->    (SELECT *, row_number() OVER ()::bigint AS ordinality FROM f(x)) AS t(a, n)
//! ```

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::sql::sqlparser::ast::TableFactor;

use crate::{Error, SqlState};

const ORDINALITY: &str = "ordinality";

/// Plans relations that have numbers. Stands before other planners, which plan what is numbered.
#[derive(Debug)]
pub(crate) struct WithOrdinality;

impl RelationPlanner for WithOrdinality {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let (is_numbered, alias) = match &mut relation {
            TableFactor::Table {
                with_ordinality: true,
                args: None,
                ..
            } => {
                return Err(Error::new(
                    SqlState::SyntaxError,
                    "WITH ORDINALITY stands behind a function, and not behind a table",
                )
                .into());
            }
            TableFactor::Table {
                with_ordinality,
                alias,
                ..
            }
            | TableFactor::UNNEST {
                with_ordinality,
                alias,
                ..
            } => (with_ordinality, alias),
            TableFactor::Function {
                with_ordinality: true,
                ..
            } => return Err(Error::unsupported("LATERAL with ORDINALITY").into()),
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        if !std::mem::take(is_numbered) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let alias = alias.take();
        let plan = numbered(context.plan(relation)?)?;
        let planned = PlannedRelation::new(plan, alias);
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

fn numbered(plan: LogicalPlan) -> Result<LogicalPlan> {
    let number = row_number();
    let name = Column::new_unqualified(number.schema_name().to_string());
    let columns = plan.schema().columns().into_iter().map(Expr::Column);
    let number_column = cast(Expr::Column(name), DataType::Int64).alias(ORDINALITY);
    let columns: Vec<Expr> = columns.chain([number_column]).collect();
    let numbered = LogicalPlanBuilder::from(plan).window(vec![number])?;
    numbered.project(columns)?.build()
}
