//! The rewriting of a table's files: by bulk loads, by changes of most rows, and by compaction.
//!
//! ```text
//! Transaction::rewrite_table   a directory of its own, that nobody knows
//!   per projection             rows in the order of its key -> RewrittenRows -> NNNNNN.rows
//! Transaction::put_rewritten   the directory on the disk -> TableChange::Rewrite, which names it
//! commit                       manifest: the present log names the directory -> log record with the change
//! ```
//!
//! So a load is a change like others: it can stand beside changes of quads and of other tables,
//! older states stay readable, and what was not committed leaves a directory that is removed.
//! Memory is that of a [`ProjectionWriter`]. The primary projection is written first; others can be
//! made from it by [`TableRewrite::written`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};

use super::definition::{ProjectionLayout, TableDefinition};
use super::file::{ProjectionFile, ProjectionWriter};
use super::key::{KeyEncoder, KeyRows};
use super::opened::{TABLE_PREFIX, open_files, rows_file};
use super::projection::Projection;
use super::state::{TableState, duplicate, duplicate_key, null_in};
use crate::files::components::{DirectoryComponents, FileEntry};
use crate::files::io::FileSystem;
use crate::files::unlisted::{Unlisted, may_be_published};
use crate::{Error, Result};

/// Rows read at once where a table is written from its present state.
const ROWS_AT_ONCE: usize = 32 * 1024;

/// A table whose files are being written. Dropped without
/// [`Transaction::put_rewritten`](crate::Transaction::put_rewritten), it leaves nothing.
#[derive(Debug)]
pub struct TableRewrite {
    definition: Arc<TableDefinition>,
    layouts: Vec<ProjectionLayout>,
    directory: NewDirectory,
    /// That encode a projection.
    threads: usize,
    files: Vec<FileEntry>,
    /// Of the primary projection, once that is written.
    rows: u64,
}

/// A directory of files that goes again unless it is kept.
#[derive(Debug)]
pub(crate) struct NewDirectory {
    file_system: Arc<dyn FileSystem>,
    path: PathBuf,
    name: String,
    is_kept: bool,
}

impl NewDirectory {
    /// Makes the directory, with a name that is free.
    fn create(
        file_system: &Arc<dyn FileSystem>,
        database: &Path,
        table: u32,
        mut generation: u64,
    ) -> Result<Self> {
        loop {
            let name = format!("{TABLE_PREFIX}{table:06}-{generation:06}");
            let path = database.join(&name);
            if file_system.metadata(&path)?.is_none() {
                file_system.create_dir_all(&path)?;
                return Ok(Self {
                    file_system: Arc::clone(file_system),
                    path,
                    name,
                    is_kept: false,
                });
            }
            generation += 1;
        }
    }

    /// Its name within the database's directory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Keeps it if a manifest that names it was published, or if nobody knows which manifest is on
    /// the disk.
    pub(crate) fn keep_if_listed<T>(&mut self, published: &Result<T>) {
        self.is_kept = may_be_published(published);
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            drop(Unlisted::directory(&*self.file_system, self.path.clone()));
        }
    }
}

/// The receiver of one projection's rewritten rows.
#[derive(Debug)]
pub struct RewrittenRows {
    number: usize,
    definition: Arc<TableDefinition>,
    layout: ProjectionLayout,
    writer: ProjectionWriter,
    unique: Option<Unique>,
}

/// Columns in which no two rows are equal unless one of them is NULL.
#[derive(Debug)]
struct Unique {
    name: String,
    columns: usize,
    encoder: KeyEncoder,
    keys: KeyRows,
    /// Of the last row, unless one of its columns is NULL.
    last: Option<Vec<u8>>,
}

impl TableRewrite {
    /// Begins it, for the present definition of a table.
    pub(crate) fn begin(
        file_system: &Arc<dyn FileSystem>,
        database: &Path,
        generation: u64,
        table: &TableState,
    ) -> Result<Self> {
        let definition = Arc::clone(table.definition());
        let directory = NewDirectory::create(file_system, database, definition.id.0, generation)?;
        Ok(Self {
            layouts: definition.layouts().collect(),
            definition,
            directory,
            threads: 1,
            files: Vec::new(),
            rows: 0,
        })
    }

    /// Encodes with so many threads, of which one is the caller's; with that alone unless this is
    /// said.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The table's definition.
    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    /// The projections to write: the primary one, then those of the indexes.
    pub fn layouts(&self) -> &[ProjectionLayout] {
        &self.layouts
    }

    /// Begins the file of a projection, by its place among [`Self::layouts`].
    pub fn projection(&self, number: usize) -> Result<RewrittenRows> {
        let layout = self.layouts[number].clone();
        let path = self.directory.path.join(rows_file(layout.relation));
        let index = number
            .checked_sub(1)
            .map(|index| &self.definition.indexes[index]);
        let unique = index.filter(|index| index.is_unique).map(|index| Unique {
            name: index.name.clone(),
            columns: index.columns.len(),
            encoder: KeyEncoder::new(&layout.columns[..index.columns.len()]),
            keys: KeyRows::default(),
            last: None,
        });
        let writer = ProjectionWriter::create(&*self.directory.file_system, &path, &layout)?;
        Ok(RewrittenRows {
            number,
            definition: Arc::clone(&self.definition),
            writer: writer.on_threads(self.threads),
            layout,
            unique,
        })
    }

