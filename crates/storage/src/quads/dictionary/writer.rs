//! The writer of a dictionary from sorted keys.
//!
//! ```text
//! push -> chapter -> (literals, until a vocabulary is learned: wait) -> queue -> encoding threads
//!                                                                          |
//!                                 terms.dict, terms.large  <- in order  <--+
//! ```
//!
//! The caller's thread cuts chapters and writes finished ones; a few threads encode. At most
//! [`CHAPTERS_WAITING_MAX`] chapters per thread are under way, so memory stays bounded: some 55 MB
//! with two threads, 40 MB of it for the vocabulary.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::chapter::{Chapter, EncodedChapter, StoredVocabulary};
use super::directory::DirectoryBuilder;
use super::large::KEY_BYTES_MAX;
use super::page::LARGE_KEY_BYTES;
use super::streamed::KeySource;
use super::vocabulary::VocabularyTrainer;
use super::{IRI_TAG, LARGE_FILE, LARGE_KIND, Metadata, TERMS_FILE, TERMS_KIND, TRIPLE_TAG, page};
use crate::files::block_file::BlockFileWriter;
use crate::files::io::FileSystem;
use crate::{Error, Result};

/// Encoding threads; more would only wait for keys.
const THREADS_MAX: usize = 8;
/// Chapters under way per encoding thread: one that is encoded, and one that waits for it.
const CHAPTERS_WAITING_MAX: usize = 2;
/// A vocabulary is learned from so many bytes of literals (fewer in tests, so that they learn
/// several).
const TRAINING_BYTES: usize = if cfg!(test) { 256 << 10 } else { 16 << 20 };
/// With fewer bytes there is nothing to be learned.
const TRAINING_BYTES_MIN: usize = 64 << 10;
/// A new vocabulary is learned when chapters become larger than the best one by this factor, ...
const WORSE_FACTOR: f64 = 1.3;
/// ... or make no use of it, so many in a row.
const PATIENCE_CHAPTERS: u32 = 8;

/// The summary of a finished dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionarySummary {
    /// Number of keys.
    pub terms: u64,
    /// Number of keys that are IRIs; they come first.
    pub iris: u64,
    /// Number of keys that are triple terms; they come last.
    pub triple_terms: u64,
    /// Length of all keys.
    pub plain_bytes: u64,
    /// Length of the two files.
    pub file_bytes: u64,
    /// Number of vocabularies that were learned.
    pub vocabularies: u32,
}

struct Job {
    chapter: Chapter,
    vocabulary: Option<Arc<StoredVocabulary>>,
    reply: SyncSender<std::io::Result<EncodedChapter>>,
}

/// Where the vocabulary for literals comes from.
enum Learning {
    /// These chapters wait for the vocabulary that is learned from them.
    Collecting {
        chapters: Vec<Chapter>,
        bytes: usize,
    },
    /// Encoding with a vocabulary.
    Learned(Arc<StoredVocabulary>),
}

impl Learning {
    const fn start() -> Self {
        Self::Collecting {
            chapters: Vec::new(),
            bytes: 0,
        }
    }
}

/// Writes a dictionary; keys are pushed in strictly ascending order.
pub struct DictionaryWriter {
    terms: BlockFileWriter,
    large: BlockFileWriter,
    directory: DirectoryBuilder,
    /// Keys whose pages are written.
    written_keys: u64,
    chapter: Chapter,
    last_key: Option<Vec<u8>>,
    keys: u64,
    iris: u64,
    triple_terms: u64,
    plain_bytes: u64,
    learning: Learning,
    vocabularies: u32,
    /// Stored bytes per byte of the best chapter with the present vocabulary.
    best_ratio: Option<f64>,
    worse_chapters: u32,
    patience_chapters: u32,
    jobs: Sender<Job>,
    replies: VecDeque<Receiver<std::io::Result<EncodedChapter>>>,
    replies_max: usize,
}

