//! Metadata of the database: catalogs, schemas, and tables with their columns.

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables,
};
use orrery_sql::{DATABASE, Session};
use tonic::Status;

use crate::calls::call::Call;
use crate::execution::columns::plain_schema;
use crate::execution::savepoints::quoted;
use crate::refusal::malformed;

/// The kinds of tables.
const TABLE: &str = "TABLE";
const VIEW: &str = "VIEW";

fn of_flight(error: FlightError) -> Status {
    malformed(error)
}

/// Lists the catalogs: one, the database.
pub(crate) fn catalogs(command: CommandGetCatalogs) -> Result<RecordBatch, Status> {
    let mut catalogs = command.into_builder();
    catalogs.append(DATABASE);
    catalogs.build().map_err(of_flight)
}

pub(crate) fn table_types(command: CommandGetTableTypes) -> Result<RecordBatch, Status> {
    let mut kinds = command.into_builder();
    kinds.append(TABLE);
    kinds.append(VIEW);
    kinds.build().map_err(of_flight)
}

impl Call {
    pub(crate) fn schemas(&self, command: CommandGetDbSchemas) -> Result<RecordBatch, Status> {
        let tables = self.tables()?;
        let mut schemas = command.into_builder();
        for schema in tables.schemas() {
            schemas.append(DATABASE, schema);
        }
        schemas.build().map_err(of_flight)
    }

    /// Lists tables and views. A view has the columns of its query, or none if the query fails now.
    pub(crate) async fn described_tables(
        &self,
        command: CommandGetTables,
    ) -> Result<RecordBatch, Status> {
        let with_columns = command.include_schema;
        let tables = self.tables()?;
        let mut described = command.into_builder();
        let none = Schema::empty();
        for table in tables.tables().map(|table| table.definition()) {
            let columns = table.columns.iter().map(|column| {
                Field::new(&column.name, column.column_type.arrow(), column.is_nullable)
            });
            let columns = plain_schema(&Schema::new(columns.collect::<Vec<_>>()));
            described
                .append(DATABASE, &table.schema, &table.name, TABLE, &columns)
                .map_err(of_flight)?;
        }
        let session = self.session();
        for view in tables.views() {
            let columns = match with_columns {
                true => columns_of_view(&session, &view.schema, &view.name).await,
                false => none.clone(),
            };
            described
                .append(DATABASE, &view.schema, &view.name, VIEW, &columns)
                .map_err(of_flight)?;
        }
        described.build().map_err(of_flight)
    }
}

async fn columns_of_view(session: &Session, schema: &str, name: &str) -> Schema {
    let (Ok(schema), Ok(name)) = (quoted(schema), quoted(name)) else {
        return Schema::empty();
    };
    let text = format!("SELECT * FROM {schema}.{name}");
    match session.prepare(&text).await {
        Ok(prepared) => {
            let columns = prepared.columns();
            columns.map_or_else(Schema::empty, |it| plain_schema(it).as_ref().clone())
        }
        Err(error) => {
            tracing::debug!("the view {schema}.{name} has no columns: {error}");
            Schema::empty()
        }
    }
}
