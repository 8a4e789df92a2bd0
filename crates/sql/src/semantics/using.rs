//! Columns joined by `USING` or `NATURAL`, where they are named without a table.
//!
//! To SQL they are one column. The planner knows that in the list of columns, but not in a
//! condition, and takes the left table's for it, which is wrong where the left side may have no
//! row. So they get the names of their tables:
//!
//! ```text
//! SELECT id FROM a LEFT JOIN b USING (id) WHERE id = 2    ->   ... WHERE a.id = 2
//! SELECT id FROM a RIGHT JOIN b USING (id) WHERE id = 2   ->   SELECT b.id AS id ... WHERE b.id = 2
//! SELECT id FROM a FULL JOIN b USING (id) WHERE id = 2    ->   SELECT coalesce(a.id, b.id) AS id ... WHERE coalesce(a.id, b.id) = 2
//! ```
//!
//! `NATURAL` is `USING` the columns that two stored tables share. What would need more than the
//! text is refused in right and full joins: `*`, a subquery that names such a column, a chain of
//! joins, `NATURAL` of anything but stored tables.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy, OrderByKind, Query,
    Select, SelectItem, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

use crate::parse::query_depth::query_depth;
use crate::parse::visit::visit_mut;
use crate::parse::words::{call, each_select, folded};
use crate::{Error, Result};

/// The columns of a stored table, by the name that the text has for it.
pub(crate) type Columns<'c> = &'c dyn Fn(&ObjectName) -> Option<Vec<String>>;

/// Names such columns in all queries of a statement.
pub(crate) fn name_used_columns<T: VisitMut>(statement: &mut T, known: Columns<'_>) -> Result<()> {
    match visit_mut(statement, &mut Queries { known }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Queries<'c> {
    known: Columns<'c>,
}

impl VisitorMut for Queries<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        each_select(query, |select, order| {
            match name_in(select, order, self.known) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        })
    }
}

/// What stands for such a column.
struct Used {
    column: Expr,
    /// Whether that is another than the planner's.
    is_other: bool,
}

fn name_in(select: &mut Select, order: Option<&mut OrderBy>, known: Columns<'_>) -> Result<()> {
    let mut used = HashMap::new();
    for from in &mut select.from {
        collect(from, &mut used, known)?;
    }
    if used.is_empty() {
        return Ok(());
    }
    let has_other = used.values().any(|used| used.is_other);
    let mut naming = Naming {
        used: &used,
        depth: 0,
        is_hidden: false,
    };
    let mut outputs = HashSet::new();
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = match &*expr {
                    Expr::Identifier(name) if used.contains_key(&folded(name)) => name.clone(),
                    _ => {
                        let _: ControlFlow<()> = visit_mut(expr, &mut naming);
                        continue;
                    }
                };
                let _: ControlFlow<()> = visit_mut(expr, &mut naming);
                outputs.insert(folded(&name));
                let expr = expr.clone();
                *item = SelectItem::ExprWithAlias { expr, alias: name };
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let _: ControlFlow<()> = visit_mut(expr, &mut naming);
                outputs.insert(folded(alias));
            }
            _ if has_other => {
                return Err(Error::unsupported("* over USING in a right or full join"));
            }
            _ => {}
        }
    }
    let _: ControlFlow<()> = visit_mut(&mut select.selection, &mut naming);
    let _: ControlFlow<()> = visit_mut(&mut select.group_by, &mut naming);
    let _: ControlFlow<()> = visit_mut(&mut select.having, &mut naming);
    let _: ControlFlow<()> = visit_mut(&mut select.distinct, &mut naming);
    if let Some(OrderByKind::Expressions(parts)) = order.map(|order| &mut order.kind) {
        let is_on = matches!(select.distinct, Some(Distinct::On(_)));
        for by in parts {
            // A name alone is first that of a column of the answer.
            let is_output =
                matches!(&by.expr, Expr::Identifier(name) if outputs.contains(&folded(name)));
            if is_on || !is_output {
                let _: ControlFlow<()> = visit_mut(&mut by.expr, &mut naming);
            }
        }
    }
    match naming.is_hidden {
        true => Err(Error::unsupported(
            "a subquery with a column that USING names in a right or full join",
        )),
        false => Ok(()),
    }
}

/// Such columns of the joins, as far as the text and the catalog say that.
fn collect(
    from: &mut TableWithJoins,
    used: &mut HashMap<String, Used>,
    known: Columns<'_>,
) -> Result<()> {
    if let TableFactor::NestedJoin {
        table_with_joins, ..
    } = &mut from.relation
    {
        collect(table_with_joins, used, known)?;
    }
    let joins = from.joins.len();
    for (place, join) in from.joins.iter_mut().enumerate() {
        let (constraint, side) = match &mut join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint) => (constraint, Side::Left),
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                (constraint, Side::Right)
            }
            JoinOperator::FullOuter(constraint) => (constraint, Side::Either),
            _ => continue,
        };
        if matches!(constraint, JoinConstraint::Natural)
            && place == 0
            && let Some(shared) = shared(&from.relation, &join.relation, known)
        {
            *constraint = JoinConstraint::Using(shared);
        }
        // In a chain it is the first table's that has it, which only a catalog knows, unless there
        // is one table.
        let tables = (name_of(&from.relation), name_of(&join.relation));
        let (columns, left, right) = match (&*constraint, tables) {
            (JoinConstraint::Using(columns), (Some(left), Some(right)))
                if place == 0 && (side == Side::Left || joins == 1) =>
            {
                (columns, left, right)
            }
            (JoinConstraint::Using(_) | JoinConstraint::Natural, _) if side != Side::Left => {
                return Err(Error::unsupported(
                    "this USING or NATURAL in a right or full join",
                ));
            }
            _ => continue,
        };
        for column in columns {
            if let Some(name) = column.0.last().and_then(|part| part.as_ident()) {
                let of =
                    |table: &Ident| Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
                let column = match side {
                    Side::Left => of(&left),
                    Side::Right => of(&right),
                    Side::Either => call("coalesce", vec![of(&left), of(&right)]),
                };
                let is_other = side != Side::Left;
                used.insert(folded(name), Used { column, is_other });
            }
        }
    }
    Ok(())
}

/// Which side of a join has a row always.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
    Either,
}

/// The columns that two stored tables have both, in the order of the left one.
fn shared(left: &TableFactor, right: &TableFactor, known: Columns<'_>) -> Option<Vec<ObjectName>> {
    let columns = |factor: &TableFactor| match factor {
        TableFactor::Table {
            name,
            args: None,
            alias,
            ..
        } if alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) => known(name),
        _ => None,
    };
    let (left, right) = (columns(left)?, columns(right)?);
    let shared = left.into_iter().filter(|name| right.contains(name));
    let shared = shared.map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
    let shared: Vec<ObjectName> = shared.collect();
    (!shared.is_empty()).then_some(shared)
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

struct Naming<'t> {
    used: &'t HashMap<String, Used>,
    /// Within so many subqueries: those may have columns of that name themselves.
    depth: usize,
    /// Whether one of them names a column that would be another.
    is_hidden: bool,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    query_depth!();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let Some(used) = self.used.get(&folded(name))
        {
            match self.depth {
                0 => *expr = used.column.clone(),
                _ => self.is_hidden |= used.is_other,
            }
        }
        ControlFlow::Continue(())
    }
}
