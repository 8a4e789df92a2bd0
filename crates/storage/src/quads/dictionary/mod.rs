//! The dictionary: all terms as one sorted array of keys, with look-ups by rank and by key.
//!
//! Two block files: `terms.dict` and, for the few keys over 4 KiB, `terms.large`, where a key may
//! have any length. Keys are gathered in **chapters** of two megabytes, each with a trained symbol
//! table and, for prose, codes for whole words (`vocabulary`); within a chapter in **pages** of 16
//! KiB (`page`), and within a page in **groups** of 16 with shared prefixes. A static tree, the
//! `directory`, leads from rank or key to page.
//!
//! ```text
//! terms.dict:  vocabulary | (symbol table | page | page ...) per chapter | directory blocks
//! metadata:    u8 2 | u64 terms | u64 IRIs | u64 triple terms | u32 root of the directory, or FFFFFFFF
//!              (version 1 knew no triple terms and has no number of them)
//! ```
//!
//! Cost, on BSBM: a literal of 170 bytes is found by rank in half a microsecond, by its text in
//! two; batches in rank order decode each group's head once. Nothing is decoded or built at open,
//! and nothing cached but by the operating system, and what readers [derive](Dictionary::derived)
//! from the keys. Damage is found by the checksums of the block files; what decodes to nonsense in
//! spite of them is an error, never a panic.
//!
//! It knows nothing of RDF but that keys of IRIs begin with `I` and come before all others, and
//! those of triple terms with `X` and come after all others.

mod ahead;
mod batch;
mod chapter;
mod codec;
mod containing;
mod cursor;
mod derived;
mod directory;
mod fault;
mod found;
mod kept;
mod large;
mod page;
mod search;
mod streamed;
mod symbols;
mod tokens;
mod vocabulary;
mod writer;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

pub use containing::{KeySearch, KeyText};
pub use cursor::KeyCursor;
pub use streamed::{KeySource, StreamedKey};
pub use writer::{DictionarySummary, DictionaryWriter};

use chapter::{NO_VOCABULARY, TABLE_KIND};
use codec::Decoder;
use derived::Derived;
use directory::{DirectoryBlock, DirectoryEntry};
use fault::{Decoded, Fault};
use found::FoundKeys;
use kept::KeptKeys;
use large::LargeCache;
use page::{GROUP_KEYS, Page};
use symbols::SymbolTable;
use vocabulary::StoredWords;

use orrery_term::TermId;
use orrery_term::key::FIRST_TRIPLE_KEY;

use crate::files::block_file::{BlockFile, BlockNumber, FileKind};
use crate::files::io::FileSystem;
use crate::{Error, Result};

/// Name of the file with the pages.
pub(crate) const TERMS_FILE: &str = "terms.dict";
/// Name of the file with the large keys.
pub(crate) const LARGE_FILE: &str = "terms.large";
/// Kind of the file with the pages.
pub(crate) const TERMS_KIND: FileKind = FileKind(*b"TERM");
/// Kind of the file with the large keys.
pub(crate) const LARGE_KIND: FileKind = FileKind(*b"LARG");

/// First byte of an IRI's key.
const IRI_TAG: u8 = b'I';
/// First byte of a triple term's key.
const TRIPLE_TAG: u8 = FIRST_TRIPLE_KEY[0];
const METADATA_VERSION: u8 = 2;
/// Ranks whose pages are asked for at a time, if the file is cold.
const ANNOUNCED_RANKS: usize = 4096;

/// What the footer of `terms.dict` says.
struct Metadata {
    terms: u64,
    iris: u64,
    triple_terms: u64,
    root: Option<u32>,
}

