//! Tests of processes killed while they fetch and evict.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

/// Tells the process that is to be killed where its cache is.
const DIRECTORY: &str = "ORRERY_TEST_KILLED_CACHE";
const FILES: u64 = 4;
const FILE_BYTES: u64 = MIB + 77;

/// Reads here and there, more than fits, and prints a line for each read, until it is killed.
#[test]
fn what_a_process_does_that_is_to_be_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return; // It is this test's own process that runs all tests.
    };
    let mut fixture = Fixture::new(3 * MIB);
    fixture.cache = None;
    let options = CacheOptions {
        directory: directory.into(),
        bytes: 3 * MIB,
    };
    let origin = Arc::clone(&fixture.origin);
    let runtime = fixture.runtime.handle().clone();
    fixture.cache = Some(Cache::open(&options, origin, runtime).unwrap());
    for read in 0_u64.. {
        let file = fixture.mapped(&format!("file-{}", read % FILES), FILE_BYTES);
        let start = read * 37_777 % MIB;
        let end = (start + read * 7_919 % (300 * KIB)).min(FILE_BYTES);
        fixture.read(&file, start..end);
        println!("read {read}");
    }
}

#[test]
fn a_process_that_is_killed_leaves_nothing_wrong() {
    let mut fixture = Fixture::new(64 * MIB);
    let mut hits = 0;
    for round in 0..5 {
        fixture.cache = None;
        let mut killed = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("cache::tests::killed::what_a_process_does_that_is_to_be_killed")
            .env(DIRECTORY, fixture.directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(killed.stdout.take().unwrap()).lines();
        let reads = lines.filter(|line| line.as_ref().unwrap().starts_with("read"));
        assert_eq!(reads.take(20 + 13 * round).count(), 20 + 13 * round);
        killed.kill().unwrap();
        killed.wait().unwrap();

        fixture.restart();
        for file in 0..FILES {
            let file = fixture.mapped(&format!("file-{file}"), FILE_BYTES);
            fixture.read(&file, 0..FILE_BYTES);
        }
        hits += fixture.cache().counts().hits;
    }
    assert!(hits > 0, "what was there is taken up");
}
