//! The verification of tables: their files, and agreement of all projections.
//!
//! 1. each file that the manifest names for tables, also where only a commit of a log names it:
//!    length, checksums, order of the rows, fences, zones, dictionaries, statistics;
//! 2. the last state over each base: every index has the rows of its table, no more and no others.

use std::collections::BTreeSet;
use std::path::Path;

use arrow::array::ArrayRef;

use crate::files::block_file::BlockFile;
use crate::files::components::{Component, ComponentApart, FileEntry};
use crate::files::damage::Damage;
use crate::files::io::FileSystem;
use crate::files::listed_files::{check_summary, verify_directory};
use crate::files::manifest::Manifest;
use crate::quads::row_checks::hash_bytes;
use crate::table::{Projection, ProjectionFile, TABLE_CHANGES_KIND, TableState};
use crate::{Error, Result};

/// Rows read at once.
const ROWS_AT_ONCE: usize = 32 * 1024;

/// Adds what is wrong with the files of tables.
pub(crate) fn verify_table_files(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: &Manifest,
    damages: &mut Vec<Damage>,
) {
    let mut seen = BTreeSet::new();
    let directories = manifest
        .bases
        .iter()
        .flat_map(|base| base.directories_of_tables());
    for of_table in directories.filter(|of_table| seen.insert(of_table.name.as_str())) {
        let check = |path: &Path, component, file: &FileEntry| {
            check_file(file_system, path, component, file)
        };
        verify_directory(file_system, directory, of_table, check, damages);
    }
}

fn check_file(
    file_system: &dyn FileSystem,
    path: &Path,
    component: Component,
    entry: &FileEntry,
) -> Result<Vec<Error>> {
    match component {
        Component::Apart(ComponentApart::Rows) => {
            let file = ProjectionFile::open_as_written(file_system, path)?;
            check_summary(path, entry, file.summary())?;
            Ok(file.verify())
        }
        Component::Apart(ComponentApart::TableChanges) => {
            let file = BlockFile::open(file_system, path, TABLE_CHANGES_KIND)?;
            check_summary(path, entry, file.summary())?;
            Ok(file.verify_all())
        }
        _ => Err(Error::corrupt(path, 0, "it is not a file of a table")),
    }
}

/// Fails if an index of a table has other rows than the table.
pub(crate) fn check_indexes(directory: &Path, table: &TableState) -> Result<()> {
    let primary = table.primary();
    for (definition, index) in table.indexes() {
        let ids = index.layout().columns.iter().map(|column| column.id);
        let places: Option<Vec<usize>> = ids.map(|id| primary.layout().position(id)).collect();
        let wrong = |what: &str| {
            let name = &table.definition().name;
            let what = format!("the index {} of the table {name} {what}", definition.name);
            Error::corrupt(directory, 0, what)
        };
        let places = places.ok_or_else(|| wrong("has a column that the table lacks"))?;
        let own: Vec<usize> = (0..places.len()).collect();
        if sum_of_rows(primary, &places, index)? != sum_of_rows(index, &own, index)? {
            return Err(wrong("does not hold the same rows"));
        }
    }
    Ok(())
}

/// Number and sum of hashes of the rows of a projection, of some columns in the order in which an
/// index has them.
fn sum_of_rows(of: &Projection, places: &[usize], index: &Projection) -> Result<(u64, u64)> {
    let mut ascending = places.to_vec();
    ascending.sort_unstable();
    let (mut rows, mut sum) = (0, 0u64);
    let mut pieces = of.pieces(&ascending, ROWS_AT_ONCE);
    while let Some(read) = pieces.next_piece()? {
        let columns: Vec<ArrayRef> = places
            .iter()
            .map(|place| read[ascending.partition_point(|other| other < place)].clone())
            .collect();
        let encoded = index
            .codec()
            .encode(&columns)
            .map_err(|error| Error::Rows {
                what: error.to_string(),
            })?;
        rows += encoded.len() as u64;
        let hashes = encoded.iter().map(hash_bytes);
        sum = hashes.fold(sum, u64::wrapping_add);
    }
    Ok((rows, sum))
}
