//! Chapters: runs of about four megabytes of keys that are encoded together, on any thread.
//!
//! A chapter has one symbol table, trained on a sample of it, and one form for all its keys: words
//! when a vocabulary exists and brings more on the sample, else symbols.

use std::sync::Arc;

use super::codec::Encoder;
use super::directory::SEPARATOR_BYTES_MAX;
use super::large::{LargeBlock, LargeBuilder};
use super::page::{GROUP_KEYS, LARGE_KEY_BYTES, LARGE_PREFIX_BYTES, PageBuilder, shared_prefix};
use super::streamed::KeySource;
use super::vocabulary::Vocabulary;
use crate::files::block_file::BlockNumber;

/// First byte of a block with a symbol table.
pub(super) const TABLE_KIND: u8 = b'S';
/// Stands for the block of a vocabulary where there is none.
pub(super) const NO_VOCABULARY: u32 = u32::MAX;

/// A chapter is closed when its keys have so many bytes. Tests have small ones, so that they have
/// many.
const CHAPTER_BYTES: usize = if cfg!(test) { 64 << 10 } else { 4 << 20 };
const CHAPTER_KEYS: usize = 1 << 16;
/// FSST looks at 16 KiB; the sample is spread over this many groups.
const SAMPLE_GROUPS: usize = 32;
const SAMPLE_BYTES: usize = 64 * 1024;
/// With a ratio that good words are taken without trying symbols, which costs a millisecond or two.
const GOOD_RATIO: usize = 3;

/// Keys in ascending order, back to back.
#[derive(Default)]
pub(super) struct Chapter {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The key before the first one, or as much of it as a separator needs.
    previous: Option<Vec<u8>>,
    /// Which keys come as streams: of them only the beginning stands in `bytes`.
    streamed: Vec<(usize, Arc<dyn KeySource>)>,
}

/// A vocabulary and where it stands in the file.
pub(super) struct StoredVocabulary {
    pub(super) vocabulary: Vocabulary,
    pub(super) block: BlockNumber,
}

/// A chapter ready to be written.
pub(super) struct EncodedChapter {
    /// The block with the symbol table.
    pub(super) table: Vec<u8>,
    pub(super) pages: Vec<EncodedPage>,
    pub(super) large_blocks: Vec<LargeBlock>,
    /// Length of the keys.
    pub(super) plain_bytes: usize,
    /// Whether there was a vocabulary, ...
    pub(super) had_vocabulary: bool,
    /// ... and was used.
    pub(super) has_words: bool,
}

/// A page ready to be written.
pub(super) struct EncodedPage {
    pub(super) bytes: Vec<u8>,
    pub(super) keys: usize,
    /// See `directory`.
    pub(super) separator: Vec<u8>,
}

impl Chapter {
    /// An empty chapter that follows a key.
    pub(super) fn after(previous: Option<&[u8]>) -> Self {
        Self {
            // The next one becomes full too; growing would copy it, and touch as much memory again.
            bytes: Vec::with_capacity(CHAPTER_BYTES + LARGE_KEY_BYTES),
            previous: previous.map(|key| key[..key.len().min(SEPARATOR_BYTES_MAX)].to_vec()),
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Takes a key as a stream, and its beginning of more than [`LARGE_KEY_BYTES`].
    pub(super) fn push_streamed(&mut self, beginning: &[u8], source: Arc<dyn KeySource>) {
        debug_assert!(beginning.len() > LARGE_KEY_BYTES);
        self.streamed.push((self.len(), source));
        self.push(&beginning[..=LARGE_KEY_BYTES]);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= CHAPTER_BYTES || self.ends.len() >= CHAPTER_KEYS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Length of all keys.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// A key by its place.
    pub(super) fn key(&self, index: usize) -> &[u8] {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1],
        };
        &self.bytes[start..self.ends[index]]
    }

    /// All keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.key(index))
    }

    /// What stands of a key in its page.
    fn stored(&self, index: usize) -> &[u8] {
        let key = self.key(index);
        match key.len() > LARGE_KEY_BYTES {
            true => &key[..LARGE_PREFIX_BYTES],
            false => key,
        }
    }

