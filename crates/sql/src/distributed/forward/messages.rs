//! The messages of forwarding.
//!
//! ```text
//! message   4 bytes: how long the JSON is (little-endian)   JSON (Ask, Told)   bytes: Arrow IPC, or what a client sends and is sent
//! ```

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::{DataFusionError, ScalarValue};
use orrery_wire_fields::{FieldReader, FieldWriter};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::PIECE_BYTES_MAX;
use crate::answers::tag::Tag;
use crate::execute::own_bytes::without_others;
use crate::values::value_row::{ToldValues, row_from_bytes, row_to_bytes};
use crate::{Error, Result, SqlState};

/// What the process that was asked by a client asks the one that writes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Begin a transaction of a session. [`Told::Opened`] is all that is told; the transaction
    /// lasts no longer than that answer.
    Open(Opening),
    /// Run a statement of a text. Behind it: the values of its parameters, if it was prepared.
    Run(Asked),
    /// Tell the parameters and columns of a statement.
    Prepare(Asked),
    /// Insert batches, which come as pieces.
    Insert {
        #[serde(flatten)]
        within: Within,
        settings: Option<SettingValues>,
        schema: Option<String>,
        table: String,
        columns: Vec<String>,
    },
    /// Some of what a client sends. Behind it: bytes.
    Piece(Within),
    /// The client has sent everything, or gives up for this reason.
    Finish {
        #[serde(flatten)]
        within: Within,
        failed: Option<String>,
    },
    /// Commit.
    Commit(Within),
}

/// The transaction that a message is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Within {
    /// A random number: nobody has had it before, in this process or in one that ran here earlier,
    /// and nobody guesses it.
    pub(super) session: u64,
    /// What the user of the opening is known by. A number by itself opens nobody's transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) passport: Option<String>,
}

/// Settings and their values.
pub(super) type SettingValues = Vec<(String, String)>;

/// Whose transaction, and where it begins.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opening {
    /// What the user is known by; none where the database has no users.
    pub(super) passport: Option<String>,
    /// The user that `current_user` says.
    pub(super) user: String,
    /// By whom commits are.
    pub(super) who: String,
    /// The commit that was read; anything else in between is a serialization failure.
    pub(super) after: Option<u64>,
    /// Savepoints that were set before anything was changed, in their order.
    pub(super) savepoints: Vec<String>,
    /// Whether all further messages name the passport, too. Those of programs before 2026-11-29 do
    /// not, while nodes are upgraded one after the other.
    #[serde(default)]
    pub(super) names_user: bool,
}

/// A statement.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    #[serde(flatten)]
    pub(super) within: Within,
    /// Where they are others than with the statement before.
    pub(super) settings: Option<SettingValues>,
    pub(super) text: String,
    /// Which of the text's statements.
    pub(super) place: usize,
    /// Whether it was prepared: the types of its parameters, and their values, are behind the
    /// message.
    pub(super) is_prepared: bool,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// The number of the session.
    Opened(u64),
    /// This process does not write: another one may.
    NotHere,
    /// What was done.
    Done(Tag),
    /// Rows of a query follow. Behind it: their schema.
    Query,
    /// Rows of a change follow. Behind it: their schema.
    Returned(Tag),
    /// Behind it: rows.
    Rows,
    /// Bytes of rows follow.
    CopyOut { columns: usize },
    /// Behind it: bytes of rows, and where each ends.
    Copied { ends: Vec<usize>, count: u64 },
    /// Pieces are taken.
    CopyIn { columns: usize },
    /// A piece was taken.
    Taken,
    /// Behind it: the types of parameters.
    Parameters,
    /// Behind it: columns.
    Columns,
    /// There are no more rows or bytes, or no columns: an answer that ends without it is cut off,
    /// by a panic there or the end of its threads.
    End,
    /// The number of a commit that is at least that of the transaction.
    Committed(u64),
    /// It failed; nothing comes behind it.
    Failed(Error),
}

/// A message with what is behind it.
pub(super) fn to_bytes<T: Serialize>(said: &T, behind: &[u8]) -> Result<Bytes> {
    let mut fields = FieldWriter::default();
    fields.json(said).map_err(|error| damaged(&error))?;
    fields.rest(behind);
    Ok(fields.finish())
}

/// A message, and what is behind it.
pub(super) fn from_bytes<T: DeserializeOwned>(bytes: Bytes) -> Result<(T, Bytes)> {
    let mut fields = FieldReader::new(bytes);
    let said = fields.json().map_err(|error| damaged(&error))?;
    Ok((said, fields.rest()))
}

/// What came is no such message.
pub(super) fn damaged(what: &dyn std::fmt::Display) -> Error {
    let words = format!("a message about a forwarded statement is damaged: {what}");
    Error::new(SqlState::InternalError, words)
}

fn of_arrow(error: ArrowError) -> Error {
    Error::of_run(&DataFusionError::from(error))
}

