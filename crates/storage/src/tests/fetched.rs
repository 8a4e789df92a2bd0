//! Tests of files whose bytes are fetched on demand, as from an object store.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::updates::{commit, intern, options};
use super::{dump, iri, some_quads};
use crate::files::io::testing::all_else_of_this_machine;
use crate::files::io::{ByteSource, FileBytes, FileSystem, FileWriter, LocalFileSystem};
use crate::{
    CommitOptions, Database, Durability, Error, Result, SmallQuad, WarmExtent, build_small,
};

const PIECE_BYTES: usize = 512;

/// Maps files that are empty at first; each piece is copied at the first fetch.
#[derive(Debug, Default)]
struct Fetching {
    /// The first copy of each piece has one wrong byte.
    damages: bool,
    /// Bytes are wrong however often they are copied.
    is_lost: bool,
    wants_reopening: AtomicBool,
    announced: AtomicUsize,
    sources: Mutex<Vec<Arc<Source>>>,
}

#[derive(Debug)]
struct Source {
    origin: Vec<u8>,
    file: File,
    damages: bool,
    is_lost: bool,
    there: Mutex<BTreeSet<usize>>,
    announced: Mutex<BTreeSet<usize>>,
    /// Pieces that somebody had to wait for without having asked for them before.
    surprises: AtomicUsize,
    refetched: AtomicUsize,
}

impl Source {
    fn copy(&self, range: Range<usize>, damages: bool) {
        let mut bytes = self.origin[range.clone()].to_vec();
        if damages && let Some(byte) = bytes.last_mut() {
            *byte ^= 1;
        }
        self.file.write_all_at(&bytes, range.start as u64).unwrap();
    }

    fn pieces(range: &Range<usize>) -> Range<usize> {
        range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES)
    }

    fn piece(&self, number: usize) -> Range<usize> {
        let end = self.origin.len().min((number + 1) * PIECE_BYTES);
        number * PIECE_BYTES..end
    }
}

impl ByteSource for Source {
    fn fetch(&self, range: Range<usize>) -> Result<()> {
        assert!(range.start < range.end && range.end <= self.origin.len());
        let mut there = self.there.lock();
        for number in Self::pieces(&range) {
            if there.insert(number) {
                if !self.announced.lock().contains(&number) {
                    self.surprises.fetch_add(1, Ordering::Relaxed);
                }
                self.copy(self.piece(number), self.damages);
            }
        }
        Ok(())
    }

    fn will_need(&self, range: Range<usize>) {
        assert!(range.start < range.end && range.end <= self.origin.len());
        self.announced.lock().extend(Self::pieces(&range));
    }

    fn refetch(&self, range: Range<usize>) -> Result<bool> {
        self.refetched.fetch_add(1, Ordering::Relaxed);
        for number in Self::pieces(&range) {
            self.copy(self.piece(number), self.is_lost);
        }
        Ok(true)
    }
}

impl FileSystem for Fetching {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        LocalFileSystem.create(path)
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        let origin = LocalFileSystem.read(path)?;
        let file = tempfile::tempfile().unwrap();
        file.set_len(origin.len() as u64).unwrap();
        let source = Arc::new(Source {
            origin,
            file: file.try_clone().unwrap(),
            damages: self.damages,
            is_lost: self.is_lost,
            there: Mutex::default(),
            announced: Mutex::default(),
            surprises: AtomicUsize::new(0),
            refetched: AtomicUsize::new(0),
        });
        self.sources.lock().push(Arc::clone(&source));
        FileBytes::fetched(&file, source).map_err(|error| Error::from_io(path, "map", error))
    }

    fn will_open(&self, paths: &[PathBuf]) {
        assert!(paths.iter().all(|path| path.is_file()));
        self.announced.fetch_add(paths.len(), Ordering::Relaxed);
    }

    all_else_of_this_machine!();

    fn wants_reopening(&self) -> bool {
        self.wants_reopening.swap(false, Ordering::Relaxed)
    }
}

/// A database with some quads, read through such a file system.
fn open(files: Fetching) -> (tempfile::TempDir, Arc<Fetching>, Result<Database>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    build_small(&path, &some_quads(true)).unwrap();
    let files = Arc::new(files);
    let database = Database::open_with(Arc::clone(&files) as Arc<dyn FileSystem>, path);
    (directory, files, database)
}

fn expected() -> BTreeSet<SmallQuad> {
    super::updates::set(&some_quads(true))
}

fn quad(name: &str) -> SmallQuad {
    (iri(name), iri("p"), iri("o"), None)
}

#[test]
fn nothing_is_read_that_was_not_fetched() {
    let (_directory, files, database) = open(Fetching::default());
    let snapshot = database.unwrap().snapshot();
    assert_eq!(dump(&snapshot).unwrap(), expected());
    let announced = files.announced.load(Ordering::Relaxed);
    assert_eq!(announced, files.sources.lock().len());
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let everything = WarmExtent::Everything {
        bytes_max: u64::MAX,
    };
    snapshot.warm(everything, go_on).unwrap();
}

#[test]
fn damage_here_is_fetched_anew_and_damage_there_is_told() {
    let (_directory, files, database) = open(Fetching {
        damages: true,
        ..Fetching::default()
    });
    let snapshot = database.unwrap().snapshot();
    assert_eq!(dump(&snapshot).unwrap(), expected());
    let refetched = |source: &Arc<Source>| source.refetched.load(Ordering::Relaxed) > 0;
    assert!(files.sources.lock().iter().all(refetched));

    let (_directory, _, database) = open(Fetching {
        damages: true,
        is_lost: true,
        ..Fetching::default()
    });
    assert!(
        matches!(database, Err(Error::Corrupt { .. })),
        "{database:?}"
    );
}

