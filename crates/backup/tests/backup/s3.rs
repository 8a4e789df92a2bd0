//! Backups to a server on loopback that speaks as much of S3 as they need.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use orrery_backup::{Target, backup, restore};
use orrery_fake_s3::FakeS3;
use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{Asker, ReadScope, build_small, verify};
use orrery_term::Term;

#[test]
fn a_backup_goes_to_s3_in_parts_survives_an_error_and_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let [source, restored] = ["db", "restored"].map(|name| home.path().join(name));
    let iri = |name: String| Term::iri(format!("http://example.org/{name}"));
    // Text that does not shrink, so that a file is sent in more than one part.
    let noise = |mut seed: u64| {
        let mut text = String::new();
        while text.len() < 1_000_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text += &format!("{seed:016x}");
        }
        Term::string(text)
    };
    let quad = |number: u64| {
        (
            iri(format!("s{number}")),
            iri("p".into()),
            noise(number),
            None,
        )
    };
    build_small(&source, &(1..24).map(quad).collect::<Vec<_>>()).unwrap();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = FakeS3::start();
        let target = Target::parse("s3://bucket/some/prefix", server.settings()).unwrap();
        server.fail(1);
        let all = ReadScope::all_graphs(Asker::Process);
        let first = backup(&LocalFileSystem, Path::new(&source), &target, &all)
            .await
            .unwrap();
        assert_eq!(first.bytes_copied, first.bytes);
        assert!(server.parts_received() > 1);
        let second = backup(&LocalFileSystem, Path::new(&source), &target, &all)
            .await
            .unwrap();
        assert_eq!((second.number, second.bytes_copied), (2, 0));
        assert!(
            server
                .keys()
                .iter()
                .all(|key| key.starts_with("some/prefix/"))
        );

        let file_system: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
        let report = restore(&target, Some(1), &file_system, &restored)
            .await
            .unwrap();
        assert_eq!(report.quads, 23);
    });
    assert!(verify(&restored, |_| {}).unwrap().is_empty());
}
