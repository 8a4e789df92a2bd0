//! Tests of the log with failing disks and power cuts.

use std::path::Path;
use std::sync::Arc;

use super::{header, record};
use crate::files::io::FileSystem;
use crate::files::io::testing::{FailingFileSystem, Fault, RecordingFileSystem, Unsynced};
use crate::files::log::{LogEnd, LogReader, LogWriter};
use crate::{Error, Result};

const FIRST: u64 = 41;

fn path() -> &'static Path {
    Path::new("/log")
}

/// Reads a log whose records were all made by [`record`]; gives the number of the last one.
fn last_commit(file_system: &dyn FileSystem) -> Result<(u64, LogEnd)> {
    let mut reader = LogReader::open(file_system, path())?;
    let mut last = FIRST - 1;
    while let Some(logged) = reader.next_record()? {
        last = logged.record.commit;
        assert_eq!(logged.record, record(last));
    }
    Ok((last, reader.end()?))
}

/// Opens the log as a new process would and commits so many more; tells each commit that is
/// acknowledged.
fn commit_more(
    file_system: &dyn FileSystem,
    number: u64,
    mut acknowledged: impl FnMut(u64),
) -> Result<()> {
    let (mut last, writer) = if file_system.metadata(path())?.is_none() {
        (
            FIRST - 1,
            LogWriter::create(file_system, path(), &header())?,
        )
    } else {
        let (last, end) = last_commit(file_system)?;
        (last, LogWriter::resume(file_system, path(), &end)?)
    };
    for group in [1, 3, number.saturating_sub(4)] {
        let mut end = 0;
        for _ in 0..group {
            end = writer.append(&record(last + 1))?.end;
            last += 1;
        }
        writer.wait(end)?;
        acknowledged(last);
    }
    Ok(())
}

#[test]
fn after_a_power_cut_at_any_moment_every_acknowledged_commit_is_there() {
    let disk = RecordingFileSystem::new();
    let mut acknowledged = Vec::new();
    for _ in 0..3 {
        commit_more(&disk, 6, |last| {
            acknowledged.push((disk.operations(), last))
        })
        .unwrap();
    }
    let created = disk.power_cuts().len() - disk.operations();
    assert_eq!(created, 0);
    let mut cuts = disk.power_cuts();
    let mut states = 0;
    while cuts.advance() {
        let mut before = acknowledged.iter().rev();
        let expected = before
            .find(|(operations, _)| *operations <= cuts.position())
            .map(|(_, last)| *last);
        let seed = cuts.position() as u64 * 100;
        let random = (0..40).map(|number| Unsynced::Random(seed + number));
        let fixed = [Unsynced::Dropped, Unsynced::Kept, Unsynced::Torn(seed)];
        for unsynced in random.chain(fixed) {
            let state = cuts.state(unsynced);
            states += 1;
            match (last_commit(&state), expected) {
                (Ok((last, _)), expected) => assert!(last >= expected.unwrap_or(0)),
                (Err(_), None) => continue, // the log was just being created
                (Err(error), Some(_)) => panic!("{unsynced:?} at {seed}: {error}"),
            }
            // Life goes on, and a second cut right after takes nothing away.
            let mut then = 0;
            commit_more(&state, 4, |last| then = last).unwrap();
            let mut again = state.power_cuts();
            while again.advance() {}
            assert_eq!(
                last_commit(&again.state(Unsynced::Dropped)).unwrap().0,
                then
            );
        }
    }
    assert!(states > 1000, "{states}");
}

#[test]
fn an_error_of_any_single_call_loses_no_acknowledged_commit() {
    for fault in Fault::ALL {
        for number in 0.. {
            let disk = RecordingFileSystem::new();
            commit_more(&disk, 5, |_| {}).unwrap();
            let failing = FailingFileSystem::over(&disk);
            failing.fail_call(number, fault);
            let mut last_acknowledged = FIRST + 4;
            let outcome = commit_more(&failing, 6, |last| last_acknowledged = last);
            if failing.calls() < number {
                outcome.unwrap();
                break;
            }
            // Whatever a failed sync left in the memory of the system: after reopening it is on the
            // disk.
            let (found, _) = last_commit(&disk).unwrap();
            assert!(found >= last_acknowledged, "{fault:?} at {number}");
            commit_more(&disk, 5, |last| last_acknowledged = last).unwrap();
            assert_eq!(last_acknowledged, found + 5);
            let mut cuts = disk.power_cuts();
            while cuts.advance() {}
            let state = cuts.state(Unsynced::Dropped);
            assert_eq!(last_commit(&state).unwrap().0, last_acknowledged);
        }
    }
}

#[test]
fn a_full_disk_takes_the_record_back_and_space_heals() {
    for fault in [Fault::NoSpace, Fault::ShortWrite] {
        let disk = RecordingFileSystem::new();
        let failing = FailingFileSystem::over(&disk);
        let writer = LogWriter::create(&failing, path(), &header()).unwrap();
        writer.append(&record(FIRST)).unwrap();
        failing.fail_call(failing.calls(), fault);
        let error = writer.append(&record(FIRST + 1)).unwrap_err();
        assert!(matches!(error, Error::NoSpace { .. }));
        assert_eq!(last_commit(&disk).unwrap().0, FIRST);
        let appended = writer.append(&record(FIRST + 1)).unwrap();
        writer.wait(appended.end).unwrap();
        assert_eq!(last_commit(&disk).unwrap().0, FIRST + 1);
    }
}

#[test]
fn a_failed_sync_ends_writing_for_everybody_and_for_good() {
    let disk = RecordingFileSystem::new();
    let failing = FailingFileSystem::over(&disk);
    let writer = Arc::new(LogWriter::create(&failing, path(), &header()).unwrap());
    let first = writer.append(&record(FIRST)).unwrap();
    writer.wait(first.end).unwrap();
    let second = writer.append(&record(FIRST + 1)).unwrap();
    failing.fail_from(failing.calls(), Fault::Io);
    assert!(matches!(
        writer.wait(second.end),
        Err(Error::WritingStopped { .. })
    ));
    failing.heal();
    for error in [
        writer.wait(second.end).unwrap_err(),
        writer.append(&record(FIRST + 2)).unwrap_err(),
        writer.check().unwrap_err(),
        writer.close().unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("writing has stopped") && text.contains("/log"));
    }
    // What was durable before stays so.
    writer.wait(first.end).unwrap();
    assert!(last_commit(&disk).unwrap().0 >= FIRST);
}