impl Metadata {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![METADATA_VERSION];
        bytes.extend_from_slice(&self.terms.to_le_bytes());
        bytes.extend_from_slice(&self.iris.to_le_bytes());
        bytes.extend_from_slice(&self.triple_terms.to_le_bytes());
        bytes.extend_from_slice(&self.root.unwrap_or(u32::MAX).to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&[version], rest) = bytes.split_first_chunk()?;
        let (terms, rest) = rest.split_first_chunk()?;
        let (iris, rest) = rest.split_first_chunk()?;
        let (triple_terms, rest) = match version {
            1 => (&[0; 8], rest),
            _ => rest.split_first_chunk()?,
        };
        let root: &[u8; 4] = rest.try_into().ok()?;
        let root = u32::from_le_bytes(*root);
        let metadata = Self {
            terms: u64::from_le_bytes(*terms),
            iris: u64::from_le_bytes(*iris),
            triple_terms: u64::from_le_bytes(*triple_terms),
            root: (root != u32::MAX).then_some(root),
        };
        let others = metadata.terms.checked_sub(metadata.iris);
        let is_sound = (1..=METADATA_VERSION).contains(&version)
            && others.is_some_and(|others| metadata.triple_terms <= others)
            && metadata.root.is_some() == (metadata.terms > 0);
        is_sound.then_some(metadata)
    }
}

/// A dictionary open for reading; shared between threads.
#[derive(Debug)]
pub struct Dictionary {
    terms: BlockFile,
    large: Arc<BlockFile>,
    length: u64,
    iri_count: u64,
    triple_count: u64,
    root: Option<BlockNumber>,
    beside: Arc<Beside>,
}

/// What is known beside the files. Who opens the same files anew goes on with it.
#[derive(Debug, Default)]
struct Beside {
    derived: Derived,
    found: FoundKeys,
    /// Only where the file may be far away.
    kept: Option<KeptKeys>,
}

/// A page ready for decoding.
#[derive(Clone, Copy)]
struct OpenPage<'a> {
    first_rank: u64,
    block: BlockNumber,
    page: Page<'a>,
    decoder: Decoder<'a, StoredWords<'a>>,
}

impl OpenPage<'_> {
    fn end_rank(&self) -> u64 {
        self.first_rank + self.page.keys() as u64
    }
}

impl Dictionary {
    /// Opens the dictionary in a segment's directory.
    pub fn open(file_system: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let terms = BlockFile::open(file_system, &directory.join(TERMS_FILE), TERMS_KIND)?;
        let large = BlockFile::open(file_system, &directory.join(LARGE_FILE), LARGE_KIND)?;
        let metadata = Metadata::parse(terms.metadata()).ok_or_else(|| {
            let offset = terms.metadata_offset();
            Error::corrupt(terms.path(), offset, "the metadata make no sense")
        })?;
        let file_bytes = terms.summary().bytes as usize;
        let kept = terms.is_far().then(|| KeptKeys::of_file(file_bytes));
        let beside = Beside {
            kept,
            ..Beside::default()
        };
        let dictionary = Self {
            length: metadata.terms,
            iri_count: metadata.iris,
            triple_count: metadata.triple_terms,
            root: metadata.root.map(BlockNumber),
            terms,
            large: Arc::new(large),
            beside: Arc::new(beside),
        };
        // What is wrong with the directory is told to who looks something up.
        let _ignored = dictionary.will_look_up();
        Ok(dictionary)
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Number of keys that are IRIs: the ranks below it.
    pub fn iri_count(&self) -> u64 {
        self.iri_count
    }

    /// The rank of the first triple term: literals are between the IRIs and it.
    pub fn first_triple_term(&self) -> u64 {
        self.length - self.triple_count
    }

    /// A cached value that a reader derives from the keys, one of each type, made on first use. It
    /// goes when the dictionary does; the type has to bound its own memory.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        self.beside.derived.get_or_make(|| make(self))
    }

    /// Goes on with what another one, opened on the same files, knows beside them.
    pub(crate) fn go_on_with(&mut self, other: &Self) {
        self.beside = Arc::clone(&other.beside);
    }

    /// The id of a rank.
    pub fn id_of_rank(&self, rank: u64) -> TermId {
        if rank < self.iri_count() {
            TermId::iri(rank)
        } else if rank < self.first_triple_term() {
            TermId::literal(rank)
        } else {
            TermId::triple_term(rank)
        }
    }

