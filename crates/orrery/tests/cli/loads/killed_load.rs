//! A load that is killed leaves the database as it was before, or as it is after.
//!
//! `ORRERY_KILLS` sets how many loads are killed, each at another random moment of
//! the time that a whole load takes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{orrery, quads, succeed, text};
use rand::{RngExt, SeedableRng};

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_load_killed_at_any_moment_leaves_the_state_before_or_after() {
    let kills: u32 = std::env::var("ORRERY_KILLS")
        .map_or(50, |kills| kills.parse().expect("ORRERY_KILLS is a number"));
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let (first, second) = (path("first.nt"), path("second.nt"));
    for (file, products, seed) in [(&first, "20", "1"), (&second, "120", "2")] {
        succeed(&[
            "bench",
            "bsbm",
            "generate",
            "--products",
            products,
            "--seed",
            seed,
            "-o",
            text(file),
        ]);
    }
    let base = path("base");
    succeed(&["load", "--db", text(&base), text(&first)]);
    let before = quads(&base);

    // A small budget, so that the external sort is among what gets killed.
    let load = |database: &Path| {
        let mut command = orrery();
        command.args([
            "load",
            "--memory",
            "16M",
            "--db",
            text(database),
            text(&second),
        ]);
        command
    };
    let whole = path("whole");
    copy_directory(&base, &whole);
    let started = Instant::now();
    assert!(load(&whole).output().unwrap().status.success());
    let duration = started.elapsed();
    let after = quads(&whole);
    assert!(after > before);

    let seed = rand::rng().random();
    println!("seed {seed}, a whole load takes {duration:?}, {before} quads before, {after} after");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let (mut seen_before, mut seen_after) = (0, 0);
    for round in 0..kills {
        let database = path(&format!("killed-{round}"));
        copy_directory(&base, &database);
        let mut child = load(&database)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(duration.mul_f64(random.random_range(0.0..1.05)));
        child.kill().unwrap();
        child.wait().unwrap();

        let found = quads(&database);
        assert!(
            found == before || found == after,
            "round {round}: {found} quads, neither {before} nor {after}"
        );
        if found == before {
            seen_before += 1;
        } else {
            seen_after += 1;
        }
        succeed(&["verify", "--db", text(&database)]);
        // The next load starts over or goes on, and ends as if nothing had been.
        if round % 5 == 0 {
            assert!(load(&database).output().unwrap().status.success());
            assert_eq!(quads(&database), after);
            succeed(&["verify", "--db", text(&database)]);
            assert_no_leftovers(&database);
        }
        fs::remove_dir_all(&database).unwrap();
    }
    println!(
        "{kills} kills: {seen_before} times as before the load, {seen_after} times as after it"
    );
    assert!(seen_before > 0, "no kill was early enough to test anything");
}

/// One segment, no stage.
fn assert_no_leftovers(database: &Path) {
    let names: Vec<String> = fs::read_dir(database)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let segments = names
        .iter()
        .filter(|name| name.starts_with("segment-"))
        .count();
    assert_eq!(segments, 1, "{names:?}");
    assert!(!names.iter().any(|name| name == "load-stage"), "{names:?}");
}

#[test]
fn a_first_load_that_is_killed_leaves_no_database_that_looks_whole() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data.nt");
    succeed(&[
        "bench",
        "bsbm",
        "generate",
        "--products",
        "120",
        "-o",
        text(&data),
    ]);
    for delay in [5, 20, 60, 120] {
        let database = home.path().join(format!("db-{delay}"));
        let mut child = orrery()
            .args(["load", "--db", text(&database), text(&data)])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        let stats = crate::common::run(&["stats", "--format", "json", "--db", text(&database)]);
        if stats.status.success() {
            let report: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
            let found = report["quads"].as_u64().unwrap();
            assert!(
                found == 0 || found > 40_000,
                "{found} quads look like a whole database"
            );
        } else {
            crate::common::check_failure(&stats, &[text(&database)]);
        }
        succeed(&["load", "--db", text(&database), text(&data)]);
        assert!(quads(&database) > 40_000);
    }
}
