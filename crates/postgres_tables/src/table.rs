//! The DataFusion table provider of a foreign table.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::access::ForeignAccess;
use crate::address::{Server, SourceName};
use crate::columns::ForeignColumn;
use crate::condition::condition;
use crate::scan::ForeignExec;
use crate::snapshots::StatementSnapshots;
use crate::statement::Selection;

/// See the module.
#[derive(Debug, Clone)]
pub struct ForeignTable {
    name: String,
    server: Arc<Server>,
    source: SourceName,
    columns: Arc<[ForeignColumn]>,
    rows: Option<u64>,
    schema: SchemaRef,
}

impl ForeignTable {
    /// A table that is called `name` here.
    pub fn new(
        name: String,
        server: Arc<Server>,
        source: SourceName,
        columns: Vec<ForeignColumn>,
        rows: Option<u64>,
    ) -> Self {
        let fields = columns
            .iter()
            .map(|column| Field::new(&column.name, column.column_type.arrow(), column.is_nullable));
        Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            name,
            server,
            source,
            columns: columns.into(),
            rows,
        }
    }

    /// Its columns.
    pub fn columns(&self) -> &[ForeignColumn] {
        &self.columns
    }
}

#[async_trait]
impl TableProvider for ForeignTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let rows = usize::try_from(self.rows?).ok()?;
        let mut told = Statistics::new_unknown(&self.schema);
        told.num_rows = Precision::Inexact(rows);
        Some(told)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        let answers = filters
            .iter()
            .map(|filter| match condition(filter, &self.columns) {
                Some(_) => TableProviderFilterPushDown::Exact,
                None => TableProviderFilterPushDown::Unsupported,
            });
        Ok(answers.collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let access = state.config().get_extension::<ForeignAccess>();
        let access = access.map_or_else(ForeignAccess::refused, |access| (*access).clone());
        access.check(&self.server)?;
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let wanted = projection.unwrap_or(&all);
        let conditions = filters.iter().map(|filter| {
            condition(filter, &self.columns).ok_or_else(|| {
                DataFusionError::Internal(format!("a condition that cannot be sent: {filter}"))
            })
        });
        let selection = Selection {
            table: self.source.clone(),
            columns: wanted
                .iter()
                .map(|place| self.columns[*place].clone())
                .collect(),
            conditions: conditions.collect::<Result<_, _>>()?,
            limit,
        };
        let snapshots = state.config().get_extension::<StatementSnapshots>();
        let snapshot = snapshots.map(|snapshots| snapshots.planned(&self.server));
        // What passes conditions is not known, and at most all.
        let rows = self.rows.and_then(|rows| usize::try_from(rows).ok());
        let rows = match (rows, limit) {
            (Some(rows), Some(limit)) => Some(rows.min(limit)),
            (rows, limit) => rows.or(limit),
        };
        Ok(Arc::new(ForeignExec::new(
            self.name.clone(),
            Arc::clone(&self.server),
            access,
            snapshot,
            selection,
            Arc::new(self.schema.project(wanted)?),
            rows,
        )))
    }
}
