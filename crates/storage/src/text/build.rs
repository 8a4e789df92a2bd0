//! The builder of a base's full-text index.
//!
//! ```text
//! OSPG of the base -> ids of literals that the rules select, ascending, in pieces -> threads, each with a part of its own -> file
//! ```
//!
//! A thread takes the next piece, reads the texts, and adds them to its part; a part that has taken
//! its share of the memory is finished, written, and another one begun. So the pieces that a part
//! gets ascend, and the memory is bounded by what is given, whatever there is to index. No share is
//! so small that a part would be full before it holds much ([`PART_GROWTH_BYTES_MIN`]): with little
//! memory there are fewer threads, not more parts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use orrery_full_text::PartBuilder;
use orrery_term::{Term, TermId, TermKind, parse_key};
use parking_lot::Mutex;

use super::file::{TextFileWriter, text_error};
use super::rules::{TextEntry, TextRules};
use super::selection::Selection;
use crate::files::components::FileEntry;
use crate::files::components::{DirectoryComponents, TEXT_FILE};
use crate::files::io::FileSystem;
use crate::files::unlisted::{AllUnlisted, Unlisted};
use crate::quads::dictionary::Dictionary;
use crate::quads::index::{COLUMNS, Permutation};
use crate::snapshots::base::Base;
use crate::{Error, Result};

/// Begins the names of directories with indices of texts.
pub(crate) const TEXT_PREFIX: &str = "text-";
/// Memory where nobody says how much.
pub(crate) const TEXT_MEMORY_BYTES: usize = 512 << 20;
/// Less memory makes too many parts.
const MEMORY_BYTES_MIN: usize = 32 << 20;
/// A thread more is worth it where each has so much.
const PART_BYTES_MIN: usize = 16 << 20;
/// A part that grew by less since it was begun is not finished, whatever it takes: before there is
/// a text in it that are some pages for each of its tables.
const PART_GROWTH_BYTES_MIN: usize = 8 << 20;
/// Threads at most: each has a part, and a search asks all parts.
const THREADS_MAX: usize = 8;
/// Ids that a thread takes at a time.
const PIECE_IDS: usize = 4 * 1024;
/// Memory of a part grows by as much again when it is finished, and the texts of a piece are in
/// memory too.
const SHARES_OF_MEMORY: usize = 3;

/// What was written for a base.
#[derive(Debug, Default)]
pub(crate) struct WrittenTexts<'f> {
    /// What the manifest is to say of it.
    pub(crate) entry: Option<TextEntry>,
    /// The directory that was written.
    pub(crate) unlisted: AllUnlisted<'f>,
}

/// Writes the index of a base's texts, if there are rules, into the directory of a generation, and
/// opens it there. When it returns, it is on the disk.
pub(crate) fn write_texts<'f>(
    file_system: &'f dyn FileSystem,
    directory: &Path,
    (generation, rules): (u64, Option<&TextRules>),
    base: &mut Base,
    memory_bytes: usize,
) -> Result<WrittenTexts<'f>> {
    let Some(rules) = rules else {
        return Ok(WrittenTexts::default());
    };
    let name = format!("{TEXT_PREFIX}{generation:06}");
    let path = directory.join(&name);
    let mut unlisted = AllUnlisted::default();
    unlisted.push(Unlisted::directory(file_system, path.clone()));
    file_system.create_dir_all(&path)?;
    let file = path.join(TEXT_FILE);
    let writer = TextFileWriter::create(file_system, &file)?;
    let writer = write_parts(writer, &file, rules, base, memory_bytes)?;
    let summary = writer.finish()?;
    file_system.sync_dir(&path)?;
    file_system.sync_dir(directory)?;
    let listed = FileEntry::new(TEXT_FILE.to_owned(), summary.bytes, summary.crc);
    let entry = TextEntry {
        rules: rules.clone(),
        directory: DirectoryComponents::of_files(name, vec![listed]),
        further: BTreeMap::new(),
    };
    base.open_texts(file_system, directory, &entry)?;
    Ok(WrittenTexts {
        entry: Some(entry),
        unlisted,
    })
}

fn write_parts(
    writer: TextFileWriter,
    path: &Path,
    rules: &TextRules,
    base: &Base,
    memory_bytes: usize,
) -> Result<TextFileWriter> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let parts_bytes = memory_bytes.max(MEMORY_BYTES_MIN) / SHARES_OF_MEMORY;
    let threads = (parts_bytes / PART_BYTES_MIN).clamp(1, threads.min(THREADS_MAX));
    let part_bytes = parts_bytes / threads;
    let writer = Mutex::new(writer);
    let (sender, receiver) = sync_channel(2 * threads);
    let receiver = Mutex::new(receiver);
    let maker = PartMaker {
        writer: &writer,
        path,
        rules,
        dictionary: base.dictionary(),
        part_bytes,
    };
    thread::scope(|scope| {
        let makers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| maker.run(&receiver)))
            .collect();
        let sent = for_each_literal(base, rules, |ids| sender.send(ids).is_ok());
        drop(sender);
        let made = makers.into_iter().map(|maker| match maker.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All are waited for; the first error is told.
        let made: Vec<Result<()>> = made.collect();
        made.into_iter().collect::<Result<()>>()?;
        sent
    })?;
    Ok(writer.into_inner())
}

