//! Tests of single failing calls to the file system, and of a temporarily full disk.

use std::path::Path;
use std::sync::Arc;

use orrery_loader::{LoadError, LoadOptions, SilentProgress, Source, load_with};
use orrery_storage::io::FileSystem;
use orrery_storage::io::testing::{FailingFileSystem, Fault, RecordingFileSystem, Unsynced};
use orrery_storage::{Error, Result};

use crate::crash::setting;
use crate::crash::workload::{Step, Workload};
use crate::crash::world::{DIRECTORY, content, line, open};

const STEPS: [Step; 20] = [
    Step::Commit,
    Step::Checkpoint,
    Step::Group,
    Step::Commit,
    Step::Relaxed,
    Step::Mixed,
    Step::CompactTable,
    Step::Reopen,
    Step::Compact,
    Step::Commit,
    Step::Clear,
    Step::Checkpoint,
    Step::Load,
    Step::Texts,
    Step::Commit,
    Step::Texts,
    Step::Commit,
    Step::CompactBeside,
    Step::CompactTable,
    Step::Commit,
];

/// Of so many calls one fails with an index of texts, too.
const WITH_TEXTS: u64 = 31;

/// Goes on after an error as a server would: while commits are possible nothing is done about it,
/// else the database is opened anew.
fn persist(workload: &mut Workload, step: Step) -> Result<()> {
    if workload.session.is_none() {
        return workload.reopen();
    }
    let Err(error) = workload.run(step) else {
        return Ok(());
    };
    let is_expected = matches!(
        error,
        Error::Io { .. }
            | Error::NoSpace { .. }
            | Error::WritingStopped { .. }
            | Error::OutcomeUnknown { .. }
    );
    assert!(is_expected, "{step:?}: {error}");
    match &workload.session {
        Some(session) if session.writer.check().is_ok() => Ok(()),
        _ => workload.reopen(),
    }
}

/// Runs the steps with one call failing; whether there was such a call.
fn run_with(number: u64, fault: Fault, has_texts: bool) -> bool {
    let disk = RecordingFileSystem::new();
    let failing = FailingFileSystem::over(&disk);
    let mut workload = Workload::create(Arc::new(failing.clone()), 7, has_texts).unwrap();
    failing.fail_call(failing.calls() + number, fault);
    let last_call = failing.calls() + number;
    for step in STEPS {
        // The fault may hit the opening itself; the second time it works.
        if persist(&mut workload, step).is_err() {
            workload.reopen().unwrap();
        }
    }
    let happened = failing.calls() > last_call;
    workload.session = None;
    let place = |what| format!("{fault:?} of call {number}, then a power cut: {what:?}");
    check(&workload, Arc::new(disk.copy()), &place(Unsynced::Kept));
    let mut cuts = disk.power_cuts();
    while cuts.advance() {}
    for unsynced in [Unsynced::Dropped, Unsynced::Kept, Unsynced::Random(number)] {
        check(&workload, Arc::new(cuts.state(unsynced)), &place(unsynced));
    }
    happened
}

fn check(workload: &Workload, disk: Arc<dyn FileSystem>, place: &str) {
    let snapshot = open(&disk).expect(place).snapshot();
    let (found, acknowledged) = (snapshot.commit(), workload.acknowledged);
    assert!(
        found >= acknowledged,
        "{place}: {found}, not {acknowledged}"
    );
    assert_eq!(
        content(&snapshot).unwrap(),
        workload.states[&found],
        "{place}"
    );
}

#[test]
fn an_error_of_any_single_call_loses_nothing_that_was_acknowledged() {
    let runs_max = setting("ORRERY_FAULT_RUNS", 600) as u64;
    let mut calls = 0;
    while run_with(calls, Fault::Io, false) {
        calls += 50;
    }
    // All calls where the limit allows it, else evenly spread ones.
    let stride = (calls * 4).div_ceil(runs_max).max(1);
    for (offset, fault) in Fault::ALL.into_iter().enumerate() {
        let mut number = offset as u64 % stride;
        while run_with(number, fault, false) {
            number += stride;
        }
    }
    let mut number = 0;
    while run_with(number, Fault::Io, true) {
        number += stride * WITH_TEXTS;
    }
    println!("about {calls} calls, every {stride}. of them failed in four ways");
}

