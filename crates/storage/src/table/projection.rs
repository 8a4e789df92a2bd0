//! A projection in a snapshot: its file, and the delta since.
//!
//! ```text
//! positions   0 .. rows of the file, and one behind them for new rows that come last
//! read        positions a..b -> rows of the file, without those that are gone, new ones between them -> arrays
//! look-up     key -> row of the file | new row
//! ```
//!
//! Ranges of positions that do not overlap hold different rows, and together all of them: that is
//! how threads share a scan.

use std::fmt;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::{interleave, take};

use super::changes::{Change, Entry, NewRow, ProjectionChanges, RowBatch};
use super::definition::{ColumnId, ProjectionLayout};
use super::file::ProjectionFile;
use super::key::{KeyEncoder, KeyRows};
use super::new_rows::{Look, ROWS_AT_ONCE, new_rows_bytes};
use super::rows::RowCodec;
use crate::{Error, Result};

/// A projection of a snapshot. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Projection {
    form: Arc<Form>,
    /// `None` for a projection that was never written.
    file: Option<Arc<ProjectionFile>>,
    changes: ProjectionChanges,
}

/// What follows from the layout.
#[derive(Debug)]
struct Form {
    layout: ProjectionLayout,
    codec: RowCodec,
    keys: KeyEncoder,
}

/// The place of a row: in the file, or among new rows.
#[derive(Debug, Clone)]
pub enum RowPlace {
    /// In the file, with this number.
    File(u64),
    /// Among the changes, with this number of the file's rows before it.
    New(u64, NewRow),
}

impl Projection {
    /// Over a file, or over nothing, without changes.
    pub fn new(layout: ProjectionLayout, file: Option<Arc<ProjectionFile>>) -> Self {
        let types = layout.columns.iter().map(|column| column.column_type);
        let form = Form {
            codec: RowCodec::new(types),
            keys: KeyEncoder::new(layout.key()),
            layout,
        };
        Self {
            form: Arc::new(form),
            file,
            changes: ProjectionChanges::default(),
        }
    }

    /// The same file with another delta.
    pub fn with_changes(&self, changes: ProjectionChanges) -> Self {
        Self {
            form: Arc::clone(&self.form),
            file: self.file.clone(),
            changes,
        }
    }

    /// With columns more or fewer behind the key, which stays as it is. `initial` gives an array of
    /// one value for a column that is new; `look` is called before some of the new rows are made
    /// anew.
    pub(crate) fn with_layout(
        &self,
        layout: ProjectionLayout,
        initial: impl Fn(ColumnId) -> Result<ArrayRef>,
        look: Look<'_>,
    ) -> Result<Self> {
        let mut missing = Vec::new();
        for column in &layout.columns {
            if self.layout().position(column.id).is_none() {
                missing.push((column.id, initial(column.id)?));
            }
        }
        let file = match &self.file {
            Some(file) => {
                // Also of columns that came before and are not in the file: it is laid out anew.
                let others = layout.columns[layout.key_columns..].iter();
                let values = others.map(|column| Ok((column.id, initial(column.id)?)));
                let values: Vec<_> = values.collect::<Result<_>>()?;
                Some(Arc::new(file.with_layout(&layout, &values)?))
            }
            None => None,
        };
        let after = Self::new(layout, file);
        let rows: Vec<&NewRow> = self
            .changes
            .iter()
            .filter_map(|entry| entry.row.as_ref())
            .collect();
        let mut new = Vec::with_capacity(rows.len());
        for rows in rows.chunks(ROWS_AT_ONCE) {
            let bytes: usize = rows.iter().map(|row| row.bytes().len()).sum();
            let keys: usize = rows.iter().map(|row| row.key().len()).sum();
            let taken = new_rows_bytes(rows.len() as u64, bytes as u64, keys as u64);
            look(taken)?;
            new.extend(self.laid_out(rows, &after, &missing)?.iter());
        }
        let mut new = new.into_iter();
        let changes = self.changes.iter().filter_map(|entry| match entry.row {
            Some(_) => Some(Change::Insert(entry.position, new.next()?)),
            None => Some(Change::Delete(entry.position)),
        });
        let changes: Vec<Change> = changes.collect();
        Ok(after.with_changes(ProjectionChanges::default().apply(&changes)))
    }

