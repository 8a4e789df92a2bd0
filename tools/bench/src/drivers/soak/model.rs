//! The model of the database, commit by commit.
//!
//! ```text
//! a client  begin(ring, what it will hold) -> sends the change -> acknowledge(ring, commit) | refuse(ring)
//! a reader  an answer that names commit N -> settle(ring): whoever was changing it knows its commit -> at(ring, N)
//! ```
//!
//! A *ring* is a set of members, in a graph or in a table, that one client alone changes, one
//! change after the other. So the members of a ring at commit N are those after its last change
//! that was acknowledged with a number up to N, whatever the others do. Kept are the states of the
//! last minutes, as long as a request may take and more.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::lock::lock;

/// States of a ring that are older may be forgotten. No request takes as long.
const KEPT: Duration = Duration::from_secs(180);
/// Between two looks whether the run is over.
const LOOK: Duration = Duration::from_millis(100);
/// The commits that are kept to read old states from.
const RECENT_MAX: usize = 60;

/// A member of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) value: i64,
    /// The place of a product in the list of them.
    pub(super) product: usize,
}

/// The members of a ring, by number.
pub(super) type Members = BTreeMap<u32, Member>;

struct Ring {
    /// By commit.
    states: VecDeque<State>,
    /// What it will hold if the change under way is made.
    pending: Option<Arc<Members>>,
    /// Changes that were begun, and that ended.
    begun: u64,
    ended: u64,
}

struct State {
    commit: u64,
    since: Instant,
    members: Arc<Members>,
}

impl Ring {
    fn empty() -> Self {
        let nothing = State {
            commit: 0,
            since: Instant::now(),
            members: Arc::default(),
        };
        Self {
            states: VecDeque::from([nothing]),
            pending: None,
            begun: 0,
            ended: 0,
        }
    }
}

/// What all clients know of all rings.
pub(super) struct Journal {
    rings: Vec<(Mutex<Ring>, Condvar)>,
    /// The last commit that was acknowledged as being on the disk: whoever asks later sees it.
    floor: AtomicU64,
    /// The greatest number of a commit that was seen.
    newest: AtomicU64,
    /// The last commits that were acknowledged as being on the disk.
    recent: Mutex<VecDeque<u64>>,
    /// All numbers that were given to a change: no two have the same.
    given: Mutex<HashSet<u64>>,
}

/// What a ring is known to hold after the server was killed.
#[derive(Default)]
pub(super) struct Last {
    /// The last state that was acknowledged.
    pub(super) acknowledged: Arc<Members>,
    /// What a change whose answer did not come would have made of it.
    pub(super) pending: Option<Arc<Members>>,
}

impl Journal {
    /// Of so many rings, all of them empty.
    pub(super) fn new(rings: usize) -> Self {
        Self {
            rings: (0..rings)
                .map(|_| (Mutex::new(Ring::empty()), Condvar::new()))
                .collect(),
            floor: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            recent: Mutex::default(),
            given: Mutex::default(),
        }
    }

    /// Notes what a ring will hold if the change is made that is sent now.
    pub(super) fn begin(&self, ring: usize, members: Members) {
        let Some((ring, _)) = self.rings.get(ring) else {
            return;
        };
        let mut ring = lock(ring);
        ring.begun += 1;
        ring.pending = Some(Arc::new(members));
    }

    /// The change was made, as this commit. Says what is wrong with the number, if something is.
    pub(super) fn acknowledge(
        &self,
        ring: usize,
        commit: u64,
        is_durable: bool,
    ) -> Result<(), String> {
        let Some((ring, ended)) = self.rings.get(ring) else {
            return Ok(());
        };
        let now = Instant::now();
        {
            let mut ring = lock(ring);
            let last = ring.states.back().map_or(0, |state| state.commit);
            if commit <= last {
                return Err(format!(
                    "a change is commit {commit}, the one before it is {last}"
                ));
            }
            if !lock(&self.given).insert(commit) {
                return Err(format!("two changes are commit {commit}"));
            }
            if let Some(members) = ring.pending.take() {
                ring.states.push_back(State {
                    commit,
                    since: now,
                    members,
                });
            }
            // The state before that of KEPT ago is what was there then.
            while ring
                .states
                .get(1)
                .is_some_and(|next| now - next.since > KEPT)
            {
                ring.states.pop_front();
            }
            ring.ended += 1;
        }
        ended.notify_all();
        self.seen(commit);
        if is_durable {
            self.floor.fetch_max(commit, Ordering::SeqCst);
            let mut recent = lock(&self.recent);
            recent.push_back(commit);
            if recent.len() > RECENT_MAX {
                recent.pop_front();
            }
        }
        Ok(())
    }

    /// The change was not made.
    pub(super) fn refuse(&self, ring: usize) {
        if let Some((ring, ended)) = self.rings.get(ring) {
            let mut ring = lock(ring);
            ring.pending = None;
            ring.ended += 1;
            ended.notify_all();
        }
    }

    /// What the ring holds now, for the one who changes it.
    pub(super) fn now(&self, ring: usize) -> Members {
        let state = self.rings.get(ring).and_then(|(ring, _)| {
            let ring = lock(ring);
            ring.states.back().map(|state| Arc::clone(&state.members))
        });
        state.map_or_else(Members::new, |members| Members::clone(&members))
    }

