//! The full-text index file of a base.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use orrery_full_text::{DocumentCounts, FileHandle, OpenPart, Part, PartFile, TextError};
use serde::{Deserialize, Serialize};

use super::recent::RecentTexts;
use super::rules::{TextEntry, TextRules};
use super::stored_file::{BLOCK_BYTES, StoredFile};
use crate::files::block_file::{BlockFile, BlockFileWriter, FileKind, FileSummary};
use crate::files::components::TEXT_FILE;
use crate::files::io::FileSystem;
use crate::files::listed_files::{check_lengths, check_summary};
use crate::{Error, Result};

pub(super) const TEXT_KIND: FileKind = FileKind(*b"TEXT");

/// The metadata of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Directory {
    parts: Vec<PartEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PartEntry {
    documents: DocumentCounts,
    files: Vec<PartFileEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PartFileEntry {
    name: String,
    first_block: u32,
    bytes: usize,
}

/// The file while it is written.
#[derive(Debug)]
pub(super) struct TextFileWriter {
    file: BlockFileWriter,
    directory: Directory,
}

impl TextFileWriter {
    pub(super) fn create(file_system: &dyn FileSystem, path: &Path) -> Result<Self> {
        Ok(Self {
            file: BlockFileWriter::create(file_system, path, TEXT_KIND)?,
            directory: Directory::default(),
        })
    }

    /// Appends a part.
    pub(super) fn append(&mut self, part: &Part) -> Result<()> {
        let mut files = Vec::with_capacity(part.files.len());
        for file in &part.files {
            let bytes = file.bytes.read_bytes(0..file.bytes.len());
            let bytes = bytes.map_err(|error| Error::from_io(self.file.path(), "write", error))?;
            files.push(PartFileEntry {
                name: file.name.clone(),
                first_block: self.file.block_count(),
                bytes: bytes.len(),
            });
            for block in bytes.chunks(BLOCK_BYTES) {
                self.file.append(block)?;
            }
        }
        self.directory.parts.push(PartEntry {
            documents: part.documents.clone(),
            files,
        });
        Ok(())
    }

    /// Writes the rest; when it returns, the file is on the disk.
    pub(super) fn finish(self) -> Result<FileSummary> {
        let path = self.file.path().to_path_buf();
        let metadata = serde_json::to_vec(&self.directory)
            .map_err(|error| Error::invalid_input(&path, error.to_string()))?;
        self.file.finish(&metadata)
    }
}

/// The index of a base's texts, with what came since.
#[derive(Debug)]
pub(crate) struct TextFile {
    path: PathBuf,
    directory_name: String,
    rules: TextRules,
    file: Arc<BlockFile>,
    parts: OnceLock<Vec<OpenPart>>,
    pub(super) recent: Arc<RecentTexts>,
}

impl TextFile {
    /// Opens what a manifest names. The parts are opened at the first search.
    pub(crate) fn open(
        file_system: &dyn FileSystem,
        directory: &Path,
        entry: &TextEntry,
    ) -> Result<Self> {
        let texts = directory.join(&entry.directory.name);
        check_lengths(file_system, &texts, &entry.directory)?;
        let path = texts.join(TEXT_FILE);
        let file = BlockFile::open(file_system, &path, TEXT_KIND)?;
        for (_, listed) in entry.directory.known_files() {
            check_summary(&texts.join(&listed.name), listed, file.summary())?;
        }
        Ok(Self {
            path,
            directory_name: entry.directory.name.clone(),
            rules: entry.rules.clone(),
            file: Arc::new(file),
            parts: OnceLock::new(),
            recent: Arc::default(),
        })
    }

    /// Name of its directory within the database's.
    pub(crate) fn directory_name(&self) -> &str {
        &self.directory_name
    }

    /// The rules that it was made by.
    pub(super) fn rules(&self) -> &TextRules {
        &self.rules
    }

    pub(super) fn block_file(&self) -> &BlockFile {
        &self.file
    }

    /// Its parts, opened if they were not yet.
    pub(super) fn parts(&self) -> Result<&[OpenPart]> {
        if let Some(parts) = self.parts.get() {
            return Ok(parts);
        }
        let parts = self.open_parts()?;
        Ok(self.parts.get_or_init(|| parts))
    }

    fn open_parts(&self) -> Result<Vec<OpenPart>> {
        let corrupt = |what: String| Error::corrupt(&self.path, self.file.metadata_offset(), what);
        let directory: Directory = serde_json::from_slice(self.file.metadata())
            .map_err(|error| corrupt(error.to_string()))?;
        let mut parts = Vec::with_capacity(directory.parts.len());
        for part in directory.parts {
            let mut files = Vec::with_capacity(part.files.len());
            for file in part.files {
                let blocks = file.bytes.div_ceil(BLOCK_BYTES) as u64;
                if u64::from(file.first_block) + blocks > u64::from(self.file.block_count()) {
                    return Err(corrupt(format!("{} lies behind its end", file.name)));
                }
                let bytes: Arc<dyn FileHandle> = Arc::new(StoredFile {
                    file: Arc::clone(&self.file),
                    first_block: file.first_block,
                    bytes: file.bytes,
                });
                let name = file.name;
                files.push(PartFile { name, bytes });
            }
            let opened = OpenPart::open(files, &part.documents);
            let opened = opened.map_err(|error| self.error(error))?;
            if opened.has_grams() != self.rules.grams {
                return Err(corrupt(
                    "its rules and its parts do not agree on grams".to_owned(),
                ));
            }
            parts.push(opened);
        }
        Ok(parts)
    }

    /// What a failure of the index is to the database.
    #[cfg(test)]
    pub(crate) fn part_count(&self) -> Result<usize> {
        self.parts().map(<[OpenPart]>::len)
    }

    pub(super) fn error(&self, error: TextError) -> Error {
        text_error(&self.path, error)
    }
}

/// What a failure of an index is to the database.
pub(super) fn text_error(path: &Path, error: TextError) -> Error {
    match error {
        TextError::Io(error) => match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::from_io(path, "read", error),
        },
        TextError::Stopped => Error::SearchStopped,
        other => Error::corrupt(path, 0, other.to_string()),
    }
}
