//! Full-text searches in a snapshot.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use orrery_full_text::{
    Figures, GramBounds, GramQuery, Hit, OpenPart, PartBuilder, Query, gram_search, search,
};
use orrery_term::{TermId, TermKind};

use super::file::{TextFile, text_error};
use super::recent::{RECENT_BYTES_MAX, RecentPart, RecentTexts, Taken, TextMemory, Unshared};
use super::rules::TextRules;
use super::selection::Selection;
use crate::quads::delta::{DeltaEntry, DeltaIndex};
use crate::quads::index::{COLUMNS, Permutation};
use crate::snapshots::read_view::ReadView;
use crate::snapshots::snapshot::Snapshot;
use crate::{Error, Result};

/// Memory that tantivy's tables begin with for a part in memory.
const PART_BYTES: usize = 1 << 20;

/// Changes since the base that a query which can do without the index waits for.
const GRAM_CHANGES_MAX: u64 = 200_000;

/// The texts of a state, as somebody sees it.
#[derive(Debug)]
pub struct TextReader {
    snapshot: Arc<Snapshot>,
    recent: Recent,
    /// Whether scores may tell of all texts.
    sees_all: bool,
}

/// Parts in memory.
#[derive(Debug, Default)]
struct Recent {
    parts: Vec<Arc<OpenPart>>,
    /// For whom the memory of those of a transaction is held, as long as they are read.
    _held_for: Option<Arc<RecentTexts>>,
}

impl TextReader {
    /// A reader of a view's full-text index; none where the state has no index. Takes up what came
    /// since it was last searched.
    ///
    /// # Errors
    /// When files cannot be read, or too much came since the last compaction.
    pub fn new(view: &ReadView) -> Result<Option<Self>> {
        Self::within(view, &Unshared)
    }

    /// Sets the memory for indexing recent literals.
    ///
    /// # Errors
    /// When files cannot be read, or there is no memory for what came since the last compaction.
    pub fn within(view: &ReadView, memory: &dyn TextMemory) -> Result<Option<Self>> {
        let snapshot = Arc::clone(view.snapshot());
        let Some(file) = snapshot.base().text() else {
            return Ok(None);
        };
        let recent = recent_parts(&snapshot, file, memory)?;
        Ok(Some(Self {
            recent,
            sees_all: view.scope().list().is_none(),
            snapshot,
        }))
    }

    /// The rules that the index was made by.
    pub fn rules(&self) -> Option<&TextRules> {
        self.snapshot.base().text().map(TextFile::rules)
    }

    /// Number of texts: of the base, and of those that came since.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn documents(&self) -> Result<(u64, u64)> {
        let base = self.base_parts()?.iter().map(OpenPart::documents).sum();
        Ok((
            base,
            self.recent.parts.iter().map(|part| part.documents()).sum(),
        ))
    }

    /// Whether the state has a term of this id: what is in memory is of later states, too.
    fn is_of_state(&self, id: TermId) -> bool {
        id.kind() != TermKind::Delta || id.payload() < self.snapshot.delta_terms()
    }

    fn base_parts(&self) -> Result<&[OpenPart]> {
        self.snapshot.base().text().map_or(Ok(&[]), TextFile::parts)
    }

    /// Passes the id and score of every matching literal to `found`, in no order. Some may stand in
    /// no quad that is seen. From time to time `go_on` is asked.
    ///
    /// # Errors
    /// When files cannot be read; [`Error::SearchStopped`] when `go_on` says no.
    pub fn search(
        &self,
        query: &Query,
        go_on: &mut dyn FnMut() -> bool,
        found: &mut dyn FnMut(TermId, f32),
    ) -> Result<()> {
        let base = self.base_parts()?;
        let figures = match self.sees_all {
            true => Figures::Of(base),
            false => Figures::Constant,
        };
        let parts = base
            .iter()
            .chain(self.recent.parts.iter().map(|part| &**part));
        let mut found = |hit: Hit| {
            let id = TermId::from_bits(hit.number);
            if self.is_of_state(id) {
                found(id, hit.score);
            }
        };
        search(parts, query, figures, go_on, &mut found)
            .map_err(|error| text_error(self.snapshot.directory(), error))
    }
}

