//! Rows on their way to a client: all of them, or a limited number at a time.

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use futures::StreamExt;
use orrery_service::record::StatementRecord;
use orrery_sql::{
    Error, HeldRows, HeldValues, Paused, Prepared, ScalarValue, SqlScope, Tag, ValueTexts,
    WaitingRows, require_short_decimals,
};
use std::sync::Arc;

use crate::encode::{Rows, plain};
use crate::guard::Guard;
use crate::refusal::{Refusal, Stopped};
use crate::types::{is_vector, oid_of};
use crate::wire::Wire;

/// A value that does not fit is an error, not NULL.
const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: FormatOptions::new(),
};

/// A statement with values, and its progress.
pub(crate) struct Portal {
    /// None for an empty text.
    pub(crate) prepared: Option<Arc<Prepared>>,
    pub(crate) formats: Vec<i16>,
    pub(crate) state: PortalState,
    /// The memory of its values.
    pub(crate) _held: Option<HeldValues>,
}

impl Portal {
    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.state, PortalState::Suspended(_))
    }
}

pub(crate) enum PortalState {
    /// Bound, not run yet.
    Bound(Vec<ScalarValue>),
    /// Some rows were sent.
    Suspended(Box<Suspended>),
    /// All rows were sent, or it failed.
    Done,
}

/// A statement that has sent some of its rows.
pub(crate) struct Suspended {
    pub(crate) answer: Answer,
    /// The session's scope when the statement began.
    pub(crate) began: Option<Arc<SqlScope>>,
    pub(crate) watched: Option<Arc<StatementRecord>>,
    /// Its paused account, where its cost is counted.
    pub(crate) paused: Option<Paused>,
    /// The memory of rows that were computed and not sent.
    pub(crate) held: HeldRows,
}

/// The rows of an answer that are not sent yet.
pub(crate) struct Answer {
    /// None while the query restarts, and after the last rows.
    rows: Option<orrery_sql::Rows>,
    /// The columns as the client knows them.
    columns: SchemaRef,
    /// The command tag, if it is not the number of rows sent.
    tag: Option<Tag>,
    batch: Vec<ArrayRef>,
    batch_rows: usize,
    next: usize,
    sent: u64,
}

impl Answer {
    pub(crate) fn new(
        rows: orrery_sql::Rows,
        columns: Option<SchemaRef>,
        tag: Option<Tag>,
    ) -> Self {
        Self {
            columns: columns.unwrap_or_else(|| rows.schema()),
            rows: Some(rows),
            tag,
            batch: Vec::new(),
            batch_rows: 0,
            next: 0,
            sent: 0,
        }
    }

    pub(crate) fn columns(&self) -> &SchemaRef {
        &self.columns
    }

    /// The memory of the rows that wait.
    pub(crate) fn waiting(&self) -> WaitingRows {
        WaitingRows::of(&self.batch)
    }

    /// The command tag for CommandComplete.
    pub(crate) fn tag(&self) -> Tag {
        self.tag.unwrap_or(Tag::Select(self.sent))
    }

    /// Whether it is a query that has sent nothing yet, so that it can restart.
    pub(crate) fn can_restart(&self) -> bool {
        self.tag.is_none() && self.sent == 0
    }

    /// Releases everything that it holds, before a restart.
    pub(crate) fn give_up(&mut self) {
        self.batch.clear();
        (self.next, self.batch_rows) = (0, 0);
        self.rows = None;
    }

    /// Continues with the rows of a second run; false if their columns are not those the client
    /// knows.
    pub(crate) fn restart(&mut self, rows: orrery_sql::Rows) -> bool {
        let is_alike = rows.schema().fields().len() == self.columns.fields().len();
        self.rows = Some(rows);
        is_alike
    }

    /// Sends at most `rows_max` rows; returns whether those were all.
    pub(crate) async fn send(
        &mut self,
        rows_max: usize,
        formats: &[i16],
        wire: &mut Wire,
        guard: &mut Guard,
    ) -> Stopped<bool> {
        let mut left = rows_max;
        loop {
            if self.next == self.batch_rows && !self.fetch(wire, guard).await? {
                return Ok(true);
            }
            let put = self.put(left, formats, wire)?;
            left -= put;
            if let Some(watched) = &guard.watched {
                watched.add(put as u64, 0);
            }
            if wire.is_full() {
                guard.send(wire).await?;
            }
            if left == 0 {
                return Ok(false);
            }
        }
    }

    /// Encodes rows of the batch up to `rows_max` and the buffer's limit; returns their number.
    fn put(&mut self, rows_max: usize, formats: &[i16], wire: &mut Wire) -> Result<usize, Refusal> {
        let mut rows = Rows::new(&self.batch, formats)?;
        let first = self.next;
        while self.next < self.batch_rows && self.next - first < rows_max && !wire.is_full() {
            rows.put(self.next, &mut wire.output)?;
            self.next += 1;
        }
        let count = self.next - first;
        self.sent += count as u64;
        Ok(count)
    }

    /// Fetches the next batch; false after the last.
    pub(crate) async fn fetch(&mut self, wire: &mut Wire, guard: &mut Guard) -> Stopped<bool> {
        self.batch.clear();
        (self.next, self.batch_rows) = (0, 0);
        let Some(rows) = &mut self.rows else {
            return Ok(false);
        };
        let next = async {
            let batch = rows.next().await.transpose();
            batch.map_err(|error| Error::of_run(&error))
        };
        let Some(batch) = guard.run(wire, next).await? else {
            self.rows = None;
            return Ok(false);
        };
        self.batch = plain(&batch)?;
        for (column, told) in self.batch.iter_mut().zip(self.columns.fields()) {
            if is_vector(told) {
                *column = vectors(column)?;
            } else if oid_of(column.data_type()) != oid_of(told.data_type()) {
                // The type of a parameter was not known when the columns were described.
                require_short_decimals(column, told.data_type())?;
                *column = cast_with_options(column, told.data_type(), &STRICT)
                    .map_err(|error| Refusal::new("42804", error.to_string()))?;
            }
        }
        self.batch_rows = batch.num_rows();
        Ok(true)
    }
}

/// Converts arrays of numbers to texts, `1 2`.
fn vectors(column: &ArrayRef) -> Result<ArrayRef, Refusal> {
    let Some(lists) = column.as_list_opt::<i32>() else {
        return Ok(Arc::clone(column));
    };
    let texts = lists.iter().map(|list| {
        let Some(list) = list else {
            return Ok(None);
        };
        let mut text = String::new();
        let values = ValueTexts::new(&list)?;
        for place in 0..list.len() {
            if place > 0 {
                text.push(' ');
            }
            values.write(place, &mut text)?;
        }
        Ok(Some(text))
    });
    let texts: StringViewArray = texts.collect::<Result<_, Error>>()?;
    Ok(Arc::new(texts))
}
