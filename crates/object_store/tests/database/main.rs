//! Tests of whole databases in an object store: acknowledged commits survive faults and other
//! writers.
#![allow(clippy::unwrap_used)]

mod common;
mod s3;
mod turns;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::faulty::{Fault, Request};
use common::{ROOT, Site, commit, numbers, quads, set, timing, until};
use object_store::memory::InMemory;
use orrery_object_store::{CacheOptions, ObjectFileSystem, ObjectOptions, RequestKind, Timing};
use orrery_storage::backup::{RestoredState, StateFiles};
use orrery_storage::io::FileSystem as _;
use orrery_storage::{
    Asker, Database, Error, ReadScope, Retention, WriterOptions, build_small_with, verify_with,
};

/// A site with a database that holds some numbers, committed one after the other.
fn site_with(numbers: std::ops::Range<u64>) -> Site {
    let site = Site::new();
    let machine = site.machine();
    let writer = machine.writer();
    for number in numbers {
        commit(&writer, number..number + 1).unwrap();
    }
    site
}

fn is_stopped<T: std::fmt::Debug>(result: &orrery_storage::Result<T>) -> bool {
    matches!(
        result,
        Err(Error::WritingStopped { .. } | Error::OutcomeUnknown { .. })
    )
}

#[test]
fn what_is_committed_is_there_for_who_opens_the_database_anew() {
    let site = Site::new();
    let machine = site.machine();
    assert!(machine.try_database().is_err());
    let writer = machine.writer();
    assert_eq!(commit(&writer, 0..10).unwrap(), 1);
    assert_eq!(commit(&writer, 10..20).unwrap(), 2);
    assert_eq!(numbers(&writer.database().snapshot()), set(0..20));
    assert_eq!(site.content(), set(0..20));
    assert!(writer.checkpoint().unwrap());
    commit(&writer, 20..30).unwrap();
    assert_eq!(site.content(), set(0..30));
    drop(writer);

    let writer = site.machine().writer();
    assert_eq!(numbers(&writer.database().snapshot()), set(0..30));
    assert_eq!(commit(&writer, 30..31).unwrap(), 4);
    drop(writer);
    assert_eq!(site.content(), set(0..31));
    build_small_with(site.machine().files, ROOT, &quads(5..50)).unwrap();
    assert_eq!(site.content(), set(5..50));
}

#[test]
fn files_of_many_parts_come_back_through_a_cache_that_holds_few_of_them() {
    let site = Site::new();
    build_small_with(site.machine().files, ROOT, &quads(0..60_000)).unwrap();
    let reader = site.machine();
    assert_eq!(numbers(&reader.database().snapshot()), set(0..60_000));
    assert!(reader.objects.counts().cache.requests > 0);
    assert_eq!(site.content().len(), 60_000);
}

#[test]
fn a_second_writer_is_refused_while_the_first_lives() {
    let site = site_with(0..1);
    let (first, second) = (site.machine(), site.machine());
    let writer = first.writer();
    commit(&writer, 1..2).unwrap();
    let refused = second.try_writer().unwrap_err();
    let own = Some(std::process::id());
    assert!(
        matches!(&refused, Error::Locked { holder, .. } if *holder == own),
        "{refused}"
    );
    // It can read, and so it goes on.
    assert_eq!(numbers(&second.database().snapshot()), set(0..2));
    commit(&writer, 2..3).unwrap();
    // In the same process another is refused even if the lease should have ended.
    let again = first.try_writer().unwrap_err();
    assert!(matches!(again, Error::Locked { .. }), "{again}");
    drop(writer);
    commit(&second.writer(), 3..4).unwrap();
    assert_eq!(site.content(), set(0..4));
}

#[test]
fn a_killed_writer_is_followed_at_once_and_nothing_acknowledged_is_lost() {
    let site = site_with(0..1);
    let first = site.machine();
    let writer = first.writer();
    for number in 1..10 {
        commit(&writer, number..number + 1).unwrap();
    }
    first.kill(Some(writer));
    let second = site.machine();
    let writer = second.writer();
    assert_eq!(numbers(&writer.database().snapshot()), set(0..10));
    commit(&writer, 10..11).unwrap();
    second.kill(Some(writer));
    assert_eq!(site.content(), set(0..11));
}

/// Nothing but the present state.
const NO_HISTORY: Retention = Retention {
    commits_max: 0,
    age_max: Duration::ZERO,
};

