//! Files of one state of a database: held open for a backup, written by a restore.
//!
//! ```text
//! StateFiles::hold      manifest -> every file it names, mapped -> the log up to its last whole record
//! RestoredState         files, synced -> directories, synced -> MANIFEST, renamed into place
//! ```
//!
//! A backup needs no lock and hinders nobody. Files are never changed once written, and one that a
//! writer removes while it is copied stays readable, for it is mapped; where a file went between
//! reading the manifest and opening it, the new manifest is read. The log alone grows: its records
//! up to the moment of the hold are copied, with an end mark. What is kept for older states is not
//! part of it.
//!
//! A restore writes the manifest last, so a directory is either a whole database or, after a
//! failure, none; it can be restored into again then.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::access::read_scope::ReadScope;
use crate::database::create::{create_directory, refuse_foreign_files};
use crate::database::directory::{OPEN_ATTEMPTS_MAX, missing_file};
use crate::files::components::DirectoryComponents;
use crate::files::identity::DatabaseIdentity;
use crate::files::io::{FileBytes, FileSystem, FileWriter};
use crate::files::lock::{ClosedLog, WriterLock};
use crate::files::log::{LOG_DIRECTORY, LogTail, LogWriter};
use crate::files::manifest::{BaseEntry, LogEntry, Manifest};
use crate::snapshots::replay::{log_path, logs_after, open_log};
use crate::table::{TableChange, TablesEntry};
use crate::{Error, Result};

/// Name of the file that is restored last.
pub const MANIFEST_NAME: &str = "MANIFEST";

/// All files of one state, readable whatever writers do.
#[derive(Debug)]
pub struct StateFiles {
    /// The state's files by name; the manifest last.
    pub files: Vec<StateFile>,
    /// The last commit of the state.
    pub commit: u64,
    /// Who the database is, unless it was last written before there were identities.
    pub identity: Option<DatabaseIdentity>,
}

/// A file of a state.
#[derive(Debug, Clone)]
pub struct StateFile {
    /// Path within the database's directory, with `/` between its parts.
    pub name: String,
    /// Its content.
    pub content: FileBytes,
    /// Together with name and length it tells this content from every other, without reading it:
    /// the checksum of a block file's footer, or of the whole content of a file of another kind.
    pub crc32c: u32,
}

impl StateFiles {
    /// Opens all files of the present state of the database in a directory, for somebody who may
    /// see all graphs: nothing is left out of a file.
    pub fn hold(file_system: &dyn FileSystem, directory: &Path, scope: &ReadScope) -> Result<Self> {
        scope.require_all_graphs("back up the database")?;
        let mut manifest = Manifest::read(file_system, directory)?;
        for _ in 0..OPEN_ATTEMPTS_MAX {
            match Self::hold_files(file_system, directory, &manifest) {
                Err(error @ Error::NotFound { .. }) => {
                    let newer = Manifest::read(file_system, directory)?;
                    if newer.generation == manifest.generation {
                        return Err(missing_file(error));
                    }
                    manifest = newer;
                }
                other => return other,
            }
        }
        Self::hold_files(file_system, directory, &manifest)
    }

    fn hold_files(
        file_system: &dyn FileSystem,
        directory: &Path,
        manifest: &Manifest,
    ) -> Result<Self> {
        let mut held = Self {
            files: Vec::new(),
            commit: 0,
            identity: manifest.identity.clone(),
        };
        let base = only_present(manifest.present());
        held.files_of(file_system, directory, &base.segment)?;
        held.commit = base.commit;
        for index in base.directories_of_indices() {
            held.files_of(file_system, directory, index)?;
        }
        if let Some(delta) = base.deltas.last() {
            held.files_of(file_system, directory, &delta.delta)?;
            held.commit = delta.commit;
        }
        let tables = match base.deltas.last() {
            Some(delta) => &delta.tables,
            None => &base.tables,
        };
        let of_logs = base.logs.iter().flat_map(|log| &log.tables);
        let of_state = tables.iter().flat_map(TablesEntry::directories);
        let mut names = BTreeSet::new();
        for files in of_state.chain(of_logs) {
            if names.insert(files.name.as_str()) {
                held.files_of(file_system, directory, files)?;
            }
        }
        for log in &base.logs {
            held.log(file_system, directory, &base, log, &names)?;
        }
        let manifest = Manifest {
            bases: vec![base],
            ..manifest.clone()
        };
        let bytes = manifest.to_bytes(&Manifest::path(directory))?;
        held.copy(MANIFEST_NAME.to_owned(), bytes);
        Ok(held)
    }

    fn files_of(
        &mut self,
        file_system: &dyn FileSystem,
        directory: &Path,
        files: &DirectoryComponents,
    ) -> Result<()> {
        for entry in files.files() {
            let name = format!("{}/{}", files.name, entry.name);
            let path = directory.join(&name);
            let content = file_system.map(&path)?;
            if content.len() as u64 != entry.bytes {
                let (found, expected) = (content.len(), entry.bytes);
                let what = format!("it has {found} bytes, the manifest says {expected}");
                return Err(Error::corrupt(&path, 0, what));
            }
            self.files.push(StateFile {
                name,
                content,
                crc32c: entry.crc32c,
            });
        }
        Ok(())
    }

