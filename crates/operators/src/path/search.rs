//! The closure of a repeated path: a breadth-first search from many seeds at once.
//!
//! ```text
//!   node       number  visited by seeds  newly by seeds       bits: one a seed, some words a node
//!   http://a   0       1011              0010
//!   http://b   1       0001              0001
//! ```
//!
//! Nodes get dense numbers as they are met. A level looks up the neighbours of each node of the
//! frontier once, in the order of the permutation, and hands all its seeds on in one operation on
//! words (Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014).
//! Only what is new to a node goes on: semi-naive evaluation. Results are given out level by level,
//! so that a `LIMIT` ends the search early and no list of pairs is ever held.
//!
//! Here is what a search knows; its levels are walked by [`Evaluator`](super::evaluate::Evaluator),
//! for what is repeated may hold further repetitions.
//!
//! Memory: some 50 bytes a node and 16 for each word of seeds, counted.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::counted::Walks;
use super::reached::{Reached, Repetition, SEEDS_PER_WORD};

/// What the number of a node takes in the hash table, at worst: while it grows, both tables are
/// there.
const NUMBER_BYTES: usize = 28;
/// Growth after which the memory is counted anew.
const UNCOUNTED_BYTES_MAX: usize = 1 << 16;

/// A search under way.
pub(super) struct Search {
    pub(super) words: usize,
    numbers: HashMap<u64, u32, FixedState>,
    nodes: Vec<u64>,
    /// For each node the seeds that have reached it.
    visited: Vec<u64>,
    /// For each node the seeds that have reached it in the level under way.
    fresh: Vec<u64>,
    /// The numbers of the nodes that the level under way has reached.
    touched: Vec<u32>,
    /// The nodes that the last level has reached, ascending, with their numbers.
    pub(super) frontier: Vec<(u64, u32)>,
    /// For each node of the frontier the seeds that are new to it.
    pub(super) frontier_seeds: Vec<u64>,
    /// How much of the frontier has been given out.
    given_out: usize,
    /// Whether another level may follow.
    pub(super) may_go_on: bool,
    counted_bytes: usize,
    pub(super) reservation: MemoryReservation,
}

impl Search {
    /// Nothing reached yet.
    pub(super) fn empty(words: usize, like: &MemoryReservation) -> Self {
        Self {
            words,
            numbers: HashMap::with_hasher(FixedState::default()),
            nodes: Vec::new(),
            visited: Vec::new(),
            fresh: Vec::new(),
            touched: Vec::new(),
            frontier: Vec::new(),
            frontier_seeds: Vec::new(),
            given_out: 0,
            may_go_on: true,
            counted_bytes: 0,
            reservation: like.new_empty(),
        }
    }

    /// Begins a search.
    pub(super) fn new(repetition: Repetition<'_>, starts: Reached) -> Result<Self> {
        let mut search = Self::empty(starts.words, &starts.reservation);
        search.absorb(&starts)?;
        drop(starts);
        search.end_level()?;
        if !repetition.from_zero {
            // The starts are where the search begins, but they are not reached yet.
            search.visited.fill(0);
            search.given_out = search.frontier.len();
        }
        Ok(search)
    }

    /// A search that is over: its results are to be given out.
    pub(super) fn ended(reached: Reached) -> Self {
        let mut search = Self::empty(reached.words, &reached.reservation);
        search.frontier = (0..)
            .zip(reached.nodes)
            .map(|(at, node)| (node, at))
            .collect();
        search.frontier_seeds = reached.seeds;
        search.reservation = reached.reservation;
        search.may_go_on = false;
        search
    }

