//! The space management of the cache: the list of files, and eviction.
//!
//! What can go at any time, the extents that were used longest ago first: pieces of files that
//! nobody has mapped, and pieces of mapped files that nobody has touched (neighbours, and what was
//! asked for ahead in vain). What was touched through a mapping has to stay as long as that lives.
//! So when touched pieces alone are too many, files have to be opened anew:
//!
//! ```text
//! more is held than the limit, more than 7/8 of it by files of this generation    wants_reopening() says so
//! the first of the mapped files is mapped again                                   a new generation begins: which of the
//!                                                                                 touched extents are worth 3/4 of the limit?
//! every file of an older generation that is mapped again                          gets a new local file with its share of them;
//!                                                                                 the old one loses its name
//! the last mapping of an old one ends                                             its space is free
//! ```
//!
//! An extent is worth more if it was used in more of the last generations, then if it was used
//! later. Of an extent only the pieces go along that were touched; how the others were used is
//! remembered. What is held meanwhile may be more than the limit: nobody's bytes are taken away,
//! and nobody waits. Files without a name do not count against the limit, up to the limit and a
//! quarter once more: they go soon, and the hot pieces that were just copied must not go for them.
//!
//! Locks, in this order: `remaking`, `evicting`, `state`, then those of a file.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::file::CacheFile;
use super::means::{MakesRoom, Means};
use super::pieces::size_of;
use super::sums::Header;

/// What is evicted at once, so that it is not done for every piece that comes, as a part of the
/// limit.
const SLACK_PARTS: u64 = 8;
/// How much more must be held before another attempt after one that could not free enough, as a
/// part of the limit.
const RETRY_PARTS: u64 = 64;
/// Least time between two wishes that files are opened anew.
const REOPENING_PAUSE: Duration = Duration::from_secs(1);

/// The files of a cache.
#[derive(Debug)]
pub(super) struct Room {
    means: Arc<Means>,
    state: Mutex<State>,
    /// Held while a file gets a new local file.
    remaking: Mutex<()>,
    /// Held while something is evicted.
    evicting: Mutex<()>,
    /// Less than this is not worth another attempt.
    retry_at: AtomicU64,
    next_number: AtomicU64,
    /// Whether files should be opened anew, as far as was seen when room was made.
    wants_reopening: AtomicBool,
    /// When it was last said that they should.
    pub(super) wished: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<String, Arc<CacheFile>>,
    /// Files without a name that may still be mapped.
    unnamed: Vec<Weak<CacheFile>>,
    generation: u32,
    /// Extents above this go along into the new generation; all if there is none.
    bar: Option<Rank>,
}

/// What an extent is worth: higher is more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    heat: u8,
    used: u32,
    /// So that no two have the same.
    file: u64,
    extent: usize,
}

/// Bytes of files that are mapped and have a name.
#[derive(Debug, Default)]
struct Pinned {
    /// Of this generation.
    fresh: u64,
    /// Of older ones: they can be opened anew.
    stale: u64,
}

impl Room {
    /// The files that an earlier process has left in the directory.
    pub(super) fn open(means: Arc<Means>) -> io::Result<Self> {
        let numbers = means.home.numbers()?;
        let next_number = numbers.last().map_or(1, |last| last + 1);
        let mut state = State::default();
        for number in numbers {
            match CacheFile::take_up(&means, number) {
                // A later local file of a key is the better one.
                Ok(Some(file)) => state.insert(Arc::new(file)),
                Ok(None) => means.home.remove(number),
                Err(error) => {
                    tracing::debug!(number, %error, "a cached file cannot be taken up");
                    means.home.remove(number);
                }
            }
        }
        Ok(Self {
            means,
            state: Mutex::new(state),
            remaking: Mutex::new(()),
            evicting: Mutex::new(()),
            retry_at: AtomicU64::new(0),
            next_number: AtomicU64::new(next_number),
            wants_reopening: AtomicBool::new(false),
            wished: Mutex::new(None),
        })
    }

    /// A name for a local file.
    pub(super) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Names a file; one that had the key before goes when nobody has it mapped.
    pub(super) fn insert(&self, file: Arc<CacheFile>) {
        self.state.lock().insert(file);
    }

