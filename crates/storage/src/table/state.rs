//! A table in a snapshot: its definition and projections, which always hold the same rows.
//!
//! ```text
//! insert   arrays in the table's order -> NULLs checked -> row numbers -> per projection: sorted, looked up, laid over
//! delete   keys of rows -> the rows' places in the primary projection -> their keys in each index -> marked as gone
//! ```
//!
//! Each change makes another state, or fails and leaves nothing behind: so a statement is done as a
//! whole or not at all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};

use super::definition::{
    ColumnId, IndexDefinition, ProjectionLayout, ROW_NUMBER, RelationId, TableDefinition,
};
use super::key::KeyRows;
use super::new_rows::{Look, ROWS_AT_ONCE, new_rows_bytes};
use super::projection::{Projection, RowPlace};
use super::written::WrittenChanges;
use crate::files::components::DirectoryComponents;
use crate::{Error, Result, TableName};

/// A table of a snapshot. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TableState {
    definition: Arc<TableDefinition>,
    primary: Projection,
    /// One for each index of the definition, in its order.
    indexes: Vec<Projection>,
    /// The row number that the next new row gets, in a table without a primary key.
    next_row_number: u64,
    /// The files of the projections, if they were ever written.
    files: Option<Arc<DirectoryComponents>>,
    /// Where its changes stand, if they, or those of a state before it, were ever written.
    written: Option<Arc<WrittenChanges>>,
}

impl TableState {
    /// A table without rows.
    pub fn empty(definition: Arc<TableDefinition>) -> Self {
        let primary = Projection::new(definition.primary_layout(), None);
        let indexes = definition.indexes.iter();
        let indexes = indexes.map(|index| Projection::new(definition.index_layout(index), None));
        Self {
            indexes: indexes.collect(),
            primary,
            definition,
            next_row_number: 0,
            files: None,
            written: None,
        }
    }

    /// The table's definition.
    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    /// The same under a definition that differs in its foreign keys alone.
    pub(super) fn shown_as(&self, definition: TableDefinition) -> Self {
        Self {
            definition: Arc::new(definition),
            ..self.clone()
        }
    }

    /// The primary projection: all columns, by primary key or row number.
    pub fn primary(&self) -> &Projection {
        &self.primary
    }

    /// The projections of the indexes, beside their definitions.
    pub fn indexes(&self) -> impl Iterator<Item = (&IndexDefinition, &Projection)> {
        self.definition.indexes.iter().zip(&self.indexes)
    }

    /// The primary projection, then those of the indexes.
    pub fn projections(&self) -> impl Iterator<Item = &Projection> {
        std::iter::once(&self.primary).chain(&self.indexes)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.primary.rows()
    }

    /// Number of changes that are not in its files yet: of the projection that has the most.
    pub fn changes(&self) -> u64 {
        let changes = self.projections().map(|it| it.changes().len());
        changes.max().unwrap_or(0)
    }

    /// Whether there are any.
    pub fn has_changes(&self) -> bool {
        self.changes() > 0
    }

    /// The row number that the next new row gets.
    pub fn next_row_number(&self) -> u64 {
        self.next_row_number
    }

    /// The same with other projections, in the order of [`Self::projections`], and another next row
    /// number.
    pub(crate) fn with_projections(
        &self,
        mut projections: impl Iterator<Item = Projection>,
        next_row_number: u64,
    ) -> Self {
        Self {
            definition: Arc::clone(&self.definition),
            primary: projections.next().unwrap_or_else(|| self.primary.clone()),
            indexes: projections.collect(),
            next_row_number,
            files: self.files.clone(),
            written: self.written.clone(),
        }
    }

    /// The files of its projections, if they were ever written.
    pub(crate) fn files(&self) -> Option<&Arc<DirectoryComponents>> {
        self.files.as_ref()
    }

    /// The same, told from these files.
    pub(crate) fn with_files(self, files: Arc<DirectoryComponents>) -> Self {
        Self {
            files: Some(files),
            ..self
        }
    }

    /// Where its changes stand, if they do.
    pub(crate) fn written_changes(&self) -> Option<&DirectoryComponents> {
        self.written.as_ref()?.of(self.projections())
    }