/// Leases end at once: whoever comes takes over.
fn impatient() -> Timing {
    Timing {
        lease: Duration::ZERO,
        lease_renewal: Duration::from_secs(600),
        ..timing()
    }
}

#[test]
fn a_writer_that_was_taken_for_dead_commits_nothing_more() {
    let site = site_with(0..1);
    let (first, second) = (site.machine(), site.machine_with(impatient()));
    let old = first.writer();
    commit(&old, 1..2).unwrap();
    // Its store's clock has to go on.
    std::thread::sleep(Duration::from_millis(2));
    let new = second.writer();
    assert_eq!(numbers(&new.database().snapshot()), set(0..2));
    commit(&new, 2..3).unwrap();

    let late = commit(&old, 100..101);
    assert!(is_stopped(&late), "{late:?}");
    assert!(is_stopped(&commit(&old, 101..102)));
    // Who only reads in the same process sees what the new one does, which does not make it the old
    // one's.
    assert_eq!(numbers(&first.database().snapshot()), set(0..3));
    assert!(old.checkpoint().is_err());
    assert!(old.forget_history(&NO_HISTORY).is_err());
    assert_eq!(site.content(), set(0..3));
    commit(&new, 3..4).unwrap();
    new.checkpoint().unwrap();
    drop(old);
    // What the old one does at its end is refused, too.
    commit(&new, 4..5).unwrap();
    assert_eq!(site.content(), set(0..5));
    drop(new);
    assert_eq!(site.content(), set(0..5));
}

#[test]
fn a_writer_that_was_taken_for_dead_does_not_say_that_there_was_nothing_to_change() {
    let site = site_with(0..1);
    let (first, second) = (site.machine(), site.machine_with(impatient()));
    let old = first.writer();
    assert_eq!(commit(&old, 1..2).unwrap(), 2);
    // What is there already makes no commit.
    assert_eq!(commit(&old, 1..2).unwrap(), 2);
    // Where nobody answers, nobody knows whether there is nothing to change.
    first.faults.set_down(true);
    let unknown = commit(&old, 1..2);
    assert!(unknown.is_err() && !is_stopped(&unknown), "{unknown:?}");
    first.faults.heal();
    assert_eq!(commit(&old, 1..2).unwrap(), 2);
    // Its store's clock has to go on.
    std::thread::sleep(Duration::from_millis(2));
    let new = second.writer();
    // It could be that the new one has deleted this.
    let late = commit(&old, 1..2);
    assert!(is_stopped(&late), "{late:?}");
    assert!(is_stopped(&old.check()));
    assert_eq!(commit(&new, 1..2).unwrap(), 2);
    assert_eq!(commit(&new, 2..3).unwrap(), 3);
    drop(old);
    drop(new);
    assert_eq!(site.content(), set(0..3));
}

#[test]
fn a_manifest_that_comes_after_another_writer_has_taken_over_is_refused() {
    let site = site_with(0..3);
    let (first, second) = (site.machine(), site.machine_with(impatient()));
    let old = first.writer();
    commit(&old, 3..4).unwrap();
    first.faults.hold("MANIFEST");
    let new = std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| old.checkpoint());
        until("the checkpoint wants to put a manifest", || {
            first.faults.holds() > 0 || checkpoint.is_finished()
        });
        std::thread::sleep(Duration::from_millis(2));
        let new = second.writer();
        commit(&new, 4..5).unwrap();
        first.faults.let_go();
        let late = checkpoint.join().unwrap();
        assert!(is_stopped(&late), "{late:?}");
        new
    });
    assert!(is_stopped(&commit(&old, 100..101)));
    new.checkpoint().unwrap();
    commit(&new, 5..6).unwrap();
    drop((old, new));
    assert_eq!(site.content(), set(0..6));
}

#[test]
fn a_sync_that_reaches_the_store_before_the_fence_counts_and_one_after_it_does_not() {
    for is_before in [true, false] {
        let site = site_with(0..1);
        let (first, second) = (site.machine(), site.machine_with(impatient()));
        let old = first.writer();
        first.faults.hold("log/");
        let (result, new) = std::thread::scope(|scope| {
            let late = scope.spawn(|| commit(&old, 50..51));
            until("the commit wants to put its record", || {
                first.faults.holds() > 0
            });
            if is_before {
                first.faults.let_go();
                until("the commit ends", || late.is_finished());
            }
            let new = second.writer();
            first.faults.let_go();
            (late.join().unwrap(), new)
        });
        let expected = match is_before {
            true => BTreeSet::from([0, 50]),
            false => BTreeSet::from([0]),
        };
        assert_eq!(result.is_ok(), is_before, "{result:?}");
        assert_eq!(numbers(&new.database().snapshot()), expected);
        drop((old, new));
        assert_eq!(site.content(), expected);
    }
}

