//! A cache keyed by lists of graphs.
//!
//! Lists are compared by their content: rules that are read again make new lists of the same names.
//! Bounded by [`KEPT_MAX`] and [`BYTES_MAX`]; the least recently used entries go.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::access::read_scope::GraphNames;

/// How many are kept: of so many askers with rights of their own at a time.
pub(crate) const KEPT_MAX: usize = 64;
/// Bytes of all that are kept.
pub(crate) const BYTES_MAX: u64 = 512 << 20;
/// So many are kept whatever they take: of a large base each takes much, and to make it anew reads
/// the column of the graph.
pub(crate) const KEPT_LEAST: usize = 4;

/// See the module; the last used are the first.
#[derive(Debug)]
pub(crate) struct ByList<T> {
    kept: VecDeque<(Arc<GraphNames>, T)>,
}

impl<T> Default for ByList<T> {
    fn default() -> Self {
        Self {
            kept: VecDeque::new(),
        }
    }
}

impl<T: Clone> ByList<T> {
    /// What is kept for a list.
    pub(crate) fn find(&mut self, graphs: &Arc<GraphNames>) -> Option<T> {
        let mut lists = self.kept.iter();
        let same = lists.position(|(of, _)| Arc::ptr_eq(of, graphs));
        let place = same.or_else(|| self.kept.iter().position(|(of, _)| of == graphs))?;
        let (_, found) = self.kept.remove(place)?;
        // The same list comes again more often than an equal one.
        self.add(graphs, found.clone());
        Some(found)
    }

    /// Keeps something for a list.
    pub(crate) fn add(&mut self, graphs: &Arc<GraphNames>, what: T) {
        self.kept.push_front((Arc::clone(graphs), what));
    }

    /// All that is kept.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.kept.iter().map(|(_, what)| what)
    }

    /// Lets go of what there is no room for, given the bytes that each takes beside those before
    /// it.
    pub(crate) fn shrink(&mut self, mut bytes_of: impl FnMut(&T) -> u64) {
        let mut sum = 0_u64;
        let fitting = self.iter().take_while(|what| {
            sum = sum.saturating_add(bytes_of(what));
            sum <= BYTES_MAX
        });
        let fitting = fitting.count().clamp(KEPT_LEAST, KEPT_MAX);
        self.kept.truncate(fitting);
    }
}
