//! Files that DataFusion scans: Parquet, and JSON with an object per line.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::DataFusionError;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use orrery_storage::table::COLUMNS_MAX;

use super::json::CountedJson;
use super::location::FoundFile;
use super::parquet::CountedParquet;
use crate::{Error, Result, SqlState};

/// What reads the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    Parquet,
    Json,
}

/// Files as one table; with the columns that are given, or those that the files say.
pub(crate) async fn listed(
    state: &SessionState,
    files: &[FoundFile],
    kind: Listed,
    columns: Option<SchemaRef>,
) -> Result<Arc<dyn TableProvider>> {
    let format: Arc<dyn FileFormat> = match kind {
        Listed::Parquet => Arc::new(CountedParquet::default()),
        Listed::Json => Arc::new(CountedJson::default()),
    };
    if let Some(packed) = files.iter().find(|file| file.is_packed()) {
        return Err(Error::unsupported(format!(
            "{kind:?} compressed with gzip, as in {},",
            packed.name
        )));
    }
    let options = ListingOptions::new(format).with_file_extension("");
    let urls = files.iter().map(FoundFile::url);
    let urls: Vec<_> = urls.collect::<Result<_>>()?;
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
    let config = match columns {
        Some(columns) => Ok(config.with_schema(columns)),
        None => config.infer_schema(state).await,
    };
    let table = config.and_then(ListingTable::try_new);
    let table = table.map_err(|error| of_files(&error, files))?;
    let count = table.schema().fields().len();
    if count > COLUMNS_MAX {
        // Planning takes longer than in proportion to them.
        let words = format!("tables can have at most {COLUMNS_MAX} columns, and these are {count}");
        return Err(named(Error::new(SqlState::TooManyColumns, words), files));
    }
    Ok(Arc::new(table))
}

/// All rows of files of Parquet.
pub(crate) async fn parquet_plan(state: &SessionState, files: &[FoundFile]) -> Result<LogicalPlan> {
    let table = listed(state, files, Listed::Parquet, None).await?;
    let plan = LogicalPlanBuilder::scan("file", provider_as_source(table), None);
    let plan = plan.and_then(LogicalPlanBuilder::build);
    plan.map_err(|error| Error::of_run(&error))
}

/// An error that names the file, if there is but one.
fn of_files(error: &DataFusionError, files: &[FoundFile]) -> Error {
    named(Error::of_run(error), files)
}

fn named(error: Error, files: &[FoundFile]) -> Error {
    match files {
        [file] => error.with_context(format!("file {}", file.name)),
        _ => error,
    }
}
