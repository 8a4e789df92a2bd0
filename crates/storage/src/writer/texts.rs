//! Building and dropping of the full-text index beside running readers and writers.
//!
//! ```text
//! no lock         the quads of the base -> DIR/text-NNNNNN/      no checkpoint, compaction or load meanwhile
//! writers' turn   manifest that names it, and the rules; the same base with it, and all commits since over it
//! no lock         the files of the index before it are removed
//! ```
//!
//! The index is of the base alone, which commits do not change: what they bring, whether before or
//! meanwhile, is taken up in memory when a search first reads it, as ever. States that are being
//! read keep the index that they have. Killed at any moment, the manifest names the old index or
//! the new one, whole; the next writer clears what nobody names.
//!
//! Cost: the memory that is given, one pass over OSPG; writers wait for one manifest.

use std::sync::Arc;

use super::checkpoint::{remove_dropped, stop_where_unknown};
use super::handle::Writer;
use super::shared::{Shared, WriteGuard};
use crate::files::manifest::Manifest;
use crate::snapshots::base::Base;
use crate::text::{TEXT_MEMORY_BYTES, TextEntry, TextRules, write_texts};
use crate::{PendingChange, Result, Snapshot};

impl Writer {
    /// Replaces the full-text index by one of the literals that the rules select; without rules,
    /// drops it. Waits for a checkpoint, a compaction or a load that is under way. The quads stay
    /// as they are; older states over another base keep what they have.
    ///
    /// # Errors
    /// When the files cannot be written: the index is what it was.
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) where nobody knows which one the
    /// database has when it is opened anew.
    pub fn set_text_rules(
        &self,
        rules: Option<TextRules>,
        memory_bytes: Option<usize>,
    ) -> Result<Arc<Snapshot>> {
        self.check()?;
        let memory_bytes = memory_bytes.unwrap_or(TEXT_MEMORY_BYTES);
        self.handle.shared.set_text_rules(rules, memory_bytes)
    }
}

impl Shared {
    fn set_text_rules(
        self: &Arc<Self>,
        rules: Option<TextRules>,
        memory_bytes: usize,
    ) -> Result<Arc<Snapshot>> {
        let _maintenance = self.maintenance.lock();
        let source = Arc::clone(&self.state.lock().latest);
        let file_system = &*self.files;
        let directory = self.database.directory();
        let mut base = source.base().without_texts();
        let of = (source.manifest().generation + 1, rules.as_ref());
        let written = write_texts(file_system, directory, of, &mut base, memory_bytes)?;
        let turn = self.take_turn()?;
        let published = turn.switch_texts(Arc::new(base), written.entry, rules);
        written.unlisted.keep_if_listed(&published);
        let (before, after) = published?;
        drop(turn);
        remove_dropped(file_system, directory, &before, after.manifest());
        Ok(after)
    }
}

impl WriteGuard {
    /// Makes the index of a base, which is the present one but for that, the present one. Returns
    /// what was named before.
    fn switch_texts(
        &self,
        base: Arc<Base>,
        entry: Option<TextEntry>,
        rules: Option<TextRules>,
    ) -> Result<(Arc<Manifest>, Arc<Snapshot>)> {
        self.settle()?;
        let shared = &self.shared;
        let (latest, log) = {
            let state = shared.state.lock();
            (Arc::clone(&state.latest), Arc::clone(&state.log))
        };
        let mut manifest = latest.to_manifest();
        manifest.generation += 1;
        manifest.present_mut().text = entry;
        manifest.text = rules;
        shared.publish_manifest(&manifest).map_err(|error| {
            stop_where_unknown(&log, error).of_pending(PendingChange::TextRules)
        })?;
        let stored = Arc::new(latest.stored().over(base));
        let snapshot = Arc::new(latest.with_texts(stored, Arc::new(manifest)));
        shared.state.lock().latest = Arc::clone(&snapshot);
        shared.show(Arc::clone(&snapshot));
        Ok((Arc::clone(latest.shared_manifest()), snapshot))
    }
}
