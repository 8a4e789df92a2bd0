//! Tests of verification, change feeds and failures beside a running writer.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::files::io::testing::FailingFileSystem;
use crate::files::io::{Clock, LocalFileSystem};
use crate::text::TextRules;

fn commit(writer: &Writer, name: &str) {
    let mut transaction = writer.begin().unwrap();
    let quad = (
        iri(name),
        iri("p"),
        Term::string("a text that is not short"),
        None,
    );
    let mut quads = updates::intern(&mut transaction, &[quad]);
    transaction.insert(&mut quads).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap();
}

#[test]
fn a_verification_while_files_are_replaced_finds_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(build_small(directory.path(), &some_quads(true)).unwrap());
    database
        .set_text_rules(Some(TextRules::default()), None)
        .unwrap();
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    commit(&writer, "a");
    let mut rounds = 0;
    let verified = verify(directory.path(), |_| {
        // What it has read the manifest of is gone when it comes to it.
        if rounds < 3 {
            rounds += 1;
            commit(&writer, &format!("n{rounds}"));
            writer.checkpoint().unwrap();
            writer
                .set_text_rules(Some(TextRules::default()), None)
                .unwrap();
        }
    });
    assert_eq!(verified.unwrap().damages, []);
    assert_eq!(rounds, 3);
}

#[test]
fn damage_is_found_while_files_are_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(build_small(directory.path(), &some_quads(true)).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    // A file that the writer has read already.
    let damaged = database.snapshot().directory().join("statistics.bin");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let mut round = 0;
    let verified = verify(directory.path(), |_| {
        round += 1;
        commit(&writer, &format!("n{round}"));
        writer.checkpoint().unwrap();
    });
    let damages = verified.unwrap().damages;
    assert!(
        damages.iter().any(|damage| damage.file == damaged),
        "{damages:?}"
    );
}

#[test]
fn damaged_statistics_are_counted_anew() {
    let directory = tempfile::tempdir().unwrap();
    let database = build_small(directory.path(), &some_quads(true)).unwrap();
    let snapshot = database.snapshot();
    let statistics = snapshot.base().statistics().clone();
    let file = snapshot.directory().join("statistics.bin");
    drop((snapshot, database));
    let whole = std::fs::read(&file).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).step_by(7).map(flipped).collect();
    damaged.push(whole[..whole.len() / 2].to_vec());
    damaged.push(Vec::new());
    for bytes in damaged {
        std::fs::write(&file, &bytes).unwrap();
        let database = Database::open(directory.path()).unwrap();
        assert_eq!(*database.snapshot().base().statistics(), statistics);
        let damages = verify(directory.path(), |_| {}).unwrap().damages;
        assert!(
            damages.iter().all(|damage| damage.file == file),
            "{damages:?}"
        );
        assert!(!damages.is_empty());
        let database = Arc::new(database);
        drop(database.open_writer(WriterOptions::default()).unwrap());
    }
}

#[test]
fn a_commit_that_was_given_out_in_part_ends_a_feed() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = updates::open(directory.path());
    for name in ["a", "b", "c"] {
        commit(&writer, name);
    }
    let mut told = Vec::new();
    let scope = ReadScope::all_graphs(Asker::Process);
    let fed = database.changes(&scope, 0, |changes| {
        told.push(changes.entry.number);
        if told.len() < 2 {
            return Ok(());
        }
        // A file that a checkpoint has removed meanwhile.
        writer.checkpoint().unwrap();
        Err(Error::NotFound {
            path: directory.path().to_path_buf(),
            operation: "read",
        })
    });
    assert!(matches!(fed, Err(Error::NotFound { .. })), "{fed:?}");
    assert_eq!(told, [1, 2]);
}

/// Panics in the writer's thread.
#[derive(Debug, Default)]
struct PanicsInThread(AtomicBool);

impl Clock for PanicsInThread {
    fn now_us(&self) -> i64 {
        let is_there = std::thread::current().name() == Some("writer");
        if is_there {
            self.0.store(true, Ordering::SeqCst);
        }
        assert!(!is_there, "as it was told");
        1 << 52
    }
}

#[test]
fn a_panic_in_the_writers_thread_stops_writing_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::create_or_open(directory.path()).unwrap());
    let clock = Arc::new(PanicsInThread::default());
    let options = WriterOptions {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        checkpoint_quads: 1,
        ..WriterOptions::default()
    };
    let writer = database.open_writer(options).unwrap();
    commit(&writer, "a");
    while writer.check().is_ok() {
        std::thread::yield_now();
    }
    assert!(clock.0.load(Ordering::SeqCst));
    let told = writer.check().unwrap_err().to_string();
    assert!(told.contains("panicked: as it was told"), "{told}");
    let refused = writer.begin();
    assert!(
        matches!(refused, Err(Error::WritingStopped { .. })),
        "{refused:?}"
    );
    // Readers go on, and what was committed is there when it is opened anew.
    assert_eq!(ReadView::of_process(database.snapshot()).quad_count(), 1);
    drop((writer, database));
    let (database, _writer) = updates::open(directory.path());
    assert_eq!(ReadView::of_process(database.snapshot()).quad_count(), 1);
}

/// The lock was given back while it was held, so that a commit that had changed nothing waited
/// until a slow store had taken it.
#[test]
fn nobody_waits_for_a_store_that_takes_the_lock_back() {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
    let directory = tempfile::tempdir().unwrap();
    build_small(directory.path(), &some_quads(false)).unwrap();
    let files = FailingFileSystem::new(Arc::new(LocalFileSystem));
    let database = Database::open_with(Arc::new(files.clone()), directory.path()).unwrap();
    let writer = Arc::new(database)
        .open_writer(WriterOptions::default())
        .unwrap();
    commit(&writer, "a");
    // It asks the lock whether nobody else has written.
    let unchanged = writer.begin().unwrap().commit(CommitOptions::default());
    let unchanged = unchanged.unwrap();
    let held = files.hold_releases();
    let ended = writer.clone();
    let ending = std::thread::spawn(move || ended.end_turn("another leads"));
    held.until_one_waits();
    let (told, answer) = std::sync::mpsc::channel();
    let asking = std::thread::spawn(move || told.send(unchanged.wait()).unwrap());
    let answer = answer.recv_timeout(PATIENCE);
    drop(held);
    ending.join().unwrap();
    asking.join().unwrap();
    let answer = answer.expect("it waited for the store");
    assert!(matches!(answer, Err(Error::TurnEnded { .. })), "{answer:?}");
}
