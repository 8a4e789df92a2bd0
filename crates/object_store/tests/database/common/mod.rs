//! Test helpers: databases in an in-memory store, as several processes see them.

pub(crate) mod faulty;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use orrery_object_store::{CacheOptions, ObjectFileSystem, ObjectOptions, Timing};
use orrery_storage::io::FileSystem;
use orrery_storage::{
    CommitOptions, Database, Result, SmallQuad, Snapshot, Writer, WriterOptions, verify_with,
};
use orrery_term::{Term, TermId};
use tempfile::TempDir;

use faulty::{Faults, FaultyStore};

/// The database's directory, as the storage sees it.
pub(crate) const ROOT: &str = "s3://bucket/some/database";

/// A store, and the local disks of all who use it.
pub(crate) struct Site {
    pub(crate) memory: Arc<dyn ObjectStore>,
    disks: TempDir,
    machines: std::sync::atomic::AtomicU32,
}

/// A process that uses the database.
pub(crate) struct Machine {
    pub(crate) faults: Faults,
    pub(crate) objects: Arc<ObjectFileSystem>,
    pub(crate) files: Arc<dyn FileSystem>,
}

/// Times for tests: failures are quick, leases outlive every test, nothing is deleted.
pub(crate) fn timing() -> Timing {
    Timing {
        request: Duration::from_millis(200),
        attempts_max: 4,
        backoff_first: Duration::from_millis(1),
        backoff_max: Duration::from_millis(8),
        lease: Duration::from_secs(600),
        ..Timing::default()
    }
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(InMemory::new()))
    }

    pub(crate) fn over(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            memory: store,
            disks: tempfile::tempdir().unwrap(),
            machines: Default::default(),
        }
    }

    pub(crate) fn machine(&self) -> Machine {
        self.machine_with(timing())
    }

    pub(crate) fn machine_with(&self, timing: Timing) -> Machine {
        let number = self
            .machines
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let options = ObjectOptions {
            cache: CacheOptions {
                directory: self.disks.path().join(number.to_string()),
                bytes: 64 << 20,
            },
        };
        let store = FaultyStore::over(Arc::clone(&self.memory));
        let faults = store.faults.clone();
        let prefix = Path::from("some/database");
        let objects =
            ObjectFileSystem::over_with(Arc::new(store), prefix, ROOT, &options, timing).unwrap();
        let objects = Arc::new(objects);
        Machine {
            faults,
            files: Arc::clone(&objects) as _,
            objects,
        }
    }

    /// What another process finds, after every byte was checked.
    pub(crate) fn content(&self) -> BTreeSet<u64> {
        let machine = self.machine();
        let damage = verify_with(&*machine.files, ROOT.as_ref(), |_| {}).unwrap();
        assert!(damage.is_empty(), "{damage:?}");
        numbers(&machine.database().snapshot())
    }

    /// Names of all objects.
    pub(crate) fn objects(&self) -> Vec<String> {
        let listed = self.memory.list(None).try_collect::<Vec<_>>();
        let listed = futures::executor::block_on(listed).unwrap();
        let names = listed.iter().map(|meta| meta.location.to_string());
        names.collect()
    }

    /// How many objects have names with a part.
    pub(crate) fn count(&self, part: &str) -> usize {
        let names = self.objects();
        names.iter().filter(|name| name.contains(part)).count()
    }
}

impl Machine {
    pub(crate) fn database(&self) -> Arc<Database> {
        self.try_database().unwrap()
    }

    pub(crate) fn try_database(&self) -> Result<Arc<Database>> {
        Database::open_with(Arc::clone(&self.files), ROOT).map(Arc::new)
    }

    pub(crate) fn try_writer(&self) -> Result<Writer> {
        self.try_writer_with(WriterOptions::default())
    }

    pub(crate) fn try_writer_with(&self, options: WriterOptions) -> Result<Writer> {
        let database = Database::create_or_open_with(Arc::clone(&self.files), ROOT)?;
        Arc::new(database).open_writer(options)
    }

    pub(crate) fn writer(&self) -> Writer {
        self.try_writer().unwrap()
    }

    /// The process is killed: nothing of it reaches the store any more.
    pub(crate) fn kill(self, writer: Option<Writer>) {
        self.faults.set_down(true);
        drop(writer);
    }
}

/// The quad with a number.
pub(crate) fn quad(number: u64) -> SmallQuad {
    let iri = |name: String| Term::iri(format!("http://example.org/{name}"));
    let object = Term::string(format!("{number}"));
    (
        iri(format!("s{}", number % 17)),
        iri("p".to_owned()),
        object,
        None,
    )
}

pub(crate) fn quads(numbers: std::ops::Range<u64>) -> Vec<SmallQuad> {
    numbers.map(quad).collect()
}

/// Commits quads; the number of the commit.
pub(crate) fn commit(writer: &Writer, numbers: std::ops::Range<u64>) -> Result<u64> {
    let mut transaction = writer.begin()?;
    let mut rows = Vec::new();
    for (s, p, o, _) in quads(numbers) {
        let [s, p, o] = [
            transaction.intern(&s)?,
            transaction.intern(&p)?,
            transaction.intern(&o)?,
        ];
        rows.push([s, p, o, TermId::DEFAULT_GRAPH]);
    }
    transaction.insert(&mut rows)?;
    transaction.commit(CommitOptions::default())?.wait()
}

/// The numbers of the quads that a snapshot holds.
pub(crate) fn numbers(snapshot: &Arc<Snapshot>) -> BTreeSet<u64> {
    let view = orrery_storage::ReadView::of_process(Arc::clone(snapshot));
    let mut quads = view.quads().unwrap();
    let mut found = BTreeSet::new();
    while let Some(batch) = quads.next_batch().unwrap() {
        for found_quad in batch.iter() {
            let object = found_quad.object.into_owned().into_owned();
            let Term::Literal(literal) = &object else {
                panic!("{object:?}");
            };
            found.insert(literal.lexical.parse().unwrap());
        }
    }
    found
}

pub(crate) fn set(numbers: std::ops::Range<u64>) -> BTreeSet<u64> {
    numbers.collect()
}

/// Looks again until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
