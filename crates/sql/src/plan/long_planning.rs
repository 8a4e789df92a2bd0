//! The detection of statements and plans that take long to plan.
//!
//! The library plans without a pause, so that nobody who waits on the same task sees that time is
//! up; and it keeps a thread that others share. How long that is depends on the size: some 20 us
//! for a part of an expression, and for each node of a plan about as long as for eight parts. What
//! takes longer than some 10 ms goes to a thread of its own (`crate::execute::threads`), where its
//! rules ask whether somebody waits (`crate::execute::stopping`); what does not is planned at once.

use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Select, TableFactor, Visitor};

use crate::parse::visit::visit;
use crate::plan::walk::{Walk, WalkPlan};

/// So many parts are planned within some 10 ms.
const PARTS_MAX: usize = 512;
/// A node of a plan, and what becomes one, is as much work as so many parts of expressions.
const PARTS_OF_NODE: usize = 8;

/// Whether a statement is so large.
pub(crate) fn is_large_statement(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(explain) => is_large_statement(&explain.statement),
        Statement::Statement(parsed) => visit(parsed, &mut Size(0)).is_break(),
        _ => false,
    }
}

/// Whether a plan is so large; what it names twice counts twice.
pub(crate) fn is_large_plan(plan: &LogicalPlan) -> bool {
    let mut size = Size(0);
    let walked = plan.apply_with_subqueries_by(&mut |node| {
        if size.add(PARTS_OF_NODE).is_break() {
            return Ok(TreeNodeRecursion::Stop);
        }
        node.apply_expressions_by(&mut |expr| {
            expr.apply_by(&mut |_| {
                Ok(match size.add(1) {
                    ControlFlow::Continue(()) => TreeNodeRecursion::Continue,
                    ControlFlow::Break(()) => TreeNodeRecursion::Stop,
                })
            })
        })
    });
    debug_assert!(walked.is_ok());
    size.is_large()
}

/// Parts that were counted.
struct Size(usize);

impl Size {
    fn is_large(&self) -> bool {
        self.0 > PARTS_MAX
    }

    fn add(&mut self, parts: usize) -> ControlFlow<()> {
        self.0 += parts;
        match self.is_large() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Size {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.add(1)
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.add(PARTS_OF_NODE)
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.add(PARTS_OF_NODE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::parse_one;

    #[test]
    fn statements_are_large_by_their_tables_and_by_their_parts() {
        let is_large = |text: &str| is_large_statement(&parse_one(text).unwrap());
        assert!(!is_large(
            "select a, b from t join u on t.i = u.i where a > 1"
        ));
        let join = " join u on t.i = u.i";
        assert!(is_large(&format!("select 1 from t{}", join.repeat(60))));
        assert!(is_large(&format!(
            "explain select 1 from t{}",
            join.repeat(60)
        )));
        assert!(is_large(&format!("values (1){}", ", (1)".repeat(1_000))));
        assert!(is_large(&format!(
            "insert into t values (1){}",
            ", (1)".repeat(1_000)
        )));
        assert!(is_large(&format!(
            "select 1{}",
            " union all select 1".repeat(100)
        )));
    }
}