    /// The file with a key, noted as mapped.
    pub(super) fn map(&self, key: &str, bytes: u64) -> io::Result<Arc<CacheFile>> {
        if let Some(file) = self.map_as_it_is(key, bytes)? {
            return Ok(file);
        }
        let _one_at_once = self.remaking.lock();
        if let Some(file) = self.map_as_it_is(key, bytes)? {
            return Ok(file); // Somebody else has made it meanwhile.
        }
        let (old, generation, bar) = {
            let state = self.state.lock();
            (state.files.get(key).cloned(), state.generation, state.bar)
        };
        let file = match old {
            None => self.create(key, bytes)?,
            Some(old) => self.remade(&old, bar).unwrap_or_else(|error| {
                // Space is what it lacks, most likely: then the old one serves.
                tracing::warn!(path = %old.path().display(), %error, "a cached file stays as it is");
                old
            }),
        };
        file.generation.store(generation, Ordering::SeqCst);
        file.note_mapped();
        self.state.lock().insert(Arc::clone(&file));
        Ok(file)
    }

    /// The file with a key, noted as mapped, unless it is of an older generation.
    fn map_as_it_is(&self, key: &str, bytes: u64) -> io::Result<Option<Arc<CacheFile>>> {
        let mut state = self.state.lock();
        if self.wants_reopening.load(Ordering::SeqCst) && self.is_full_of_fresh(&state.pinned()) {
            state.begin_generation(self.means.limit / 4 * 3);
        }
        let generation = state.generation;
        let file = match state.files.get(key) {
            Some(file) if file.bytes == bytes => {
                if file.is_mapped() && file.generation.load(Ordering::SeqCst) < generation {
                    return Ok(None);
                }
                Arc::clone(file)
            }
            // Another object of the same name: whatever is there is not of this one.
            _ => {
                let file = self.create(key, bytes)?;
                state.insert(Arc::clone(&file));
                file
            }
        };
        file.generation.store(generation, Ordering::SeqCst);
        file.note_mapped();
        Ok(Some(file))
    }

    fn create(&self, key: &str, bytes: u64) -> io::Result<Arc<CacheFile>> {
        let header = Header {
            key: key.to_owned(),
            bytes,
        };
        CacheFile::create(&self.means, self.next_number(), header).map(Arc::new)
    }

    /// A new local file for a key, with those pieces of the old one that are worth it.
    fn remade(&self, old: &CacheFile, bar: Option<Rank>) -> io::Result<Arc<CacheFile>> {
        let file = self.create(&old.key, old.bytes)?;
        for (at, extent) in old.extents.iter().enumerate() {
            // Also of what does not go along: if it is fetched again, it was missed.
            file.extents[at].inherit(extent);
            if bar.is_some_and(|bar| Rank::of(old, at) <= bar) {
                continue;
            }
            if let Err(error) = file.copy_from(old, at, extent.touched()) {
                file.lose_name();
                return Err(error);
            }
        }
        Ok(file)
    }

    /// An object is gone for good.
    pub(super) fn forget(&self, key: &str) {
        let mut state = self.state.lock();
        if let Some(file) = state.files.remove(key) {
            state.take_name(&file);
        }
    }