    /// Whether there are large keys, of which some may be stored as streams.
    pub(crate) fn may_have_streamed(&self) -> bool {
        self.large.block_count() > 0
    }

    /// The file with the pages.
    pub(crate) fn terms_file(&self) -> &BlockFile {
        &self.terms
    }

    /// The file with the large keys.
    pub(crate) fn large_file(&self) -> &BlockFile {
        &self.large
    }

    /// Writes the key of a rank into `out`.
    pub fn key(&self, rank: u64, out: &mut Vec<u8>) -> Result<()> {
        let kept = self.beside.kept.as_ref();
        out.clear();
        if kept.is_some_and(|kept| kept.append(rank, out)) {
            return Ok(());
        }
        let page = self.page_of_rank(rank)?;
        let within = (rank - page.first_rank) as usize;
        self.key_in_page(&page, within, &mut LargeCache::default(), out)
            .map_err(|fault| self.error(page.block, fault))?;
        if let Some(kept) = kept {
            kept.keep(rank, out);
        }
        Ok(())
    }

    fn key_in_page(
        &self,
        page: &OpenPage<'_>,
        within: usize,
        cache: &mut LargeCache,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        if let Some(large) = page.page.large(within) {
            out.clear();
            out.extend_from_slice(cache.key(&self.large, large)?);
            return Ok(());
        }
        let group = page.page.group(within / GROUP_KEYS)?;
        group.key(within % GROUP_KEYS, &page.decoder, out)
    }

    /// The blocks of `terms.dict` by what they hold: directory, symbol tables and vocabularies,
    /// which most look-ups pass, and the pages. Reads the directory.
    pub(crate) fn blocks_by_use(&self) -> Result<(Vec<BlockNumber>, Vec<BlockNumber>)> {
        let mut is_page = vec![false; self.terms.block_count() as usize];
        let mut left: Vec<(BlockNumber, Option<u8>)> =
            self.root.into_iter().map(|root| (root, None)).collect();
        while let Some((block, level_above)) = left.pop() {
            let of_block = |fault| self.error(block, fault);
            let directory = DirectoryBlock::parse(self.terms.block(block)?).map_err(of_block)?;
            if level_above.is_some_and(|above| directory.level + 1 != above) {
                return Err(of_block(Fault::Malformed("a level is out of order")));
            }
            for entry in directory.entries() {
                if directory.level > 0 {
                    left.push((entry.block, Some(directory.level)));
                } else if let Some(is_page) = is_page.get_mut(entry.block.0 as usize) {
                    *is_page = true;
                }
            }
        }
        Ok((0..self.terms.block_count())
            .map(BlockNumber)
            .partition(|block| !is_page[block.0 as usize]))
    }

    /// What is wrong, as an error of this dictionary.
    fn error(&self, block: BlockNumber, fault: Fault) -> Error {
        match fault {
            Fault::Storage(error) => *error,
            Fault::Malformed(what) => {
                Error::corrupt(self.terms.path(), self.terms.block_offset(block), what)
            }
        }
    }

