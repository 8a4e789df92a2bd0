//! The manifest: which files make up the database at this moment.
//!
//! `DIR/MANIFEST` is JSON for people to read, followed by a line with the checksum of all
//! bytes before it:
//!
//! ```text
//! {
//!   "format_version": 1,
//!   "generation": 7,
//!   ...
//! }
//! crc32c 0a1b2c3d
//! ```
//!
//! It is replaced by writing `MANIFEST.new`, syncing it, renaming it over the old one and syncing the
//! directory: after a power cut there is the old manifest or the new, and the old one's files
//! are removed only after that. Later versions of the format keep `format_version` and the last line, so
//! that this program can say that it is too old.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::io::FileSystem;
use crate::{Error, Result};

/// The database format that this program reads and writes.
pub(crate) const FORMAT_VERSION: u32 = 1;

const MANIFEST_FILE: &str = "MANIFEST";
const MANIFEST_NEW_FILE: &str = "MANIFEST.new";
const CHECKSUM_LINE_BYTES: usize = "crc32c 01234567\n".len();

/// The content of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the database format.
    pub format_version: u32,
    /// Counts the manifests of this database: each publish adds one.
    pub generation: u64,
    /// Number of quads.
    pub quad_count: u64,
    /// Number of terms in the dictionary.
    pub term_count: u64,
    /// The number that the next new blank node gets.
    pub next_blank_node: u64,
    /// The segment that holds all data.
    pub segment: SegmentEntry,
}

/// A segment: a directory of files that are never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Name of its directory within the database's.
    pub name: String,
    /// Its files.
    pub files: Vec<FileEntry>,
}

/// A file of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name within the segment's directory.
    pub name: String,
    /// Length.
    pub bytes: u64,
    /// CRC32C of the block file's footer, which holds the checksums of all blocks.
    pub crc32c: u32,
}

/// As much as every version of the format has.
#[derive(Deserialize)]
struct VersionOnly {
    format_version: u32,
}

impl Manifest {
    /// Where the manifest of a database stands.
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join(MANIFEST_FILE)
    }

    /// Reads and checks the manifest; says what is wrong with a directory that has none.
    pub(crate) fn read(file_system: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let path = Self::path(directory);
        match file_system.metadata(directory)? {
            None => {
                return Err(Error::NotFound {
                    path: directory.to_path_buf(),
                    operation: "open the database",
                });
            }
            Some(found) if !found.is_directory => {
                return Err(Error::NotADirectory {
                    path: directory.to_path_buf(),
                    operation: "open the database",
                });
            }
            Some(_) => {}
        }
        if file_system.metadata(&path)?.is_none() {
            let what = match file_system.list(directory)?.is_empty() {
                true => "the directory is empty",
                false => "there is no MANIFEST in it",
            };
            return Err(Error::NotADatabase {
                path: directory.to_path_buf(),
                what: what.to_owned(),
            });
        }
        Self::parse(&file_system.read(&path)?, &path)
    }

    /// Makes this the manifest of the database; when it returns, it is on the disk.
    pub(crate) fn publish(&self, file_system: &dyn FileSystem, directory: &Path) -> Result<()> {
        let new_path = directory.join(MANIFEST_NEW_FILE);
        let bytes = self.to_bytes(&new_path)?;
        let mut file = file_system.create(&new_path)?;
        file.append(&bytes)?;
        file.sync()?;
        drop(file);
        file_system.rename(&new_path, &Self::path(directory))?;
        file_system.sync_dir(directory)
    }

    pub(crate) fn to_bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::invalid_input(path, error.to_string()))?;
        bytes.push(b'\n');
        let line = checksum_line(&bytes);
        bytes.extend_from_slice(line.as_bytes());
        Ok(bytes)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let split = bytes.len().saturating_sub(CHECKSUM_LINE_BYTES);
        let (json, line) = bytes.split_at(split);
        if line != checksum_line(json).as_bytes() {
            return Err(Error::corrupt(
                path,
                0,
                "its content does not match its last line, the checksum",
            ));
        }
        let json_error = |error: serde_json::Error| Error::corrupt(path, 0, error.to_string());
        let VersionOnly { format_version } = serde_json::from_slice(json).map_err(json_error)?;
        if format_version != FORMAT_VERSION {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found: format_version,
                supported: FORMAT_VERSION,
            });
        }
        serde_json::from_slice(json).map_err(json_error)
    }
}

fn checksum_line(bytes: &[u8]) -> String {
    format!("crc32c {:08x}\n", crc32c::crc32c(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::LocalFileSystem;

    fn example() -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            generation: 3,
            quad_count: 17,
            term_count: 9,
            next_blank_node: 2,
            segment: SegmentEntry {
                name: "segment-000003".to_owned(),
                files: vec![FileEntry {
                    name: "psog.col".to_owned(),
                    bytes: 400,
                    crc32c: 5,
                }],
            },
        }
    }

    #[test]
    fn a_published_manifest_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        example()
            .publish(&LocalFileSystem, directory.path())
            .unwrap();
        let read = Manifest::read(&LocalFileSystem, directory.path()).unwrap();
        assert_eq!(read, example());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let path = Path::new("MANIFEST");
        let bytes = example().to_bytes(path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(
                Manifest::parse(&damaged, path),
                Err(Error::Corrupt { .. })
            ));
        }
        for length in 0..bytes.len() {
            assert!(Manifest::parse(&bytes[..length], path).is_err());
        }
    }

    #[test]
    fn another_version_is_told_as_such() {
        let mut json = b"{\"format_version\": 2, \"shape\": \"unknown\"}\n".to_vec();
        let line = checksum_line(&json);
        json.extend_from_slice(line.as_bytes());
        assert!(matches!(
            Manifest::parse(&json, Path::new("MANIFEST")),
            Err(Error::FormatVersion { found: 2, .. })
        ));
    }

    #[test]
    fn what_is_no_database_is_said_in_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let read = |path: &Path| {
            Manifest::read(&LocalFileSystem, path)
                .unwrap_err()
                .to_string()
        };
        assert!(read(directory.path()).contains("the directory is empty"));
        let file = directory.path().join("notes.txt");
        std::fs::write(&file, "x").unwrap();
        assert!(read(directory.path()).contains("there is no MANIFEST in it"));
        assert!(read(&file).contains("is a file, not a directory"));
        assert!(read(&directory.path().join("none")).contains("no such file or directory"));
    }
}
