//! The verification of flushed deltas and logs against their base.
//!
//! 1. each file of a delta: length, checksums against the manifest's, keys that are those of terms;
//! 2. each log: every record up to its end, and what stands there; where the lock's file says that
//!    the log was closed, it has to end there;
//! 3. base, last delta and logs together: each change fits what is below it, all permutations hold
//!    the same changes, of ids that exist.

use std::path::Path;
use std::sync::Arc;

use orrery_term::{TermId, TermKind, parse_key};

use crate::files::block_file::BlockFile;
use crate::files::components::{Component, FileEntry};
use crate::files::damage::{Damage, Verified, damage_of};
use crate::files::io::FileSystem;
use crate::files::listed_files::{check_summary, verify_directory};
use crate::files::lock::{ClosedLog, LOCK_FILE, LockText};
use crate::files::log::{LogEnd, LogTail};
use crate::files::manifest::{BaseEntry, Manifest};
use crate::quads::delta::DeltaIndex;
use crate::quads::row_checks::{Limits, hash_quad};
use crate::snapshots::flushed::{DELTA_TERMS_KIND, for_each_term};
use crate::snapshots::replay::{Start, log_path, logs_after, open_log};
use crate::snapshots::snapshot::Snapshot;
use crate::text::verify_text_files;
use crate::verification::verify_tables::{check_indexes, verify_table_files};
use crate::{Error, Result};

/// Adds what is wrong with all that the manifest names beside the bases' own segments, and with the
/// lock's file.
pub(crate) fn verify_changes(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: &Manifest,
    verified: &mut Verified,
) -> Result<()> {
    let are_bases_whole = verified.is_empty();
    let before = verified.damages.len();
    // Before the logs: whatever is written meanwhile makes them longer.
    let lock = LockText::read(file_system, directory)?;
    if lock == LockText::Unreadable {
        let what = "it does not match its checksum: a power cut may leave it so, or it is damaged. Nothing in the database \
                    depends on it, but where the log was closed can no longer be known";
        verified.note(&directory.join(LOCK_FILE), what);
    }
    for base in &manifest.bases {
        for delta in &base.deltas {
            let damages = &mut verified.damages;
            let check = |path: &Path, component, file: &FileEntry| {
                check_file(file_system, path, component, file)
            };
            verify_directory(file_system, directory, &delta.delta, check, damages);
        }
        for log in &base.logs {
            let path = log_path(directory, &log.name);
            let end = open_log(file_system, &path, base, log).and_then(|mut log| {
                let mut last = log.header().first_commit - 1;
                while let Some(logged) = log.next_record()? {
                    last = logged.record.commit;
                }
                Ok((log.end()?, last))
            });
            match end {
                Err(error) => verified.damages.push(damage_of(error, &path)),
                Ok((end, _)) if base.logs.last() != Some(log) => {
                    check_left(&path, &end, verified);
                }
                Ok((end, last_commit)) => match &lock {
                    LockText::Closed(closed)
                        if closed.is_of(&log.name, end.salt())
                            && end.position <= closed.position =>
                    {
                        check_closed(&path, &end, closed, verified);
                    }
                    _ => note_end(&path, &end, last_commit, verified),
                },
            }
        }
    }
    verify_table_files(file_system, directory, manifest, &mut verified.damages);
    verify_text_files(file_system, directory, manifest, verified);
    if !are_bases_whole || verified.damages.len() > before {
        return Ok(()); // What is damaged need not fit.
    }
    let shared = Arc::new(manifest.clone());
    for base in &manifest.bases {
        if base.deltas.is_empty() && base.logs.is_empty() {
            continue;
        }
        if let Err(error) = check_fit(file_system, directory, &shared, base) {
            verified.damages.push(damage_of(error, directory));
        }
    }
    Ok(())
}

/// A log that is not the last was closed before the next was begun, which tells how many commits it
/// has. Copies of older backups have no mark.
fn check_left(path: &Path, end: &LogEnd, verified: &mut Verified) {
    match end.tail {
        LogTail::Mark | LogTail::Nothing => {}
        LogTail::BrokenMark | LogTail::Torn(_) => verified.damages.push(Damage {
            file: path.to_path_buf(),
            offset: end.position,
            what: "the mark behind the last commit is damaged; no commit is missing".to_owned(),
        }),
    }
}

