//! The engine under test, and its solutions as the server writes them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orrery_formats::{SolutionFormat, SolutionSerializer};
use orrery_sparql::service::ServiceOptions;
use orrery_sparql::{Engine, EngineOptions, QueryError, SolutionStream};
use orrery_storage::Database;

/// Longer than this, and something is wrong.
const TIME_LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn engine(directory: &Path, service: Option<ServiceOptions>) -> Result<Engine, String> {
    let database = Database::create_or_open(directory).map_err(|error| error.to_string())?;
    let options = EngineOptions {
        default_timeout: Some(TIME_LIMIT),
        service,
        ..EngineOptions::default()
    };
    Engine::new(Arc::new(database), options).map_err(|error| error.to_string())
}

pub(crate) async fn write_solutions(
    mut stream: SolutionStream,
    format: SolutionFormat,
    bytes: &mut Vec<u8>,
) -> Result<(), QueryError> {
    let mut serializer = SolutionSerializer::start(format, stream.variables(), bytes);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        for row in 0..batch.rows() {
            let terms = (0..batch.columns()).map(|column| batch.term(row, column));
            serializer.row(terms, bytes).map_err(internal)?;
        }
    }
    while !serializer.finish(bytes).map_err(internal)? {}
    Ok(())
}

pub(super) fn internal(error: orrery_formats::FormatError) -> QueryError {
    QueryError::Internal {
        message: error.to_string(),
    }
}