/// Many terms, of several chapters of the dictionary; their file is the one of these that is
/// longest, and much longer than what is read of its end when it is opened.
fn open_terms() -> (tempfile::TempDir, Arc<Fetching>, Database) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let word = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let words = |n| [n, word(n), word(word(n)), word(word(word(n)))];
    let name = |n: u64| words(n + 1).map(|word| format!("{word:016x}")).concat();
    let quads: Vec<SmallQuad> = (0..20_000).map(|n| quad(&name(n))).collect();
    build_small(&path, &quads).unwrap();
    let files = Arc::new(Fetching::default());
    let database = Database::open_with(Arc::clone(&files) as Arc<dyn FileSystem>, path);
    (directory, files, database.unwrap())
}

impl Fetching {
    /// The longest of the files that were opened last.
    fn longest(&self) -> Arc<Source> {
        let sources = self.sources.lock();
        let longest = sources.iter().max_by_key(|source| source.origin.len());
        Arc::clone(longest.unwrap())
    }
}

#[test]
fn keys_are_searched_and_read_in_pages_that_were_all_asked_for_before() {
    let (_directory, files, database) = open_terms();
    let snapshot = database.snapshot();
    let (dictionary, terms) = (snapshot.dictionary(), files.longest());
    let before = terms.surprises.load(Ordering::Relaxed);
    let count = dictionary.len();
    let mut keys = Vec::new();
    for place in 1..6 {
        let mut key = Vec::new();
        dictionary.key(count / 10 * place, &mut key).unwrap();
        keys.push(key);
    }
    assert_eq!(terms.surprises.load(Ordering::Relaxed), before);
    drop((snapshot, database));

    let (_directory, files, database) = open_terms();
    let snapshot = database.snapshot();
    let (dictionary, terms) = (snapshot.dictionary(), files.longest());
    let there = || terms.there.lock().len();
    let opened = there();
    let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    dictionary.will_find(&wanted).unwrap();
    let announced = terms.announced.lock().clone();
    for (key, place) in wanted.iter().zip(1..) {
        assert_eq!(dictionary.find(key).unwrap(), Some(count / 10 * place));
    }
    assert!(there() > opened);
    assert!(terms.there.lock().is_subset(&announced));
}

#[test]
fn terms_that_were_read_are_known_when_the_files_are_opened_anew() {
    let (_directory, files, database) = open_terms();
    let of = |snapshot: &crate::Snapshot| {
        let mut keys = Vec::new();
        let ranks = [5000, 3, 3, 4000];
        let found = |place, key: &[u8]| keys.push((place, key.to_vec()));
        snapshot.dictionary().keys(&ranks, found).unwrap();
        let mut one = Vec::new();
        snapshot.dictionary().key(4001, &mut one).unwrap();
        (keys, one)
    };
    let before = of(&database.snapshot());
    assert!(before.0.iter().map(|(place, _)| place).eq(&[0, 1, 2, 3]));
    assert_eq!(before.0[1].1, before.0[2].1);
    files.sources.lock().clear();
    files.wants_reopening.store(true, Ordering::Relaxed);
    database.refresh().unwrap();
    let (terms, snapshot) = (files.longest(), database.snapshot());
    let opened = terms.there.lock().len();
    assert_eq!(of(&snapshot), before);
    assert_eq!(terms.there.lock().len(), opened);
    // What was not read is.
    let mut other = Vec::new();
    snapshot.dictionary().key(6000, &mut other).unwrap();
    assert!(terms.there.lock().len() > opened);
}

#[test]
fn files_are_opened_anew_and_old_ones_go_when_nobody_reads_them() {
    let (directory, files, database) = open(Fetching::default());
    let database = Arc::new(database.unwrap());
    let before = database.snapshot();
    dump(&before).unwrap();
    let in_use = || {
        let sources = files.sources.lock();
        let held = sources.iter().filter(|it| Arc::strong_count(it) > 1);
        held.count()
    };
    let of_one_state = in_use();
    // By a reader.
    files.wants_reopening.store(true, Ordering::Relaxed);
    assert!(!database.refresh().unwrap());
    assert_eq!(in_use(), 2 * of_one_state);
    assert_eq!(dump(&database.snapshot()).unwrap(), expected());
    drop(before);
    assert_eq!(in_use(), of_one_state);
    // By a writer, with a commit over the files that was made before; its thread looks after it has
    // put a relaxed commit on the disk.
    let writer = database.open_writer(options()).unwrap();
    commit(&writer, &[], &[quad("new")]);
    files.wants_reopening.store(true, Ordering::Relaxed);
    let before = database.snapshot();
    let mut transaction = writer.begin().unwrap();
    let mut rows = intern(&mut transaction, &[quad("newer")]);
    transaction.insert(&mut rows).unwrap();
    let relaxed = CommitOptions {
        durability: Durability::Relaxed,
        ..CommitOptions::default()
    };
    drop(transaction.commit(relaxed).unwrap());
    let is_reopened = || !Arc::ptr_eq(before.base(), database.snapshot().base());
    let begun = Instant::now();
    while !is_reopened() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(before);
    assert_eq!(in_use(), of_one_state);
    commit(&writer, &[quad("new")], &[quad("newest")]);
    let mut all = expected();
    all.extend(["newer", "newest"].map(quad));
    assert_eq!(dump(&database.snapshot()).unwrap(), all);
    drop(writer);
    let again = Database::open(directory.path().join("db")).unwrap();
    assert_eq!(dump(&again.snapshot()).unwrap(), all);
}
