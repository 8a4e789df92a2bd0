//! The DataFusion table provider of a stored table.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Constraint, Constraints, DFSchema, DataFusionError};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::ExecutionPlan;
use orrery_storage::table::{
    ColumnId, ColumnType, ROW_NUMBER, TableDefinition, TableState, Tables,
};

use super::access::choose;
use super::morsels::ScansInShares;
use super::node::{ScanExec, Wanted};

/// A table of a snapshot, or of a transaction.
pub struct StoredTable {
    state: TableState,
    /// All tables of the snapshot.
    tables: Option<Arc<Tables>>,
    /// The columns that are seen; their fields are the schema's.
    columns: Vec<ColumnId>,
    schema: SchemaRef,
    constraints: Constraints,
}

impl fmt::Debug for StoredTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTable")
            .field("name", &self.state.definition().name)
            .finish_non_exhaustive()
    }
}

impl StoredTable {
    /// A table in a state.
    pub fn new(state: TableState) -> Self {
        let definition = state.definition();
        Self {
            columns: definition.columns.iter().map(|column| column.id).collect(),
            schema: schema_of(definition),
            constraints: constraints_of(definition),
            tables: None,
            state,
        }
    }

    /// The table in a set of tables, to which it may refer.
    pub fn among(state: TableState, tables: &Arc<Tables>) -> Self {
        let mut table = Self::new(state);
        table.tables = Some(Arc::clone(tables));
        table
    }

    /// The table over another set of tables; `None` if it is not in there.
    pub fn over(&self, tables: &Arc<Tables>) -> Option<Self> {
        let state = tables.table(self.state.definition().id)?;
        Some(Self::among(state.clone(), tables))
    }

    /// The table with a column of row numbers behind the others; for tables without a primary key.
    pub fn with_row_number(state: TableState, name: &str) -> Self {
        let mut table = Self::new(state);
        let number = Field::new(name, ColumnType::BigInt.arrow(), false);
        let fields = table.schema.fields().iter().cloned();
        let fields: Vec<FieldRef> = fields.chain([Arc::new(number)]).collect();
        table.schema = Arc::new(Schema::new(fields));
        table.columns.push(ROW_NUMBER);
        table
    }
}

/// The columns as arrays have them.
fn schema_of(definition: &TableDefinition) -> SchemaRef {
    let fields = definition.columns.iter().map(|column| {
        let data_type = column.column_type.arrow();
        Field::new(&column.name, data_type, column.is_nullable)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What rows of it cannot have in common. The planner takes each of these for a key, whether
/// columns are NULL or not; rows that are NULL in columns of a unique index may be many, so that
/// such an index is none.
fn constraints_of(definition: &TableDefinition) -> Constraints {
    let places = |ids: &[ColumnId]| -> Option<Vec<usize>> {
        let place = |id: &ColumnId| definition.columns.iter().position(|it| it.id == *id);
        ids.iter().map(place).collect()
    };
    let mut constraints = Vec::new();
    if let Some(key) = &definition.primary_key {
        constraints.extend(places(&key.columns).map(Constraint::PrimaryKey));
    }
    let is_nullable = |id: &ColumnId| {
        let column = definition.columns.iter().find(|it| it.id == *id);
        column.is_none_or(|column| column.is_nullable)
    };
    let keys = definition.indexes.iter();
    for index in keys.filter(|index| index.is_unique && !index.columns.iter().any(is_nullable)) {
        constraints.extend(places(&index.columns).map(Constraint::Unique));
    }
    Constraints::new_unverified(constraints)
}

/// What is reckoned before a plan is made.
impl StoredTable {
    /// The rows for which filters hold, and all rows; `None` if they cannot be understood.
    pub fn reckoned(&self, filters: &[Expr], state: &dyn Session) -> Option<(f64, f64)> {
        let of_rows = DFSchema::try_from(Arc::clone(&self.schema)).ok()?;
        let mut conditions = Vec::with_capacity(filters.len());
        for filter in filters {
            // The columns of a scan are named after the table as the query has it.
            let filter = filter.clone().transform_down(|part| match part {
                Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::from_name(
                    column.name,
                )))),
                part => Ok(Transformed::no(part)),
            });
            let filter = state.create_physical_expr(filter.ok()?.data, &of_rows);
            conditions.extend(split_conjunction(&filter.ok()?).into_iter().cloned());
        }
        let access = choose(&self.state, &self.columns, &conditions, &self.columns).ok()?;
        Some((access.rows as f64, self.state.rows() as f64))
    }

    /// The number of distinct values of a column, by its place; `None` if unknown.
    pub fn distinct(&self, place: usize) -> Option<f64> {
        let id = *self.columns.get(place)?;
        let key = self.state.definition().primary_key.as_ref();
        if key.is_some_and(|key| key.columns == [id]) {
            return Some(self.state.rows() as f64);
        }
        let projection = self.state.primary();
        let place = projection.layout().position(id)?;
        Some(projection.file()?.column_statistics(place)?.distinct as f64)
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        let schema = Arc::new(self.schema.project(wanted)?);
        let of_rows = DFSchema::try_from(Arc::clone(&self.schema))?;
        let mut parts = Vec::with_capacity(filters.len());
        for filter in filters {
            let filter = state.create_physical_expr(filter.clone(), &of_rows)?;
            parts.extend(split_conjunction(&filter).into_iter().cloned());
        }
        let scan = ScanExec::new(Wanted {
            table: self.state.clone(),
            tables: self.tables.clone(),
            columns: wanted.iter().map(|&place| self.columns[place]).collect(),
            ids: self.columns.as_slice().into(),
            schema,
            filters: parts,
            dynamic: Vec::new(),
            keys: Vec::new(),
            limit,
            partitions: state.config().target_partitions(),
            tells_order: true,
            in_shares: state.config().get_extension::<ScansInShares>().is_some(),
        })?;
        Ok(Arc::new(scan))
    }

    /// All that holds for a row by itself is evaluated where it is read.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        let of = |filter: &&Expr| -> Result<_, DataFusionError> {
            let is_of_row = !filter.is_volatile()
                && !filter.exists(|part| {
                    Ok(matches!(
                        part,
                        Expr::ScalarSubquery(_)
                            | Expr::Exists(_)
                            | Expr::InSubquery(_)
                            | Expr::SetComparison(_)
                            | Expr::OuterReferenceColumn(..)
                    ))
                })?;
            Ok(match is_of_row {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Unsupported,
            })
        };
        filters.iter().map(of).collect()
    }
}