    /// The same, whose changes were written there.
    pub(crate) fn with_written_changes(self, files: DirectoryComponents) -> Self {
        let written = WrittenChanges::new(files, self.projections());
        Self {
            written: Some(Arc::new(written)),
            ..self
        }
    }

    /// The same; it may have the changes of an earlier state, which stand somewhere.
    pub(crate) fn with_written_of(&self, earlier: &Self) -> Self {
        Self {
            written: earlier.written.clone(),
            ..self.clone()
        }
    }

    /// The same with another next row number.
    pub(crate) fn with_next_row_number(self, next_row_number: u64) -> Self {
        Self {
            next_row_number,
            ..self
        }
    }

    /// Inserts rows, given as one array per column of the definition; returns the result. Returns
    /// also the rows as the primary projection has them, for the log: a row number before the
    /// others where there is no primary key.
    ///
    /// Fails with [`Error::NotNull`] and [`Error::Duplicate`].
    pub fn insert(&self, columns: &[ArrayRef]) -> Result<(Self, Vec<ArrayRef>)> {
        let (columns, next_row_number) = self.numbered(columns)?;
        let state = self.insert_projected(&columns, next_row_number)?;
        Ok((state, columns))
    }

    /// New rows as the primary projection is to have them, and the next row number after them.
    pub(crate) fn numbered(&self, columns: &[ArrayRef]) -> Result<(Vec<ArrayRef>, u64)> {
        let rows = columns.first().map_or(0, |column| column.len());
        let end = self.next_row_number.checked_add(rows as u64);
        let end = end.filter(|end| i64::try_from(*end).is_ok());
        let end = end.ok_or_else(|| Error::Rows {
            what: format!("{} has no row numbers left", self.definition.name),
        })?;
        let numbers = self.next_row_number..end;
        let by_id = |id: ColumnId| -> Option<ArrayRef> {
            if id == ROW_NUMBER {
                let numbers = numbers.clone().map(u64::cast_signed);
                return Some(Arc::new(Int64Array::from_iter_values(numbers)));
            }
            let place = self
                .definition
                .columns
                .iter()
                .position(|column| column.id == id)?;
            columns.get(place).cloned()
        };
        let ids = self.primary.layout().columns.iter().map(|column| column.id);
        let columns: Option<Vec<ArrayRef>> = ids.map(by_id).collect();
        let columns = columns.ok_or_else(|| Error::Rows {
            what: format!(
                "values for a column of {} are missing",
                self.definition.name
            ),
        })?;
        let next_row_number = match self.definition.primary_key {
            Some(_) => self.next_row_number,
            None => numbers.end,
        };
        Ok((columns, next_row_number))
    }

    /// With rows in the order of the primary projection's columns, as [`Self::insert`] returns
    /// them.
    pub(crate) fn insert_projected(
        &self,
        columns: &[ArrayRef],
        next_row_number: u64,
    ) -> Result<Self> {
        self.check_nulls(columns)?;
        let mut projections = Vec::with_capacity(1 + self.indexes.len());
        for projection in self.projections() {
            let columns = self.project(columns, projection.layout());
            projections.push(self.insert_into(projection, &columns)?);
        }
        Ok(self.with_projections(projections.into_iter(), next_row_number))
    }

    /// The most memory that inserted rows take in all projections; `columns` are in the primary
    /// projection's order, and the rows have so many bytes.
    pub(crate) fn inserted_bytes(&self, columns: &[ArrayRef], rows: u64, bytes: u64) -> u64 {
        let of_projection = |projection: &Projection| {
            let columns = self.project(columns, projection.layout());
            new_rows_bytes(rows, bytes, projection.keys().bytes_max(&columns))
        };
        self.projections().map(of_projection).sum()
    }

    /// The columns of a layout, out of those of the primary projection.
    fn project(&self, columns: &[ArrayRef], layout: &ProjectionLayout) -> Vec<ArrayRef> {
        let primary = self.primary.layout();
        let places = layout
            .columns
            .iter()
            .filter_map(|column| primary.position(column.id));
        places.map(|place| Arc::clone(&columns[place])).collect()
    }

    fn insert_into(&self, projection: &Projection, columns: &[ArrayRef]) -> Result<Projection> {
        let (columns, keys) = projection.sorted(columns)?;
        if let Some(index) = self.unique_index(projection.layout().relation) {
            self.check_unique(index, projection, &columns)?;
        }
        match projection.insert(&columns, keys)? {
            Ok(inserted) => Ok(inserted),
            Err(row) => {
                let layout = projection.layout();
                Err(duplicate_key(&self.definition, layout, &columns, row))
            }
        }
    }

