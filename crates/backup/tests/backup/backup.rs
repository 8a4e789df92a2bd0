//! Backups to a directory and to an object store, and what happens when one of their files is
//! damaged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _};
use orrery_backup::{BackupList, BackupReport, Error, RestoreReport, Target, prune, restore};
use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{
    Asker, CommitOptions, Database, GraphNames, ReadScope, SmallQuad, Transaction, Writer,
    WriterOptions, build_small, verify,
};
use orrery_term::{Term, TermId};

fn quads(count: usize, mark: &str) -> Vec<SmallQuad> {
    let iri = |text: String| Term::iri(format!("http://example.org/{text}"));
    let quad = |number: usize| {
        (
            iri(format!("s{}", number / 3)),
            iri(format!("p{}", number % 3)),
            Term::string(format!("the text of {mark}, number {number}")),
            (number.is_multiple_of(2)).then(|| iri("graph".to_owned())),
        )
    };
    (0..count).map(quad).collect()
}

fn content(directory: &Path) -> BTreeSet<String> {
    let database = Database::open(directory).unwrap();
    let mut lines = BTreeSet::new();
    let view = database.view_of_process();
    let mut all = view.quads().unwrap();
    while let Some(batch) = all.next_batch().unwrap() {
        for quad in batch.iter() {
            lines.insert(format!("{quad:?}"));
        }
    }
    lines
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(future)
}

fn local() -> Arc<dyn FileSystem> {
    Arc::new(LocalFileSystem)
}

/// A backup by who may see all graphs.
async fn backup(
    file_system: &dyn FileSystem,
    directory: &Path,
    target: &Target,
) -> Result<BackupReport, Error> {
    let all = ReadScope::all_graphs(Asker::Process);
    orrery_backup::backup(file_system, directory, target, &all).await
}

fn restore_to(
    target: &Target,
    number: Option<u64>,
    directory: &Path,
) -> Result<RestoreReport, Error> {
    run(restore(target, number, &local(), directory))
}

struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            path: directory.path().to_path_buf(),
            _directory: directory,
        }
    }

    fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn target(&self) -> Target {
        Target::parse(self.join("backups").to_str().unwrap(), []).unwrap()
    }
}

#[test]
fn who_may_not_see_all_graphs_gets_no_backup() {
    let place = Place::new();
    let source = place.join("db");
    build_small(&source, &quads(30, "hidden")).unwrap();
    let named = [Term::iri("http://example.org/graph".to_owned())].into();
    for (has_default, named) in [
        (false, Default::default()),
        (true, Default::default()),
        // All that there are now; others may come.
        (true, named),
    ] {
        let graphs = GraphNames {
            has_default,
            named,
            ..GraphNames::default()
        };
        let some = ReadScope::only(Asker::Anonymous, graphs);
        let target = place.target();
        let taken = orrery_backup::backup(&LocalFileSystem, &source, &target, &some);
        let refused = run(taken).unwrap_err().to_string();
        assert_eq!(
            refused,
            "anonymous may not back up the database: only who may read all graphs may"
        );
        let mut written = std::fs::read_dir(place.join("backups")).unwrap();
        assert!(written.next().is_none(), "nothing was written");
    }
}

