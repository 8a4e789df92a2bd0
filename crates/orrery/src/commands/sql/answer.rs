//! What a statement came to, wherever it ran.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use orrery_sql::{CopyOut, Error, Tag};

use crate::failure::Failure;

/// What one statement came to.
pub(super) struct Answer {
    pub(super) rows: Option<Rows>,
    /// Bytes for standard output.
    pub(super) copy: Option<CopyOut>,
    /// What was done; none where the rows say it.
    pub(super) tag: Option<String>,
}

/// Rows as they come.
pub(super) struct Rows {
    pub(super) schema: SchemaRef,
    pub(super) batches: BoxStream<'static, Result<RecordBatch, Failure>>,
}

impl Answer {
    /// Rows of a session.
    pub(super) fn of(rows: orrery_sql::Rows, tag: Option<Tag>) -> Self {
        let schema = rows.schema();
        let batches = rows.map(|batch| batch.map_err(|error| Failure::from(Error::of_run(&error))));
        Self {
            rows: Some(Rows {
                schema,
                batches: batches.boxed(),
            }),
            copy: None,
            tag: tag.map(|tag| tag.to_string()),
        }
    }

    /// Of what has no rows.
    pub(super) fn done(tag: Tag) -> Self {
        Self {
            rows: None,
            copy: None,
            tag: Some(tag.to_string()),
        }
    }
}
