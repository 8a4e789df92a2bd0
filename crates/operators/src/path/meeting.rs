//! A bidirectional search for whether a repeated path connects two nodes.
//!
//! Each step goes on from the side whose frontier is smaller, so that a node with few ways in is
//! found to be out of reach although many ways lead out of the other. The level in which they meet
//! ends there; it costs its look-ups, made or not.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use orrery_term::TermId;

use super::compile::Path;
use super::evaluate::Evaluator;
use super::reached::{Reached, Repetition};

/// What a node takes in a set, with the empty places, and in the frontier.
const NODE_BYTES: usize = 32;

/// One of the two searches.
struct MeetingSide<'p> {
    inner: &'p Path,
    visited: HashSet<u64, FixedState>,
    frontier: Vec<u64>,
}

impl<'p> MeetingSide<'p> {
    fn new(inner: &'p Path, start: u64) -> Self {
        let mut visited = HashSet::with_hasher(FixedState::default());
        visited.insert(start);
        Self {
            inner,
            visited,
            frontier: vec![start],
        }
    }

    /// One step from every node of the frontier; whether that meets the other side.
    async fn step(&mut self, other: &Self, evaluator: &mut Evaluator) -> Result<bool> {
        let mut frontier = std::mem::take(&mut self.frontier);
        frontier.sort_unstable();
        if let Some(links) = self.inner.links() {
            evaluator.edges.begin_level(links.len() * frontier.len());
            for link in links {
                for &node in &frontier {
                    let neighbours = evaluator.neighbours(link, TermId::from_bits(node))?;
                    let meets = self.reach(other, neighbours.iter().copied());
                    evaluator.give_back(neighbours);
                    if meets {
                        evaluator.edges.end_level(false);
                        return Ok(true);
                    }
                    evaluator.look_up_done().await;
                }
            }
            evaluator.edges.end_level(true);
        } else {
            let starts = Reached::of_one_seed(frontier, evaluator.reservation())?;
            let reached = evaluator.evaluate_set(self.inner, starts).await?;
            return Ok(self.reach(other, reached.nodes().iter().copied()));
        }
        Ok(false)
    }

    /// Notes nodes that were reached; whether the other side has been at one of them.
    fn reach(&mut self, other: &Self, nodes: impl Iterator<Item = u64>) -> bool {
        for node in nodes {
            if other.visited.contains(&node) {
                return true;
            }
            if self.visited.insert(node) {
                self.frontier.push(node);
            }
        }
        false
    }
}

/// Whether repeating `forward` leads from one node to another; `backward` is the same path
/// reversed.
pub(super) async fn is_connected(
    evaluator: &mut Evaluator,
    [forward, backward]: [Repetition<'_>; 2],
    [from, to]: [u64; 2],
) -> Result<bool> {
    if forward.from_zero && from == to {
        return Ok(true);
    }
    let reservation: MemoryReservation = evaluator.reservation().new_empty();
    let mut sides = [
        MeetingSide::new(forward.inner, from),
        MeetingSide::new(backward.inner, to),
    ];
    while sides.iter().all(|side| !side.frontier.is_empty()) {
        let [from, to] = &mut sides;
        let meets = if from.frontier.len() <= to.frontier.len() {
            from.step(to, evaluator).await?
        } else {
            to.step(from, evaluator).await?
        };
        if meets {
            return Ok(true);
        }
        let nodes: usize = sides.iter().map(|side| side.visited.capacity()).sum();
        if reservation.size() != nodes * NODE_BYTES {
            reservation.try_resize(nodes * NODE_BYTES)?;
        }
    }
    Ok(false)
}