    /// The keys of all files that are mapped, each once.
    pub(super) fn mapped_keys(&self) -> Vec<String> {
        let mut state = self.state.lock();
        state.unnamed.retain(|file| file.strong_count() > 0);
        let unnamed = state.unnamed.iter().filter_map(Weak::upgrade);
        let mut keys: Vec<String> = unnamed
            .chain(state.files.values().cloned())
            .filter(|file| file.is_mapped())
            .map(|file| file.key.clone())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether files should be opened anew: no more often than once a second.
    pub(super) fn wants_reopening(&self) -> bool {
        if !self.wants_reopening.load(Ordering::SeqCst) {
            return false;
        }
        let pinned = self.state.lock().pinned();
        if !self.is_worth_reopening(&pinned, 0) {
            self.wants_reopening.store(false, Ordering::SeqCst);
            return false;
        }
        let mut wished = self.wished.lock();
        if wished.is_some_and(|last| last.elapsed() < REOPENING_PAUSE) {
            return false;
        }
        *wished = Some(Instant::now());
        true
    }

    /// Whether what is mapped is so much that it is to be opened anew, with bytes that are about to
    /// come.
    fn is_worth_reopening(&self, pinned: &Pinned, incoming: u64) -> bool {
        let is_much = self.is_full_of_fresh(pinned) || pinned.stale > self.means.limit / 4;
        is_much && self.means.is_short(incoming)
    }

    fn is_full_of_fresh(&self, pinned: &Pinned) -> bool {
        pinned.fresh > self.means.limit / 8 * 7
    }

    /// Evicts what was used longest ago until no more than this is held against the limit. The
    /// caller holds `evicting`.
    fn evict_down_to(&self, target: u64) {
        let files: Vec<Arc<CacheFile>> = self.state.lock().files.values().cloned().collect();
        let mut candidates = Vec::new();
        for (of, file) in files.iter().enumerate() {
            let is_mapped = file.is_mapped();
            for (at, extent) in file.extents.iter().enumerate() {
                let kept = if is_mapped { extent.touched() } else { 0 };
                if !extent.is_read() || extent.held() & !kept != 0 {
                    candidates.push((extent.used(), of, at));
                }
            }
        }
        candidates.sort_unstable();
        for (_, of, at) in candidates {
            if self.means.pressure() <= target {
                break;
            }
            match files[of].evict(at) {
                Ok(bytes) => {
                    let evicted = &self.means.counters.evicted_bytes;
                    evicted.fetch_add(bytes, Ordering::Relaxed);
                }
                Err(error) => {
                    tracing::debug!(path = %files[of].path().display(), %error, "a cached file cannot get a hole; it goes as a whole");
                    self.remove_if_unused(&files[of]);
                }
            }
        }
        for file in files.iter().filter(|file| file.is_empty()) {
            self.remove_if_unused(file);
        }
    }

    /// Removes a file that nobody has mapped.
    fn remove_if_unused(&self, file: &Arc<CacheFile>) {
        let mut state = self.state.lock();
        let is_named = state
            .files
            .get(&file.key)
            .is_some_and(|named| Arc::ptr_eq(named, file));
        if is_named && !file.is_mapped() {
            state.files.remove(&file.key);
            file.lose_name();
        }
    }
}

impl MakesRoom for Room {
    fn make(&self, incoming: u64) {
        let is_in_vain = || {
            self.means.pressure().saturating_add(incoming) < self.retry_at.load(Ordering::SeqCst)
        };
        if is_in_vain() {
            return;
        }
        let _one_at_once = self.evicting.lock();
        if is_in_vain() || !self.means.is_short(incoming) {
            return;
        }
        let limit = self.means.limit;
        self.evict_down_to((limit - limit / SLACK_PARTS).saturating_sub(incoming));
        let retry_at = if self.means.is_short(incoming) {
            self.means.pressure() + incoming + limit / RETRY_PARTS
        } else {
            0
        };
        self.retry_at.store(retry_at, Ordering::SeqCst);
        let pinned = self.state.lock().pinned();
        self.wants_reopening
            .store(self.is_worth_reopening(&pinned, incoming), Ordering::SeqCst);
    }

    fn free(&self, bytes: u64) {
        let _one_at_once = self.evicting.lock();
        self.evict_down_to(self.means.pressure().saturating_sub(bytes));
    }

    fn note_change(&self) {
        self.retry_at.store(0, Ordering::SeqCst);
    }
}

impl State {
    fn insert(&mut self, file: Arc<CacheFile>) {
        let before = self.files.insert(file.key.clone(), Arc::clone(&file));
        if let Some(before) = before
            && !Arc::ptr_eq(&before, &file)
        {
            self.take_name(&before);
        }
    }

    fn take_name(&mut self, file: &Arc<CacheFile>) {
        file.lose_name();
        self.unnamed.retain(|file| file.strong_count() > 0);
        self.unnamed.push(Arc::downgrade(file));
    }

    fn pinned(&self) -> Pinned {
        let mut pinned = Pinned::default();
        for file in self.files.values().filter(|file| file.is_mapped()) {
            let is_stale = file.generation.load(Ordering::SeqCst) < self.generation;
            let sum = if is_stale {
                &mut pinned.stale
            } else {
                &mut pinned.fresh
            };
            *sum += file.held_bytes();
        }
        pinned
    }

    /// From now on every mapped file is of an older generation. Finds out what may go along into
    /// the new one.
    fn begin_generation(&mut self, budget: u64) {
        let mut extents = Vec::new();
        for file in self.files.values().filter(|file| file.is_mapped()) {
            for (at, extent) in file.extents.iter().enumerate() {
                let bytes = size_of(extent.touched() & extent.ready());
                if bytes > 0 {
                    extents.push((Rank::of(file, at), bytes));
                }
            }
        }
        extents.sort_unstable_by(|a, b| b.cmp(a));
        let mut left = budget;
        self.bar = extents.into_iter().find_map(|(rank, bytes)| {
            let fits = left.checked_sub(bytes);
            left = fits.unwrap_or(left);
            fits.is_none().then_some(rank)
        });
        self.generation += 1;
    }
}

impl Rank {
    fn of(file: &CacheFile, at: usize) -> Self {
        let extent = &file.extents[at];
        Self {
            heat: extent.heat(),
            used: extent.used(),
            file: file.number,
            extent: at,
        }
    }
}
