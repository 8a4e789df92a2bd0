//! Queries built from parts of a changing statement.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableFactor, TableWithJoins,
};
use orrery_storage::table::{ROW_NUMBER, TableState};

use crate::parse::identifiers::{folded, quoted};
use crate::parse::statement::parse_one;
use crate::plan::planner::Planner;
use crate::{Error, Result, SqlState};
use orrery_table_scan::StoredTable;

/// The column of row numbers, which no text can name.
const ROW_NUMBER_NAME: &str = "\u{1}row";

/// `SELECT items FROM tables WHERE condition`.
pub(super) fn select(
    items: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    condition: Option<Expr>,
) -> Result<Query> {
    let (mut query, mut select) = template()?;
    select.projection = items;
    select.from = from;
    select.selection = condition;
    *query.body = SetExpr::Select(Box::new(select));
    Ok(query)
}

/// The parser's types have many fields, all of which are as it makes them for the simplest query.
fn template() -> Result<(Query, Select)> {
    let broken = || Error::new(SqlState::InternalError, "the template of a query is none");
    let datafusion::sql::parser::Statement::Statement(statement) = parse_one("SELECT 1 FROM t")?
    else {
        return Err(broken());
    };
    let Statement::Query(query) = *statement else {
        return Err(broken());
    };
    let SetExpr::Select(select) = &*query.body else {
        return Err(broken());
    };
    let select = (**select).clone();
    Ok((*query, select))
}

/// A table of the planner's under an alias.
pub(super) fn table(name: ObjectName, alias: Ident) -> Result<TableWithJoins> {
    let (_, mut select) = template()?;
    let mut table = select.from.swap_remove(0);
    if let TableFactor::Table {
        name: place,
        alias: given,
        ..
    } = &mut table.relation
    {
        *place = name;
        *given = Some(TableAlias {
            explicit: true,
            name: alias,
            columns: Vec::new(),
            at: None,
        });
    }
    Ok(table)
}

/// `alias.column`.
pub(super) fn column(alias: &Ident, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![alias.clone(), quoted(name)])
}

/// An expression under a name that is no other's.
pub(super) fn item(expr: Expr, number: usize) -> SelectItem {
    SelectItem::ExprWithAlias {
        expr,
        alias: quoted(&format!("\u{1}{number}")),
    }
}

/// The table that a statement changes, as its query reads it.
pub(super) struct Target {
    /// As it stands in the query.
    pub(super) from: TableWithJoins,
    /// How its columns are named in expressions.
    pub(super) alias: Ident,
    /// The key of its rows.
    pub(super) key: Vec<Expr>,
}

impl Target {
    /// Of a table as it stands in a statement.
    pub(super) fn new(
        planner: &Planner,
        state: &TableState,
        written: &TableWithJoins,
    ) -> Result<Self> {
        if !written.joins.is_empty() {
            return Err(Error::unsupported("a change of joined tables"));
        }
        let TableFactor::Table { name, alias, .. } = &written.relation else {
            return Err(Error::unsupported("a change of what is not a table"));
        };
        let alias = match alias {
            Some(alias) if alias.columns.is_empty() => quoted(&folded(&alias.name)?),
            Some(_) => return Err(Error::unsupported("an alias of columns")),
            None => quoted(&crate::parse::identifiers::qualified(name)?.1),
        };
        let definition = state.definition();
        let mut key: Vec<Expr> = definition
            .row_key()
            .iter()
            .filter_map(|id| definition.column(*id))
            .map(|it| column(&alias, &it.name))
            .collect();
        let is_numbered = definition.row_key() == [ROW_NUMBER];
        let from = match is_numbered {
            false => written.clone(),
            true => {
                let numbered = StoredTable::with_row_number(state.clone(), ROW_NUMBER_NAME);
                let name = planner.add("target", std::sync::Arc::new(numbered));
                key.push(column(&alias, ROW_NUMBER_NAME));
                table(name, alias.clone())?
            }
        };
        Ok(Self { from, alias, key })
    }
}
