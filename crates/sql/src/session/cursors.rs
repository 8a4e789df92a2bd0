//! Cursors: `DECLARE ... CURSOR`, `FETCH`, `CLOSE`.
//!
//! The query reads the state that the block saw when the cursor was declared, and computes only as
//! far as rows are fetched. The rows of a `FETCH` are held in memory until they are sent. What the
//! query holds between two fetches is taken from the same memory, until its last row was given or
//! the cursor is closed. A cursor ends with its block, and with the first `FETCH` after a change of
//! its reader's rights.

use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{
    CloseCursor, Declare, DeclareType, FetchDirection, Statement, Value, ValueWithSpan,
};
use futures::{TryStreamExt, stream};

use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::parse::identifiers::folded;
use crate::semantics::column_names::shown_columns;
use crate::session::client::{Session, first_word, refuse_changes};
use crate::transactions::cursor::Cursor;
use crate::transactions::waiting_rows::WaitingRows;
use crate::{Error, Result, SqlState};

impl Session {
    /// The columns of a cursor's rows, if there is one of that name.
    pub fn cursor_columns(&self, name: &str) -> Option<SchemaRef> {
        let block = self.block.lock();
        let here = block.cursor(name).map(Cursor::columns);
        here.or_else(|| block.remote_cursor(name))
    }

    /// Runs a statement about a cursor.
    pub(crate) async fn run_cursor(&self, statement: &Statement, text: &str) -> Result<Outcome> {
        match statement {
            Statement::Declare { stmts } => match stmts.as_slice() {
                [declared] => self.declare(declared, text).await,
                _ => Err(Error::unsupported("DECLARE of several names")),
            },
            Statement::Fetch {
                name,
                direction,
                into: None,
                ..
            } => self.fetch(&folded(name)?, rows_of(direction)?).await,
            Statement::Close { cursor } => {
                let name = match cursor {
                    CloseCursor::All => None,
                    CloseCursor::Specific { name } => Some(folded(name)?),
                };
                self.block.lock().close_cursor(name.as_deref())?;
                Ok(Outcome::Done(Tag::Words(match cursor {
                    CloseCursor::All => "CLOSE CURSOR ALL",
                    CloseCursor::Specific { .. } => "CLOSE CURSOR",
                })))
            }
            other => Err(Error::unsupported(first_word(other))),
        }
    }

    async fn declare(&self, declared: &Declare, text: &str) -> Result<Outcome> {
        let refused = [
            (declared.hold == Some(true), "WITH HOLD"),
            (declared.scroll == Some(true), "SCROLL"),
            (declared.binary == Some(true), "BINARY"),
            (declared.sensitive == Some(false), "ASENSITIVE"),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(is_asked, _)| *is_asked) {
            return Err(Error::unsupported(format!("DECLARE {what} CURSOR")));
        }
        let (Some(DeclareType::Cursor), [name], Some(query)) = (
            &declared.declare_type,
            declared.names.as_slice(),
            &declared.for_query,
        ) else {
            return Err(Error::unsupported("DECLARE of what is no cursor"));
        };
        let name = folded(name)?;
        self.block.lock().require_free_cursor(&name)?;
        let planner = self.planner(&self.seen()?);
        let plan = planner.query((**query).clone(), text).await?;
        refuse_changes(&plan)?;
        let is_analyzed = matches!(plan, LogicalPlan::Analyze(_));
        let plan = planner.physical(&plan, text).await?;
        let columns = shown_columns(&plan.schema());
        // It begins with the first FETCH: until then its threads gather nothing.
        let rows = stream::once(async move {
            let rows = planner.started(plan, is_analyzed);
            rows.map_err(DataFusionError::from)
        });
        let rows = RecordBatchStreamAdapter::new(columns, rows.try_flatten());
        let held = self.hold_waiting(WaitingRows::default())?;
        let (rows, scope) = (self.bounded(Box::pin(rows)), self.scope().cloned());
        let cursor = Cursor::new(rows, scope, self.pause(), held);
        self.block.lock().put_cursor(name, cursor);
        Ok(Outcome::Done(Tag::Words("DECLARE CURSOR")))
    }

    async fn fetch(&self, name: &str, rows_max: u64) -> Result<Outcome> {
        let mut cursor = self.block.lock().take_cursor(name)?;
        self.require_scope(cursor.scope())?;
        // The query counts where it was declared; this statement pays for what it does now.
        let resumed = self.resume(cursor.paused.as_ref());
        let columns = cursor.columns();
        let memory = MemoryConsumer::new("rows of a FETCH").register(self.pool());
        let mut batches = Vec::new();
        let mut count = 0;
        while count < rows_max {
            let wanted = usize::try_from(rows_max - count).unwrap_or(usize::MAX);
            let Some(batch) = cursor.next(wanted).await? else {
                break;
            };
            count += batch.num_rows() as u64;
            let grown = memory.try_grow(batch.get_array_memory_size());
            grown.map_err(|error| Error::of_run(&error))?;
            batches.push(batch);
        }
        drop(resumed);
        cursor.paused = cursor.paused.map(|paused| paused.again());
        // As much as it holds now, in place of what it held before.
        cursor.held = None;
        cursor.held = match cursor.waiting() {
            Some(waiting) => Some(self.hold_waiting(waiting)?),
            None => None,
        };
        self.block.lock().put_cursor(name.to_owned(), cursor);
        let batch = concat_batches(&columns, &batches);
        let batch = batch.map_err(|error| Error::of_run(&error.into()))?;
        let rows = stream::iter([Ok(batch)]);
        let rows = RecordBatchStreamAdapter::new(columns, rows);
        Ok(Outcome::Returned(Box::pin(rows), Tag::Fetch(count)))
    }
}

/// How many rows are asked for. A cursor goes forward.
fn rows_of(direction: &FetchDirection) -> Result<u64> {
    let digits = |limit: &ValueWithSpan| match &limit.value {
        Value::Number(digits, _) => Some(digits.clone()),
        _ => None,
    };
    let number = |limit: &ValueWithSpan| digits(limit)?.parse().ok();
    let wanted = match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(1),
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
            number(limit)
        }
        FetchDirection::All | FetchDirection::ForwardAll => Some(u64::MAX),
        // Backward by fewer than none is forward.
        FetchDirection::Backward { limit: Some(limit) } => {
            let digits = digits(limit);
            let forward = digits.as_deref().and_then(|it| it.strip_prefix('-'));
            forward.and_then(|it| it.parse().ok())
        }
        _ => None,
    };
    wanted.ok_or_else(|| {
        Error::new(
            SqlState::ObjectNotInPrerequisiteState,
            "cursor can only scan forward",
        )
        .with_hint("SCROLL, which cursors that go backward are declared with in PostgreSQL, is not supported: FETCH NEXT, FETCH n, FETCH FORWARD n and FETCH ALL are what there is.")
    })
}
