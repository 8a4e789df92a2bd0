//! Bulk ingestion: rows that a client sends for a table, an existing one or a new one with their
//! columns.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::CommandStatementIngest;
use arrow_flight::sql::server::PeekableFlightDataStream;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use orrery_sql::{
    BatchesIn, DATABASE, DEFAULT_SCHEMA, Error, Session, SqlState, Tag, name_of_type, spent,
};
use tonic::{Code, Status};

use crate::calls::answer::{Bounds, is_killed};
use crate::calls::call::Call;
use crate::execution::savepoints::quoted;
use crate::life::{Stage, reached};
use crate::refusal::{malformed, refusal};

/// `TableNotExistOption` and `TableExistsOption` of the protocol.
const CREATE: i32 = 1;
const IF_NOT_EXIST_FAIL: i32 = 2;
const IF_EXISTS_FAIL: i32 = 1;
const APPEND: i32 = 2;
const REPLACE: i32 = 3;

/// Batches from a client, which is given up when nothing comes for too long.
pub(crate) fn batches(data: PeekableFlightDataStream, time_max: Duration) -> FlightBatches {
    let data = futures::stream::unfold(Some(data), move |data| async move {
        let mut data = data?;
        match tokio::time::timeout(time_max, data.next()).await {
            Ok(Some(Ok(piece))) => Some((Ok(piece), Some(data))),
            Ok(Some(Err(status))) => Some((Err(FlightError::from(status)), None)),
            Ok(None) => None,
            Err(_elapsed) => {
                let late = refusal(
                    Code::DeadlineExceeded,
                    "25P03",
                    "the rows were given up because nothing was sent for too long",
                );
                Some((Err(FlightError::from(late)), None))
            }
        }
    });
    FlightBatches(FlightRecordBatchStream::new_from_flight_data(data.boxed()))
}

/// A client's stream of batches, see [`batches`].
pub(crate) struct FlightBatches(FlightRecordBatchStream);

impl FlightBatches {
    /// Converts it into a stream of batches.
    pub(crate) fn stream(self) -> BoxStream<'static, Result<RecordBatch, Status>> {
        self.0.map_err(of_flight).boxed()
    }

    /// The columns, and the batches that have them.
    async fn with_schema(
        self,
    ) -> Result<(SchemaRef, BoxStream<'static, Result<RecordBatch, Status>>), Status> {
        let mut stream = self.0.peekable();
        let first = std::pin::Pin::new(&mut stream).peek().await;
        let schema = match first {
            Some(Ok(batch)) => Some(batch.schema()),
            Some(Err(_)) => None,
            None => stream.get_ref().schema().cloned(),
        };
        match schema {
            Some(schema) => Ok((schema, stream.map_err(of_flight).boxed())),
            None => match stream.next().await {
                Some(Err(error)) => Err(of_flight(error)),
                _ => Err(malformed("the rows come without their columns")),
            },
        }
    }
}

fn of_flight(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => malformed(other),
    }
}

