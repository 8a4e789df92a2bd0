//! Large literals, which pass through a load as streams and are never held in memory.
//!
//! A literal whose key is longer than [`LargeLiterals::key_bytes_max`] stands in a file of the
//! stage directory, or in the dictionary of the database. What passes through interner, sort and
//! merge in its place is an *order key*:
//!
//! ```text
//! the first key_bytes_max + 1 bytes of its key | label
//! ```
//!
//! Any other key is shorter, so its order against a large one is decided within those bytes. Among
//! large ones that share them the label decides (`order_label`): it is given to a literal when it
//! is met first, after a comparison with those met before, by halving and from the files. Equal
//! literals get the same label, so they are one term like any others.
//!
//! Memory: some hundred bytes for each large literal, its order key where it is a term of a batch,
//! and two buffers while two are compared.

use crate::ingest::order_label::label_between;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use orrery_storage::dictionary::KeySource;
use orrery_storage::io::{FileSystem, FileWriter};
use orrery_storage::{Error, Result};
use orrery_term::key::{FIRST_LITERAL_KEY, FIRST_TRIPLE_KEY};
use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering as AtomicOrdering};
use std::sync::{Arc, Mutex, PoisonError};

/// The order key holds what the dictionary wants of a streamed key.
pub(crate) const KEY_BYTES_MIN: usize = 4096;

/// Bytes that are compared at a time.
const COMPARED_BYTES: usize = 256 << 10;

/// The large literals of one load.
#[derive(Debug)]
pub(crate) struct LargeLiterals {
    files: Arc<dyn FileSystem>,
    directory: PathBuf,
    key_bytes_max: usize,
    next_file: AtomicU64,
    /// In ascending order, by the hash of the bytes before the label. Keys of different bytes and
    /// the same hash do not harm.
    known: Mutex<HashMap<u64, Vec<KnownLiteral>, FixedState>>,
}

#[derive(Debug)]
struct KnownLiteral {
    label: Vec<u8>,
    source: Arc<dyn KeySource>,
}

impl LargeLiterals {
    /// None so far; texts go to files in `directory`. Keys of literals are large beyond
    /// `key_bytes_max`.
    pub(crate) fn new(files: Arc<dyn FileSystem>, directory: &Path, key_bytes_max: usize) -> Self {
        Self {
            files,
            directory: directory.to_path_buf(),
            key_bytes_max: key_bytes_max.max(KEY_BYTES_MIN),
            next_file: AtomicU64::new(0),
            known: Mutex::default(),
        }
    }

    /// The longest key of a literal that passes as it is.
    pub(crate) fn key_bytes_max(&self) -> usize {
        self.key_bytes_max
    }

    /// Whether this is the key of a large literal, or the order key of one.
    #[inline]
    pub(crate) fn is_large(&self, key: &[u8]) -> bool {
        key.len() > self.key_bytes_max && key >= FIRST_LITERAL_KEY && key < FIRST_TRIPLE_KEY
    }

    /// Begins the file of a text.
    pub(crate) fn text_writer(&self) -> Result<TextWriter> {
        let number = self.next_file.fetch_add(1, AtomicOrdering::Relaxed);
        let path = self.directory.join(format!("literal-{number:06}"));
        let writer = self.files.create(&path)?;
        Ok(TextWriter {
            text: StagedText {
                files: Arc::clone(&self.files),
                path,
                bytes: 0,
            },
            writer,
        })
    }

    /// Puts the order key of a large literal that stands in memory, given its key, into
    /// `order_key`, which is emptied first.
    pub(crate) fn take_key(&self, key: &[u8], order_key: &mut Vec<u8>) -> Result<()> {
        let mut writer = self.text_writer()?;
        writer.append(key)?;
        self.take_text(Vec::new(), writer.finish()?, order_key)
    }

    /// As [`take_key`](Self::take_key), given the text and what stands before it in the key.
    pub(crate) fn take_text(
        &self,
        head: Vec<u8>,
        text: StagedText,
        order_key: &mut Vec<u8>,
    ) -> Result<()> {
        self.take(Arc::new(StagedKey { head, text }), order_key)
    }

    /// As [`take_key`](Self::take_key), given where its bytes are.
    pub(crate) fn take(&self, source: Arc<dyn KeySource>, order_key: &mut Vec<u8>) -> Result<()> {
        debug_assert!(source.bytes() > self.key_bytes_max as u64);
        order_key.clear();
        order_key.resize(self.key_bytes_max + 1, 0);
        let mut input = source.open()?;
        input
            .read_exact(order_key)
            .map_err(|error| self.error(error))?;
        drop(input);
        let hash = FixedState::default().hash_one(order_key.as_slice());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(hash).or_default();
        let place = self.place(known, &*source)?;
        let at = match place {
            Ok(at) => at,
            Err(at) => {
                let before = at
                    .checked_sub(1)
                    .map(|before| known[before].label.as_slice());
                let after = known.get(at).map(|after| after.label.as_slice());
                let label = label_between(before, after);
                known.insert(at, KnownLiteral { label, source });
                at
            }
        };
        order_key.extend_from_slice(&known[at].label);
        Ok(())
    }