    /// Ends the file of a projection. All of them have the same number of rows. Returns it.
    pub fn finish(&mut self, rows: RewrittenRows) -> Result<u64> {
        let written = rows.writer.finish()?;
        match rows.number {
            0 => self.rows = written.rows,
            _ if self.rows != written.rows => {
                return Err(Error::Rows {
                    what: format!(
                        "an index of {} would have {} rows, the table has {}",
                        self.definition.name, written.rows, self.rows
                    ),
                });
            }
            _ => {}
        }
        let name = rows_file(rows.layout.relation);
        let file = FileEntry::new(name, written.file.bytes, written.file.crc);
        self.files.push(file);
        Ok(written.rows)
    }

    /// A projection that is written, for reading.
    pub fn written(&self, number: usize) -> Result<Projection> {
        let layout = &self.layouts[number];
        let path = self.directory.path.join(rows_file(layout.relation));
        let file = ProjectionFile::open(&*self.directory.file_system, &path, layout, &[])?;
        Ok(Projection::new(layout.clone(), Some(Arc::new(file))))
    }

    /// Writes all projections with the rows that they have in a state of the table, unless it is
    /// `cancelled` before. Returns whether all is written.
    pub fn write_state(
        &mut self,
        state: &TableState,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<bool> {
        for (number, projection) in state.projections().enumerate() {
            let mut rows = self.projection(number)?;
            let all: Vec<usize> = (0..projection.layout().columns.len()).collect();
            let mut pieces = projection.pieces(&all, ROWS_AT_ONCE);
            while let Some(columns) = pieces.next_piece()? {
                if cancelled() {
                    return Ok(false);
                }
                rows.push(&columns)?;
            }
            self.finish(rows)?;
        }
        Ok(true)
    }

    /// All that was written, on the disk.
    pub(crate) fn close(self) -> Result<(NewDirectory, DirectoryComponents, u64)> {
        if self.files.len() != self.layouts.len() {
            return Err(Error::Rows {
                what: format!(
                    "not all projections of {} were written",
                    self.definition.name
                ),
            });
        }
        let directory = self.directory;
        directory.file_system.sync_dir(&directory.path)?;
        if let Some(database) = directory.path.parent() {
            directory.file_system.sync_dir(database)?;
        }
        let files = DirectoryComponents::of_files(directory.name.clone(), self.files);
        Ok((directory, files, self.rows))
    }
}

impl RewrittenRows {
    /// The columns that it takes, and their order.
    pub fn layout(&self) -> &ProjectionLayout {
        &self.layout
    }

    /// Appends rows, an array for each column of the layout, in the order of its key, behind those
    /// before.
    ///
    /// Fails with [`Error::NotNull`] and [`Error::Duplicate`]; the table cannot be written any more
    /// then.
    pub fn push(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for (column, array) in self.layout.columns.iter().zip(columns) {
            if !column.is_nullable && array.null_count() > 0 {
                return Err(null_in(&self.definition, column.id));
            }
        }
        if let Some(unique) = &mut self.unique
            && let Some(row) = unique.equal_row(columns)?
        {
            let key: Vec<_> = self.layout.columns[..unique.columns]
                .iter()
                .map(|column| column.id)
                .collect();
            let name = unique.name.clone();
            return Err(duplicate(
                &self.definition,
                name,
                &key,
                &self.layout,
                columns,
                row,
            ));
        }
        let pushed = self.writer.push_distinct(columns)?;
        pushed.map_err(|row| duplicate_key(&self.definition, &self.layout, columns, row))
    }
}

impl Unique {
    /// The first row that is equal to the one before.
    fn equal_row(&mut self, columns: &[ArrayRef]) -> Result<Option<usize>> {
        let columns = &columns[..self.columns];
        self.keys.clear();
        self.encoder.encode_rows(columns, &mut self.keys)?;
        for row in 0..self.keys.len() {
            if columns.iter().any(|column| column.is_null(row)) {
                self.last = None;
                continue;
            }
            let key = self.keys.get(row);
            let last = self.last.get_or_insert_default();
            // A key of columns is never empty.
            if last == key {
                return Ok(Some(row));
            }
            last.clear();
            last.extend_from_slice(key);
        }
        Ok(None)
    }
}

/// A table with the rows of other files, all of which are there.
pub(super) fn open_rewritten(
    file_system: &dyn FileSystem,
    directory: &Path,
    table: &TableState,
    files: &DirectoryComponents,
) -> Result<TableState> {
    let empty = TableState::empty(Arc::clone(table.definition()));
    let opened = open_files(file_system, directory, empty, files)?;
    let is_whole = opened
        .projections()
        .all(|projection| projection.file().is_some());
    match is_whole {
        true => Ok(opened),
        false => Err(Error::Rows {
            what: format!("{} lacks the file of an index", files.name),
        }),
    }
}
