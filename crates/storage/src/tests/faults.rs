//! A disk that fails: whatever step of a write fails, the database is as before or as after.

use std::io::Read;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::io::{
    FileBytes, FileLock, FileMetadata, FileSystem, FileWriter, LocalFileSystem, LogFile,
};

/// Lets so many changing operations pass; all later ones fail, as on a disk that is full or gone.
#[derive(Debug, Clone)]
struct FailingFileSystem {
    left: Arc<AtomicI64>,
}

impl FailingFileSystem {
    fn after(operations: i64) -> Self {
        let left = Arc::new(AtomicI64::new(operations));
        Self { left }
    }

    fn step(&self, path: &Path) -> Result<()> {
        match self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            true => Ok(()),
            false => Err(Error::NoSpace {
                path: path.to_path_buf(),
                operation: "write",
            }),
        }
    }
}

impl FileSystem for FailingFileSystem {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        self.step(path)?;
        Ok(Box::new(FailingWriter {
            inner: LocalFileSystem.create(path)?,
            file_system: self.clone(),
        }))
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        LocalFileSystem.map(path)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        LocalFileSystem.read(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        LocalFileSystem.open(path)
    }

    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        LocalFileSystem.open_at(path, offset)
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        self.step(path)?;
        LocalFileSystem.create_log(path)
    }

    fn open_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        LocalFileSystem.open_log(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.step(to)?;
        LocalFileSystem.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.step(path)?;
        LocalFileSystem.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.step(path)?;
        LocalFileSystem.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.step(path)?;
        LocalFileSystem.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.step(path)?;
        LocalFileSystem.sync_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>> {
        LocalFileSystem.list(path)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FileMetadata>> {
        LocalFileSystem.metadata(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        LocalFileSystem.lock(path)
    }
}

#[derive(Debug)]
struct FailingWriter {
    inner: Box<dyn FileWriter>,
    file_system: FailingFileSystem,
}

impl FileWriter for FailingWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file_system.step(self.inner.path())?;
        self.inner.append(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file_system.step(self.inner.path())?;
        self.inner.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.file_system.step(self.inner.path())?;
        self.inner.sync()
    }

    fn bytes_written(&self) -> u64 {
        self.inner.bytes_written()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

#[test]
fn a_disk_that_fails_at_any_step_leaves_the_old_database_or_the_new() {
    let old: Vec<SmallQuad> = some_quads(false).into_iter().take(30).collect();
    let new: Vec<SmallQuad> = some_quads(true).into_iter().take(40).collect();
    let [old_set, new_set] = [&old, &new].map(|quads| quads.iter().cloned().collect());
    let mut outcomes = [0, 0];
    for operations in 0.. {
        let directory = tempfile::tempdir().unwrap();
        build_small(directory.path(), &old).unwrap();
        let file_system = Arc::new(FailingFileSystem::after(operations));
        let built = build_small_with(file_system, directory.path(), &new);
        if let Err(error) = &built {
            assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        }
        let database = Database::open(directory.path()).unwrap();
        let quads: BTreeSet<SmallQuad> = dump(&database.snapshot()).unwrap();
        assert!(is_whole(directory.path()));
        assert!(quads == old_set || quads == new_set, "step {operations}");
        assert!(built.is_err() || quads == new_set);
        outcomes[usize::from(quads == new_set)] += 1;
        // The next writer is not hindered by what is left.
        build_small(directory.path(), &new).unwrap();
        assert!(is_whole(directory.path()));
        if built.is_ok() {
            break;
        }
    }
    assert!(outcomes[0] > 20 && outcomes[1] > 0, "{outcomes:?}");
}
