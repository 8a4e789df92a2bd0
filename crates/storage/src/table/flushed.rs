//! Tables as files: their entries in the manifest, and deltas written by a checkpoint.
//!
//! ```text
//! DIR/table-000003-000007/000003.rows   the projection of the table with the number 3, written by the manifest of generation 7
//!                         000004.rows   that of its index with the number 4
//! DIR/tables-000009-000003/000003.changes   what changed since in all of its projections, up to a checkpoint
//! ```
//!
//! A table's directory stays as it is until the table is written anew. Its changes are written as a
//! whole, at each checkpoint before which they became others; where they are those that stand there
//! already, their directory is listed again. So each [`TablesEntry`] tells a whole state.
//!
//! ```text
//! 000003.changes   block file; blocks of about 64 KiB of whole entries
//!   entry          position, less that of the one before, LEB128 | 0, or length of the row + 1, LEB128 | the row
//!   metadata       number of entries of each projection, u64 each; a projection begins a block
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::changes::{Change, ProjectionChanges, RowBatch};
use super::definition::{RelationId, TableDefinition, ViewDefinition};
use super::opened::{open_files, rows_file};
use super::projection::Projection;
use super::rows::RowBytes;
use super::state::TableState;
use super::tables::Tables;
use crate::files::block_file::{BlockFile, BlockFileWriter, BlockNumber, FileKind, FileSummary};
use crate::files::components::{DirectoryComponents, FileEntry};
use crate::files::io::FileSystem;
use crate::files::listed_files::{check_lengths, check_summary};
use crate::files::unlisted::{AllUnlisted, Unlisted};
use crate::{Error, Result, files::varint};

/// Begins the names of directories with the changes of tables.
pub(crate) const TABLE_CHANGES_PREFIX: &str = "tables-";

/// A field of [`TablesEntry`] in databases of before.
const CHANGES_OF_ALL: &str = "changes";

pub(crate) const CHANGES_KIND: FileKind = FileKind(*b"TCHG");
const BLOCK_BYTES: usize = 64 * 1024;

/// All tables of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablesEntry {
    /// The names of the schemas.
    pub schemas: Vec<String>,
    /// The number that the next new table, index or view gets.
    pub next_relation: u32,
    /// The tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableEntry>,
    /// The views.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<ViewDefinition>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

/// A table of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// What it is.
    pub definition: TableDefinition,
    /// The row number that its next new row gets.
    pub next_row_number: u64,
    /// Number of rows.
    pub rows: u64,
    /// The files of its projections; those that were never written are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<DirectoryComponents>,
    /// What changed since they were written, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<DirectoryComponents>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

impl TablesEntry {
    /// The directories of all files.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &DirectoryComponents> {
        let tables = self.tables.iter();
        tables.flat_map(|table| table.files.iter().chain(&table.changes))
    }
}

fn changes_file(table: RelationId) -> String {
    format!("{:06}.changes", table.0)
}

/// Tables, written.
#[derive(Debug)]
pub(crate) struct WrittenTables<'f> {
    /// What the manifest is to say of them; `None` if there never were any.
    pub(crate) entry: Option<TablesEntry>,
    /// They, knowing where their changes stand; the same where nothing was written.
    pub(crate) tables: Arc<Tables>,
    /// What was written for it.
    pub(crate) unlisted: AllUnlisted<'f>,
}

/// Writes the changes of the tables that do not stand on the disk yet, each table's into a new
/// directory; when it returns, they are there.
pub(crate) fn write_tables<'f>(
    file_system: &'f dyn FileSystem,
    directory: &Path,
    generation: u64,
    tables: &Arc<Tables>,
) -> Result<WrittenTables<'f>> {
    let mut unlisted = AllUnlisted::default();
    if tables.is_untouched() {
        return Ok(WrittenTables {
            entry: None,
            tables: Arc::clone(tables),
            unlisted,
        });
    }
    let mut entries = Vec::new();
    let mut states = Vec::new();
    for table in tables.with_system_tables() {
        let changes = match table.written_changes() {
            _ if !table.has_changes() => None,
            Some(written) => Some(written.clone()),
            None => {
                let path = free_directory(file_system, directory, generation, table)?;
                unlisted.push(Unlisted::directory(file_system, path.clone()));
                let written = write_changes(file_system, &path, table)?;
                states.push(table.clone().with_written_changes(written.clone()));
                Some(written)
            }
        };
        entries.push(TableEntry {
            definition: TableDefinition::clone(table.definition()),
            next_row_number: table.next_row_number(),
            rows: table.rows(),
            files: files_of(table),
            changes,
            further: BTreeMap::new(),
        });
    }
    let mut known = Arc::clone(tables);
    if !states.is_empty() {
        file_system.sync_dir(directory)?;
        let mut tables = Tables::clone(tables);
        for state in states {
            tables = tables.with_table(state);
        }
        known = Arc::new(tables);
    }
    Ok(WrittenTables {
        entry: Some(TablesEntry {
            schemas: tables.schemas().map(str::to_owned).collect(),
            next_relation: tables.next_relation(),
            tables: entries,
            views: tables
                .views()
                .map(|view| ViewDefinition::clone(view))
                .collect(),
            further: BTreeMap::new(),
        }),
        tables: known,
        unlisted,
    })
}

