//! `sparql('SELECT ...')` and `sparql('SELECT ...', 'a text, b numeric(10,2)')`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::Expr;
use orrery_storage::table::ColumnType;

use super::condition::Seen;
use super::declared::declared;
use super::table::GraphTable;
use super::{GraphColumn, SeenGraphs};
use crate::{Error, Result, SqlState};

/// The function, over one state.
pub(crate) struct SparqlFunction {
    pub(crate) graphs: SeenGraphs,
    /// Set where it is.
    pub(crate) is_called: Arc<AtomicBool>,
}

impl fmt::Debug for SparqlFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparqlFunction").finish_non_exhaustive()
    }
}

impl TableFunctionImpl for SparqlFunction {
    fn call_with_args(
        &self,
        args: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let (text, columns) = match args.exprs() {
            [text] => (text_of(text)?, None),
            [text, columns] => (text_of(text)?, Some(text_of(columns)?)),
            _ => {
                return Err(
                    wrong_arguments("sparql takes a text, and perhaps a list of columns").into(),
                );
            }
        };
        self.is_called.store(true, Ordering::Relaxed);
        let selected = self.graphs.source.columns(text, &self.graphs.snapshot)?;
        let columns = match columns {
            None => selected
                .into_iter()
                .map(|column| said(column, None))
                .collect(),
            Some(list) => with_types(selected, declared(list)?)?,
        };
        Ok(Arc::new(GraphTable::new(
            &self.graphs,
            text.into(),
            columns,
        )))
    }
}

fn text_of(expr: &Expr) -> Result<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
    .ok_or_else(|| wrong_arguments("the arguments of sparql are constant texts"))
}

fn wrong_arguments(message: &str) -> Error {
    Error::new(SqlState::UndefinedFunction, message)
        .with_hint("Write sparql('SELECT ?s ?price { ... }') AS t(s text, price numeric(10,2)).")
}

/// A column with the type that was declared, else with that which the query says.
fn said(column: GraphColumn, declared: Option<ColumnType>) -> (String, Seen) {
    let text = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    let seen = Seen {
        column_type: declared.or(column.column_type).unwrap_or(text),
        is_resource: column.is_resource,
        name: column.name.clone(),
    };
    // A name that SQL need not quote.
    (column.name, seen)
}

fn with_types(
    selected: Vec<GraphColumn>,
    declared: Vec<(String, ColumnType)>,
) -> Result<Vec<(String, Seen)>> {
    if selected.len() != declared.len() {
        return Err(Error::new(
            SqlState::InvalidColumnReference,
            format!(
                "the query selects {} variables, and {} columns are declared",
                selected.len(),
                declared.len()
            ),
        ));
    }
    let both = selected.into_iter().zip(declared);
    Ok(both
        .map(|(column, (name, column_type))| (name, said(column, Some(column_type)).1))
        .collect())
}
