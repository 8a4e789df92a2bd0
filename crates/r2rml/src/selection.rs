//! The SQL query that selects the columns of some terms.

use std::fmt::Write as _;

use orrery_sql::TableReader;
use orrery_storage::table::ColumnType;

use crate::error::Result;
use crate::identifiers::quoted;
use crate::model::LogicalTable;
use crate::rules::{Column, Maker};

/// Tables, columns and conditions of a query.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    from: String,
    sides: usize,
    columns: Vec<(usize, Column)>,
    conditions: Vec<String>,
    /// Tables that are read with the numbers of their rows.
    pub(crate) numbered: Vec<(String, String)>,
}

impl Selection {
    /// Of a table.
    pub(crate) fn new(source: &LogicalTable) -> Self {
        let mut selection = Self {
            from: String::new(),
            sides: 0,
            columns: Vec::new(),
            conditions: Vec::new(),
            numbered: Vec::new(),
        };
        selection.add(source);
        selection
    }

    fn add(&mut self, source: &LogicalTable) -> usize {
        let side = self.sides;
        self.sides += 1;
        let table = match source {
            LogicalTable::Table {
                schema,
                name,
                is_numbered: false,
            } => format!("{}.{}", quoted(schema), quoted(name)),
            LogicalTable::Table { schema, name, .. } => {
                let place = (schema.clone(), name.clone());
                if !self.numbered.contains(&place) {
                    self.numbered.push(place);
                }
                TableReader::numbered_name(schema, name)
            }
            // A comment at the end of the query must not swallow the bracket.
            LogicalTable::Query(query) => format!("({query}\n)"),
        };
        // Writing to a String does not fail, here and below.
        _ = write!(self.from, "{table} AS t{side}");
        side
    }

    /// With the rows of another table whose columns equal those of the first; its number.
    pub(crate) fn join(&mut self, source: &LogicalTable, joins: &[(Column, Column)]) -> usize {
        self.from.push_str(" JOIN ");
        let side = self.add(source);
        self.from.push_str(" ON ");
        for (place, (child, parent)) in joins.iter().enumerate() {
            let and = if place > 0 { " AND " } else { "" };
            let (child, parent) = (quoted(&child.name), quoted(&parent.name));
            _ = write!(self.from, "{and}t0.{child} = t{side}.{parent}");
        }
        side
    }

    /// Selects a column of a table; its place.
    pub(crate) fn column(&mut self, side: usize, column: &Column) -> usize {
        let wanted = (side, column);
        let known = self.columns.iter();
        let mut known = known.map(|(side, column)| (*side, column));
        match known.position(|it| it == wanted) {
            Some(place) => place,
            None => {
                self.columns.push((side, column.clone()));
                self.columns.len() - 1
            }
        }
    }

    /// The maker over what is selected.
    pub(crate) fn maker(&mut self, side: usize, maker: &Maker<Column>) -> Result<Maker<usize>> {
        maker.map(|column| Ok(self.column(side, column)))
    }

    /// Leaves out rows for which a condition on a column does not hold: what stands behind the
    /// column.
    pub(crate) fn condition(&mut self, side: usize, column: &Column, test: &str) {
        let condition = format!("t{side}.{} {test}", quoted(&column.name));
        if !self.conditions.contains(&condition) {
            self.conditions.push(condition);
        }
    }

    /// Leaves out all rows.
    pub(crate) fn nothing(&mut self) {
        self.conditions.push("false".to_owned());
    }

    /// The types of the columns.
    pub(crate) fn types(&self) -> Vec<ColumnType> {
        let columns = self.columns.iter();
        columns.map(|(_, column)| column.column_type).collect()
    }

    /// The query.
    pub(crate) fn text(&self) -> String {
        let columns = self.columns.iter().enumerate();
        let columns = columns
            .map(|(place, (side, column))| format!("t{side}.{} AS c{place}", quoted(&column.name)));
        let columns: Vec<String> = columns.collect();
        let columns = match columns.is_empty() {
            true => "1 AS one".to_owned(),
            false => columns.join(", "),
        };
        let mut text = format!("SELECT {columns} FROM {}", self.from);
        if !self.conditions.is_empty() {
            _ = write!(text, " WHERE {}", self.conditions.join(" AND "));
        }
        text
    }
}