    /// Where a literal stands among others, or belongs.
    fn place(
        &self,
        known: &[KnownLiteral],
        source: &dyn KeySource,
    ) -> Result<std::result::Result<usize, usize>> {
        let (mut low, mut high) = (0, known.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.compare(&*known[middle].source, source)? {
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    fn compare(&self, left: &dyn KeySource, right: &dyn KeySource) -> Result<Ordering> {
        compare_bytes(left.open()?, right.open()?).map_err(|error| self.error(error))
    }

    /// Where the bytes of a large literal are, given its order key.
    pub(crate) fn source(&self, order_key: &[u8]) -> Option<Arc<dyn KeySource>> {
        let (beginning, label) = order_key.split_at_checked(self.key_bytes_max + 1)?;
        let hash = FixedState::default().hash_one(beginning);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&hash)?;
        let at = known.binary_search_by(|known| known.label.as_slice().cmp(label));
        Some(Arc::clone(&known[at.ok()?].source))
    }

    fn error(&self, error: io::Error) -> Error {
        Error::from_io(&self.directory, "read a long literal in", error)
    }
}

/// Compares all bytes.
fn compare_bytes(mut left: impl Read, mut right: impl Read) -> io::Result<Ordering> {
    let mut left_bytes = vec![0; COMPARED_BYTES];
    let mut right_bytes = vec![0; COMPARED_BYTES];
    loop {
        let left_length = read_up_to(&mut left, &mut left_bytes)?;
        let right_length = read_up_to(&mut right, &mut right_bytes)?;
        let order = left_bytes[..left_length].cmp(&right_bytes[..right_length]);
        if order.is_ne() || left_length < COMPARED_BYTES {
            return Ok(order);
        }
    }
}

/// Fills the buffer, or as much of it as the input has.
pub(crate) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Writes the text of a large literal to a file.
#[derive(Debug)]
pub(crate) struct TextWriter {
    text: StagedText,
    writer: Box<dyn FileWriter>,
}

impl TextWriter {
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.append(bytes)
    }

    /// The text, which can be read now.
    pub(crate) fn finish(mut self) -> Result<StagedText> {
        self.writer.flush()?;
        self.text.bytes = self.writer.bytes_written();
        Ok(self.text)
    }
}

/// A text in a file of the stage directory, which goes when nobody needs it any more.
#[derive(Debug)]
pub(crate) struct StagedText {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    bytes: u64,
}

impl StagedText {
    /// Its length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of it, for one that turned out short.
    pub(crate) fn read(&self) -> Result<String> {
        let bytes = self.files.read(&self.path)?;
        String::from_utf8(bytes)
            .map_err(|error| Error::from_io(&self.path, "read", io::Error::other(error)))
    }
}

impl Drop for StagedText {
    fn drop(&mut self) {
        // At the end of a load the directory may be gone already; else what is left behind goes
        // with it.
        let _ = self.files.remove_file(&self.path);
    }
}

/// The key of a large literal: what stands before the text, and the text.
#[derive(Debug)]
struct StagedKey {
    head: Vec<u8>,
    text: StagedText,
}

impl KeySource for StagedKey {
    fn bytes(&self) -> u64 {
        self.head.len() as u64 + self.text.bytes
    }

    fn open(&self) -> Result<Box<dyn Read + Send + '_>> {
        let text = self.text.files.open(&self.text.path)?;
        Ok(Box::new(self.head.as_slice().chain(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_storage::io::LocalFileSystem;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn order_keys_sort_as_keys_do_and_lead_back_to_them(
            keys in proptest::collection::vec(("[ST][ab]", 4000..4110_usize, "[ab]{0,3}"), 0..30)
        ) {
            let directory = tempfile::tempdir().unwrap();
            let large = LargeLiterals::new(Arc::new(LocalFileSystem), directory.path(), 0);
            let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            for (begin, length, end) in keys {
                let key = format!("{begin:x<length$}{end}").into_bytes();
                let mut order_key = key.clone();
                if large.is_large(&key) {
                    large.take_key(&key, &mut order_key).unwrap();
                    prop_assert!(large.is_large(&order_key));
                    let mut bytes = Vec::new();
                    let source = large.source(&order_key).unwrap();
                    source.open().unwrap().read_to_end(&mut bytes).unwrap();
                    prop_assert_eq!((&bytes, source.bytes()), (&key, key.len() as u64));
                }
                pairs.push((key, order_key));
            }
            for (key, order_key) in &pairs {
                for (other_key, other_order_key) in &pairs {
                    prop_assert_eq!(key.cmp(other_key), order_key.cmp(other_order_key));
                }
            }
            // Of equal ones only the first file is kept.
            let mut distinct: Vec<_> = pairs.iter().filter(|pair| large.is_large(&pair.0)).collect();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), distinct.len());
        }
    }
}