impl std::fmt::Debug for DictionaryWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictionaryWriter")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl DictionaryWriter {
    /// Creates the two files in a directory; encodes on as many threads as there are cores.
    pub fn create(file_system: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Self::create_with_threads(file_system, directory, threads)
    }

    /// Creates the two files in a directory; encodes on `threads` threads beside the caller's.
    pub fn create_with_threads(
        file_system: &dyn FileSystem,
        directory: &Path,
        threads: usize,
    ) -> Result<Self> {
        let terms_path = directory.join(TERMS_FILE);
        let threads = threads.clamp(1, THREADS_MAX);
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            // The threads end when the writer and its queue are dropped.
            thread::Builder::new()
                .name(format!("dictionary-{number}"))
                .spawn(move || encode_jobs(&queue))
                .map_err(|error| Error::from_io(&terms_path, "start a thread for", error))?;
        }
        Ok(Self {
            terms: BlockFileWriter::create(file_system, &terms_path, TERMS_KIND)?,
            large: BlockFileWriter::create(file_system, &directory.join(LARGE_FILE), LARGE_KIND)?,
            directory: DirectoryBuilder::default(),
            written_keys: 0,
            chapter: Chapter::default(),
            last_key: None,
            keys: 0,
            iris: 0,
            triple_terms: 0,
            plain_bytes: 0,
            learning: Learning::start(),
            vocabularies: 0,
            best_ratio: None,
            worse_chapters: 0,
            patience_chapters: PATIENCE_CHAPTERS,
            jobs,
            replies: VecDeque::new(),
            replies_max: threads * CHAPTERS_WAITING_MAX,
        })
    }

    /// Appends a key; gives its rank. Keys must ascend strictly.
    pub fn push(&mut self, key: &[u8]) -> Result<u64> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::invalid_input(
                self.terms.path(),
                format!(
                    "a term of {} bytes; at most {KEY_BYTES_MAX} can be stored",
                    key.len()
                ),
            ));
        }
        self.begin_key(key)?;
        self.chapter.push(key);
        self.plain_bytes += key.len() as u64;
        Ok(self.count_key(key))
    }

    /// Appends a key that is read from `source` when its turn comes to be written; gives its rank.
    /// `order_key` stands for it in the order: it begins with the key's first bytes, more than 4
    /// KiB of them, and sorts among the keys pushed before and after as the whole key does.
    pub fn push_streamed(&mut self, order_key: &[u8], source: Arc<dyn KeySource>) -> Result<u64> {
        if order_key.len() <= LARGE_KEY_BYTES || source.bytes() <= LARGE_KEY_BYTES as u64 {
            return Err(Error::invalid_input(
                self.terms.path(),
                "a key pushed as a stream is too short",
            ));
        }
        self.begin_key(order_key)?;
        self.plain_bytes += source.bytes();
        self.chapter.push_streamed(order_key, source);
        Ok(self.count_key(order_key))
    }

    /// Checks the order, and closes the chapter if the key does not belong into it.
    fn begin_key(&mut self, key: &[u8]) -> Result<()> {
        let is_iri = key.first() == Some(&IRI_TAG);
        match &mut self.last_key {
            Some(last) if last.as_slice() >= key => {
                return Err(Error::invalid_input(
                    self.terms.path(),
                    "the keys of the dictionary do not ascend",
                ));
            }
            Some(last) => {
                let was_iri = last.first() == Some(&IRI_TAG);
                if self.chapter.is_full() || (was_iri != is_iri && !self.chapter.is_empty()) {
                    let next = Chapter::after(Some(last));
                    let full = std::mem::replace(&mut self.chapter, next);
                    last.clear();
                    last.extend_from_slice(key);
                    self.close_chapter(full)?;
                } else {
                    last.clear();
                    last.extend_from_slice(key);
                }
            }
            None => self.last_key = Some(key.to_vec()),
        }
        Ok(())
    }

    /// The rank of the key that was taken.
    fn count_key(&mut self, key: &[u8]) -> u64 {
        self.iris += u64::from(key.first() == Some(&IRI_TAG));
        self.triple_terms += u64::from(key.first() == Some(&TRIPLE_TAG));
        self.keys += 1;
        self.keys - 1
    }

    /// Number of keys pushed.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether no key was pushed.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Writes what is under way and the directory, and syncs both files.
    pub fn finish(mut self) -> Result<DictionarySummary> {
        let last = std::mem::take(&mut self.chapter);
        if !last.is_empty() {
            self.close_chapter(last)?;
        }
        self.learn()?;
        while !self.replies.is_empty() {
            self.write_first()?;
        }
        let root = self.directory.finish(&mut self.terms)?;
        let metadata = Metadata {
            terms: self.keys,
            iris: self.iris,
            triple_terms: self.triple_terms,
            root: root.map(|block| block.0),
        };
        let terms = self.terms.finish(&metadata.to_bytes())?;
        let large = self.large.finish(&[])?;
        Ok(DictionarySummary {
            terms: self.keys,
            iris: self.iris,
            triple_terms: self.triple_terms,
            plain_bytes: self.plain_bytes,
            file_bytes: terms.bytes + large.bytes,
            vocabularies: self.vocabularies,
        })
    }

    fn close_chapter(&mut self, chapter: Chapter) -> Result<()> {
        let is_iri = chapter.key(0).first() == Some(&IRI_TAG);
        if is_iri {
            // IRIs come before literals; where a caller's keys do not, those that wait go first.
            self.learn()?;
            return self.start_encoding(chapter, None);
        }
        match &mut self.learning {
            Learning::Learned(vocabulary) => {
                let vocabulary = Arc::clone(vocabulary);
                self.start_encoding(chapter, Some(vocabulary))
            }
            Learning::Collecting { chapters, bytes } => {
                *bytes += chapter.bytes();
                chapters.push(chapter);
                match *bytes >= TRAINING_BYTES {
                    true => self.learn(),
                    false => Ok(()),
                }
            }
        }
    }

    /// Learns a vocabulary from the chapters that wait for it, writes it, and encodes them.
    fn learn(&mut self) -> Result<()> {
        let Learning::Collecting { chapters, bytes } = &mut self.learning else {
            return Ok(());
        };
        let (chapters, bytes) = (std::mem::take(chapters), std::mem::take(bytes));
        if bytes < TRAINING_BYTES_MIN {
            for chapter in chapters {
                self.start_encoding(chapter, None)?;
            }
            return Ok(());
        }
        let mut trainer = VocabularyTrainer::default();
        // Every second key of a large sample: neighbours share words that say nothing of the rest.
        let step = if bytes >= TRAINING_BYTES { 2 } else { 1 };
        for key in chapters.iter().flat_map(Chapter::keys).step_by(step) {
            trainer.observe(key.get(1..).unwrap_or_default());
        }
        let vocabulary = trainer.finish();
        let block = self.terms.append(&vocabulary.to_block())?;
        self.vocabularies += 1;
        let stored = Arc::new(StoredVocabulary { vocabulary, block });
        self.learning = Learning::Learned(Arc::clone(&stored));
        self.best_ratio = None;
        self.worse_chapters = 0;
        for chapter in chapters {
            self.start_encoding(chapter, Some(Arc::clone(&stored)))?;
        }
        Ok(())
    }

    fn start_encoding(
        &mut self,
        chapter: Chapter,
        vocabulary: Option<Arc<StoredVocabulary>>,
    ) -> Result<()> {
        while self.replies.len() >= self.replies_max {
            self.write_first()?;
        }
        let (reply, receiver) = sync_channel(1);
        let job = Job {
            chapter,
            vocabulary,
            reply,
        };
        self.jobs.send(job).map_err(|_| self.thread_died())?;
        self.replies.push_back(receiver);
        Ok(())
    }

    fn thread_died(&self) -> Error {
        Error::invalid_input(self.terms.path(), "an encoding thread ended early")
    }

    /// Waits for the chapter that is due next and writes it.
    fn write_first(&mut self) -> Result<()> {
        let Some(reply) = self.replies.pop_front() else {
            return Ok(());
        };
        let chapter = reply
            .recv()
            .map_err(|_| self.thread_died())?
            .map_err(|error| Error::from_io(self.large.path(), "compress", error))?;
        self.watch_ratio(&chapter);
        let first_large_block = self.large.block_count();
        for block in &chapter.large_blocks {
            block.write(&mut self.large)?;
        }
        let table = self.terms.append(&chapter.table)?;
        for mut page in chapter.pages {
            page::set_blocks(&mut page.bytes, table, first_large_block);
            let block = self.terms.append(&page.bytes)?;
            let (rank, separator) = (self.written_keys, &page.separator);
            self.directory
                .push(rank, block, separator, &mut self.terms)?;
            self.written_keys += page.keys as u64;
        }
        Ok(())
    }

    /// Starts to learn anew when the vocabulary no longer fits, as at a change of language.
    fn watch_ratio(&mut self, chapter: &EncodedChapter) {
        if !chapter.had_vocabulary || !matches!(self.learning, Learning::Learned(_)) {
            return;
        }
        let bytes: usize = chapter.pages.iter().map(|page| page.bytes.len()).sum();
        let ratio = bytes as f64 / chapter.plain_bytes.max(1) as f64;
        let best = self.best_ratio.map_or(ratio, |best| best.min(ratio));
        self.best_ratio = Some(best);
        if chapter.has_words && ratio < best * WORSE_FACTOR {
            self.worse_chapters = 0;
            self.patience_chapters = PATIENCE_CHAPTERS;
            return;
        }
        self.worse_chapters += 1;
        if self.worse_chapters >= self.patience_chapters {
            self.learning = Learning::start();
            // Where words are of no use at all, the next attempt comes later.
            self.patience_chapters = self.patience_chapters.saturating_mul(2);
        }
    }
}

fn encode_jobs(queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let encoded = job.chapter.encode(job.vocabulary.as_ref());
        // The writer may have given up meanwhile.
        let _ignored = job.reply.send(encoded);
    }
}
