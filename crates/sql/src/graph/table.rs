//! The table provider of a SPARQL query.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::class::Class;
use super::condition::{Seen, taken};
use super::node::GraphExec;
use super::{GraphQuery, SeenGraphs};

/// Where the text of the query comes from.
#[derive(Debug)]
enum Source {
    Text(Arc<str>),
    /// It is made for the columns that are asked for.
    Class(Class),
}

/// The solutions of a query, as rows.
pub(crate) struct GraphTable {
    graphs: SeenGraphs,
    source: Source,
    is_of_quads: bool,
    columns: Vec<Seen>,
    schema: SchemaRef,
}

impl fmt::Debug for GraphTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphTable")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl GraphTable {
    pub(super) fn new(graphs: &SeenGraphs, text: Arc<str>, columns: Vec<(String, Seen)>) -> Self {
        Self::of(graphs, Source::Text(text), columns)
    }

    /// The entities of a class.
    pub(super) fn of_class(
        graphs: &SeenGraphs,
        class: Class,
        columns: Vec<(String, Seen)>,
    ) -> Self {
        Self::of(graphs, Source::Class(class), columns)
    }

    fn of(graphs: &SeenGraphs, source: Source, columns: Vec<(String, Seen)>) -> Self {
        let fields = columns.iter().map(|(name, seen)| {
            // Any variable may be unbound.
            Field::new(name, seen.column_type.arrow(), true)
        });
        Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns: columns.into_iter().map(|(_, seen)| seen).collect(),
            graphs: graphs.clone(),
            source,
            is_of_quads: false,
        }
    }

    /// The same for the table `quads`.
    pub(super) fn of_quads(self) -> Self {
        Self {
            is_of_quads: true,
            ..self
        }
    }

    /// The columns under the names that filters call them by.
    fn named(&self) -> Vec<Seen> {
        let named = self.schema.fields().iter().zip(&self.columns);
        let named = named.map(|(field, seen)| Seen {
            name: field.name().clone(),
            ..seen.clone()
        });
        named.collect()
    }
}

#[async_trait]
impl TableProvider for GraphTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let wanted = projection.unwrap_or(&all);
        let named = self.named();
        let variable = |name: &str| {
            let place = named.iter().position(|seen| seen.name == name);
            place.map(|place| self.columns[place].name.clone())
        };
        let conditions = filters.iter().filter_map(|filter| taken(filter, &named));
        let mut conditions: Vec<_> = conditions.flat_map(|taken| taken.conditions).collect();
        for condition in &mut conditions {
            if let Some(variable) = variable(&condition.variable) {
                condition.variable = variable;
            }
        }
        let columns: Vec<Seen> = wanted
            .iter()
            .map(|&place| self.columns[place].clone())
            .collect();
        let text = match &self.source {
            Source::Text(text) => Arc::clone(text),
            Source::Class(class) => {
                // A condition says that there is a value.
                let places = conditions.iter().filter_map(|condition| {
                    let mut columns = self.columns.iter();
                    columns.position(|seen| seen.name == condition.variable)
                });
                class.query(wanted, &places.collect::<Vec<_>>()).into()
            }
        };
        let query = GraphQuery {
            text,
            is_of_quads: self.is_of_quads,
            holds_turn: self.graphs.holds_turn,
            limits: self.graphs.limits.clone(),
            spending: self.graphs.spending.clone(),
            snapshot: Arc::clone(&self.graphs.snapshot),
            scope: self.graphs.scope.clone(),
            columns: columns
                .iter()
                .map(|seen| (seen.name.clone(), seen.column_type))
                .collect(),
            conditions,
            limit,
        };
        let schema = Arc::new(self.schema.project(wanted)?);
        let node = GraphExec::new(Arc::clone(&self.graphs.source), query, columns, schema);
        Ok(Arc::new(node))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        let named = self.named();
        let of = |filter: &&Expr| match taken(filter, &named) {
            Some(taken) if taken.is_whole => TableProviderFilterPushDown::Exact,
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(of).collect())
    }
}