/// Looking grams up.
impl TextReader {
    /// Of what a view shows, where its index has grams and nothing stands against using them: what
    /// came since the base is not too much, and all of it is committed. Who asks can do without.
    ///
    /// # Errors
    /// When files cannot be read.
    pub fn for_grams(view: &ReadView, memory: &dyn TextMemory) -> Result<Option<Self>> {
        let snapshot = view.snapshot();
        let has_grams = snapshot.text_rules().is_some_and(|rules| rules.grams);
        if !has_grams || snapshot.is_of_transaction() || snapshot.change_count() > GRAM_CHANGES_MAX
        {
            return Ok(None);
        }
        match Self::within(view, memory) {
            Err(Error::TextsBehind { .. }) => Ok(None),
            reader => reader,
        }
    }

    /// Passes candidate ids to `found`, in no order: every literal that can match, and some others.
    /// Or does nothing and says `false`, where the bounds do not allow what would have to be read.
    /// From time to time `go_on` is asked.
    ///
    /// # Errors
    /// When files cannot be read, or the rules have no grams; [`Error::SearchStopped`] when `go_on`
    /// says no.
    pub fn with_grams(
        &self,
        query: &GramQuery,
        bounds: GramBounds,
        go_on: &mut dyn FnMut() -> bool,
        found: &mut dyn FnMut(TermId),
    ) -> Result<bool> {
        let parts = self.base_parts()?.iter();
        let parts = parts.chain(self.recent.parts.iter().map(|part| &**part));
        let mut found = |number| {
            let id = TermId::from_bits(number);
            if self.is_of_state(id) {
                found(id);
            }
        };
        gram_search(parts, query, bounds, go_on, &mut found)
            .map_err(|error| text_error(self.snapshot.directory(), error))
    }
}

/// The parts in memory that a state needs.
fn recent_parts(snapshot: &Snapshot, file: &TextFile, memory: &dyn TextMemory) -> Result<Recent> {
    if snapshot.change_count() == 0 {
        return Ok(Recent::default());
    }
    if snapshot.is_of_transaction() {
        let own = Arc::default();
        let selected = Selected::new(snapshot, file, (memory, &own))?;
        // Its ids may get to stand for other terms: nothing of it is kept.
        let mut ids = HashSet::new();
        let mut new = Vec::new();
        for delta in selected.deltas() {
            for entry in delta.entries() {
                selected.take(&entry?, &mut ids, &mut new)?;
            }
        }
        let part = selected.part(new, 0)?;
        drop(selected);
        return Ok(Recent {
            parts: part.map(|part| part.part).into_iter().collect(),
            _held_for: Some(own),
        });
    }
    let selected = Selected::new(snapshot, file, (memory, &file.recent))?;
    let mut taken = file.recent.lock();
    selected.take_up(&mut taken)?;
    let parts = taken.parts.iter().map(|part| Arc::clone(&part.part));
    Ok(Recent {
        parts: parts.collect(),
        _held_for: None,
    })
}

/// What a state's changes hold of texts.
struct Selected<'s> {
    snapshot: &'s Snapshot,
    file: &'s TextFile,
    memory: &'s dyn TextMemory,
    /// Whose memory it is.
    held_for: &'s Arc<RecentTexts>,
    base_parts: &'s [OpenPart],
    selection: Selection,
}

impl<'s> Selected<'s> {
    fn new(
        snapshot: &'s Snapshot,
        file: &'s TextFile,
        (memory, held_for): (&'s dyn TextMemory, &'s Arc<RecentTexts>),
    ) -> Result<Self> {
        Ok(Self {
            snapshot,
            file,
            memory,
            held_for,
            base_parts: file.parts()?,
            selection: Selection::new(file.rules(), &|term| snapshot.term_id(term))?,
        })
    }