impl Call {
    /// Batches from a client, ended with an error when the caller is not allowed in any more.
    pub(crate) fn while_let_in(
        &self,
        batches: BoxStream<'static, Result<RecordBatch, Status>>,
    ) -> BoxStream<'static, Result<RecordBatch, Status>> {
        let by = self.by().clone();
        batches
            .map(move |batch| {
                by.require()?;
                batch
            })
            .boxed()
    }

    /// Ingests rows into a table, and counts them.
    pub(crate) async fn ingest(
        &self,
        command: CommandStatementIngest,
        data: FlightBatches,
    ) -> Result<i64, Status> {
        // Recorded as the SQL that it amounts to.
        self.watch(&format!("COPY {} FROM STDIN", quoted(&command.table)?));
        let ingested = self.take_rows(command, data).await;
        self.ended(ingested)
    }

    async fn take_rows(
        &self,
        command: CommandStatementIngest,
        data: FlightBatches,
    ) -> Result<i64, Status> {
        if command.temporary {
            return Err(refusal(
                Code::Unimplemented,
                "0A000",
                "temporary tables are not supported",
            ));
        }
        if let Some(catalog) = command
            .catalog
            .filter(|it| !it.is_empty() && it != DATABASE)
        {
            return Err(refusal(
                Code::NotFound,
                "3D000",
                format!("database \"{catalog}\" does not exist; its name is \"{DATABASE}\""),
            ));
        }
        let place = self.place(command.transaction_id.as_deref()).await?;
        let (columns, batches) = data.with_schema().await?;
        let batches = self.while_let_in(batches);
        let (session, mut time) = self.begin(place.session()).await?;
        // Definition and rows are one change: a failure drops the session of their own.
        if place.is_own() {
            session.begin_block();
        }
        let schema = command.schema.filter(|schema| !schema.is_empty());
        let (not_there, there) = match &command.table_definition_options {
            Some(options) => (options.if_not_exist, options.if_exists),
            None => (IF_NOT_EXIST_FAIL, APPEND),
        };
        let target = Target {
            schema: schema.as_deref().unwrap_or(DEFAULT_SCHEMA),
            table: &command.table,
        };
        let defining = target.statements(&session, &columns, not_there, there)?;
        let define = async {
            for text in &defining {
                for statement in session.statements(text)? {
                    session.execute(&statement).await?;
                }
            }
            Ok(())
        };
        self.within(&session, &time.bounds, define).await?;
        let count = self
            .insert(&session, &time.bounds, target, &columns, batches)
            .await?;
        if place.is_own() {
            self.require_still(&session).await?;
            // The commit has its own time, however long the rows took to come.
            time.bounds.until = tokio::time::Instant::now() + self.options.statement_time_default;
            self.within(&session, &time.bounds, session.end_block(true))
                .await?;
        }
        Ok(crate::execution::work::count(Tag::Insert(count)))
    }

    /// Inserts rows; the time limit of a statement does not count while they come.
    async fn insert(
        &self,
        session: &Session,
        bounds: &Bounds,
        target: Target<'_>,
        columns: &Schema,
        batches: BoxStream<'static, Result<RecordBatch, Status>>,
    ) -> Result<u64, Status> {
        let failure = Arc::new(parking_lot::Mutex::new(None));
        let noted = Arc::clone(&failure);
        let batches = batches.map_err(move |status| {
            let error = Error::new(SqlState::QueryCanceled, status.message());
            // The client gets its own error, not the engine's version of it.
            noted.lock().get_or_insert(status);
            error
        });
        let batches = BatchesIn {
            schema: Some(target.schema.to_owned()),
            table: target.table.to_owned(),
            columns: columns
                .fields()
                .iter()
                .map(|it| it.name().clone())
                .collect(),
            batches: batches.boxed(),
        };
        let mut stage = self.stage.clone();
        let inserted = tokio::select! {
            inserted = session.insert_batches(batches) => inserted,
            () = is_killed(self.watched()) => return Err(crate::refusal::killed()),
            message = spent(bounds.spent.as_ref()) => return Err(crate::refusal::used_up(message)),
            () = reached(&mut stage, Stage::Over) => {
                return Err(crate::refusal::shutting_down());
            }
        };
        inserted.map_err(|error| match failure.lock().take() {
            Some(status) => status,
            None => crate::refusal::refused(&error),
        })
    }
}

/// The target table of an ingestion.
#[derive(Clone, Copy)]
struct Target<'a> {
    schema: &'a str,
    table: &'a str,
}

impl Target<'_> {
    fn name(self) -> Result<String, Status> {
        Ok(format!("{}.{}", quoted(self.schema)?, quoted(self.table)?))
    }

    /// The statements to run before the rows come.
    fn statements(
        self,
        session: &Session,
        columns: &Schema,
        not_there: i32,
        there: i32,
    ) -> Result<Vec<String>, Status> {
        let tables = session.tables();
        let tables = tables.map_err(|error| crate::refusal::refused(&error))?;
        let is_there = tables.table_named(self.schema, self.table).is_some();
        match (is_there, not_there, there) {
            (true, _, APPEND) => Ok(Vec::new()),
            (true, _, IF_EXISTS_FAIL) => Err(refusal(
                Code::AlreadyExists,
                "42P07",
                format!("relation \"{}\" already exists", self.table),
            )),
            (true, _, REPLACE) => Ok(vec![
                format!("DROP TABLE {}", self.name()?),
                self.creation(columns)?,
            ]),
            (false, CREATE, _) => Ok(vec![self.creation(columns)?]),
            // The insertion itself reports the missing table.
            (false, IF_NOT_EXIST_FAIL, _) => Ok(Vec::new()),
            (_, not_there, there) => Err(malformed(format!(
                "the options {not_there} and {there} of an ingestion are not known"
            ))),
        }
    }

    fn creation(self, columns: &Schema) -> Result<String, Status> {
        let columns = columns.fields().iter().map(|field| {
            let is_nullable = if field.is_nullable() { "" } else { " NOT NULL" };
            let kind = name_of_type(field.data_type());
            Ok(format!("{} {kind}{is_nullable}", quoted(field.name())?))
        });
        let columns: Vec<String> = columns.collect::<Result<_, Status>>()?;
        Ok(format!(
            "CREATE TABLE {} ({})",
            self.name()?,
            columns.join(", ")
        ))
    }
}
