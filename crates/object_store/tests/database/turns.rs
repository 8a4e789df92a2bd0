//! Tests of the writer role lost during work, and of lost acknowledged commits.

use std::sync::mpsc;
use std::thread;

use orrery_storage::{
    Asker, CommitOptions, Database, Durability, Error, ReadScope, Result, Transaction, Writer,
    WriterOptions,
};
use orrery_term::TermId;

use crate::common::{ROOT, commit, numbers, quads, set, until};
use crate::{impatient, site_with};

fn insertion(writer: &Writer, of: std::ops::Range<u64>) -> Result<Transaction> {
    let mut transaction = writer.begin()?;
    let mut rows = Vec::new();
    for (s, p, o, _) in quads(of) {
        let [s, p, o] = [
            transaction.intern(&s)?,
            transaction.intern(&p)?,
            transaction.intern(&o)?,
        ];
        rows.push([s, p, o, TermId::DEFAULT_GRAPH]);
    }
    transaction.insert(&mut rows)?;
    Ok(transaction)
}

fn commit_relaxed(writer: &Writer, of: std::ops::Range<u64>) -> Result<u64> {
    let options = CommitOptions {
        durability: Durability::Relaxed,
        ..CommitOptions::default()
    };
    insertion(writer, of)?.commit(options)?.wait()
}

/// The commits after one that a feed would send, with how many quads each added.
fn feed(database: &Database, since: u64) -> Vec<(u64, u64)> {
    let mut sent = Vec::new();
    let scope = ReadScope::all_graphs(Asker::Process);
    let read = database.changes(&scope, since, |changes| {
        let mut added = 0;
        changes.added(|_| {
            added += 1;
            Ok(())
        })?;
        sent.push((changes.entry.number, added));
        Ok(())
    });
    read.unwrap();
    sent
}

fn is_over<T: std::fmt::Debug>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::TurnEnded { .. }))
}

#[test]
fn a_relaxed_commit_that_is_lost_leaves_nothing_with_the_writer_that_made_it() {
    let site = site_with(0..3);
    let (first, second) = (site.machine(), site.machine_with(impatient()));
    let old = first.writer();
    let database = old.database().clone();
    let known = database.snapshot().commit();
    first.faults.set_down(true);
    // It has subjects that no commit had before.
    assert_eq!(commit_relaxed(&old, 5..9).unwrap(), known + 1);
    assert_eq!(numbers(&database.snapshot()).len(), 7);
    // Nobody who follows the changes is told of what may not stay.
    assert_eq!(database.lasting_commit(), known);
    assert_eq!(feed(&database, known), []);

    until("the lease has ended", || second.try_writer().is_ok());
    let new = second.writer();
    assert_eq!(commit(&new, 10..12).unwrap(), known + 1);
    first.faults.heal();
    let of_lost = database.snapshot().base_name().to_owned();
    old.end_turn("another leads");
    database.refresh().unwrap();
    let mut expected = set(0..3);
    expected.extend(10..12);
    assert_eq!(numbers(&database.snapshot()), expected);
    // Ids of the terms that came may be others: what knows the base by its name knows it no more.
    assert_ne!(database.snapshot().base_name(), of_lost);
    assert_eq!(feed(&database, known), [(known + 1, 2)]);
    commit(&new, 12..13).unwrap();
    database.refresh().unwrap();
    expected.insert(12);
    assert_eq!(numbers(&database.snapshot()), expected);

    // It takes its turn again, while the writer of the one before is still held.
    first.objects.set_takes_over(true);
    let again = database.open_writer(WriterOptions::default()).unwrap();
    assert!(is_over(&commit(&old, 50..51)));
    commit(&again, 20..24).unwrap();
    expected.extend(20..24);
    assert_eq!(numbers(&database.snapshot()), expected);
    drop((old, again, new));
    assert_eq!(site.content(), expected);
}

#[test]
fn a_turn_ends_though_a_transaction_is_open_and_others_wait_for_it() {
    let site = site_with(0..3);
    let machine = site.machine();
    let old = machine.writer();
    let database = old.database().clone();
    let open = insertion(&old, 5..9).unwrap();
    let (sender, waited) = mpsc::channel();
    let waiting = {
        let old = old.clone();
        thread::spawn(move || {
            sender.send(()).unwrap();
            old.begin().map(drop)
        })
    };
    waited.recv().unwrap();
    old.end_turn("another leads");
    assert!(is_over(&waiting.join().unwrap()));
    assert!(!database.is_written_here());
    database.refresh().unwrap();
    assert_eq!(numbers(&database.snapshot()), set(0..3));
    // The place is free at once, here and elsewhere.
    let new = database.open_writer(WriterOptions::default()).unwrap();
    commit(&new, 3..6).unwrap();
    let late = open.commit(CommitOptions::default());
    assert!(is_over(&late), "{late:?}");
    assert!(is_over(&old.check()));
    drop(late);
    drop(old);
    commit(&new, 6..7).unwrap();
    assert_eq!(numbers(&database.snapshot()), set(0..7));
    drop(new);
    assert_eq!(site.content(), set(0..7));
}

#[test]
fn a_base_that_is_being_written_when_its_turn_ends_is_not_that_of_the_next_one() {
    let site = site_with(0..30);
    let machine = site.machine();
    let old = machine.writer();
    let database = old.database().clone();
    let rebase = old.begin_compaction().unwrap();
    old.end_turn("another leads");
    let new = database.open_writer(WriterOptions::default()).unwrap();
    commit(&new, 30..31).unwrap();
    // Another one begins under the same name.
    let of_new = new.begin_compaction().unwrap();
    assert_eq!(rebase.files().directory(), of_new.files().directory());
    let path = rebase.files().directory().join("late");
    assert!(path.starts_with(ROOT));
    drop(rebase);
    drop(of_new);
    assert!(is_over(&old.checkpoint()));
    new.checkpoint().unwrap();
    commit(&new, 31..32).unwrap();
    drop((old, new));
    assert_eq!(site.content(), set(0..32));
}
