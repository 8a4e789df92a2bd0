//! The table functions of graphs: `sparql('SELECT ...')`, classes of entities, and text searches.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::logical_expr::Expr;
use orrery_storage::table::ColumnType;

use super::class::Class;
use super::condition::Seen;
use super::declared::declared;
use super::table::GraphTable;
use super::{GraphColumn, SeenGraphs};
use crate::values::iri::require_iri;
use crate::{Error, Result, SqlState};

/// The function, over one state.
#[derive(Clone)]
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

/// `class('iri', 'columns')`.
pub(crate) struct ClassFunction(pub(crate) SparqlFunction);

/// `classes()`: what classes there are, as a query.
pub(crate) struct ClassesFunction(pub(crate) SparqlFunction);

/// `class_properties('iri')`: what its entities have.
pub(crate) struct PropertiesFunction(pub(crate) SparqlFunction);

/// `text_search('words', limit, 'iri' ...)`: the quads whose texts match, the best so many.
pub(crate) struct TextSearchFunction(pub(crate) SparqlFunction);

impl fmt::Debug for TextSearchFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextSearchFunction").finish_non_exhaustive()
    }
}

impl fmt::Debug for ClassFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassFunction").finish_non_exhaustive()
    }
}

impl fmt::Debug for ClassesFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassesFunction").finish_non_exhaustive()
    }
}

impl fmt::Debug for PropertiesFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PropertiesFunction").finish_non_exhaustive()
    }
}

impl SparqlFunction {
    /// The solutions of a query of ours.
    fn of(&self, text: &str) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        self.typed(text, |_| None)
    }

    /// The same, with the types of some variables.
    fn typed(
        &self,
        text: &str,
        type_of: impl Fn(&str) -> Option<ColumnType>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        self.is_called.store(true, Ordering::Relaxed);
        let selected = self.graphs.source.columns(text, &self.graphs.snapshot)?;
        let columns = selected.into_iter().map(|column| {
            let declared = type_of(&column.name);
            said(column, declared)
        });
        let table = GraphTable::new(&self.graphs, text.into(), columns.collect());
        Ok(Arc::new(table))
    }
}

impl TableFunctionImpl for ClassFunction {
    fn call_with_args(
        &self,
        args: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let [iri, columns] = args.exprs() else {
            let error = Error::new(
                SqlState::UndefinedFunction,
                "class takes the IRI of a class and a list of columns",
            );
            return Err(error
                .with_hint("CREATE VIEW name FROM CLASS <iri> finds the columns.")
                .into());
        };
        let (class, columns) = Class::new(text_of(iri)?, text_of(columns)?)?;
        self.0.is_called.store(true, Ordering::Relaxed);
        let table = GraphTable::of_class(&self.0.graphs, class, columns);
        Ok(Arc::new(table))
    }
}

impl TableFunctionImpl for ClassesFunction {
    fn call_with_args(
        &self,
        args: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        if !args.exprs().is_empty() {
            let error = Error::new(SqlState::UndefinedFunction, "classes takes nothing");
            return Err(error.into());
        }
        self.0
            .of("SELECT ?class (COUNT(?s) AS ?entities) { ?s a ?class } GROUP BY ?class")
    }
}

impl TableFunctionImpl for PropertiesFunction {
    fn call_with_args(
        &self,
        args: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let [iri] = args.exprs() else {
            let error = Error::new(
                SqlState::UndefinedFunction,
                "class_properties takes the IRI of a class",
            );
            return Err(error.into());
        };
        let iri = text_of(iri)?;
        require_iri(iri)?;
        self.0.of(&format!(
            "SELECT ?property (COUNT(DISTINCT ?s) AS ?entities) (COUNT(?o) AS ?values) \
             {{ ?s a <{iri}> ; ?property ?o }} GROUP BY ?property"
        ))
    }
}

impl TextSearchFunction {
    /// The search in SPARQL.
    fn text(exprs: &[Expr]) -> Result<String> {
        let wrong = || {
            Error::new(
                SqlState::UndefinedFunction,
                "text_search takes words, how many at most, and perhaps IRIs of properties",
            )
            .with_hint(
                "Write text_search('red wine', 20, 'http://www.w3.org/2000/01/rdf-schema#label').",
            )
        };
        let [
            Expr::Literal(words, _),
            Expr::Literal(ScalarValue::Int64(Some(limit)), _),
            properties @ ..,
        ] = exprs
        else {
            return Err(wrong());
        };
        let words = words.try_as_str().flatten().ok_or_else(wrong)?;
        let mut of = " ; text:property ?property".to_owned();
        for property in properties {
            let iri = text_of(property).map_err(|_| wrong())?;
            require_iri(iri)?;
            of += &format!(" ; text:property <{iri}>");
        }
        let words = quoted(words);
        Ok(format!(
            "PREFIX text: <https://orrery-db.org/text#> SELECT ?entity ?property ?literal ?score ?highlight {{ SERVICE text:search {{ \
             [] text:query {words}{of} ; text:entity ?entity ; text:literal ?literal ; text:score ?score ; text:highlight ?highlight ; \
             text:limit {limit} }} }}"
        ))
    }
}

/// A string as SPARQL writes it (SPARQL 1.1, 19.7).
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

impl TableFunctionImpl for TextSearchFunction {
    fn call_with_args(
        &self,
        args: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let text = Self::text(args.exprs())?;
        self.0.typed(&text, |name| match name {
            "score" => Some(ColumnType::Double),
            _ => None,
        })
    }
}
