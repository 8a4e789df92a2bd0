//! The Parquet files of tables and refresh sets, generated once per scale.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::drivers::BenchError;
use crate::tpch::{RefreshSet, Scale, TpchTable, write_keys, write_parquet, write_refresh};

/// The folder of the files of a scale.
pub(in crate::drivers) struct TpchFiles {
    folder: PathBuf,
    scale: Scale,
}

/// What a pair of refreshes reads.
pub(super) struct RefreshFiles {
    pub(super) orders: PathBuf,
    pub(super) lines: PathBuf,
    pub(super) deleted: PathBuf,
}

/// The column of the file of deleted keys.
pub(super) const DELETED_KEY: &str = "deleted_key";

impl TpchFiles {
    /// In a folder of the cache.
    pub(in crate::drivers) fn new(cache: &Path, scale: Scale) -> Result<Self, BenchError> {
        let folder = cache.join(format!("tpch-{scale}"));
        fs::create_dir_all(&folder).map_err(|source| BenchError::File {
            path: folder.clone(),
            source,
        })?;
        Ok(Self { folder, scale })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a table.
    pub(super) fn table(&self, table: TpchTable) -> PathBuf {
        self.folder.join(format!("{}.parquet", table.name()))
    }

    /// Makes the files of the tables that are missing.
    pub(in crate::drivers) fn write_tables(&self) -> Result<(), BenchError> {
        for table in TpchTable::ALL {
            let path = self.table(table);
            if !path.is_file() {
                write_parquet(table, self.scale, &path)?;
            }
        }
        Ok(())
    }

    /// Reads the files of the tables, which the machine then has in its memory.
    pub(super) fn read_all(&self) -> Result<(), BenchError> {
        for table in TpchTable::ALL {
            let path = self.table(table);
            let copied =
                fs::File::open(&path).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
            copied.map_err(|source| BenchError::File { path, source })?;
        }
        Ok(())
    }

    /// The files of a refresh set, made if they are missing.
    pub(super) fn refresh(&self, number: u32) -> Result<RefreshFiles, BenchError> {
        let path = |name: &str| self.folder.join(format!("{name}.u{number}.parquet"));
        let files = RefreshFiles {
            orders: path("orders"),
            lines: path("lineitem"),
            deleted: path("delete"),
        };
        // The last of the three to be made.
        if !files.deleted.is_file() {
            let set = RefreshSet::new(self.scale, number)?;
            write_refresh(TpchTable::Orders, self.scale, &set.orders, &files.orders)?;
            write_refresh(TpchTable::LineItem, self.scale, &set.lines, &files.lines)?;
            write_keys(DELETED_KEY, &set.deleted, &files.deleted)?;
        }
        Ok(files)
    }
}