    /// Encodes all keys. Fails only if zstd does.
    pub(super) fn encode(
        &self,
        vocabulary: Option<&Arc<StoredVocabulary>>,
    ) -> std::io::Result<EncodedChapter> {
        let had_vocabulary = vocabulary.is_some();
        let (mut encoder, vocabulary) = self.choose_encoder(vocabulary);
        let mut table = vec![TABLE_KIND];
        let block = vocabulary.map_or(NO_VOCABULARY, |stored| stored.block.0);
        table.extend_from_slice(&block.to_le_bytes());
        encoder.write_table(&mut table);

        let mut pages = Vec::new();
        let mut large_keys = LargeBuilder::default();
        let mut page = PageBuilder::default();
        let mut group: Vec<&[u8]> = Vec::with_capacity(GROUP_KEYS);
        let mut streamed = self.streamed.iter().peekable();
        let mut start = 0;
        while start < self.len() {
            let end = (start + GROUP_KEYS).min(self.len());
            for (place, index) in (start..end).enumerate() {
                let key = self.key(index);
                if let Some((_, source)) = streamed.next_if(|(streamed, _)| *streamed == index) {
                    page.push_large(place, large_keys.push_streamed(source)?);
                } else if key.len() > LARGE_KEY_BYTES {
                    page.push_large(place, large_keys.push(key)?);
                }
                group.push(self.stored(index));
            }
            page.push_group(&group, &mut encoder);
            group.clear();
            start = end;
            if page.is_full() || start == self.len() {
                pages.push(EncodedPage {
                    keys: page.keys(),
                    separator: self.separator(start - page.keys()),
                    bytes: page.finish(),
                });
            }
        }
        Ok(EncodedChapter {
            table,
            pages,
            large_blocks: large_keys.finish()?,
            plain_bytes: self.bytes.len(),
            had_vocabulary,
            has_words: vocabulary.is_some(),
        })
    }

    /// The shortest prefix of a key that is greater than the key before.
    fn separator(&self, index: usize) -> Vec<u8> {
        let previous = match index {
            0 => self.previous.as_deref(),
            _ => Some(self.key(index - 1)),
        };
        let key = self.key(index);
        let length = previous.map_or(0, |previous| shared_prefix(previous, key) + 1);
        key[..length.min(SEPARATOR_BYTES_MAX).min(key.len())].to_vec()
    }

    fn choose_encoder<'a>(
        &self,
        vocabulary: Option<&'a Arc<StoredVocabulary>>,
    ) -> (Encoder<'a>, Option<&'a Arc<StoredVocabulary>>) {
        let groups = self.sample_groups();
        let Some(stored) = vocabulary else {
            return (self.train(&groups, None), None);
        };
        let mut words = self.train(&groups, Some(&stored.vocabulary));
        let words_bytes = self.sample_cost(&groups, &mut words);
        let plain_bytes: usize = groups.iter().flatten().map(|key| key.len()).sum();
        if words_bytes * GOOD_RATIO <= plain_bytes {
            return (words, vocabulary);
        }
        let mut symbols = self.train(&groups, None);
        match words_bytes < self.sample_cost(&groups, &mut symbols) {
            true => (words, vocabulary),
            false => (symbols, None),
        }
    }

    /// Groups of keys spread over the chapter, of bounded length in all.
    fn sample_groups(&self) -> Vec<Vec<&[u8]>> {
        let groups = self.len().div_ceil(GROUP_KEYS);
        let step = groups.div_ceil(SAMPLE_GROUPS).max(1);
        let group_bytes_max = SAMPLE_BYTES / groups.clamp(1, SAMPLE_GROUPS);
        let mut sample = Vec::new();
        for group in (0..groups).step_by(step) {
            let start = group * GROUP_KEYS;
            let end = (start + GROUP_KEYS).min(self.len());
            let mut bytes = 0;
            let keys = (start..end).map(|index| self.stored(index));
            sample.push(
                keys.take_while(|key| {
                    let is_within = bytes < group_bytes_max;
                    bytes += key.len();
                    is_within
                })
                .collect(),
            );
        }
        sample
    }

    fn train<'a>(&self, groups: &[Vec<&[u8]>], vocabulary: Option<&'a Vocabulary>) -> Encoder<'a> {
        let mut samples: Vec<&[u8]> = Vec::new();
        for group in groups {
            let Some((&head, others)) = group.split_first() else {
                continue;
            };
            samples.push(head);
            let suffix = |key: &&'_ [u8]| shared_prefix(head, key);
            samples.extend(others.iter().map(|key| &key[suffix(key)..]));
        }
        Encoder::train(&samples, vocabulary)
    }

    fn sample_cost(&self, groups: &[Vec<&[u8]>], encoder: &mut Encoder<'_>) -> usize {
        let mut page = PageBuilder::default();
        let mut bytes = 0;
        for group in groups {
            page.push_group(group, encoder);
            bytes += page.finish().len();
        }
        bytes
    }
}
