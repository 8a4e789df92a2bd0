//! Tests of a full disk, on a small in-memory file system that is mounted for them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{CommitOptions, Database, Error, Result, Writer};
use orrery_term::{Term, TermId};

/// Unmounts when the test ends, however it ends.
struct Mounted {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Mounted {
    /// `None` where this process may not mount.
    fn new(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_path_buf();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&path)
            .output();
        mount
            .is_ok_and(|output| output.status.success())
            .then_some(Self {
                path,
                _directory: directory,
            })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

fn insert(writer: &Writer, number: usize, bytes: usize) -> Result<u64> {
    let mut transaction = writer.begin()?;
    let term = |transaction: &mut orrery_storage::Transaction, name: &str| {
        transaction.intern(&Term::iri(format!("http://example.org/{name}")))
    };
    let text = format!("{number} {}", "x".repeat(bytes));
    let row = [
        term(&mut transaction, &format!("s{number}"))?,
        term(&mut transaction, "p")?,
        transaction.intern(&Term::string(text))?,
        TermId::DEFAULT_GRAPH,
    ];
    transaction.insert(&mut vec![row])?;
    transaction.commit(CommitOptions::default())?.wait()
}

#[test]
fn a_full_disk_stops_writes_with_a_clear_error_and_heals_when_there_is_space() {
    let Some(mounted) = Mounted::new("3m") else {
        eprintln!("skipped: mounting a tmpfs is not permitted here");
        return;
    };
    let filler = mounted.path.join("filler");
    std::fs::write(&filler, vec![1; 1024 * 1024]).unwrap();
    let directory = mounted.path.join("db");
    let file_system: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
    let database = Database::create_or_open_with(file_system, Path::new(&directory)).unwrap();
    let database = Arc::new(database);
    let writer = database.open_writer(Default::default()).unwrap();
    let mut written = 0;
    let error = loop {
        match insert(&writer, written, 50_000) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the disk never became full");
    };
    assert!(written > 5);
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(
        error.to_string().contains("no space left on the disk"),
        "{error}"
    );
    for _ in 0..3 {
        assert!(insert(&writer, written, 50_000).is_err());
        assert_eq!(database.view_of_process().quad_count(), written as u64);
        let reader = Database::open(&directory).unwrap();
        assert_eq!(reader.view_of_process().quad_count(), written as u64);
    }
    // What fits still goes in; and when there is space again, everything does.
    std::fs::remove_file(&filler).unwrap();
    insert(&writer, written, 50_000).unwrap();
    drop(writer);
    let reader = Database::open(&directory).unwrap();
    assert_eq!(reader.view_of_process().quad_count(), written as u64 + 1);
    drop((reader, database));
}