    /// New rows as another layout of the same key has them, with values for the columns that they
    /// lack.
    fn laid_out(
        &self,
        rows: &[&NewRow],
        after: &Self,
        missing: &[(ColumnId, ArrayRef)],
    ) -> Result<Arc<RowBatch>> {
        let all: Vec<usize> = (0..self.layout().columns.len()).collect();
        let decoded = self.read_new(rows, &all)?;
        let columns = after.layout().columns.iter().map(|column| {
            if let Some(place) = self.layout().position(column.id) {
                return Ok(Arc::clone(&decoded[place]));
            }
            let value = missing.iter().find(|(id, _)| *id == column.id);
            let (_, value) = value.ok_or_else(|| self.invalid(&"a column has no initial value"))?;
            let first = UInt32Array::from(vec![0; rows.len()]);
            take(value, &first, None).map_err(|error| self.invalid(&error))
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let keys = after.keys_of(&columns)?;
        let bytes = after.codec().encode(&columns);
        let bytes = bytes.map_err(|error| self.invalid(&error))?;
        Ok(RowBatch::new(keys, bytes))
    }

    /// Its columns and their order.
    pub fn layout(&self) -> &ProjectionLayout {
        &self.form.layout
    }

    /// The codec of its keys.
    pub fn keys(&self) -> &KeyEncoder {
        &self.form.keys
    }

    /// The codec of its rows.
    pub fn codec(&self) -> &RowCodec {
        &self.form.codec
    }

    /// Its file.
    pub fn file(&self) -> Option<&Arc<ProjectionFile>> {
        self.file.as_ref()
    }

    /// The delta since the file was written.
    pub fn changes(&self) -> &ProjectionChanges {
        &self.changes
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.file_rows() + self.changes.inserted() - self.changes.deleted()
    }

    /// All positions.
    pub fn positions(&self) -> Range<u64> {
        0..self.file_rows() + 1
    }

    fn file_rows(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.rows())
    }

    /// The rows of a range of positions, in the order of the key: the wanted columns, which must
    /// ascend, as arrays.
    pub fn read(&self, positions: Range<u64>, wanted: &[usize]) -> Result<Vec<ArrayRef>> {
        let of_file = positions.start..positions.end.min(self.file_rows());
        let entries: Vec<&Entry> = self.changes.within(positions).collect();
        let stored = match &self.file {
            Some(file) if !of_file.is_empty() => Some(file.read(of_file.clone(), wanted)?),
            _ => None,
        };
        match (stored, entries.is_empty()) {
            (Some(stored), true) => Ok(stored),
            (stored, _) => self.lay_over(stored, of_file, &entries, wanted),
        }
    }

    /// Iterates over all rows in key order, in pieces of the wanted columns, which must ascend.
    pub fn pieces<'a>(&'a self, wanted: &'a [usize], rows_max: usize) -> Pieces<'a> {
        let entries: Box<dyn Iterator<Item = &Entry> + 'a> = Box::new(self.changes.iter());
        Pieces {
            projection: self,
            wanted,
            rows_max: rows_max.max(1),
            start: 0,
            entries: entries.peekable(),
        }
    }

    /// The wanted columns, which must ascend, of new rows, in the order in which these are given.
    pub fn read_new(&self, rows: &[&NewRow], wanted: &[usize]) -> Result<Vec<ArrayRef>> {
        let bytes = rows.iter().map(|row| row.bytes());
        let decoded = self.form.codec.decode(bytes, wanted);
        decoded.map_err(|error| self.invalid(&error))
    }

    fn lay_over(
        &self,
        stored: Option<Vec<ArrayRef>>,
        of_file: Range<u64>,
        entries: &[&Entry],
        wanted: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        let new: Vec<&NewRow> = entries
            .iter()
            .filter_map(|entry| entry.row.as_ref())
            .collect();
        let decoded = self.read_new(&new, wanted)?;
        let Some(stored) = stored else {
            return Ok(decoded);
        };
        const FILE: usize = 0;
        const NEW: usize = 1;
        let mut order = Vec::with_capacity((of_file.end - of_file.start) as usize + new.len());
        let (mut next, mut next_new) = (of_file.start, 0);
        let within = |row: u64| (row - of_file.start) as usize;
        for entry in entries {
            let until = entry.position.min(of_file.end);
            order.extend((next..until).map(|row| (FILE, within(row))));
            next = next.max(until);
            match entry.row {
                Some(_) => {
                    order.push((NEW, next_new));
                    next_new += 1;
                }
                None => next = entry.position + 1,
            }
        }
        order.extend((next..of_file.end).map(|row| (FILE, within(row))));
        stored
            .iter()
            .zip(&decoded)
            .map(|(stored, new)| {
                interleave(&[&**stored, &**new], &order).map_err(|error| self.invalid(&error))
            })
            .collect()
    }

    /// Finds the rows of strictly ascending keys; `None` for a key without a row.
    pub fn locate(&self, keys: &KeyRows) -> Result<Vec<Option<RowPlace>>> {
        let positions = self.positions_of(keys)?;
        let places = positions
            .into_iter()
            .enumerate()
            .map(|(number, (position, is_stored))| {
                match self.changes.find(position, keys.get(number)) {
                    Some(row) => Some(RowPlace::New(position, row.clone())),
                    None => (is_stored && !self.changes.is_deleted(position))
                        .then_some(RowPlace::File(position)),
                }
            });
        Ok(places.collect())
    }

    /// For ascending keys: how many rows of the file are less, and whether the next one has the
    /// key.
    fn positions_of(&self, keys: &KeyRows) -> Result<Vec<(u64, bool)>> {
        let Some(file) = &self.file else {
            return Ok(vec![(0, false); keys.len()]);
        };
        let mut cursor = file.cursor();
        (0..keys.len())
            .map(|number| {
                let found = cursor.find(keys.get(number))?;
                Ok((found.start, !found.is_empty()))
            })
            .collect()
    }

    /// Finds the rows whose keys begin with a prefix: those of the file first, then new ones.
    pub fn locate_prefix(&self, prefix: &[u8]) -> Result<Vec<RowPlace>> {
        let range = match &self.file {
            Some(file) => file.find(prefix)?,
            None => 0..0,
        };
        let stored = range.clone().filter(|row| !self.changes.is_deleted(*row));
        let mut places: Vec<RowPlace> = stored.map(RowPlace::File).collect();
        // They stand together, but for rows of the file that are gone.
        let entries = self.changes.from_key(range.start, prefix);
        let entries = entries.take_while(|entry| {
            let row = entry.row.as_ref();
            entry.position <= range.end && row.is_none_or(|row| row.key().starts_with(prefix))
        });
        places.extend(entries.filter_map(|entry| {
            let row = entry.row.as_ref()?;
            Some(RowPlace::New(entry.position, row.clone()))
        }));
        Ok(places)
    }

    /// The wanted columns of some rows, in the order in which their places are given.
    pub fn rows_at(&self, places: &[RowPlace], wanted: &[usize]) -> Result<Vec<ArrayRef>> {
        const FILE: usize = 0;
        const NEW: usize = 1;
        let mut numbers: Vec<u64> = places
            .iter()
            .filter_map(|place| match place {
                RowPlace::File(row) => Some(*row),
                RowPlace::New(..) => None,
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let new: Vec<&NewRow> = places
            .iter()
            .filter_map(|place| match place {
                RowPlace::File(_) => None,
                RowPlace::New(_, row) => Some(row),
            })
            .collect();
        let decoded = self.read_new(&new, wanted)?;
        let stored = match &self.file {
            Some(file) if !numbers.is_empty() => file.take(&numbers, wanted)?,
            _ => return Ok(decoded),
        };
        let mut next_new = 0..new.len();
        let order: Vec<(usize, usize)> = places
            .iter()
            .map(|place| match place {
                RowPlace::File(row) => (FILE, numbers.partition_point(|number| number < row)),
                RowPlace::New(..) => (NEW, next_new.next().unwrap_or_default()),
            })
            .collect();
        let pairs = stored.iter().zip(&decoded);
        pairs
            .map(|(stored, new)| {
                interleave(&[&**stored, &**new], &order).map_err(|error| self.invalid(&error))
            })
            .collect()
    }

    /// The keys of rows that are given as arrays in the layout's order.
    pub fn keys_of(&self, columns: &[ArrayRef]) -> Result<KeyRows> {
        let mut keys = KeyRows::default();
        let of_key = &columns[..self.form.layout.key_columns];
        self.form.keys.encode_rows(of_key, &mut keys)?;
        Ok(keys)
    }

    /// Rows, given as arrays in the layout's order and in any order of rows, sorted by their keys.
    pub fn sorted(&self, columns: &[ArrayRef]) -> Result<(Vec<ArrayRef>, KeyRows)> {
        let keys = self.keys_of(columns)?;
        if (1..keys.len()).all(|row| keys.get(row - 1) <= keys.get(row)) {
            return Ok((columns.to_vec(), keys));
        }
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_by(|one, other| keys.get(*one as usize).cmp(keys.get(*other as usize)));
        let mut sorted_keys = KeyRows::default();
        for row in &order {
            sorted_keys.push(keys.get(*row as usize));
        }
        let order = UInt32Array::from_iter_values(order);
        let columns = columns
            .iter()
            .map(|column| take(column, &order, None).map_err(|error| self.invalid(&error)));
        Ok((columns.collect::<Result<_>>()?, sorted_keys))
    }

    /// Inserts rows in the form of [`Self::sorted`]; returns the result. Fails with the number of
    /// the first row whose key is there already, or comes twice.
    pub fn insert(&self, columns: &[ArrayRef], keys: KeyRows) -> Result<Result<Self, usize>> {
        for row in 1..keys.len() {
            if keys.get(row - 1) == keys.get(row) {
                return Ok(Err(row));
            }
        }
        let positions = self.positions_of(&keys)?;
        for (number, (position, is_stored)) in positions.iter().enumerate() {
            let is_there = self.changes.find(*position, keys.get(number)).is_some()
                || (*is_stored && !self.changes.is_deleted(*position));
            if is_there {
                return Ok(Err(number));
            }
        }
        let rows = self.form.codec.encode(columns);
        let rows = rows.map_err(|error| self.invalid(&error))?;
        let batch = RowBatch::new(keys, rows);
        let new = positions.iter().zip(batch.iter());
        let changes: Vec<Change> = new
            .map(|((position, _), row)| Change::Insert(*position, row))
            .collect();
        Ok(Ok(self.with_changes(self.changes.apply(&changes))))
    }

    /// Deletes existing rows; returns the result.
    pub fn delete(&self, places: impl IntoIterator<Item = RowPlace>) -> Self {
        let mut changes: Vec<Change> = places
            .into_iter()
            .map(|place| match place {
                RowPlace::File(row) => Change::Delete(row),
                RowPlace::New(position, row) => Change::Withdraw(position, row),
            })
            .collect();
        changes.sort_by(Change::compare);
        changes.dedup_by(|one, other| one.compare(other).is_eq());
        self.with_changes(self.changes.apply(&changes))
    }

    fn invalid(&self, error: &dyn std::fmt::Display) -> Error {
        match &self.file {
            Some(file) => Error::invalid_input(file.path(), error.to_string()),
            None => Error::Rows {
                what: error.to_string(),
            },
        }
    }
}

/// The rows of a projection, piece by piece. A piece has so many rows of the file and as many new
/// ones at most: a table without a file has all of its rows at one position.
pub struct Pieces<'a> {
    projection: &'a Projection,
    wanted: &'a [usize],
    rows_max: usize,
    /// Where the next piece begins. New rows of this position may be given out already.
    start: u64,
    entries: Peekable<Box<dyn Iterator<Item = &'a Entry> + 'a>>,
}

impl fmt::Debug for Pieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces")
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

impl Pieces<'_> {
    /// Sets the number of rows per piece, from the next piece on.
    pub fn set_rows_max(&mut self, rows_max: usize) {
        self.rows_max = rows_max.max(1);
    }

    /// The next piece; `None` behind the last.
    pub fn next_piece(&mut self) -> Result<Option<Vec<ArrayRef>>> {
        let positions = self.projection.positions();
        if self.start >= positions.end {
            return Ok(None);
        }
        let mut end = positions.end.min(self.start + self.rows_max as u64);
        let mut entries = Vec::new();
        while entries.len() < self.rows_max
            && let Some(entry) = self.entries.next_if(|entry| entry.position < end)
        {
            entries.push(entry);
        }
        // What is left of these positions comes with the next piece. The rows of the file before it
        // are in this one.
        if let Some(next) = self.entries.peek() {
            end = end.min(next.position);
        }
        let projection = self.projection;
        let of_file = self.start..end.min(projection.file_rows());
        self.start = end;
        let stored = match &projection.file {
            Some(file) if !of_file.is_empty() => Some(file.read(of_file.clone(), self.wanted)?),
            _ => None,
        };
        let piece = match (stored, entries.is_empty()) {
            (Some(stored), true) => stored,
            (stored, _) => projection.lay_over(stored, of_file, &entries, self.wanted)?,
        };
        Ok(Some(piece))
    }
}
