//! The record of table changes that a checkpoint has written, so that the next one does not write
//! them again.

use super::changes::ChangesIdentity;
use super::projection::Projection;
use crate::files::components::DirectoryComponents;

/// A file with the changes of a table, and which changes these are.
#[derive(Debug)]
pub(crate) struct WrittenChanges {
    files: DirectoryComponents,
    /// Of each projection.
    of: Vec<ChangesIdentity>,
}

impl WrittenChanges {
    pub(crate) fn new<'a>(
        files: DirectoryComponents,
        of: impl Iterator<Item = &'a Projection>,
    ) -> Self {
        let of = of.map(|projection| projection.changes().identity());
        Self {
            files,
            of: of.collect(),
        }
    }

    /// The directory and its file, if they have the changes of these projections and no others.
    pub(crate) fn of<'a>(
        &self,
        mut projections: impl Iterator<Item = &'a Projection>,
    ) -> Option<&DirectoryComponents> {
        let mut written = self.of.iter();
        let is_same = projections.all(|projection| {
            let written = written.next();
            written.is_some_and(|written| written.is_of(projection.changes()))
        });
        (is_same && written.next().is_none()).then_some(&self.files)
    }
}
