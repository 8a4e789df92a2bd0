//! Tests of eviction.

use std::fs::File;
use std::thread;

use super::super::file::CacheFile;
use super::super::sums::Header;
use super::*;

#[test]
fn files_that_nobody_has_mapped_go_those_used_longest_ago_first() {
    let fixture = Fixture::new(4 * MIB);
    for key in ["a", "b", "c", "d"] {
        fixture.read(&fixture.mapped(key, MIB), 0..MIB);
    }
    fixture.read(&fixture.mapped("a", MIB), 0..MIB);
    assert_eq!(fixture.requests(), 4);
    fixture.read(&fixture.mapped("e", MIB), 0..MIB);
    let counts = fixture.cache().counts();
    assert!(counts.bytes <= counts.limit_bytes, "{counts:?}");
    assert_eq!(counts.bytes + counts.evicted_bytes, 5 * MIB);
    fixture.read(&fixture.mapped("a", MIB), 0..MIB);
    fixture.read(&fixture.mapped("d", MIB), 0..MIB);
    assert_eq!(fixture.requests(), 5);
    fixture.read(&fixture.mapped("b", MIB), 0..MIB);
    assert!(fixture.requests() > 5);
    assert!(!fixture.cache().wants_reopening());
}

#[test]
fn what_does_not_fit_any_more_goes_when_the_cache_is_opened() {
    let mut fixture = Fixture::new(8 * MIB);
    for key in ["a", "b"] {
        fixture.read(&fixture.mapped(key, 2 * MIB), 0..2 * MIB);
    }
    fixture.limit = MIB;
    fixture.restart();
    assert!(fixture.cache().counts().bytes <= MIB);
    fixture.read(&fixture.mapped("a", 2 * MIB), 0..2 * MIB);
    fixture.read(&fixture.mapped("b", 2 * MIB), 0..2 * MIB);
}

#[test]
fn neighbours_that_nobody_has_touched_go_while_the_file_is_mapped() {
    let fixture = Fixture::new(MIB);
    let file = fixture.mapped("a", 4 * MIB);
    let touched = || (0..64).map(|window| window * 64 * KIB..window * 64 * KIB + 1);
    for range in touched() {
        fixture.read(&file, range);
    }
    let counts = fixture.cache().counts();
    assert!(
        counts.bytes <= MIB && counts.evicted_bytes > 0,
        "{counts:?}"
    );
    assert_eq!(counts.requests, 64);
    for range in touched() {
        fixture.read(&file, range);
    }
    assert_eq!(fixture.requests(), 64);
    assert!(!fixture.cache().wants_reopening());
}

#[test]
fn files_that_are_opened_anew_keep_the_limit_and_what_was_used_last() {
    let fixture = Fixture::new(4 * MIB);
    let (a, b) = (fixture.mapped("a", 4 * MIB), fixture.mapped("b", 4 * MIB));
    for extent in 0..10 {
        let range = extent * EXTENT_BYTES..(extent + 1) * EXTENT_BYTES;
        fixture.read(&a, range.clone());
        fixture.read(&b, range);
    }
    assert!(fixture.cache().counts().bytes > 4 * MIB, "all is mapped");
    assert!(fixture.cache().wants_reopening());
    assert!(!fixture.cache().wants_reopening(), "not twice at once");

    // As the storage does, which first says what it will open.
    drop((fixture.mapped("a", 4 * MIB), fixture.mapped("b", 4 * MIB)));
    fixture.read(&fixture.mapped("c", MIB), 0..MIB);
    let again = (fixture.mapped("a", 4 * MIB), fixture.mapped("b", 4 * MIB));
    fixture.read(&a, 0..10 * EXTENT_BYTES); // Who still reads the old one has it.
    fixture.cache().forget("c");
    let requests = fixture.requests();
    drop((a, b));
    let counts = fixture.cache().counts();
    assert!((2 * MIB..=3 * MIB).contains(&counts.bytes), "{counts:?}");
    for file in [&again.0, &again.1] {
        fixture.read(file, 9 * EXTENT_BYTES..10 * EXTENT_BYTES);
    }
    assert_eq!(fixture.requests(), requests);
    assert_eq!(fixture.cache().mapped_keys(), ["a", "b"]);
    fixture.read(&again.0, 0..1);
    assert_eq!(fixture.requests(), requests + 1);
    assert!(!fixture.cache().wants_reopening());
    assert_eq!(fixture.local_files().len(), 4);
}

