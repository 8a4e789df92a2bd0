//! A cursor for look-ups of many keys in a projection file.

use std::ops::Range;
use std::sync::Arc;

use super::reader::ProjectionFile;
use super::search::VectorKeys;
use crate::Result;

/// A place in a file that remembers the vector it was in.
///
/// Any order of keys is answered rightly; ascending ones cost least: each vector is found from the
/// one before, and its key columns are decoded once.
#[derive(Debug)]
pub struct ProjectionCursor {
    file: Arc<ProjectionFile>,
    keys: VectorKeys,
    vector: usize,
}

impl ProjectionFile {
    /// A cursor over the keys.
    pub fn cursor(self: &Arc<Self>) -> ProjectionCursor {
        ProjectionCursor {
            file: Arc::clone(self),
            keys: VectorKeys::default(),
            vector: 0,
        }
    }
}

impl ProjectionCursor {
    /// The file.
    pub fn file(&self) -> &Arc<ProjectionFile> {
        &self.file
    }

    /// As [`ProjectionFile::lower_bound`].
    pub fn lower_bound(&mut self, key: &[u8]) -> Result<u64> {
        let row = self
            .file
            .lower_bound_with(&mut self.keys, key, self.vector)?;
        self.vector = self.keys.vector().unwrap_or(0);
        Ok(row)
    }

    /// As [`ProjectionFile::find`].
    pub fn find(&mut self, prefix: &[u8]) -> Result<Range<u64>> {
        let rows = self.file.find_with(&mut self.keys, prefix, self.vector)?;
        self.vector = self.keys.vector().unwrap_or(0);
        Ok(rows)
    }
}