#[test]
fn each_backup_of_a_directory_can_be_restored_and_only_new_files_are_copied() {
    let place = Place::new();
    let source = place.join("db");
    let target = place.target();
    let mut contents = Vec::new();
    for (round, mark) in ["first", "second"].into_iter().enumerate() {
        build_small(&source, &quads(300 + round, mark)).unwrap();
        contents.push(content(&source));
        let report = run(backup(&LocalFileSystem, &source, &target)).unwrap();
        assert_eq!(report.number, round as u64 + 1);
        assert_eq!(report.bytes_copied, report.bytes);
    }
    let again = run(backup(&LocalFileSystem, &source, &target)).unwrap();
    assert_eq!((again.number, again.bytes_copied), (3, 0));

    for (number, expected) in [(1, &contents[0]), (2, &contents[1]), (3, &contents[1])] {
        let directory = place.join(&format!("restored-{number}"));
        let report = restore_to(&target, Some(number), &directory).unwrap();
        assert_eq!(report.quads as usize, expected.len());
        assert_eq!(&content(&directory), expected);
        assert!(verify(&directory, |_| {}).unwrap().is_empty());
    }
    let last = restore_to(&target, None, &place.join("last")).unwrap();
    assert_eq!(last.number, 3);
    let lists = run(BackupList::read_all(&target)).unwrap();
    let numbers: Vec<u64> = lists.iter().map(|list| list.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn old_backups_go_with_the_files_that_no_other_has() {
    let place = Place::new();
    let source = place.join("db");
    let target = place.target();
    for (round, mark) in ["first", "second", "third"].into_iter().enumerate() {
        build_small(&source, &quads(300 + round, mark)).unwrap();
        run(backup(&LocalFileSystem, &source, &target)).unwrap();
        // The second has all its files in common with the first.
        run(backup(&LocalFileSystem, &source, &target)).unwrap();
    }
    assert!(run(prune(&target, 0)).is_err());
    assert_eq!(run(prune(&target, 6)).unwrap().objects, 0);
    let expected = content(&source);
    // 1 to 3 go, of which 3 shares its files with 4.
    let report = run(prune(&target, 3)).unwrap();
    assert_eq!(report.removed, [1, 2, 3]);
    let first_files = 8; // of the first content only
    assert!(report.objects >= first_files, "{report:?}");
    assert!(report.bytes > 0);
    for number in [1, 2, 3] {
        let restored = restore_to(&target, Some(number), &place.join("none"));
        assert!(matches!(restored, Err(Error::NoBackup { .. })), "{number}");
    }
    for number in [4, 5, 6] {
        let directory = place.join(&format!("restored-{number}"));
        restore_to(&target, Some(number), &directory).unwrap();
        assert!(verify(&directory, |_| {}).unwrap().is_empty());
    }
    assert_eq!(content(&place.join("restored-6")), expected);
    assert!(run(prune(&target, 3)).unwrap().removed.is_empty());
    // What is copied next finds the files of what was kept.
    let next = run(backup(&LocalFileSystem, &source, &target)).unwrap();
    assert_eq!((next.number, next.bytes_copied), (7, 0));
    run(prune(&target, 1)).unwrap();
    let objects: Vec<PathBuf> = std::fs::read_dir(place.join("backups/objects"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(objects.len(), 1, "{objects:?}");
}

#[test]
fn an_object_store_holds_backups_under_its_prefix() {
    let place = Place::new();
    let source = place.join("db");
    build_small(&source, &quads(100, "text")).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let prefix = ObjectPath::from("some/prefix");
    let target = Target::new("memory", Arc::clone(&store), prefix.clone());
    run(backup(&LocalFileSystem, &source, &target)).unwrap();
    let all: Vec<_> = run(store.list(None).try_collect()).unwrap();
    assert!(
        all.iter()
            .all(|object| object.location.prefix_matches(&prefix))
    );
    restore_to(&target, None, &place.join("restored")).unwrap();
    assert_eq!(content(&place.join("restored")), content(&source));
}

#[test]
fn a_damaged_or_missing_object_is_named_and_nothing_is_restored() {
    let place = Place::new();
    let source = place.join("db");
    build_small(&source, &quads(100, "text")).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let target = Target::new("memory", Arc::clone(&store), ObjectPath::default());
    run(backup(&LocalFileSystem, &source, &target)).unwrap();
    let directory = place.join("restored");
    let objects: Vec<_> = run(store.list(None).try_collect()).unwrap();
    for object in objects {
        let path = object.location;
        let whole = run(async { store.get(&path).await.unwrap().bytes().await.unwrap() });
        let mut flipped = whole.to_vec();
        flipped[whole.len() / 2] ^= 8;
        for damaged in [flipped, whole[..whole.len() - 1].to_vec()] {
            run(store.put(&path, damaged.into())).unwrap();
            let error = restore_to(&target, None, &directory).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{path}: {error}");
            assert!(error.to_string().contains(path.as_ref()), "{error}");
            assert!(Database::open(&directory).is_err());
        }
        run(store.delete(&path)).unwrap();
        assert!(restore_to(&target, None, &directory).is_err());
        // A list that names an object which went away does not stop the next backup from storing
        // it.
        run(backup(&LocalFileSystem, &source, &target)).unwrap();
        run(store.put(&path, whole.into())).unwrap();
    }
    restore_to(&target, None, &directory).unwrap();
    assert_eq!(content(&directory), content(&source));
    assert!(matches!(
        restore_to(&target, None, &directory),
        Err(Error::Storage(
            orrery_storage::Error::AlreadyADatabase { .. }
        ))
    ));
}

#[test]
fn a_backup_that_was_interrupted_is_none() {
    let place = Place::new();
    let source = place.join("db");
    build_small(&source, &quads(100, "text")).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let target = Target::new("memory", Arc::clone(&store), ObjectPath::default());
    let whole = run(backup(&LocalFileSystem, &source, &target)).unwrap();
    // Objects without a list, one of them cut short.
    let objects: Vec<_> = run(store.list(None).try_collect()).unwrap();
    let is_list = |path: &ObjectPath| path.as_ref().starts_with("backups/");
    for object in &objects {
        match is_list(&object.location) {
            true => run(store.delete(&object.location)).unwrap(),
            false => drop(run(store.put(&object.location, "half".into())).unwrap()),
        }
    }
    assert!(matches!(
        restore_to(&target, None, &place.join("restored")),
        Err(Error::NoBackup { number: None, .. })
    ));
    let again = run(backup(&LocalFileSystem, &source, &target)).unwrap();
    assert_eq!(again, whole);
    restore_to(&target, None, &place.join("restored")).unwrap();
}

/// Commits one more quad; the number of the commit.
fn commit(writer: &Writer, number: u64) -> u64 {
    let mut transaction = writer.begin().unwrap();
    let term = |transaction: &mut Transaction, text: String| {
        transaction.intern(&Term::string(text)).unwrap()
    };
    let row = [
        transaction
            .intern(&Term::iri("http://example.org/s"))
            .unwrap(),
        transaction
            .intern(&Term::iri("http://example.org/p"))
            .unwrap(),
        term(&mut transaction, format!("committed as number {number}")),
        TermId::DEFAULT_GRAPH,
    ];
    transaction.insert(&mut vec![row]).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap()
}

#[test]
fn a_backup_of_a_database_that_is_written_is_the_state_of_one_commit() {
    let place = Place::new();
    let source = place.join("db");
    build_small(&source, &quads(30, "text")).unwrap();
    let database = Arc::new(Database::open(&source).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let target = place.target();
    let first = database.snapshot().commit();
    let is_done = AtomicBool::new(false);
    let reports = std::thread::scope(|scope| {
        let backups = scope.spawn(|| {
            let once = || run(backup(&LocalFileSystem, &source, &target)).unwrap();
            let mut reports = vec![once(), once()];
            while !is_done.load(Ordering::Relaxed) {
                reports.push(once());
            }
            reports.push(once());
            reports
        });
        for number in 0..60 {
            commit(&writer, number);
            if number % 15 == 14 {
                writer.checkpoint().unwrap();
            }
        }
        is_done.store(true, Ordering::Relaxed);
        backups.join().unwrap()
    });
    assert!(reports.is_sorted_by_key(|report| report.commit));
    // The segment is copied once, then only what changes.
    assert!(
        reports[1..]
            .iter()
            .all(|report| report.bytes_copied < report.bytes)
    );
    let last = reports.last().unwrap().commit;
    assert_eq!(last, first + 60);
    for report in reports.iter().step_by(reports.len().div_ceil(6)) {
        let directory = place.join(&format!("restored-{}", report.number));
        let restored = restore_to(&target, Some(report.number), &directory).unwrap();
        assert_eq!(restored.quads, 30 + report.commit - first);
        assert!(verify(&directory, |_| {}).unwrap().is_empty());
        // It can be written like any other.
        let database = Arc::new(Database::open(&directory).unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        assert_eq!(commit(&writer, 1000), report.commit + 1);
    }
}

#[test]
fn addresses_that_make_no_sense_are_refused_in_one_line() {
    for address in ["ftp://host/x", "s3://", "http://host/x", "/dev/null/x"] {
        let error = Target::parse(address, []).unwrap_err().to_string();
        assert!(error.contains(address) && !error.contains('\n'), "{error}");
    }
    let settings = [("AWS_REGION".to_owned(), "eu-central-1".to_owned())];
    Target::parse("s3://bucket/prefix", settings).unwrap();
}
