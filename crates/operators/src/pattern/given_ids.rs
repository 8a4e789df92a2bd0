//! Ids given from outside of a pattern that a variable may have, such as a full-text index's.
//!
//! Given ids are an ascending run of numbers and the name of a variable, and nothing of this
//! process: a plan that travels carries them as they are, as long as they are ids of the database
//! and the commit that the plan names. What a run is compiled to, a bitmap or a table (`id_set`),
//! is made where the pattern first runs.
//!
//! They are a condition, applied at the step that binds the variable: they thin out what is there,
//! in any mode and any order of steps. A few ids that should lead the search are rows of a node
//! below the pattern ([`RowsExec`](crate::rows::RowsExec)).

use std::sync::{Arc, OnceLock};

use orrery_term::TermId;

use super::id_set::IdSet;

/// A variable and the ids that it may have. Cheap to copy.
#[derive(Clone, Debug)]
pub struct GivenIds(Arc<Given>);

#[derive(Debug)]
struct Given {
    variable: Arc<str>,
    ids: Box<[TermId]>,
    set: OnceLock<IdSet>,
}

impl GivenIds {
    /// In any order, and some may come twice. Without any, nothing matches.
    pub fn new(variable: Arc<str>, mut ids: Vec<TermId>) -> Self {
        if !ids.is_sorted() {
            ids.sort_unstable();
        }
        ids.dedup();
        Self(Arc::new(Given {
            variable,
            ids: ids.into(),
            set: OnceLock::new(),
        }))
    }

    /// The variable, without `?`.
    pub fn variable(&self) -> &Arc<str> {
        &self.0.variable
    }

    /// The ids, ascending, each once.
    pub fn ids(&self) -> &[TermId] {
        &self.0.ids
    }

    /// What is asked for each row.
    pub(super) fn set(&self) -> &IdSet {
        self.0.set.get_or_init(|| {
            let bits = self.0.ids.iter().map(|id| id.bits());
            // 0 is no id: it marks an empty slot there.
            let bits: Vec<u64> = bits.filter(|&bits| bits != 0).collect();
            IdSet::of_ascending(&bits)
        })
    }
}

impl PartialEq for GivenIds {
    /// What they are compiled to does not count.
    fn eq(&self, other: &Self) -> bool {
        (self.variable(), self.ids()) == (other.variable(), other.ids())
    }
}

impl Eq for GivenIds {}