#[test]
fn what_is_used_in_every_generation_stays_before_what_came_last() {
    let fixture = Fixture::new(4 * MIB);
    let extent = |at: u64| at * EXTENT_BYTES..(at + 1) * EXTENT_BYTES;
    let mut file = fixture.mapped("a", 16 * MIB);
    let mut next = 1;
    for generation in 0..3 {
        fixture.read(&file, extent(0));
        while fixture.cache().counts().bytes <= 4 * MIB {
            fixture.read(&file, extent(next));
            next += 1;
        }
        *fixture.cache().room.wished.lock() = None;
        assert!(fixture.cache().wants_reopening(), "{generation}");
        file = fixture.mapped("a", 16 * MIB);
    }
    let requests = fixture.requests();
    fixture.read(&file, extent(0));
    assert_eq!(fixture.requests(), requests);
}

#[test]
fn a_full_disk_is_an_error_that_says_so_after_others_have_gone() {
    let fixture = Fixture::new(64 * MIB);
    fixture.read(&fixture.mapped("other", MIB), 0..MIB);
    fixture.origin.put("a", MIB);
    let full = File::options().read(true).write(true).open("/dev/full");
    let header = Header {
        key: "a".to_owned(),
        bytes: MIB,
    };
    let cache = fixture.cache();
    let number = cache.room.next_number();
    let file = CacheFile::beside(&cache.means, number, header, full.unwrap()).unwrap();
    let error = Arc::new(file).fetch(&(0..10)).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(cache.counts().evicted_bytes > 0);
}

#[test]
fn whatever_is_read_is_right_while_files_come_and_go() {
    let fixture = Fixture::new(2 * MIB);
    let keys: Vec<String> = (0..6).map(|file| format!("file-{file}")).collect();
    for key in &keys {
        fixture.origin.put(key, MIB + 10);
    }
    let objects = fixture.origin.objects.lock().clone();
    thread::scope(|scope| {
        for seed in 1..=4_u64 {
            let (fixture, keys, objects) = (&fixture, &keys, &objects);
            scope.spawn(move || {
                let mut state = seed;
                let mut random = |below: u64| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state % below
                };
                let mut kept: Vec<((FileBytes, Bytes), Range<u64>)> = Vec::new();
                for _ in 0..200 {
                    let key = &keys[random(6) as usize];
                    let file = fixture.cache().map(key, MIB + 10).unwrap();
                    let file = (file, objects[key].clone());
                    let start = random(MIB);
                    let range = start..(start + random(100 * KIB)).min(MIB + 10);
                    if random(4) == 0 {
                        file.0.will_need(0..random(MIB) as usize);
                    }
                    fixture.read(&file, range.clone());
                    kept.push((file, range));
                    for (file, range) in &kept {
                        let range = range.start as usize..range.end as usize;
                        assert!(file.0[range.clone()] == file.1[range]);
                    }
                    if kept.len() > 12 {
                        kept.drain(..random(12) as usize);
                    }
                }
            });
        }
    });
    let counts = fixture.cache().counts();
    assert!(
        counts.evicted_bytes > 0 && counts.damaged_pieces == 0,
        "{counts:?}"
    );
    fixture.cache().means.make_room(0);
    let named = fixture.cache().counts().bytes;
    let on_disk: u64 = keys
        .iter()
        .map(|key| {
            fixture
                .cache()
                .room
                .map(key, MIB + 10)
                .unwrap()
                .held_bytes()
        })
        .sum();
    assert!(named <= 2 * MIB && on_disk == named, "{on_disk} {named}");
}