/// A log that nobody has written since it was closed has to be as it was then.
fn check_closed(path: &Path, end: &LogEnd, closed: &ClosedLog, verified: &mut Verified) {
    let position = end.position;
    let what = match end.tail {
        _ if position < closed.position => closed.missing(),
        LogTail::Mark => return,
        LogTail::Nothing => {
            "the mark is missing that was put there when it was closed; no commit is missing"
                .to_owned()
        }
        LogTail::BrokenMark => {
            "the mark that was put there when it was closed is damaged; no commit \
                                is missing, and the next writer begins another file"
                .to_owned()
        }
        LogTail::Torn(bytes) => format!(
            "{bytes} bytes stand there that were not there when it was closed; no commit is \
             missing, and the next writer cuts them off"
        ),
    };
    verified.damages.push(Damage {
        file: path.to_path_buf(),
        offset: position,
        what,
    });
}

/// What can be said of the end of a log whose writer was killed, or is writing now.
fn note_end(path: &Path, end: &LogEnd, last_commit: u64, verified: &mut Verified) {
    let place = end.position;
    let what = match end.tail {
        LogTail::Mark => return,
        LogTail::Nothing => format!(
            "it ends at byte {place} behind commit {last_commit} without the mark of a writer that was done: the last one \
             was killed, or is writing now. Whether the file was longer once cannot be known"
        ),
        LogTail::BrokenMark => format!(
            "the mark at byte {place} behind commit {last_commit} is not whole: a power cut may leave it so, or \
             it is damaged. No commit is missing"
        ),
        LogTail::Torn(bytes) => format!(
            "the last {bytes} bytes, from byte {place} on, are no whole commit; the next writer cuts them off and gives \
             number {next} to its first commit. A writer that was killed leaves such bytes; whether they are \
             a commit {next} that was whole and is damaged cannot be known",
            next = last_commit + 1
        ),
    };
    verified.note(path, &what);
}

fn check_file(
    file_system: &dyn FileSystem,
    path: &Path,
    component: Component,
    entry: &FileEntry,
) -> Result<Vec<Error>> {
    if let Component::Changes(_) = component {
        let delta = DeltaIndex::open(file_system, path)?;
        if let Some(summary) = delta.file_summary() {
            check_summary(path, entry, summary)?;
        }
        return Ok(delta.verify());
    }
    if component != Component::NewTerms {
        let what = "it is not a file of a flushed delta";
        return Err(Error::corrupt(path, 0, what));
    }
    let file = BlockFile::open(file_system, path, DELTA_TERMS_KIND)?;
    check_summary(path, entry, file.summary())?;
    let damages = file.verify_all();
    if damages.is_empty() {
        for_each_term(&file, |key, offset| match parse_key(key) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::corrupt(path, offset, error.to_string())),
        })?;
    }
    Ok(damages)
}

/// Whether base, last delta and logs fit together.
fn check_fit(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: &Arc<Manifest>,
    base: &BaseEntry,
) -> Result<()> {
    let start = Start::last_over(base);
    let stored = Arc::new(start.open(file_system, directory, None)?);
    let logs = logs_after(base, start.commit());
    let replayed = start.replay(file_system, directory, manifest, stored, logs, u64::MAX)?;
    let snapshot = replayed.snapshot;
    for table in snapshot.tables().with_system_tables() {
        check_indexes(directory, table)?;
    }
    let mut expected = None;
    for index in snapshot.indexes() {
        index.verify_deltas()?;
        let mut sum = 0u64;
        for change in index.changes()? {
            let change = change?;
            let quad = index.permutation().quad(change.row);
            let hash = hash_quad(quad);
            sum = match change.is_insertion {
                true => sum.wrapping_add(hash),
                false => sum.wrapping_sub(hash),
            };
            check_ids(&snapshot, quad)?;
        }
        if *expected.get_or_insert(sum) != sum {
            let what = format!("{} does not hold the same changes", index.permutation());
            return Err(Error::corrupt(index.path(), 0, what));
        }
    }
    Ok(())
}

fn check_ids(snapshot: &Snapshot, quad: [u64; 4]) -> Result<()> {
    let limits = Limits::new(snapshot.dictionary(), snapshot.next_blank_node());
    let exists = |bits: u64| {
        let id = TermId::from_bits(bits);
        match id.checked_kind() {
            Some(TermKind::Delta) => id.payload() < snapshot.delta_terms(),
            _ => limits.contain(bits),
        }
    };
    match quad.iter().find(|&&id| !exists(id)) {
        None => Ok(()),
        Some(id) => {
            let what = format!("a change has the id {id:016x}, which stands for no term");
            Err(Error::corrupt(snapshot.directory(), 0, what))
        }
    }
}
