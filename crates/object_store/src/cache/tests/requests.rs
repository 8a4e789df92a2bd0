//! Tests of requests to the origin, and of who waits for them.

use std::thread;

use super::*;

#[test]
fn a_range_is_brought_with_one_request_and_then_it_is_there() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB + 100);
    fixture.read(&file, 10 * PIECE + 7..200 * KIB);
    assert_eq!(fixture.origin.calls(), [10 * PIECE..200 * KIB]);
    fixture.read(&file, 10 * PIECE..100 * KIB);
    fixture.read(&file, MIB..MIB + 100);
    assert_eq!(fixture.origin.calls()[1..], [MIB..MIB + 100], "the end");
    let counts = fixture.cache().counts();
    assert_eq!((counts.hits, counts.misses), (15, 41));
    assert_eq!(counts.bytes, 41 * PIECE);
    assert_eq!(counts.fetched_bytes, 40 * PIECE + 100);
}

#[test]
fn an_empty_file_has_no_bytes() {
    let fixture = Fixture::new(MIB);
    let (file, _) = fixture.mapped("empty", 0);
    file.fetch(0..0).unwrap();
    assert!(file.is_empty());
}

#[test]
fn a_single_piece_brings_its_neighbours_while_there_is_room() {
    let fixture = Fixture::new(MIB);
    let file = fixture.mapped("a", 4 * MIB);
    fixture.read(&file, 100 * KIB..101 * KIB);
    assert_eq!(fixture.origin.calls(), [64 * KIB..128 * KIB]);
    fixture.read(&file, MIB..MIB + 800 * KIB);
    fixture.read(&file, 3 * MIB + 20..3 * MIB + 30);
    assert_eq!(fixture.origin.calls()[2..], [3 * MIB..3 * MIB + PIECE]);
}

#[test]
fn neighbours_that_are_there_are_not_brought_again() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.read(&file, 128 * KIB..192 * KIB);
    fixture.read(&file, 100 * KIB..128 * KIB + 1);
    assert_eq!(fixture.origin.calls()[1..], [64 * KIB..128 * KIB]);
}

#[test]
fn small_gaps_are_joined_and_long_ranges_are_cut() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", 32 * MIB);
    fixture.read(&file, 64 * KIB..128 * KIB);
    fixture.read(&file, 0..256 * KIB);
    assert_eq!(fixture.origin.calls()[1..], [0..256 * KIB]);
    fixture.read(&file, 8 * MIB..28 * MIB);
    assert_eq!(
        fixture.origin.calls_sorted()[2..],
        [8 * MIB..16 * MIB, 16 * MIB..24 * MIB, 24 * MIB..28 * MIB]
    );
}

#[test]
fn all_who_want_the_same_wait_for_one_request() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.origin.close();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fixture.read(&file, 0..1));
        }
        fixture.wait_for_misses(4);
        fixture.origin.open();
    });
    assert_eq!(fixture.requests(), 1);
}

#[test]
fn who_wants_more_than_what_is_on_its_way_asks_for_the_rest() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.origin.close();
    thread::scope(|scope| {
        scope.spawn(|| fixture.read(&file, 256 * KIB..512 * KIB));
        fixture.wait_for_misses(64);
        scope.spawn(|| fixture.read(&file, 0..MIB));
        fixture.wait_for_misses(64 + 256);
        fixture.origin.open();
    });
    assert_eq!(
        fixture.origin.calls_sorted(),
        [0..256 * KIB, 256 * KIB..512 * KIB, 512 * KIB..MIB]
    );
}

#[test]
fn a_request_that_fails_reaches_all_who_wait_and_the_next_try_works() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.origin.close();
    fixture.origin.failing.store(1, Ordering::SeqCst);
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| file.0.fetch(0..1))).collect();
        fixture.wait_for_misses(3);
        fixture.origin.open();
        for one in waiting {
            let error = one.join().unwrap().unwrap_err();
            assert_eq!(
                error.to_string(),
                "cannot read a: the store is out of order"
            );
        }
    });
    fixture.read(&file, 0..1);
    assert_eq!(fixture.requests(), 2);
}

#[test]
fn a_request_that_panics_wakes_who_waits() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.origin.panicking.store(1, Ordering::SeqCst);
    let error = file.0.fetch(0..1).unwrap_err();
    assert!(error.to_string().contains("given up"), "{error}");
    fixture.read(&file, 0..1);
}

#[test]
fn requests_that_a_runtime_cannot_begin_or_does_not_end_wake_who_waits() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.origin.close();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| file.0.fetch(0..1));
        fixture.wait_for_misses(1);
        let Fixture {
            runtime, origin, ..
        } = fixture;
        runtime.shutdown_background();
        assert!(waiting.join().unwrap().is_err());
        origin.open();
    });
    assert!(file.0.fetch(0..1).is_err());
}

#[test]
fn an_answer_that_is_cut_off_is_an_error() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", MIB);
    fixture.origin.short.store(1, Ordering::SeqCst);
    let error = file.0.fetch(0..1).unwrap_err().to_string();
    assert!(error.contains("65535 came"), "{error}");
    fixture.read(&file, 0..1);
}

#[test]
fn what_is_asked_for_ahead_comes_without_anybody_waiting() {
    let fixture = Fixture::new(64 * MIB);
    let file = fixture.mapped("a", 4 * MIB);
    fixture.origin.close();
    file.0.will_need(MIB as usize..2 * MIB as usize);
    file.0.will_need(MIB as usize..2 * MIB as usize);
    thread::scope(|scope| {
        scope.spawn(|| fixture.read(&file, MIB..2 * MIB));
        fixture.wait_for_misses(256);
        fixture.origin.open();
    });
    assert_eq!(fixture.origin.calls(), [MIB..2 * MIB]);
}