/// Calls `each` with ids of literals of the base that stand in a quad which the rules select,
/// ascending, piece by piece, until it says no.
pub(super) fn for_each_literal(
    base: &Base,
    rules: &TextRules,
    mut each: impl FnMut(Vec<TermId>) -> bool,
) -> Result<()> {
    const OBJECT: usize = 0;
    const SUBJECT: usize = 1;
    const PREDICATE: usize = 2;
    const GRAPH: usize = 3;
    let Some(index) = base.index(Permutation::Ospg) else {
        return Ok(());
    };
    let selection = Selection::new(rules, &|term| id_in(base.dictionary(), term))?;
    let mut types = match selection.needs_class() {
        true => base.index(Permutation::Posg).map(|posg| posg.cursor()),
        false => None,
    };
    let mut piece = Vec::new();
    let mut last = None;
    for kind in [TermKind::Literal, TermKind::ShortString] {
        let (low, high) = bounds(kind);
        let mut cursor = index.cursor();
        let range = cursor.seek_between(
            &[],
            std::ops::Bound::Included(low),
            std::ops::Bound::Included(high),
        )?;
        let mut wanted = [selection.is_of_quads(); COLUMNS];
        wanted[OBJECT] = true;
        wanted[SUBJECT] = selection.needs_class();
        let mut scan = index.scan(range, wanted);
        while let Some(vector) = scan.next_vector()? {
            let objects = vector.column(OBJECT);
            for (row, &object) in objects.iter().enumerate() {
                if last == Some(object) {
                    continue;
                }
                let is_selected = !selection.is_of_quads()
                    || selection.takes(vector.column(PREDICATE)[row], vector.column(GRAPH)[row]);
                if !is_selected {
                    continue;
                }
                if selection.needs_class() {
                    let subject = TermId::from_bits(vector.column(SUBJECT)[row]);
                    if !selection.has_class(types.as_mut(), subject)? {
                        continue;
                    }
                }
                last = Some(object);
                piece.push(TermId::from_bits(object));
            }
            if piece.len() >= PIECE_IDS && !each(std::mem::take(&mut piece)) {
                return Ok(());
            }
        }
    }
    if !piece.is_empty() {
        each(piece);
    }
    Ok(())
}

/// The least and the greatest id of a kind.
fn bounds(kind: TermKind) -> (TermId, TermId) {
    const PAYLOAD_BITS: u32 = 60;
    let low = (kind as u64) << PAYLOAD_BITS;
    let high = low | ((1 << PAYLOAD_BITS) - 1);
    (TermId::from_bits(low), TermId::from_bits(high))
}

/// The id of a term in a dictionary.
fn id_in(dictionary: &Dictionary, term: &Term<'_>) -> Result<Option<TermId>> {
    let mut key = Vec::new();
    orrery_term::write_key(term, &mut key);
    let rank = dictionary.find(&key)?;
    Ok(rank.map(|rank| dictionary.id_of_rank(rank)))
}

/// What the threads have in common.
struct PartMaker<'w> {
    writer: &'w Mutex<TextFileWriter>,
    path: &'w Path,
    rules: &'w TextRules,
    dictionary: &'w Dictionary,
    part_bytes: usize,
}

impl PartMaker<'_> {
    fn run(&self, pieces: &Mutex<Receiver<Vec<TermId>>>) -> Result<()> {
        let mut part = None;
        loop {
            let piece = pieces.lock().recv();
            let Ok(piece) = piece else { break };
            if let Err(error) = self.add(&piece, &mut part) {
                // Who sends must not wait for a thread that is gone.
                while pieces.lock().recv().is_ok() {}
                return Err(error);
            }
        }
        part.map_or(Ok(()), |part| self.finish(part))
    }

    fn add(&self, piece: &[TermId], part: &mut Option<PartBuilder>) -> Result<()> {
        let error = |error| text_error(self.path, error);
        let in_dictionary = piece.partition_point(|id| id.is_dictionary());
        let ranks: Vec<u64> = piece[..in_dictionary]
            .iter()
            .map(|id| id.payload())
            .collect();
        let mut failed = None;
        let mut add = |id: TermId, term: &orrery_term::Term<'_>| -> Result<()> {
            let Some((text, tag)) = self.rules.text_of(term) else {
                return Ok(());
            };
            let begun = match part {
                Some(part) => part,
                None => {
                    part.insert(PartBuilder::new(self.part_bytes, self.rules.grams).map_err(error)?)
                }
            };
            begun.add(id.bits(), text, tag).map_err(error)?;
            let has_its_share = begun.memory_bytes() >= self.part_bytes
                && begun.grown_bytes() >= PART_GROWTH_BYTES_MIN;
            if (has_its_share || begun.is_full())
                && let Some(full) = part.take()
            {
                self.finish(full)?;
            }
            Ok(())
        };
        self.dictionary.keys(&ranks, |place, key| {
            if failed.is_some() {
                return;
            }
            failed = match parse_key(key) {
                Ok(term) => add(piece[place], &term).err(),
                Err(error) => Some(Error::corrupt(self.path, 0, error.to_string())),
            };
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        for &id in &piece[in_dictionary..] {
            if let Some(term) = id.to_inline_term() {
                add(id, &term)?;
            }
        }
        Ok(())
    }

    fn finish(&self, part: PartBuilder) -> Result<()> {
        let part = part
            .finish()
            .map_err(|error| text_error(self.path, error))?;
        self.writer.lock().append(&part)
    }
}