    /// Everything that was reached.
    pub(super) fn into_reached(self) -> Result<Reached> {
        let Self {
            words,
            mut nodes,
            mut visited,
            reservation,
            ..
        } = self;
        // Nodes that were only started from are left out.
        let mut kept = 0;
        for at in 0..nodes.len() {
            let seeds = at * words..(at + 1) * words;
            if visited[seeds.clone()].iter().any(|bits| *bits != 0) {
                nodes[kept] = nodes[at];
                visited.copy_within(seeds, kept * words);
                kept += 1;
            }
        }
        nodes.truncate(kept);
        visited.truncate(kept * words);
        reservation.free();
        Reached::counted(words, nodes, visited, &reservation)
    }

    /// Adds what others have reached.
    pub(super) fn absorb(&mut self, reached: &Reached) -> Result<()> {
        for (node, seeds) in reached.nodes.iter().zip(reached.seeds.chunks(self.words)) {
            self.reach(*node, seeds);
            self.count_some()?;
        }
        Ok(())
    }

    /// Number of nodes met so far.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len().max(self.frontier.len())
    }

    /// The seeds that have newly reached nodes of the frontier.
    pub(super) fn give_out(&mut self, out: &mut Walks, pairs_max: usize) -> Result<()> {
        while self.given_out < self.frontier.len() && out.as_slice().len() < pairs_max {
            let (node, _) = self.frontier[self.given_out];
            let first = self.given_out * self.words;
            for word in 0..self.words {
                let mut bits = self.frontier_seeds[first + word];
                while bits != 0 {
                    let seed = word * SEEDS_PER_WORD + bits.trailing_zeros() as usize;
                    out.push((seed as u32, node))?;
                    bits &= bits - 1;
                }
            }
            self.given_out += 1;
        }
        Ok(())
    }

    /// Notes that these seeds reach a node.
    pub(super) fn reach(&mut self, node: u64, seeds: &[u64]) {
        let number = match self.numbers.entry(node) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let number = self.nodes.len() as u32;
                self.nodes.push(node);
                self.visited.resize(self.visited.len() + self.words, 0);
                self.fresh.resize(self.fresh.len() + self.words, 0);
                *entry.insert(number)
            }
        };
        let first = number as usize * self.words;
        let fresh = &mut self.fresh[first..first + self.words];
        let visited = &mut self.visited[first..first + self.words];
        let was_fresh = fresh.iter().any(|bits| *bits != 0);
        let mut new = 0;
        for ((fresh, visited), seeds) in fresh.iter_mut().zip(visited).zip(seeds) {
            let unvisited = seeds & !*visited;
            *visited |= unvisited;
            *fresh |= unvisited;
            new |= unvisited;
        }
        if new != 0 && !was_fresh {
            self.touched.push(number);
        }
    }

    /// Makes what the level has reached the frontier.
    pub(super) fn end_level(&mut self) -> Result<()> {
        self.frontier.clear();
        self.frontier_seeds.clear();
        self.given_out = 0;
        let nodes = &self.nodes;
        let names = self.touched.drain(..);
        self.frontier
            .extend(names.map(|number| (nodes[number as usize], number)));
        self.frontier.sort_unstable();
        for &(_, number) in &self.frontier {
            let first = number as usize * self.words;
            let fresh = &mut self.fresh[first..first + self.words];
            self.frontier_seeds.extend_from_slice(fresh);
            fresh.fill(0);
        }
        self.count_some()
    }

    /// Counts the memory if much has come since the last time.
    pub(super) fn count_some(&mut self) -> Result<()> {
        let words =
            self.visited.capacity() + self.fresh.capacity() + self.frontier_seeds.capacity();
        let bytes = self.numbers.capacity() * NUMBER_BYTES
            + self.nodes.capacity() * size_of::<u64>()
            + self.touched.capacity() * size_of::<u32>()
            + self.frontier.capacity() * size_of::<(u64, u32)>()
            + words * size_of::<u64>();
        if bytes < self.counted_bytes + UNCOUNTED_BYTES_MAX {
            return Ok(());
        }
        self.counted_bytes = bytes;
        self.reservation.try_resize(bytes)
    }
}