    /// The records of a log file so far, with the mark behind them that says that the copy has all
    /// of them. Without it, damage to the last commit of what is restored would look like a torn
    /// tail.
    fn log(
        &mut self,
        file_system: &dyn FileSystem,
        directory: &Path,
        base: &BaseEntry,
        log: &LogEntry,
        tables: &BTreeSet<&str>,
    ) -> Result<()> {
        let path = log_path(directory, &log.name);
        let mut reader = open_log(file_system, &path, base, log)?;
        while let Some(logged) = reader.next_record()? {
            let mut files = logged.record.tables.iter().filter_map(TableChange::files);
            if let Some(missing) = files.find(|files| !tables.contains(files.name.as_str())) {
                // A commit that came after the manifest was read: a newer one names its files.
                let path = directory.join(&missing.name);
                return Err(Error::NotFound {
                    path,
                    operation: "open",
                });
            }
            self.commit = self.commit.max(logged.record.commit);
        }
        let end = reader.end()?;
        let mut bytes = file_system.read(&path)?;
        bytes.truncate(usize::try_from(end.position).unwrap_or(usize::MAX));
        bytes.extend_from_slice(&end.mark());
        self.copy(format!("{LOG_DIRECTORY}/{}", log.name), bytes);
        Ok(())
    }

    fn copy(&mut self, name: String, bytes: Vec<u8>) {
        self.files.push(StateFile {
            name,
            crc32c: crc32c::crc32c(&bytes),
            content: FileBytes::from(bytes),
        });
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let lengths = self.files.iter().map(|file| file.content.len() as u64);
        lengths.sum()
    }
}

/// What the present state needs, without what is kept for older ones.
fn only_present(base: &BaseEntry) -> BaseEntry {
    let delta = base.deltas.last();
    let start = delta.map_or(base.commit, |delta| delta.commit);
    BaseEntry {
        // Those of the delta are all.
        tables: base.tables.clone().filter(|_| delta.is_none()),
        deltas: delta.cloned().into_iter().collect(),
        logs: logs_after(base, start).to_vec(),
        ..base.clone()
    }
}

/// A database being restored into a directory of its own; it is one only after
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct RestoredState {
    file_system: Arc<dyn FileSystem>,
    directory: PathBuf,
    /// Directories that files were written into.
    directories: Vec<PathBuf>,
    has_manifest: bool,
    lock: WriterLock,
}

impl RestoredState {
    /// Begins in a directory that is missing, or empty, or holds what an interrupted restore left.
    pub fn begin(file_system: &Arc<dyn FileSystem>, directory: &Path) -> Result<Self> {
        if file_system.metadata(&Manifest::path(directory))?.is_some() {
            return Err(Error::AlreadyADatabase {
                path: directory.to_path_buf(),
            });
        }
        create_directory(&**file_system, directory)?;
        refuse_foreign_files(&**file_system, directory)?;
        let lock = WriterLock::acquire_with(file_system, directory)?;
        for path in file_system.list(directory)? {
            let is_directory = file_system
                .metadata(&path)?
                .is_some_and(|found| found.is_directory);
            if is_directory {
                file_system.remove_dir_all(&path)?;
            }
        }
        Ok(Self {
            file_system: Arc::clone(file_system),
            directory: directory.to_path_buf(),
            directories: vec![directory.to_path_buf()],
            has_manifest: false,
            lock,
        })
    }

    /// Begins a file of the state, of the name that [`StateFile::name`] gave; sync it when it is
    /// written.
    pub fn create(&mut self, name: &str) -> Result<Box<dyn FileWriter>> {
        let relative = Path::new(name);
        let mut parts = relative.components();
        if name.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            let what = format!("{name:?} is no name of a file within a database");
            return Err(Error::invalid_input(&self.directory, what));
        }
        if name == MANIFEST_NAME {
            self.has_manifest = true;
            return self.file_system.create(&self.new_manifest());
        }
        let path = self.directory.join(relative);
        if let Some(parent) = path.parent()
            && !self.directories.iter().any(|known| known == parent)
        {
            self.file_system.create_dir_all(parent)?;
            self.directories.push(parent.to_path_buf());
        }
        self.file_system.create(&path)
    }

    /// Completes the database; when it returns, everything is on disk.
    pub fn finish(self) -> Result<()> {
        if !self.has_manifest {
            let what = "the backup holds no MANIFEST";
            return Err(Error::invalid_input(&self.directory, what));
        }
        for directory in self.directories.iter().rev() {
            self.file_system.sync_dir(directory)?;
        }
        let manifest = Manifest::path(&self.directory);
        self.file_system.rename(&self.new_manifest(), &manifest)?;
        self.file_system.sync_dir(&self.directory)?;
        self.close_log()
    }

    /// Puts the mark behind the last log where an older backup lacks it, and notes where it ends.
    fn close_log(&self) -> Result<()> {
        let file_system = &*self.file_system;
        let manifest = Manifest::read(file_system, &self.directory)?;
        let base = manifest.present();
        let Some(log) = base.logs.last() else {
            return Ok(());
        };
        let path = log_path(&self.directory, &log.name);
        let mut reader = open_log(file_system, &path, base, log)?;
        let mut commit = log.first_commit - 1;
        while let Some(logged) = reader.next_record()? {
            commit = logged.record.commit;
        }
        let end = reader.end()?;
        if end.tail == LogTail::Nothing {
            LogWriter::resume(file_system, &path, &end)?.close()?;
        }
        self.lock.note_closed(&ClosedLog {
            name: log.name.clone(),
            salt: end.salt(),
            position: end.position,
            commit,
        })
    }

    fn new_manifest(&self) -> PathBuf {
        self.directory.join("MANIFEST.new")
    }
}