#[test]
fn of_two_that_take_over_at_once_the_later_one_has_the_turn() {
    let site = site_with(0..3);
    let patient = Timing {
        request: Duration::from_secs(20),
        ..impatient()
    };
    let (first, second) = (site.machine_with(patient), site.machine_with(impatient()));
    first.faults.hold("log/");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| first.try_writer());
        until("its fence is on its way", || first.faults.holds() > 0);
        // Its store's clock has to go on.
        std::thread::sleep(Duration::from_millis(2));
        let fast = second.writer();
        commit(&fast, 3..4).unwrap();
        first.faults.let_go();
        let slow = slow.join().unwrap();
        assert!(slow.is_err(), "{slow:?}");
        commit(&fast, 4..5).unwrap();
    });
    assert_eq!(site.content(), set(0..5));
}

#[test]
fn puts_whose_answers_are_lost_are_known_again() {
    let site = site_with(0..1);
    let machine = site.machine();
    for fault in [Fault::After, Fault::Before, Fault::Middle, Fault::Slow] {
        for name in ["LOCK", "MANIFEST", "log/", "files/"] {
            machine.faults.fail(Request::Put, name, fault, 1);
        }
        let writer = machine.writer();
        let next = numbers(&writer.database().snapshot()).len() as u64;
        for name in ["log/", "files/"] {
            machine.faults.fail(Request::Put, name, fault, 1);
            commit(&writer, next..next + 1).unwrap();
        }
        machine.faults.fail(Request::Put, "MANIFEST", fault, 2);
        writer.checkpoint().unwrap();
        commit(&writer, next + 1..next + 2).unwrap();
        drop(writer);
        machine.faults.heal();
        assert_eq!(site.content(), set(0..next + 2), "{fault:?}");
    }
    assert!(machine.objects.counts().retried > 0);
}

#[test]
fn a_store_that_is_away_makes_commits_fail_and_not_vanish() {
    let site = site_with(0..3);
    let machine = site.machine();
    let writer = machine.writer();
    commit(&writer, 3..4).unwrap();
    machine.faults.set_down(true);
    assert!(commit(&writer, 4..5).is_err());
    machine.faults.set_down(false);
    // What became of it is known only after opening anew.
    assert!(is_stopped(&commit(&writer, 5..6)));
    drop(writer);
    let writer = machine.writer();
    commit(&writer, 6..7).unwrap();
    assert_eq!(
        numbers(&writer.database().snapshot()),
        BTreeSet::from([0, 1, 2, 3, 6])
    );
    drop(writer);
    assert_eq!(site.content(), BTreeSet::from([0, 1, 2, 3, 6]));
}

#[test]
fn a_follower_sees_commits_checkpoints_and_a_new_base() {
    let site = site_with(0..1);
    let (machine, other) = (site.machine(), site.machine());
    let follower = other.database();
    let writer = machine.writer();
    commit(&writer, 1..2).unwrap();
    assert!(follower.refresh().unwrap());
    assert!(!follower.refresh().unwrap());
    assert_eq!(numbers(&follower.snapshot()), set(0..2));
    writer.checkpoint().unwrap();
    commit(&writer, 2..4).unwrap();
    assert!(follower.refresh().unwrap());
    assert_eq!(numbers(&follower.snapshot()), set(0..4));
    // With nothing new, a look asks for the catalog and for the next object of the log.
    let before = other.objects.counts().requests;
    assert!(!follower.refresh().unwrap());
    let after = other.objects.counts().requests;
    assert_eq!(after.iter().sum::<u64>(), before.iter().sum::<u64>() + 2);
    let old = follower.snapshot();
    drop(writer);
    build_small_with(machine.files, ROOT, &quads(7..9)).unwrap();
    assert!(follower.refresh().unwrap());
    assert_eq!(numbers(&follower.snapshot()), set(7..9));
    assert_eq!(numbers(&old), set(0..4));
}