/// Rows as Arrow IPC, with their schema.
pub(super) fn rows_to_bytes(batch: &RecordBatch) -> Result<Vec<u8>> {
    // Columns of a query may share the buffers of a file, which would all go.
    let columns = batch.columns().iter().map(without_others).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let batch = RecordBatch::try_new_with_options(batch.schema(), columns, &options);
    let batch = &batch.map_err(of_arrow)?;
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).map_err(of_arrow)?;
    writer.write(batch).map_err(of_arrow)?;
    writer.finish().map_err(of_arrow)?;
    drop(writer);
    Ok(bytes)
}

/// The same in pieces, as far as rows can be told apart: for messages have a bound.
pub(super) fn pieces_of(batch: RecordBatch) -> Result<Vec<Vec<u8>>> {
    let bytes = rows_to_bytes(&batch)?;
    if bytes.len() <= PIECE_BYTES_MAX || batch.num_rows() < 2 {
        return Ok(vec![bytes]);
    }
    let half = batch.num_rows() / 2;
    let mut pieces = pieces_of(batch.slice(0, half))?;
    pieces.extend(pieces_of(batch.slice(half, batch.num_rows() - half))?);
    Ok(pieces)
}

/// The schema alone.
pub(super) fn schema_to_bytes(schema: &SchemaRef) -> Result<Vec<u8>> {
    rows_to_bytes(&RecordBatch::new_empty(Arc::clone(schema)))
}

/// The rows of [`rows_to_bytes`].
pub(super) fn rows_from_bytes(bytes: &Bytes) -> Result<RecordBatch> {
    let mut reader = StreamReader::try_new(Cursor::new(bytes), None).map_err(of_arrow)?;
    let batch = reader.next().ok_or_else(|| damaged(&"there are no rows"))?;
    batch.map_err(of_arrow)
}

/// The schema of [`schema_to_bytes`].
pub(super) fn schema_from_bytes(bytes: &Bytes) -> Result<SchemaRef> {
    Ok(rows_from_bytes(bytes)?.schema())
}

/// Types of parameters, as far as they are known, and their values, if there are some already.
pub(super) fn values_to_bytes(
    types: &[Option<DataType>],
    values: &[ScalarValue],
) -> Result<Vec<u8>> {
    row_to_bytes(types, values).map_err(|error| Error::of_run(&error))
}

/// What [`values_to_bytes`] was given.
pub(super) fn values_from_bytes(bytes: &Bytes) -> Result<ToldValues> {
    let row = row_from_bytes(bytes).map_err(|error| Error::of_run(&error))?;
    row.ok_or_else(|| damaged(&"there are no values"))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, StringViewArray};

    use super::*;

    #[test]
    fn what_is_said_comes_back() {
        let said = to_bytes(&Told::Done(Tag::Words("CREATE TABLE")), b"behind").unwrap();
        let (told, behind): (Told, Bytes) = from_bytes(said.clone()).unwrap();
        assert_eq!(&behind[..], b"behind");
        let Told::Done(tag) = told else {
            panic!("{told:?}");
        };
        assert_eq!(tag, Tag::Words("CREATE TABLE"));
        for length in 0..said.len() - b"behind".len() {
            let cut = said.slice(..length);
            assert!(from_bytes::<Told>(cut).is_err(), "{length}");
        }
    }

    #[test]
    fn rows_are_cut_into_pieces_and_a_row_is_not() {
        let texts = |rows: usize, bytes: usize| -> RecordBatch {
            let text = "x".repeat(bytes);
            let column = StringViewArray::from_iter_values((0..rows).map(|_| text.as_str()));
            RecordBatch::try_from_iter([("a", Arc::new(column) as ArrayRef)]).unwrap()
        };
        for (rows, bytes) in [(1, 10), (5, PIECE_BYTES_MAX / 2), (2, PIECE_BYTES_MAX * 2)] {
            let pieces = pieces_of(texts(rows, bytes)).unwrap();
            // A column may keep as many bytes of others as it shows.
            let most = PIECE_BYTES_MAX.max(2 * bytes + 4_096);
            assert!(pieces.iter().all(|piece| piece.len() <= most));
            let back = pieces
                .into_iter()
                .map(|piece| rows_from_bytes(&piece.into()).unwrap());
            assert_eq!(back.map(|batch| batch.num_rows()).sum::<usize>(), rows);
        }
    }

    #[test]
    fn errors_keep_what_programs_look_at() {
        let error = Error::new(SqlState::UniqueViolation, "a")
            .with_detail("b")
            .with_hint("c")
            .with_context("d")
            .of_table("s", "t")
            .of_column("e")
            .of_constraint("f");
        let json = serde_json::to_string(&error).unwrap();
        let back: Error = serde_json::from_str(&json).unwrap();
        assert_eq!(back, error);
    }
}
