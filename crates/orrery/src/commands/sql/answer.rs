//! The result of an SQL statement, whether it ran locally or at a server.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use orrery_sql::{CopyOut, Error, Tag};

use crate::failure::Failure;

/// The result of one statement.
pub(super) struct Answer {
    pub(super) rows: Option<Rows>,
    /// Bytes of `COPY`, for standard output.
    pub(super) copy: Option<CopyOut>,
    /// The command tag; none if the rows suffice.
    pub(super) tag: Option<String>,
}

/// A stream of rows.
pub(super) struct Rows {
    pub(super) schema: SchemaRef,
    pub(super) batches: BoxStream<'static, Result<RecordBatch, Failure>>,
}

impl Answer {
    /// Wraps the rows of a session.
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

    /// The result of a statement without rows.
    pub(super) fn done(tag: Tag) -> Self {
        Self {
            rows: None,
            copy: None,
            tag: Some(tag.to_string()),
        }
    }
}