    fn deltas(&self) -> &'s [DeltaIndex] {
        let index = self.snapshot.index(Permutation::Ospg);
        index.map_or(&[], |index| index.deltas())
    }

    /// Takes up all that the state has and that was not looked at yet.
    fn take_up(&self, taken: &mut Taken) -> Result<()> {
        let files: Arc<dyn Any + Send + Sync> =
            Arc::<crate::snapshots::stored::Stored>::clone(self.snapshot.stored());
        let in_memory = self.snapshot.deltas().get(Permutation::Ospg);
        let seen = taken.seen(&files).map(|changes| changes.cloned());
        let mut new = Vec::new();
        let added = self
            .gather(seen, in_memory, &mut taken.ids, &mut new)
            .and_then(|()| self.add(taken, &mut new));
        if added.is_err() {
            // They are not there: looked at again next time.
            for id in &new {
                taken.ids.remove(&id.bits());
            }
        }
        let held = self.hold(taken.bytes());
        added?;
        held?;
        taken.note_seen(&files, in_memory.cloned());
        Ok(())
    }

    /// What is to be taken up. `seen` are the changes in memory that were looked at, if those in
    /// files were.
    fn gather(
        &self,
        seen: Option<Option<DeltaIndex>>,
        in_memory: Option<&DeltaIndex>,
        ids: &mut HashSet<u64>,
        new: &mut Vec<TermId>,
    ) -> Result<()> {
        match (seen, in_memory) {
            (Some(Some(earlier)), Some(changes)) => {
                for entry in changes.changes_since(&earlier)? {
                    self.take(&entry, ids, new)?;
                }
            }
            (Some(None), Some(changes)) => {
                for entry in changes.entries() {
                    self.take(&entry?, ids, new)?;
                }
            }
            (Some(None), None) => {}
            // A state before those changes: a class that one of them took away is there.
            (Some(Some(earlier)), None) => {
                let none = DeltaIndex::new(Permutation::Ospg);
                for entry in none.changes_since(&earlier)? {
                    self.take(&entry, ids, new)?;
                }
            }
            (None, _) => {
                for delta in self.deltas() {
                    for entry in delta.entries() {
                        self.take(&entry?, ids, new)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&self, taken: &mut Taken, new: &mut [TermId]) -> Result<()> {
        new.sort_unstable();
        if new.is_empty() {
            return Ok(());
        }
        let Some(part) = self.part(new.to_vec(), taken.bytes())? else {
            return Ok(());
        };
        let others = taken.take_mergeable(part.part.documents());
        if others.is_empty() {
            taken.parts.push(part);
            return Ok(());
        }
        let beside =
            taken.bytes() + part.bytes + others.iter().map(|other| other.bytes).sum::<usize>();
        let merged = self.merge(&part, &others, beside);
        match merged {
            Ok(Some(merged)) => taken.parts.push(merged),
            Ok(None) => {}
            // Merging takes more than what is merged: they stay as they are.
            Err(Error::TextsBehind { .. }) => {
                taken.parts.extend(others.into_iter().rev());
                taken.parts.push(part);
            }
            Err(error) => {
                taken.parts.extend(others.into_iter().rev());
                return Err(error);
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        part: &RecentPart,
        others: &[RecentPart],
        beside: usize,
    ) -> Result<Option<RecentPart>> {
        let mut ids = Vec::new();
        for part in others.iter().chain([part]) {
            let numbers = part.part.numbers();
            let numbers = numbers.map_err(|error| self.file.error(error))?;
            ids.extend(numbers.map(TermId::from_bits));
        }
        ids.sort_unstable();
        self.part(ids, beside)
    }

    /// Notes what a change brings in that is not in an index yet: the object of a quad that was
    /// inserted, if the rules select it; and where a subject gets a class that counts, the objects
    /// of its quads. Of a text and a type that a state has and no index knows, one at least is a
    /// change that is looked at now, so the other one is found in the state.
    fn take(
        &self,
        entry: &DeltaEntry,
        ids: &mut HashSet<u64>,
        new: &mut Vec<TermId>,
    ) -> Result<()> {
        if !entry.is_insertion {
            return Ok(());
        }
        let [object, subject, predicate, graph] = entry.row;
        if self.selection.is_type(predicate, object) {
            self.take_all_of(TermId::from_bits(subject), ids, new)?;
        }
        if self.is_new(object, predicate, graph, ids)? {
            let subject = TermId::from_bits(subject);
            if self.selection.needs_class() && !self.has_class(subject)? {
                return Ok(());
            }
            ids.insert(object);
            new.push(TermId::from_bits(object));
        }
        Ok(())
    }

    /// Notes the objects of a subject that has a class.
    fn take_all_of(
        &self,
        subject: TermId,
        ids: &mut HashSet<u64>,
        new: &mut Vec<TermId>,
    ) -> Result<()> {
        let Some(spog) = self.snapshot.index(Permutation::Spog) else {
            return Ok(());
        };
        let mut wanted = [true; COLUMNS];
        wanted[0] = false;
        let mut scan = spog.scan(spog.range(&[subject])?, wanted);
        while let Some(vector) = scan.next_vector()? {
            let [predicates, objects, graphs] = [1, 2, 3].map(|column| vector.column(column));
            for ((&predicate, &object), &graph) in predicates.iter().zip(objects).zip(graphs) {
                if self.is_new(object, predicate, graph, ids)? {
                    ids.insert(object);
                    new.push(TermId::from_bits(object));
                }
            }
        }
        Ok(())
    }

    fn has_class(&self, subject: TermId) -> Result<bool> {
        let posg = self.snapshot.index(Permutation::Posg);
        let mut posg = posg.map(|posg| posg.cursor());
        self.selection.has_class(posg.as_mut(), subject)
    }

    /// Whether an object may be a text of the rules, but for its subject's class, and is in no
    /// index yet.
    fn is_new(&self, object: u64, predicate: u64, graph: u64, ids: &HashSet<u64>) -> Result<bool> {
        let id = TermId::from_bits(object);
        let is_text = matches!(
            id.checked_kind(),
            Some(TermKind::Literal | TermKind::ShortString | TermKind::Delta)
        );
        Ok(is_text
            && self.selection.takes(predicate, graph)
            && !ids.contains(&object)
            && !self.is_in_base(id)?)
    }

    fn is_in_base(&self, id: TermId) -> Result<bool> {
        if id.kind() == TermKind::Delta {
            return Ok(false);
        }
        for part in self.base_parts {
            if part
                .contains(id.bits())
                .map_err(|error| self.file.error(error))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks for memory for all that is held.
    fn hold(&self, bytes: usize) -> Result<()> {
        let is_granted =
            bytes <= RECENT_BYTES_MAX + PART_BYTES && self.memory.hold(self.held_for, bytes as u64);
        match is_granted {
            true => Ok(()),
            false => Err(Error::TextsBehind {
                path: self.snapshot.directory().to_path_buf(),
            }),
        }
    }

    /// A part of those of these literals, ascending, that the rules select; in memory beside so
    /// many bytes.
    fn part(&self, mut ids: Vec<TermId>, beside: usize) -> Result<Option<RecentPart>> {
        let error = |error| self.file.error(error);
        let mut held = 0;
        ids.sort_unstable();
        let mut part = None;
        for id in ids {
            let term = self
                .snapshot
                .term_of_any(id, id.payload().saturating_add(1))?;
            let Some((text, tag)) = self.file.rules().text_of(&term) else {
                continue;
            };
            let begun = match &mut part {
                Some(part) => part,
                None => part
                    .insert(PartBuilder::new(PART_BYTES, self.file.rules().grams).map_err(error)?),
            };
            begun.add(id.bits(), text, tag).map_err(error)?;
            // What it gathers, and what comes of that; what it began with comes to nothing.
            let bytes = begun.memory_bytes() + begun.grown_bytes();
            if bytes > held {
                held = bytes + PART_BYTES;
                self.hold(beside + held)?;
            }
        }
        let Some(part) = part else { return Ok(None) };
        let part = part.finish().map_err(error)?;
        let bytes = part.bytes();
        let part = Arc::new(part.open().map_err(error)?);
        Ok(Some(RecentPart { part, bytes }))
    }
}

impl Snapshot {
    /// Where its index of texts is, if it has one.
    pub fn text_rules(&self) -> Option<&TextRules> {
        self.base().text().map(TextFile::rules)
    }

    /// The rules by which an index is made anew: those that new bases get one by, else those of the
    /// index that there is.
    pub fn text_rules_to_come(&self) -> Option<&TextRules> {
        self.manifest().text.as_ref().or(self.text_rules())
    }

    /// Bytes of the file with the index of its texts, and of what is kept in memory beside it.
    pub fn text_bytes(&self) -> Option<(u64, u64)> {
        let file = self.base().text()?;
        let recent = file.recent.lock().bytes() as u64;
        Some((file.block_file().summary().bytes, recent))
    }
}