    fn unique_index(&self, relation: RelationId) -> Option<&IndexDefinition> {
        let mut indexes = self.definition.indexes.iter();
        indexes.find(|index| index.id == relation && index.is_unique)
    }

    /// Fails if two rows, new ones or one that is there, are equal in the columns of a unique index
    /// and none of these is NULL.
    fn check_unique(
        &self,
        index: &IndexDefinition,
        projection: &Projection,
        columns: &[ArrayRef],
    ) -> Result<()> {
        let layout = projection.layout();
        let parts = index.columns.len();
        let mut prefixes = KeyRows::default();
        projection
            .keys()
            .encode_rows(&columns[..parts], &mut prefixes)?;
        for row in 0..prefixes.len() {
            if columns[..parts].iter().any(|column| column.is_null(row)) {
                continue;
            }
            let prefix = prefixes.get(row);
            let is_twice = row > 0 && prefixes.get(row - 1) == prefix;
            if is_twice || !projection.locate_prefix(prefix)?.is_empty() {
                let name = index.name.clone();
                return Err(duplicate(
                    &self.definition,
                    name,
                    &index.columns,
                    layout,
                    columns,
                    row,
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn check_nulls(&self, columns: &[ArrayRef]) -> Result<()> {
        let layout = self.primary.layout();
        let of_key = layout.key_columns;
        for (place, (column, array)) in layout.columns.iter().zip(columns).enumerate() {
            let may_be_null = column.is_nullable && place >= of_key;
            if !may_be_null && array.null_count() > 0 {
                return Err(null_in(&self.definition, column.id));
            }
        }
        Ok(())
    }

    /// Deletes rows by their places in the primary projection; returns the result.
    pub fn delete(&self, places: Vec<RowPlace>) -> Result<Self> {
        let mut projections = Vec::with_capacity(1 + self.indexes.len());
        projections.push(self.primary.delete(places.iter().cloned()));
        for index in &self.indexes {
            let of_index = index.layout().key().iter();
            let wanted: Vec<usize> = of_index
                .filter_map(|column| self.primary.layout().position(column.id))
                .collect();
            let mut ascending = wanted.clone();
            ascending.sort_unstable();
            let read = self.primary.rows_at(&places, &ascending)?;
            let columns: Vec<ArrayRef> = wanted
                .iter()
                .map(|place| Arc::clone(&read[ascending.partition_point(|other| other < place)]))
                .collect();
            let (_, keys) = index.sorted(&columns)?;
            let found = index.locate(&keys)?;
            let found: Option<Vec<RowPlace>> = found.into_iter().collect();
            let found = found.ok_or_else(|| Error::Rows {
                what: format!("a row of {} is not in an index of it", self.definition.name),
            })?;
            projections.push(index.delete(found));
        }
        Ok(self.with_projections(projections.into_iter(), self.next_row_number))
    }

    /// Without the rows of these keys, which ascend strictly. Fails if there is none with one of
    /// them.
    pub(crate) fn delete_keys(&self, keys: &KeyRows) -> Result<Self> {
        let places: Option<Vec<RowPlace>> = self.primary.locate(keys)?.into_iter().collect();
        let places = places.ok_or_else(|| Error::Rows {
            what: format!("{} lacks a row that is to go", self.definition.name),
        })?;
        self.delete(places)
    }

    /// The keys of rows by their places in the primary projection, ascending.
    pub(crate) fn keys_at(&self, places: &[RowPlace]) -> Result<KeyRows> {
        let wanted: Vec<usize> = (0..self.primary.layout().key_columns).collect();
        let columns = self.primary.rows_at(places, &wanted)?;
        Ok(self.primary.sorted(&columns)?.1)
    }

    /// Without any row.
    pub(crate) fn truncated(&self) -> Self {
        Self {
            next_row_number: self.next_row_number,
            ..Self::empty(Arc::clone(&self.definition))
        }
    }

    /// The same with another definition of the same columns in the primary key; projections of
    /// indexes that are new are filled from the rows, and new rows laid out anew, in pieces of some
    /// thousand: `look` is called before each is made.
    pub(crate) fn redefined(
        &self,
        definition: Arc<TableDefinition>,
        look: Look<'_>,
    ) -> Result<Self> {
        let key = |layout: &ProjectionLayout| -> Vec<_> {
            let columns = layout.key().iter();
            columns
                .map(|column| (column.id, column.column_type))
                .collect()
        };
        if key(&definition.primary_layout()) != key(self.primary.layout()) {
            return Err(Error::Rows {
                what: format!("{} cannot get another primary key", definition.name),
            });
        }
        let primary = match definition.primary_layout() == *self.primary.layout() {
            true => self.primary.clone(),
            false => self.primary.with_layout(
                definition.primary_layout(),
                |id| definition.initial(id),
                &mut *look,
            )?,
        };
        let mut state = Self {
            primary,
            indexes: Vec::new(),
            next_row_number: self.next_row_number,
            files: self.files.clone(),
            written: self.written.clone(),
            definition: Arc::clone(&definition),
        };
        for index in &definition.indexes {
            let layout = definition.index_layout(index);
            let mut old = self.indexes.iter();
            let kept = old.find(|old| *old.layout() == layout).cloned();
            let projection = match kept {
                Some(kept) => kept,
                None => state.fill(Projection::new(layout, None), &mut *look)?,
            };
            state.indexes.push(projection);
        }
        Ok(state)
    }

    /// All rows put into a projection that has none.
    fn fill(&self, mut projection: Projection, look: Look<'_>) -> Result<Projection> {
        let of_index = projection.layout().columns.iter();
        let places = of_index.filter_map(|column| self.primary.layout().position(column.id));
        let places: Vec<usize> = places.collect();
        let mut wanted = places.clone();
        wanted.sort_unstable();
        let mut pieces = self.primary.pieces(&wanted, ROWS_AT_ONCE);
        while let Some(read) = pieces.next_piece()? {
            let columns = places
                .iter()
                .map(|place| Arc::clone(&read[wanted.partition_point(|other| other < place)]));
            let columns: Vec<ArrayRef> = columns.collect();
            let bytes: usize = columns.iter().map(|it| it.get_array_memory_size()).sum();
            let rows = columns.first().map_or(0, |column| column.len());
            let keys = projection.keys().bytes_max(&columns);
            look(new_rows_bytes(rows as u64, bytes as u64, keys))?;
            projection = self.insert_into(&projection, &columns)?;
        }
        Ok(projection)
    }
}

/// The error for NULL in a column that has none.
pub(super) fn null_in(definition: &TableDefinition, column: ColumnId) -> Error {
    let column = definition.column(column);
    Error::NotNull {
        table: name_of(definition),
        column: column.map_or_else(String::new, |column| column.name.clone()),
    }
}

/// The error for a row, of arrays in the order of a layout, whose key another row has.
pub(super) fn duplicate_key(
    definition: &TableDefinition,
    layout: &ProjectionLayout,
    columns: &[ArrayRef],
    row: usize,
) -> Error {
    let constraint = match &definition.primary_key {
        Some(key) => key.name.clone(),
        None => definition.name.clone(),
    };
    duplicate(
        definition,
        constraint,
        definition.row_key(),
        layout,
        columns,
        row,
    )
}

/// The same for any constraint.
pub(super) fn duplicate(
    definition: &TableDefinition,
    constraint: String,
    key: &[ColumnId],
    layout: &ProjectionLayout,
    columns: &[ArrayRef],
    row: usize,
) -> Error {
    let name = |id: &ColumnId| definition.column(*id).map(|column| column.name.clone());
    let value = |id: &ColumnId| {
        let array = columns.get(layout.position(*id)?)?;
        arrow::util::display::array_value_to_string(array, row).ok()
    };
    Error::Duplicate {
        table: name_of(definition),
        constraint: constraint.into(),
        columns: joined(key.iter().filter_map(name)),
        key: joined(key.iter().filter_map(value)),
    }
}

fn name_of(definition: &TableDefinition) -> Box<TableName> {
    Box::new(TableName {
        schema: definition.schema.clone(),
        name: definition.name.clone(),
    })
}

fn joined(parts: impl Iterator<Item = String>) -> Box<str> {
    parts.collect::<Vec<_>>().join(", ").into()
}
