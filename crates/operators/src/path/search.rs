//! What many seeds reach by repeating a path: breadth-first search from all of them at once.
//!
//! ```text
//!   node       number  visited by seeds  newly by seeds       bits: one a seed, some words a node
//!   http://a   0       1011              0010
//!   http://b   1       0001              0001
//! ```
//!
//! Nodes get dense numbers as they are met. A level looks up the neighbours of each node of the
//! frontier once, in the order of the permutation, and hands all its seeds on in one operation on
//! words (Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014). Only what
//! is new to a node goes on: semi-naive evaluation. Results are given out level by level, so that a
//! `LIMIT` ends the search early and no list of pairs is ever held.
//!
//! Memory: about 40 bytes a node and 16 for each word of seeds, counted.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use orrery_term::TermId;

use super::compile::Path;
use super::evaluate::Evaluator;
use super::walks::{Walk, Walks};

/// Bits of a word.
pub(super) const SEEDS_PER_WORD: usize = u64::BITS as usize;
/// What a node takes beside its words: its number in the hash table, with the empty places, and
/// its name.
const NODE_BYTES: usize = 40;
/// Nodes of a frontier that an inner path is evaluated from at a time.
const NODES_PER_EVALUATION: usize = 1_024;
/// New nodes after which the memory is counted anew.
const NODES_PER_COUNT: usize = 4_096;

/// What is repeated, and how often.
#[derive(Clone, Copy)]
pub(super) struct Repetition<'p> {
    pub(super) inner: &'p Path,
    pub(super) from_zero: bool,
    pub(super) many: bool,
}

/// A search under way.
pub(super) struct Search {
    words: usize,
    numbers: HashMap<u64, u32, FixedState>,
    nodes: Vec<u64>,
    /// For each node the seeds that have reached it.
    visited: Vec<u64>,
    /// For each node the seeds that have reached it in the level under way.
    fresh: Vec<u64>,
    /// The nodes that the last level has reached, ascending, with their numbers.
    frontier: Vec<(u64, u32)>,
    /// For each node of the frontier the seeds that are new to it.
    frontier_seeds: Vec<u64>,
    /// How much of the frontier has been given out.
    given_out: usize,
    /// Whether another level may follow.
    may_go_on: bool,
    counted_nodes: usize,
    reservation: MemoryReservation,
}

impl Search {
    /// Begins a search. Seeds are numbered from zero; one may start at several nodes.
    pub(super) fn new(
        repetition: Repetition<'_>,
        seeds: usize,
        starts: &[Walk],
        like: &MemoryReservation,
    ) -> Result<Self> {
        let mut search = Self {
            words: seeds.div_ceil(SEEDS_PER_WORD).max(1),
            numbers: HashMap::with_hasher(FixedState::default()),
            nodes: Vec::new(),
            visited: Vec::new(),
            fresh: Vec::new(),
            frontier: Vec::new(),
            frontier_seeds: Vec::new(),
            given_out: 0,
            may_go_on: true,
            counted_nodes: 0,
            reservation: like.new_empty(),
        };
        let mut touched = Vec::new();
        let mut seed_bits = vec![0; search.words];
        for &(seed, node) in starts {
            let (word, bit) = (
                seed as usize / SEEDS_PER_WORD,
                seed as usize % SEEDS_PER_WORD,
            );
            seed_bits[word] = 1 << bit;
            search.reach(node, &seed_bits, &mut touched);
            seed_bits[word] = 0;
        }
        search.end_level(&touched)?;
        if !repetition.from_zero {
            // The starts are where the search begins, but they are not reached yet.
            search.visited.fill(0);
            search.given_out = search.frontier.len();
        }
        Ok(search)
    }

    /// Number of nodes met so far.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Appends further pairs of a seed and a node that it reaches, each once, until there are
    /// `pairs_max` or no more. `false` if nothing is left to be found.
    pub(super) async fn next(
        &mut self,
        evaluator: &mut Evaluator,
        repetition: Repetition<'_>,
        out: &mut Walks,
        pairs_max: usize,
    ) -> Result<bool> {
        loop {
            self.give_out(out, pairs_max)?;
            if out.as_slice().len() >= pairs_max {
                return Ok(true);
            }
            if !self.may_go_on || self.frontier.is_empty() {
                return Ok(false);
            }
            self.may_go_on = repetition.many;
            self.level(evaluator, repetition.inner).await?;
        }
    }

    /// The seeds that have newly reached nodes of the frontier.
    fn give_out(&mut self, out: &mut Walks, pairs_max: usize) -> Result<()> {
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

    /// One step from every node of the frontier.
    async fn level(&mut self, evaluator: &mut Evaluator, inner: &Path) -> Result<()> {
        let frontier = std::mem::take(&mut self.frontier);
        let seeds = std::mem::take(&mut self.frontier_seeds);
        let mut touched = Vec::new();
        if let Some(links) = inner.links() {
            for link in links {
                for (place, &(node, _)) in frontier.iter().enumerate() {
                    let seeds = &seeds[place * self.words..(place + 1) * self.words];
                    let neighbours = evaluator.neighbours(link, TermId::from_bits(node))?;
                    for &neighbour in &neighbours {
                        self.reach(neighbour, seeds, &mut touched);
                    }
                    evaluator.give_back(neighbours);
                    self.count_some(&touched)?;
                    evaluator.look_up_done().await;
                }
            }
        } else {
            for (number, nodes) in frontier.chunks(NODES_PER_EVALUATION).enumerate() {
                let from = (0..nodes.len()).map(|place| (place as u32, nodes[place].0));
                let from = Walks::of(from, &self.reservation)?;
                let reached = evaluator.evaluate(inner, from, true).await?;
                for &(place, neighbour) in reached.as_slice() {
                    let place = number * NODES_PER_EVALUATION + place as usize;
                    let seeds = &seeds[place * self.words..(place + 1) * self.words];
                    self.reach(neighbour, seeds, &mut touched);
                }
                self.count_some(&touched)?;
            }
        }
        // Their room is used again.
        self.frontier = frontier;
        self.frontier_seeds = seeds;
        self.end_level(&touched)
    }

    /// Notes that these seeds reach a node.
    fn reach(&mut self, node: u64, seeds: &[u64], touched: &mut Vec<u32>) {
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
            touched.push(number);
        }
    }

    /// Makes what the level has reached the frontier.
    fn end_level(&mut self, touched: &[u32]) -> Result<()> {
        self.frontier.clear();
        self.frontier_seeds.clear();
        self.given_out = 0;
        let names = touched
            .iter()
            .map(|&number| (self.nodes[number as usize], number));
        self.frontier.extend(names);
        self.frontier.sort_unstable();
        for &(_, number) in &self.frontier {
            let first = number as usize * self.words;
            let fresh = &mut self.fresh[first..first + self.words];
            self.frontier_seeds.extend_from_slice(fresh);
            fresh.fill(0);
        }
        self.count_some(touched)
    }

    /// Counts the memory if much has come since the last time.
    fn count_some(&mut self, touched: &[u32]) -> Result<()> {
        let nodes = self.nodes.capacity() + self.frontier.capacity() + touched.len() / 2;
        if nodes < self.counted_nodes + NODES_PER_COUNT {
            return Ok(());
        }
        self.counted_nodes = nodes;
        let words =
            self.visited.capacity() + self.fresh.capacity() + self.frontier_seeds.capacity();
        self.reservation
            .try_resize(nodes * NODE_BYTES + words * size_of::<u64>())
    }
}