    fn page_of_rank(&self, rank: u64) -> Result<OpenPage<'_>> {
        let (leaf, at) = self.leaf_of_rank(rank)?;
        let page = self.open_page_of(&leaf, at)?;
        self.place_in_page(&page, rank)?;
        Ok(page)
    }

    /// Which key of a page, that the directory gave for it, a rank is.
    fn place_in_page(&self, page: &OpenPage<'_>, rank: u64) -> Result<usize> {
        if !(page.first_rank..page.end_rank()).contains(&rank) {
            let fault = Fault::Malformed("the page directory leads to the wrong page");
            return Err(self.error(page.block, fault));
        }
        Ok((rank - page.first_rank) as usize)
    }

    /// The block of the directory's lowest level that leads to a rank, and which of its entries.
    fn leaf_of_rank(&self, rank: u64) -> Result<(DirectoryBlock<'_>, usize)> {
        let root = self.root.filter(|_| rank < self.length).ok_or_else(|| {
            let count = self.length;
            let what = format!("term {rank} is referred to, but there are {count}");
            Error::corrupt(self.terms.path(), self.terms.metadata_offset(), what)
        })?;
        self.descend(root, |directory| Ok(directory.find_rank(rank)))
    }

    /// Follows the directory from its root to an entry of the lowest level.
    fn descend<'a>(
        &'a self,
        root: BlockNumber,
        mut choose: impl FnMut(&DirectoryBlock<'a>) -> Decoded<usize>,
    ) -> Result<(DirectoryBlock<'a>, usize)> {
        let mut block = root;
        let mut level_above = None;
        loop {
            let bytes = self.terms.block(block)?;
            let of_block = |fault| self.error(block, fault);
            let directory = DirectoryBlock::parse(bytes).map_err(of_block)?;
            // Levels descend by one, so the loop ends whatever the blocks say.
            if level_above.is_some_and(|above| directory.level + 1 != above) {
                return Err(of_block(Fault::Malformed("a level is out of order")));
            }
            let at = choose(&directory).map_err(of_block)?;
            if directory.level == 0 {
                return Ok((directory, at));
            }
            level_above = Some(directory.level);
            block = directory.entry(at).block;
        }
    }

    /// Opens the page of an entry of the directory's lowest level.
    fn open_page_of(&self, leaf: &DirectoryBlock<'_>, at: usize) -> Result<OpenPage<'_>> {
        self.will_open_page(leaf, at);
        let entry = leaf.entry(at);
        self.open_page_like(entry, self.terms.block(entry.block)?, None)
    }

    /// Opens a page, given its bytes and perhaps a page of the same chapter, whose decoder serves
    /// it too.
    fn open_page_like<'a>(
        &'a self,
        entry: DirectoryEntry,
        bytes: &'a [u8],
        other: Option<OpenPage<'a>>,
    ) -> Result<OpenPage<'a>> {
        let of_block = |fault| self.error(entry.block, fault);
        let page = Page::parse(bytes).map_err(of_block)?;
        let decoder = match other {
            Some(other) if other.page.symbol_table == page.symbol_table => other.decoder,
            _ => self.decoder(page.symbol_table).map_err(of_block)?,
        };
        Ok(OpenPage {
            first_rank: entry.first_rank,
            block: entry.block,
            page,
            decoder,
        })
    }

    /// The block of a chapter's vocabulary, if it has one, and what follows; by the block of its
    /// symbol table.
    fn chapter_table(&self, symbol_table: BlockNumber) -> Decoded<(Option<BlockNumber>, &[u8])> {
        let table = self.terms.block(symbol_table)?;
        let bad = || Fault::Malformed("the symbol table makes no sense");
        let (&[kind, vocabulary @ ..], table) = table.split_first_chunk::<5>().ok_or_else(bad)?;
        if kind != TABLE_KIND {
            return Err(bad());
        }
        let vocabulary = u32::from_le_bytes(vocabulary);
        let vocabulary = (vocabulary != NO_VOCABULARY).then_some(BlockNumber(vocabulary));
        Ok((vocabulary, table))
    }

    /// The block of a chapter's vocabulary, if it has one.
    fn vocabulary_of(&self, symbol_table: BlockNumber) -> Decoded<Option<BlockNumber>> {
        Ok(self.chapter_table(symbol_table)?.0)
    }

    /// The decoder of a chapter, by the block of its symbol table.
    fn decoder(&self, symbol_table: BlockNumber) -> Decoded<Decoder<'_, StoredWords<'_>>> {
        let (vocabulary, table) = self.chapter_table(symbol_table)?;
        let words = match vocabulary {
            None => None,
            Some(vocabulary) => Some(StoredWords::parse(self.terms.block(vocabulary)?)?),
        };
        Ok(Decoder {
            symbols: SymbolTable::parse(table)?,
            words,
        })
    }
}

#[cfg(test)]
mod tests;
