//! Tests of a database on a minimal S3 server on loopback.

use std::sync::Arc;

use orrery_fake_s3::FakeS3;
use orrery_object_store::{CacheOptions, ObjectFileSystem, ObjectOptions};
use orrery_storage::{Database, Error, SmallQuad, WriterOptions, build_small_with, verify_with};
use orrery_term::Term;

use crate::common::{commit, numbers, set};

const ADDRESS: &str = "s3://bucket/some/prefix";

fn open(server: &FakeS3, disk: &tempfile::TempDir) -> Arc<ObjectFileSystem> {
    let cache = CacheOptions {
        directory: disk.path().to_path_buf(),
        bytes: 64 << 20,
    };
    let (files, root) =
        orrery_object_store::open_with(ADDRESS, server.settings(), &ObjectOptions { cache })
            .unwrap();
    assert_eq!(root.to_str(), Some(ADDRESS));
    files
}

#[test]
fn a_database_lives_in_s3_with_writers_that_follow_each_other_and_a_reader() {
    let server = FakeS3::start();
    let disks: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let [first, second, third] = [0, 1, 2].map(|number| open(&server, &disks[number]));
    let database = Database::create_or_open_with(first.clone(), ADDRESS).unwrap();
    let writer = Arc::new(database)
        .open_writer(WriterOptions::default())
        .unwrap();
    commit(&writer, 0..10).unwrap();
    server.fail(3);
    commit(&writer, 10..20).unwrap();
    let follower = Arc::new(Database::open_with(second.clone(), ADDRESS).unwrap());
    assert_eq!(numbers(&follower.snapshot()), set(0..20));
    assert!(matches!(
        follower.open_writer(WriterOptions::default()),
        Err(Error::Locked { .. })
    ));
    writer.checkpoint().unwrap();
    commit(&writer, 20..21).unwrap();
    assert!(follower.refresh().unwrap());
    assert!(!follower.refresh().unwrap());
    assert_eq!(numbers(&follower.snapshot()), set(0..21));
    drop(writer);
    let writer = follower.open_writer(WriterOptions::default()).unwrap();
    commit(&writer, 21..22).unwrap();
    drop(writer);
    assert!(
        verify_with(&*third, ADDRESS.as_ref(), |_| {})
            .unwrap()
            .is_empty()
    );
    let found = Database::open_with(third, ADDRESS).unwrap();
    assert_eq!(numbers(&found.snapshot()), set(0..22));
    assert!(
        server
            .keys()
            .iter()
            .all(|key| key.starts_with("some/prefix/"))
    );
}

#[test]
fn large_files_go_in_parts_and_are_read_in_ranges() {
    let server = FakeS3::start();
    let disks: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let iri = |name: String| Term::iri(format!("http://example.org/{name}"));
    // Text that does not shrink.
    let noise = |mut seed: u64| {
        let mut text = String::new();
        while text.len() < 1_000_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text += &format!("{seed:016x}");
        }
        Term::string(text)
    };
    let quads: Vec<SmallQuad> = (1..24)
        .map(|number| {
            (
                iri(format!("s{number}")),
                iri("p".into()),
                noise(number),
                None,
            )
        })
        .collect();
    let writing = open(&server, &disks[0]);
    build_small_with(writing.clone(), ADDRESS, &quads).unwrap();
    assert!(server.parts_received() > 1);
    let reading = open(&server, &disks[1]);
    assert!(
        verify_with(&*reading, ADDRESS.as_ref(), |_| {})
            .unwrap()
            .is_empty()
    );
    let counts = reading.counts();
    assert!(counts.bytes_received > 8 << 20, "{counts:?}");
    assert_eq!(
        writing.counts().cache.fetched_bytes,
        0,
        "what was written is there"
    );
}
