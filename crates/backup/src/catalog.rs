//! The catalog of a backup: copied files and their objects.
//!
//! JSON for people to read, then a line with the checksum of all bytes before it, as in the
//! manifest of a database.

use crate::source::SourceDatabase;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::Result;
use crate::target::Target;

/// The version of the list that this program writes and reads.
pub(crate) const FORMAT_VERSION: u32 = 1;
const FOLDER: &str = "backups";
const CHECKSUM_LINE_BYTES: usize = "crc32c 01234567\n".len();

/// One backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupList {
    /// Version of this list.
    pub format_version: u32,
    /// Counts the backups of a target, from 1.
    pub number: u64,
    /// When it was made, in microseconds since 1970-01-01T00:00:00Z.
    pub time_micros: i64,
    /// The last commit that is in it.
    pub commit: u64,
    /// Whose backup it is; missing in those from before there were identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<SourceDatabase>,
    /// The files of the database; the manifest last.
    pub files: Vec<ListedFile>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFile {
    /// Path within the database's directory.
    pub name: String,
    /// Length.
    pub bytes: u64,
    /// CRC32C of the whole content.
    pub crc32c: u32,
    /// Name of the object within the target.
    pub object: String,
}

#[derive(Deserialize)]
struct VersionOnly {
    format_version: u32,
}

impl BackupList {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// All backups of a target, oldest first.
    pub async fn read_all(target: &Target) -> Result<Vec<Self>> {
        let mut lists = Vec::new();
        for number in numbers(target).await? {
            lists.push(Self::read_object(target, &object_of(number)).await?);
        }
        Ok(lists)
    }

    /// One backup, or the last.
    pub async fn read(target: &Target, number: Option<u64>) -> Result<Self> {
        let numbers = numbers(target).await?;
        let found = match number {
            Some(number) => numbers.contains(&number).then_some(number),
            None => numbers.last().copied(),
        };
        match found {
            Some(number) => Self::read_object(target, &object_of(number)).await,
            None => Err(Error::NoBackup {
                target: target.name().to_owned(),
                number,
            }),
        }
    }

    async fn read_object(target: &Target, object: &str) -> Result<Self> {
        let damaged = |what: String| Error::Damaged {
            object: object.to_owned(),
            target: target.name().to_owned(),
            what,
        };
        let bytes = target.get(object).await?;
        let (json, line) = bytes.split_at(bytes.len().saturating_sub(CHECKSUM_LINE_BYTES));
        if line != checksum_line(json).as_bytes() {
            let what = "its content does not match its last line, the checksum";
            return Err(damaged(what.to_owned()));
        }
        let json_error = |error: serde_json::Error| damaged(error.to_string());
        let VersionOnly { format_version } = serde_json::from_slice(json).map_err(json_error)?;
        if format_version != FORMAT_VERSION {
            return Err(Error::FormatVersion {
                object: object.to_owned(),
                target: target.name().to_owned(),
                found: format_version,
                supported: FORMAT_VERSION,
            });
        }
        serde_json::from_slice(json).map_err(json_error)
    }

    /// Removes the list: its objects are no backup any more.
    pub(crate) async fn remove(&self, target: &Target) -> Result<()> {
        target.remove(&object_of(self.number)).await
    }

    /// Stores the list under its number; `false` if there is one of this number.
    pub(crate) async fn write(&self, target: &Target) -> Result<bool> {
        let object = object_of(self.number);
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| Error::Damaged {
            object: object.clone(),
            target: target.name().to_owned(),
            what: error.to_string(),
        })?;
        bytes.push(b'\n');
        let line = checksum_line(&bytes);
        bytes.extend_from_slice(line.as_bytes());
        target.put_new(&object, bytes).await
    }
}

/// The numbers of all backups, ascending.
async fn numbers(target: &Target) -> Result<Vec<u64>> {
    let objects = target.list(FOLDER).await?;
    let mut numbers: Vec<u64> = objects.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn object_of(number: u64) -> String {
    format!("{FOLDER}/{number:06}.json")
}

fn number_of(object: &str) -> Option<u64> {
    let name = object.rsplit('/').next()?;
    name.strip_suffix(".json")?.parse().ok()
}

fn checksum_line(bytes: &[u8]) -> String {
    format!("crc32c {:08x}\n", crc32c::crc32c(bytes))
}
