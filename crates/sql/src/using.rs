//! Columns that a join names by `USING`, where a `WHERE` names them without a table.
//!
//! The planner knows in the list of columns that `id` of `a JOIN b USING (id)` is one column, but not in a condition, where it is ambiguous to it. There it
//! gets the name of its table, which is the left one in an inner and in a left join:
//!
//! ```text
//! SELECT * FROM a LEFT JOIN b USING (id) WHERE id = 2   ->   ... WHERE a.id = 2
//! ```
//!
//! In a right or full join it is the right one's, or whichever is not NULL. The planner takes the left one's for it everywhere, which would be a wrong answer: these are
//! refused, as are their `NATURAL` kin.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, Query, Select, SetExpr, TableFactor, TableWithJoins,
    VisitMut, VisitorMut,
};

use crate::{Error, Result};

/// Names such columns in all queries of a statement.
pub(crate) fn name_used_columns<T: VisitMut>(statement: &mut T) -> Result<()> {
    match statement.visit(&mut Queries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Queries;

impl VisitorMut for Queries {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut rest = vec![&mut *query.body];
        while let Some(set) = rest.pop() {
            match set {
                SetExpr::Select(select) => {
                    if let Err(error) = name_in(select) {
                        return ControlFlow::Break(error);
                    }
                }
                SetExpr::SetOperation { left, right, .. } => {
                    rest.push(left.as_mut());
                    rest.push(right.as_mut());
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

fn name_in(select: &mut Select) -> Result<()> {
    let mut tables = HashMap::new();
    for from in &select.from {
        collect(from, &mut tables)?;
    }
    if let Some(condition) = select.selection.as_mut().filter(|_| !tables.is_empty()) {
        let mut naming = Naming {
            tables: &tables,
            depth: 0,
        };
        let _: ControlFlow<()> = condition.visit(&mut naming);
    }
    Ok(())
}

/// The table of each column that one of the joins uses, as far as its text says that.
fn collect(from: &TableWithJoins, tables: &mut HashMap<String, Ident>) -> Result<()> {
    if let TableFactor::NestedJoin {
        table_with_joins, ..
    } = &from.relation
    {
        collect(table_with_joins, tables)?;
    }
    for (place, join) in from.joins.iter().enumerate() {
        let (constraint, is_left) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint) => (constraint, true),
            JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => (constraint, false),
            _ => continue,
        };
        let columns = match constraint {
            JoinConstraint::Using(columns) if is_left => columns,
            JoinConstraint::Using(_) | JoinConstraint::Natural if !is_left => {
                return Err(Error::unsupported(
                    "USING and NATURAL in a right or full join",
                ));
            }
            _ => continue,
        };
        // In a chain it is the first table's that has it, which only a catalog knows, unless there is one table.
        let Some(table) = name_of(&from.relation).filter(|_| place == 0) else {
            continue;
        };
        for column in columns {
            if let Some(name) = column.0.last().and_then(|part| part.as_ident()) {
                tables.insert(folded(name), table.clone());
            }
        }
    }
    Ok(())
}

fn name_of(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(alias.name.clone()),
        TableFactor::Table { name, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

/// A name as the catalog has it.
fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

struct Naming<'t> {
    tables: &'t HashMap<String, Ident>,
    /// Within so many subqueries: those may have columns of that name themselves.
    depth: usize,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        if let Expr::Identifier(name) = expr
            && let Some(table) = self.tables.get(&folded(name))
        {
            *expr = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
        }
        ControlFlow::Continue(())
    }
}