#[test]
fn a_log_of_many_objects_is_ended_by_a_checkpoint() {
    let site = site_with(0..1);
    let machine = site.machine_with(Timing {
        log_objects_max: 20,
        ..timing()
    });
    let writer = machine.writer();
    let generation = || writer.database().snapshot().manifest().generation;
    let before = generation();
    for number in 1..40 {
        commit(&writer, number..number + 1).unwrap();
    }
    until("a checkpoint is made", || generation() > before);
    drop(writer);
    assert_eq!(site.content(), set(0..40));
}

/// What nobody needs is deleted at once.
fn tidy() -> Timing {
    Timing {
        garbage_every: Duration::from_millis(10),
        garbage_after: Duration::ZERO,
        garbage_after_restart: Duration::ZERO,
        reader_first: Duration::from_millis(5),
        reader_every: Duration::from_millis(10),
        ..timing()
    }
}

/// The JSON of an object that ends with a line of its checksum.
fn json_of(site: &Site, part: &str) -> serde_json::Value {
    use object_store::ObjectStoreExt as _;
    let names = site.objects();
    let name = names.iter().find(|name| name.contains(part)).unwrap();
    let path = object_store::path::Path::from(name.as_str());
    let found = futures::executor::block_on(async {
        let found = site.memory.get(&path).await.unwrap();
        found.bytes().await.unwrap()
    });
    let json = found.len() - "crc32c 01234567\n".len();
    serde_json::from_slice(&found[..json]).unwrap()
}

