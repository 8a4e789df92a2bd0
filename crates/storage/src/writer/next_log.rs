//! The switch to a new log file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;
use crate::files::io::FileSystem;
use crate::files::log::{LOG_DIRECTORY, LogHeader, LogWriter};
use crate::files::manifest::{FORMAT_VERSION, LogEntry, Manifest};
use crate::files::unlisted::Unlisted;
use crate::snapshots::replay::log_path;
use crate::snapshots::snapshot::Snapshot;

/// Begins a log file after a state, and publishes the manifest that names it.
pub(super) fn next_log(
    file_system: &dyn FileSystem,
    directory: &Path,
    after: &Snapshot,
) -> Result<(LogWriter, Manifest)> {
    let mut manifest = after.to_manifest();
    manifest.format_version = FORMAT_VERSION;
    manifest.generation += 1;
    let name = format!("{:06}.log", manifest.generation);
    let logs = directory.join(LOG_DIRECTORY);
    if file_system.metadata(&logs)?.is_none() {
        file_system.create_dir_all(&logs)?;
        file_system.sync_dir(directory)?;
    }
    let base = manifest.present_mut();
    let header = LogHeader {
        base_segment: base.segment.name.clone(),
        base_generation: base.generation,
        first_commit: after.commit() + 1,
    };
    let path = log_path(directory, &name);
    base.logs.push(LogEntry {
        name,
        first_commit: header.first_commit,
        tables: Vec::new(),
        further: BTreeMap::new(),
    });
    let unlisted = Unlisted::file(file_system, path);
    let log = LogWriter::create(file_system, unlisted.path(), &header)?;
    let published = manifest.publish(file_system, directory);
    unlisted.keep_if_listed(&published);
    published?;
    Ok((log, manifest))
}