/// A directory for the changes of a table that is not there: a base and the changes that are
/// carried over to it are written for one manifest.
fn free_directory(
    file_system: &dyn FileSystem,
    directory: &Path,
    mut generation: u64,
    table: &TableState,
) -> Result<PathBuf> {
    let table = table.definition().id.0;
    loop {
        let path = directory.join(format!("{TABLE_CHANGES_PREFIX}{generation:06}-{table:06}"));
        if file_system.metadata(&path)?.is_none() {
            return Ok(path);
        }
        generation += 1;
    }
}

/// The files of the projections that lie over one. The directory may have others, of an index that
/// was made anew since.
fn files_of(table: &TableState) -> Option<DirectoryComponents> {
    let files = table.files()?;
    let over_file = table
        .projections()
        .filter(|projection| projection.file().is_some());
    let names: Vec<String> = over_file
        .map(|projection| rows_file(projection.layout().relation))
        .collect();
    let used = files.files().filter(|file| names.contains(&file.name));
    let used: Vec<FileEntry> = used.cloned().collect();
    (!used.is_empty()).then(|| DirectoryComponents::of_files(files.name.clone(), used))
}

/// Writes the changes of a table into a new directory.
fn write_changes(
    file_system: &dyn FileSystem,
    directory: &Path,
    table: &TableState,
) -> Result<DirectoryComponents> {
    file_system.create_dir_all(directory)?;
    let name = changes_file(table.definition().id);
    let summary = write_entries(file_system, &directory.join(&name), table)?;
    file_system.sync_dir(directory)?;
    let file = FileEntry::new(name, summary.bytes, summary.crc);
    let directory = directory.file_name().unwrap_or_default().to_string_lossy();
    Ok(DirectoryComponents::of_files(
        directory.into_owned(),
        vec![file],
    ))
}

fn write_entries(
    file_system: &dyn FileSystem,
    path: &Path,
    table: &TableState,
) -> Result<FileSummary> {
    let mut file = BlockFileWriter::create(file_system, path, CHANGES_KIND)?;
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut metadata = Vec::new();
    for projection in table.projections() {
        metadata.extend_from_slice(&projection.changes().len().to_le_bytes());
        let mut before = 0;
        for entry in projection.changes().iter() {
            varint::write(entry.position - before, &mut block);
            before = entry.position;
            match &entry.row {
                None => block.push(0),
                Some(row) => {
                    varint::write(row.bytes().len() as u64 + 1, &mut block);
                    block.extend_from_slice(row.bytes());
                }
            }
            if block.len() >= BLOCK_BYTES {
                file.append(&block)?;
                block.clear();
            }
        }
        if !block.is_empty() {
            file.append(&block)?;
            block.clear();
        }
    }
    file.finish(&metadata)
}

/// Opens the tables of an entry.
pub(crate) fn open_tables(
    file_system: &dyn FileSystem,
    directory: &Path,
    entry: &TablesEntry,
) -> Result<Tables> {
    // Earlier programs wrote the changes of all tables together, and named them here. To pass over
    // them would bring old rows back.
    if entry.further.contains_key(CHANGES_OF_ALL) {
        return Err(Error::UnknownPart {
            path: directory.to_path_buf(),
            what: "the changes of all tables in one directory".to_owned(),
        });
    }
    let tables = entry.tables.iter();
    let tables = tables.map(|table| open_table(file_system, directory, table));
    Ok(Tables::restored(
        entry.schemas.iter().cloned(),
        tables.collect::<Result<Vec<_>>>()?,
        entry.views.iter().cloned(),
        entry.next_relation,
    ))
}

