//! Creation and removal of the full-text index of an existing database.

use std::path::Path;
use std::sync::Arc;

use super::build::{TEXT_MEMORY_BYTES, write_texts};
use super::rules::TextRules;
use crate::database::segment::{remove_leftovers, remove_unnamed};
use crate::files::io::FileSystem;
use crate::files::lock::{LockText, WriterLock};
use crate::files::manifest::Manifest;
use crate::snapshots::base::Base;
use crate::{Database, PendingChange, Result, Snapshot};

impl Database {
    /// Replaces the full-text index by one of the literals that the rules select; without rules,
    /// drops it. The quads stay as they are, and the logs; older states keep what they have. Killed
    /// at any moment it leaves the old index or the new one.
    ///
    /// # Errors
    /// When somebody else writes the database, or the files cannot be written.
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) where nobody knows which index is
    /// named when it is opened anew.
    pub fn set_text_rules(
        &self,
        rules: Option<TextRules>,
        memory_bytes: Option<usize>,
    ) -> Result<Arc<Snapshot>> {
        let (file_system, directory) = (&**self.file_system(), self.directory());
        // What it says of the end of the log stays true.
        let text = LockText::read(file_system, directory)?;
        let lock = WriterLock::acquire_with(self.file_system(), directory)?;
        self.refresh()?;
        let present = self.snapshot();
        remove_leftovers(file_system, directory, Some(present.manifest()))?;
        let mut manifest = present.manifest().clone();
        manifest.generation += 1;
        publish(
            file_system,
            directory,
            &mut manifest,
            rules,
            memory_bytes.unwrap_or(TEXT_MEMORY_BYTES),
        )?;
        if let Err(error) = remove_unnamed(file_system, directory, Some(&manifest)) {
            tracing::warn!(
                "the old index of texts could not be removed, the next load tries again: {error}"
            );
        }
        if let LockText::Closed(closed) = text {
            lock.note_closed(&closed)?;
        }
        self.refresh()?;
        Ok(self.snapshot())
    }
}

fn publish(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: &mut Manifest,
    rules: Option<TextRules>,
    memory_bytes: usize,
) -> Result<()> {
    // Opened anew, without what somebody else may search at this moment.
    let mut base = Base::open(file_system, directory, manifest.present())?;
    let of = (manifest.generation, rules.as_ref());
    let written = write_texts(file_system, directory, of, &mut base, memory_bytes)?;
    manifest.present_mut().text = written.entry;
    manifest.text = rules;
    let published = manifest.publish(file_system, directory);
    let published = published.map_err(|error| error.of_pending(PendingChange::TextRules));
    written.unlisted.keep_if_listed(&published);
    published
}