/// The objects that the catalog names.
fn named(site: &Site) -> BTreeSet<String> {
    let catalog = json_of(site, "/MANIFEST");
    let files = catalog["files"].as_object().unwrap().values();
    files
        .map(|file| file["key"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_no_state_needs_is_deleted_but_not_what_a_reader_holds() {
    let site = Site::new();
    drop(Database::create_or_open_with(site.machine().files, ROOT).unwrap());
    let empty = named(&site);
    build_small_with(site.machine().files, ROOT, &quads(0..100)).unwrap();
    let first = named(&site);
    let is_there = |keys: &BTreeSet<String>| {
        let objects = site.objects();
        let there = |key: &&String| objects.iter().any(|name| name.ends_with(key.as_str()));
        keys.iter().filter(there).count()
    };
    let reader = site.machine_with(tidy());
    let following = reader.database();
    let held = following.snapshot();
    until("the reader says what it reads", || {
        site.count("/readers/") == 1
    });

    let machine = site.machine_with(tidy());
    build_small_with(Arc::clone(&machine.files), ROOT, &quads(500..700)).unwrap();
    let writer = machine.writer();
    let after_some_looks = || {
        let lists = || machine.objects.counts().requests[RequestKind::List as usize];
        let before = lists();
        until("the writer looks for garbage", || {
            lists() > before + 5 || is_there(&first) < first.len()
        });
    };
    until("what the reader does not need is deleted", || {
        is_there(&empty) == 0
    });
    after_some_looks();
    assert_eq!(is_there(&first), first.len(), "its catalog names them");

    let second = named(&site);
    follow(&site, &following);
    after_some_looks();
    assert_eq!(is_there(&first), first.len(), "it has them mapped");
    assert_eq!(numbers(&held), set(0..100));
    assert_eq!(is_there(&second), second.len());
    drop(held);
    until("what nobody has mapped is deleted", || {
        is_there(&first) == 0
    });
    commit(&writer, 900..901).unwrap();
    writer.checkpoint().unwrap();
    assert_eq!(
        json_of(&site, "/MANIFEST")["garbage"],
        serde_json::json!([])
    );
    drop(writer);
    assert_eq!(site.content().len(), 201);
}

/// Waits until the follower has said that it has read the newest catalog.
fn follow(site: &Site, following: &Database) {
    assert!(following.refresh().unwrap());
    let sequence = json_of(site, "/MANIFEST")["sequence"].clone();
    until("the reader says that it has read on", || {
        json_of(site, "/readers/")["sequence"] == sequence
    });
}

#[test]
fn old_states_go_with_their_objects_and_what_a_killed_writer_left_goes_with_the_next_turn() {
    let site = Site::new();
    let options = WriterOptions {
        retention: NO_HISTORY,
        ..WriterOptions::default()
    };
    let machine = site.machine_with(tidy());
    let writer = machine.try_writer_with(options.clone()).unwrap();
    for number in 0..12 {
        commit(&writer, number..number + 1).unwrap();
        writer.checkpoint().unwrap();
    }
    until("deltas are deleted", || {
        commit(&writer, 12..13).unwrap();
        writer.checkpoint().unwrap();
        site.count("/files/") < 40
    });
    machine
        .faults
        .fail(Request::Put, "MANIFEST", Fault::Before, 1000);
    commit(&writer, 13..14).unwrap();
    assert!(writer.checkpoint().is_err());
    machine.kill(Some(writer));
    let names: BTreeSet<String> = site.objects().into_iter().collect();
    let next = site.machine_with(tidy());
    let writer = next.try_writer_with(options).unwrap();
    until("orphans are deleted", || {
        let now: BTreeSet<String> = site.objects().into_iter().collect();
        names.difference(&now).count() > 0
    });
    drop(writer);
    assert_eq!(site.content(), set(0..14));
}

#[test]
fn a_backup_is_held_and_restored_into_a_store() {
    let site = site_with(0..30);
    let machine = site.machine();
    let all = ReadScope::all_graphs(Asker::Process);
    let held = StateFiles::hold(&*machine.files, ROOT.as_ref(), &all).unwrap();
    let target = Site::new();
    let restoring = target.machine();
    let mut restored = RestoredState::begin(&restoring.files, ROOT.as_ref()).unwrap();
    for file in &held.files {
        file.content.fetch(0..file.content.len()).unwrap();
        let mut writer = restored.create(&file.name).unwrap();
        writer.append(&file.content).unwrap();
        writer.sync().unwrap();
    }
    restored.finish().unwrap();
    assert_eq!(target.content(), set(0..30));
    let writer = target.machine().writer();
    commit(&writer, 30..31).unwrap();
    drop(writer);
    assert_eq!(target.content(), set(0..31));
}

#[test]
fn a_log_that_was_deleted_is_not_there_and_no_damage() {
    let site = site_with(0..3);
    let reader = site.machine();
    let following = reader.database();
    let logs = following.snapshot().manifest().present().logs.clone();
    let path = std::path::Path::new(ROOT).join("log").join(&logs[0].name);
    let other = site.machine();
    other.database();
    for name in site.objects().iter().filter(|name| name.contains("/log/")) {
        use object_store::ObjectStoreExt as _;
        let path = object_store::path::Path::from(name.as_str());
        futures::executor::block_on(site.memory.delete(&path)).unwrap();
    }
    // What was read before is there.
    assert!(other.files.read(&path).is_ok());
    let third = site.machine();
    assert!(
        third
            .files
            .metadata(std::path::Path::new(ROOT).join("MANIFEST").as_ref())
            .is_ok()
    );
    assert!(matches!(
        third.files.read(&path),
        Err(Error::NotFound { .. })
    ));
}

#[test]
fn a_damaged_object_is_reported_and_not_believed() {
    let site = site_with(0..5);
    let names = site.objects();
    let logs = names.iter().filter(|name| name.contains("/log/"));
    let name = logs.max().unwrap().as_str();
    let path = object_store::path::Path::from(name);
    let store = Arc::clone(&site.memory);
    futures::executor::block_on(async {
        use object_store::ObjectStoreExt as _;
        let whole = store.get(&path).await.unwrap().bytes().await.unwrap();
        let mut damaged = whole.to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        store.put(&path, damaged.into()).await.unwrap();
    });
    let error = site.machine().try_database().unwrap_err().to_string();
    assert!(error.contains("log/"), "{error}");
    assert!(site.machine().try_writer().is_err());
}

#[test]
fn random_faults_lose_nothing_that_was_acknowledged_and_invent_nothing() {
    // They wait more than they compute.
    std::thread::scope(|scope| {
        for first in 1..=4 {
            scope.spawn(move || (first..=12).step_by(4).for_each(random_faults));
        }
    });
}

fn random_faults(seed: u64) {
    let site = Site::new();
    let mut acknowledged = BTreeSet::new();
    let mut tried = BTreeSet::new();
    let (mut next, mut injected) = (0, 0);
    for round in 0..3 {
        let hasty = Timing {
            request: Duration::from_millis(50),
            lease: Duration::ZERO,
            log_objects_max: 7,
            ..tidy()
        };
        // The second takes over while the first still lives, which it does not know.
        let machines = [0, 1].map(|number| {
            let machine = site.machine_with(hasty.clone());
            machine
                .faults
                .fail_at_random(seed * 1000 + 2 * round + number, 60);
            machine
        });
        let mut writers = [None, None];
        for step in 0..20 {
            let number = usize::from(step > 8);
            if writers[number].is_none() {
                // The store's clock has to go on.
                std::thread::sleep(Duration::from_millis(1));
                writers[number] = machines[number].try_writer().ok();
            }
            for writer in writers.iter().flatten() {
                tried.insert(next);
                if commit(writer, next..next + 1).is_ok() {
                    acknowledged.insert(next);
                }
                next += 1;
                if step % 5 == 4 {
                    let _may_fail = writer.checkpoint();
                }
            }
            if step % 7 == 6 {
                writers[number] = None;
            }
        }
        let [first, second] = machines;
        injected += first.faults.injected() + second.faults.injected();
        match round % 2 {
            0 => {
                first.faults.set_down(true);
                second.faults.set_down(true);
            }
            _ => second.faults.heal(),
        }
        drop(writers);
        drop((first, second));
        let found = content_when_there(&site);
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "seed {seed}: lost {lost:?}");
        let invented: Vec<_> = found.difference(&tried).collect();
        assert!(invented.is_empty(), "seed {seed}: invented {invented:?}");
    }
    assert!(acknowledged.len() > 5, "seed {seed}: {acknowledged:?}");
    assert!(injected > 5, "seed {seed}: {injected} faults");
}

/// What is there; nothing before the database is.
fn content_when_there(site: &Site) -> BTreeSet<u64> {
    match site.machine().try_database() {
        Ok(_) => site.content(),
        Err(Error::NotADatabase { .. }) => BTreeSet::new(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_directory_serves_as_a_store_for_several_processes() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("file://{}/store", directory.path().display());
    let open = |name: &str| {
        let cache = CacheOptions {
            directory: directory.path().join(name),
            bytes: 64 << 20,
        };
        orrery_object_store::open(&address, &ObjectOptions { cache }).unwrap()
    };
    assert!(orrery_object_store::is_address(&address));
    let (first, root) = open("first");
    let database = Database::create_or_open_with(first.clone(), &root).unwrap();
    let writer = Arc::new(database)
        .open_writer(WriterOptions::default())
        .unwrap();
    commit(&writer, 0..10).unwrap();
    let (second, _) = open("second");
    let follower = Arc::new(Database::open_with(second.clone(), &root).unwrap());
    assert_eq!(numbers(&follower.snapshot()), set(0..10));
    assert!(matches!(
        follower.open_writer(WriterOptions::default()),
        Err(Error::Locked { .. })
    ));
    writer.checkpoint().unwrap();
    commit(&writer, 10..12).unwrap();
    assert!(follower.refresh().unwrap());
    assert_eq!(numbers(&follower.snapshot()), set(0..12));
    drop(writer);
    let writer = follower.open_writer(WriterOptions::default()).unwrap();
    commit(&writer, 12..13).unwrap();
    drop(writer);
    let (third, _) = open("third");
    assert!(verify_with(&*third, &root, |_| {}).unwrap().is_empty());
    assert_eq!(
        numbers(&Database::open_with(third, &root).unwrap().snapshot()),
        set(0..13)
    );
}

#[test]
fn files_are_opened_with_few_requests() {
    let site = Site::over(Arc::new(InMemory::new()));
    build_small_with(site.machine().files, ROOT, &quads(0..100)).unwrap();
    let reader = site.machine();
    reader.database();
    let requests: u64 = reader.objects.counts().requests.iter().sum();
    assert!(requests < 30, "{requests} requests");
}

#[test]
fn what_was_opened_of_a_file_before_its_sync_keeps_its_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let cache = CacheOptions {
        directory: directory.path().to_owned(),
        bytes: 64 << 10,
    };
    let memory = Arc::new(InMemory::new());
    let options = ObjectOptions { cache };
    let files = ObjectFileSystem::over(memory, "some/database".into(), ROOT, &options).unwrap();
    let root = Path::new(ROOT);
    let _turn = files.lock(&root.join("LOCK")).unwrap();
    let path = root.join("segment-1/a");
    let content: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let mut writer = files.create(&path).unwrap();
    writer.append(&content).unwrap();
    writer.flush().unwrap();
    let mapped = files.map(&path).unwrap();
    let mut reader = files.open_at(&path, 1000).unwrap();
    writer.sync().unwrap();
    // More than the cache holds: it keeps little of it.
    assert!(files.counts().cache.evicted_bytes > 0);
    assert!(*mapped == content[..]);
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert!(read == content[1000..]);
    assert!(files.read(&path).unwrap() == content);
}