    /// What the ring held after a commit that an answer named, which came before the call. Waits
    /// for a change under way whose number may be one before that. `None` if the run is over
    /// before, or that state is forgotten.
    pub(super) fn at(
        &self,
        ring: usize,
        commit: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Option<Arc<Members>> {
        let (ring, ended) = self.rings.get(ring)?;
        let mut ring = lock(ring);
        let begun = ring.begun;
        while ring.ended < begun {
            if is_over() {
                return None;
            }
            // A thread that panicked leaves the journal as it was.
            ring = match ended.wait_timeout(ring, LOOK) {
                Ok((ring, _)) => ring,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        let after = ring.states.partition_point(|state| state.commit <= commit);
        let state = ring.states.get(after.checked_sub(1)?)?;
        Some(Arc::clone(&state.members))
    }

    /// Whether it held nothing at some time after this commit.
    pub(super) fn was_empty_since(&self, ring: usize, commit: u64) -> bool {
        let Some((ring, _)) = self.rings.get(ring) else {
            return true;
        };
        let ring = lock(ring);
        let after = ring.states.partition_point(|state| state.commit <= commit);
        let mut later = ring.states.iter().skip(after.saturating_sub(1));
        later.any(|state| state.members.is_empty())
    }

    /// What the ring may hold where this commit was the last one of a server that was killed.
    pub(super) fn last(&self, ring: usize, commit: u64) -> Last {
        let Some((ring, _)) = self.rings.get(ring) else {
            return Last::default();
        };
        let ring = lock(ring);
        let after = ring.states.partition_point(|state| state.commit <= commit);
        let acknowledged = ring.states.get(after.saturating_sub(1));
        Last {
            acknowledged: acknowledged
                .map(|state| Arc::clone(&state.members))
                .unwrap_or_default(),
            pending: ring.pending.clone(),
        }
    }

    /// An answer named this commit.
    pub(super) fn seen(&self, commit: u64) {
        self.newest.fetch_max(commit, Ordering::SeqCst);
    }

    /// The oldest state that who asks now may be shown.
    pub(super) fn floor(&self) -> u64 {
        self.floor.load(Ordering::SeqCst)
    }

    /// The greatest number of a commit that was seen.
    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// One of the last commits, at a place from nought on; the newest there are only so many.
    pub(super) fn recent(&self, place: u32) -> Option<u64> {
        let recent = lock(&self.recent);
        let length = u32::try_from(recent.len())
            .ok()
            .filter(|&length| length > 0)?;
        recent.get((place % length) as usize).copied()
    }

    /// Commits that were acknowledged.
    pub(super) fn commits(&self) -> u64 {
        lock(&self.given).len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(values: &[i64]) -> Members {
        let member = |&value| Member { value, product: 0 };
        (0..).zip(values.iter().map(member)).collect()
    }

    fn changed(journal: &Journal, ring: usize, commit: u64, values: &[i64]) {
        journal.begin(ring, members(values));
        journal.acknowledge(ring, commit, true).unwrap();
    }

    #[test]
    fn a_commit_shows_what_was_changed_up_to_it() {
        let journal = Journal::new(2);
        changed(&journal, 0, 3, &[1]);
        changed(&journal, 1, 4, &[7]);
        changed(&journal, 0, 6, &[1, 2]);
        let values = |ring, commit| {
            let found = journal.at(ring, commit, &|| false).unwrap();
            found
                .values()
                .map(|member| member.value)
                .collect::<Vec<_>>()
        };
        assert_eq!(values(0, 2), [0_i64; 0]);
        assert_eq!((values(0, 3), values(0, 5)), (vec![1], vec![1]));
        assert_eq!((values(0, 6), values(1, 9)), (vec![1, 2], vec![7]));
        assert_eq!(
            (journal.floor(), journal.newest(), journal.commits()),
            (6, 6, 3)
        );
        assert_eq!(journal.recent(4), Some(4));
    }

    #[test]
    fn a_refused_change_is_none_and_one_under_way_is_waited_for() {
        let journal = Journal::new(1);
        changed(&journal, 0, 3, &[1]);
        journal.begin(0, members(&[2]));
        journal.refuse(0);
        assert_eq!(journal.now(0), members(&[1]));
        journal.begin(0, members(&[3]));
        assert!(journal.at(0, 9, &|| true).is_none());
        let last = journal.last(0, 9);
        assert!(journal.was_empty_since(0, 2) && !journal.was_empty_since(0, 3));
        assert_eq!(*last.acknowledged, members(&[1]));
        assert_eq!(last.pending.as_deref(), Some(&members(&[3])));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| journal.at(0, 9, &|| false));
            journal.acknowledge(0, 8, false).unwrap();
            assert_eq!(*reader.join().unwrap().unwrap(), members(&[3]));
        });
        // Nobody promised that others see it at once.
        assert_eq!((journal.floor(), journal.newest()), (3, 8));
    }

    #[test]
    fn numbers_of_commits_that_cannot_be_are_found() {
        let journal = Journal::new(2);
        changed(&journal, 0, 3, &[1]);
        journal.begin(0, members(&[2]));
        assert!(journal.acknowledge(0, 2, true).is_err());
        journal.begin(1, members(&[2]));
        assert!(journal.acknowledge(1, 3, true).is_err());
    }
}