fn open_table(
    file_system: &dyn FileSystem,
    directory: &Path,
    table: &TableEntry,
) -> Result<TableState> {
    table.definition.check()?;
    let definition = Arc::new(table.definition.clone());
    let mut state = TableState::empty(Arc::clone(&definition));
    if let Some(files) = &table.files {
        check_lengths(file_system, &directory.join(&files.name), files)?;
        state = open_files(file_system, directory, state, files)?;
    }
    if let Some(changes) = &table.changes {
        let name = changes_file(definition.id);
        for file in changes.files().filter(|file| file.name == name) {
            let path = directory.join(&changes.name).join(&file.name);
            let read = BlockFile::open(file_system, &path, CHANGES_KIND)?;
            check_summary(&path, file, read.summary())?;
            state = read_changes(&read, &state)?;
        }
        state = state.with_written_changes(changes.clone());
    }
    let state = state.with_next_row_number(table.next_row_number);
    let wrong = {
        let mut rows = state.projections().map(Projection::rows);
        rows.find(|rows| *rows != table.rows)
    };
    if let Some(found) = wrong {
        let expected = table.rows;
        let what = format!(
            "the table {} has {found} rows, the manifest says {expected}",
            definition.name
        );
        return Err(Error::corrupt(&directory.join("MANIFEST"), 0, what));
    }
    Ok(state)
}

fn read_changes(file: &BlockFile, state: &TableState) -> Result<TableState> {
    let corrupt = |offset: u64, what: &str| Error::corrupt(file.path(), offset, what);
    let (counts, rest) = file.metadata().as_chunks::<8>();
    if !rest.is_empty() || counts.len() != state.projections().count() {
        return Err(corrupt(
            file.metadata_offset(),
            "the number of projections is not that of the table",
        ));
    }
    let mut next_block = 0;
    let mut projections = Vec::with_capacity(counts.len());
    for (projection, count) in state.projections().zip(counts) {
        let (mut count, mut position) = (u64::from_le_bytes(*count), 0u64);
        // In the order of the entries: where a row of the file is gone, `None`.
        let mut places: Vec<(u64, bool)> = Vec::new();
        let mut rows = RowBytes::default();
        while count > 0 {
            if next_block >= file.block_count() {
                return Err(corrupt(file.metadata_offset(), "entries are missing"));
            }
            let offset = file.block_offset(BlockNumber(next_block));
            let mut block = file.block(BlockNumber(next_block))?;
            next_block += 1;
            while !block.is_empty() {
                let entry =
                    read_entry(&mut block).ok_or_else(|| corrupt(offset, "an entry is cut off"))?;
                let (step, row) = entry;
                position = position.saturating_add(step);
                // A row is new, or is one of the file that is gone.
                let is_within = match row {
                    Some(_) => position < projection.positions().end,
                    None => position + 1 < projection.positions().end,
                };
                if !is_within || count == 0 {
                    return Err(corrupt(offset, "an entry is behind the last row"));
                }
                places.push((position, row.is_some()));
                if let Some(row) = row {
                    rows.push(row);
                }
                count -= 1;
            }
        }
        projections.push(laid_over(projection, &places, rows).ok_or_else(|| {
            corrupt(
                file.metadata_offset(),
                "what should be rows is not, or not in their order",
            )
        })?);
    }
    Ok(state.with_projections(projections.into_iter(), state.next_row_number()))
}

fn read_entry<'b>(block: &mut &'b [u8]) -> Option<(u64, Option<&'b [u8]>)> {
    let step = varint::read(block)?;
    let Some(length) = varint::read_length(block)?.checked_sub(1) else {
        return Some((step, None));
    };
    let (row, rest) = block.split_at_checked(length)?;
    *block = rest;
    Some((step, Some(row)))
}

/// A projection with the entries of a file; `None` if they are not in order.
fn laid_over(
    projection: &Projection,
    places: &[(u64, bool)],
    rows: RowBytes,
) -> Option<Projection> {
    let of_key: Vec<usize> = (0..projection.layout().key_columns).collect();
    let columns = projection.codec().decode(rows.iter(), &of_key).ok()?;
    let keys = projection.keys_of(&columns).ok()?;
    let batch = RowBatch::new(keys, rows);
    let mut new = batch.iter();
    let changes: Option<Vec<Change>> = places
        .iter()
        .map(|&(position, is_new)| match is_new {
            true => Some(Change::Insert(position, new.next()?)),
            false => Some(Change::Delete(position)),
        })
        .collect();
    let changes = changes?;
    let ascend = changes.is_sorted_by(|one, other| one.compare(other).is_lt());
    ascend.then(|| projection.with_changes(ProjectionChanges::default().apply(&changes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::io::LocalFileSystem;

    #[test]
    fn changes_of_tables_that_an_earlier_program_wrote_are_not_passed_over() {
        let json = r#"{"schemas": [], "next_relation": 1, "changes": {"name": "tables-000003", "components": []}}"#;
        let entry: TablesEntry = serde_json::from_str(json).unwrap();
        let opened = open_tables(&LocalFileSystem, Path::new("db"), &entry);
        assert!(
            matches!(opened, Err(Error::UnknownPart { what, .. }) if what.contains("all tables"))
        );
    }
}