/// Loads some lines into a database that nobody has open, perhaps the first ones, with one call
/// failing; whether nobody knows if it was made, and whether there was such a call.
fn load_with_fault(number: u64, is_first: bool) -> (bool, bool) {
    const SOURCE: &str = "/source.nq";
    let disk = RecordingFileSystem::new();
    let files: Arc<dyn FileSystem> = Arc::new(disk.clone());
    let options = LoadOptions {
        threads: 1,
        ..LoadOptions::default()
    };
    let load = |files: &Arc<dyn FileSystem>, numbers: [u32; 3]| {
        let lines = numbers.map(line).concat();
        let mut file = disk.create(Path::new(SOURCE)).unwrap();
        file.append(lines.as_bytes()).unwrap();
        file.flush().unwrap();
        drop(file);
        let sources = [Source::File(SOURCE.into())];
        load_with(
            files,
            Path::new(DIRECTORY),
            &sources,
            &options,
            &SilentProgress,
        )
    };
    if !is_first {
        load(&files, [1, 2, 3]).unwrap();
    }
    let failing = FailingFileSystem::over(&disk);
    failing.fail_call(number, Fault::Io);
    let over: Arc<dyn FileSystem> = Arc::new(failing.clone());
    let loaded = load(&over, [4, 5, 6]);
    let happened = failing.calls() > number;
    failing.heal();
    drop(over);
    let found = match open(&files) {
        Ok(database) => content(&database.snapshot()).unwrap().contains(&4),
        Err(error) => {
            assert!(is_first && loaded.is_err(), "{number}: {error}");
            false
        }
    };
    match loaded {
        Ok(_) => assert!(found, "{number} was made"),
        Err(LoadError::Storage(Error::OutcomeUnknown { .. })) => {
            // Its files are there as long as the manifest may name them.
            assert!(found, "{number}, {is_first}");
            return (true, happened);
        }
        Err(error) => assert!(!found, "{number}: {error}"),
    }
    (false, happened)
}

#[test]
fn a_load_of_which_nobody_knows_whether_it_was_made_is_told_as_such_and_keeps_its_files() {
    for is_first in [false, true] {
        let (mut unknown, mut number) = (0, 0);
        loop {
            let (is_unknown, happened) = load_with_fault(number, is_first);
            unknown += u32::from(is_unknown);
            if !happened {
                break;
            }
            number += 1;
        }
        assert!(unknown > 0, "{is_first}");
    }
}

/// Kills the process before a call, opens the database anew, commits; then the power goes. Whether
/// there was such a call.
fn kill_at(number: u64, has_texts: bool) -> bool {
    let disk = RecordingFileSystem::new();
    // Not told of failed syncs: what the killed process wrote is in the system's memory, and a
    // later sync saves it.
    let failing = FailingFileSystem::new(Arc::new(disk.clone()));
    let mut workload = Workload::create(Arc::new(failing.clone()), 13, has_texts).unwrap();
    let last_call = failing.calls() + number;
    failing.fail_from(last_call, Fault::Io);
    let is_killed = STEPS.iter().any(|&step| workload.run(step).is_err());
    workload.session = None;
    failing.heal();
    workload.reopen().unwrap();
    workload.run(Step::Commit).unwrap();
    let mut cuts = disk.power_cuts();
    while cuts.advance() {}
    let random = (0..6).map(|seed| Unsynced::Random(number * 8 + seed));
    for unsynced in random.chain([Unsynced::Dropped, Unsynced::Kept]) {
        let place = format!("killed at call {number}, then a power cut: {unsynced:?}");
        check(&workload, Arc::new(cuts.state(unsynced)), &place);
    }
    is_killed
}

#[test]
fn what_was_acknowledged_after_a_kill_survives_a_power_cut() {
    let runs_max = setting("ORRERY_FAULT_RUNS", 600) as u64;
    let mut calls = 0;
    while kill_at(calls, false) {
        calls += 50;
    }
    let stride = calls.div_ceil(runs_max).max(1);
    let mut number = 0;
    while kill_at(number, false) {
        number += stride;
    }
    let mut number = 0;
    while kill_at(number, true) {
        number += stride * WITH_TEXTS;
    }
    println!("killed at every {stride}. of about {calls} calls");
}

#[test]
fn a_disk_that_is_full_for_a_while_stops_writers_but_not_readers_and_then_all_goes_on() {
    for start in 0..120_u64 {
        let disk = RecordingFileSystem::new();
        let failing = FailingFileSystem::over(&disk);
        let mut workload =
            Workload::create(Arc::new(failing.clone()), 11, start.is_multiple_of(8)).unwrap();
        workload.run(Step::Commit).unwrap();
        failing.fail_from(failing.calls() + start, Fault::NoSpace);
        let mut refused = 0;
        for step in [Step::Commit, Step::Checkpoint, Step::Commit, Step::Commit] {
            if let Err(error) = workload.run(step) {
                refused += 1;
                assert!(
                    matches!(
                        error,
                        Error::NoSpace { .. }
                            | Error::WritingStopped { .. }
                            | Error::OutcomeUnknown { .. }
                    ),
                    "{error}"
                );
            }
            let database = &workload.session.as_ref().unwrap().database;
            let snapshot = database.snapshot();
            assert_eq!(
                content(&snapshot).unwrap(),
                workload.states[&snapshot.commit()]
            );
        }
        failing.heal();
        if workload.run(Step::Commit).is_err() {
            // Only a failed sync needs the database to be opened anew.
            workload.reopen().unwrap();
            workload.run(Step::Commit).unwrap();
        }
        workload.run(Step::Checkpoint).unwrap();
        workload.reopen().unwrap();
        if start == 0 {
            assert_eq!(refused, 4);
        }
    }
}
