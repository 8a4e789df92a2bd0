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
//! Memory: some 50 bytes a node and 16 for each word of seeds, counted.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use orrery_term::TermId;

use super::compile::Path;
use super::evaluate::Evaluator;
use super::walks::Walks;

/// Bits of a word.
pub(super) const SEEDS_PER_WORD: usize = u64::BITS as usize;
/// What the number of a node takes in the hash table, at worst: while it grows, both tables are there.
const NUMBER_BYTES: usize = 28;
/// Growth after which the memory is counted anew.
const UNCOUNTED_BYTES_MAX: usize = 1 << 16;

/// What is repeated, and how often.
#[derive(Clone, Copy)]
pub(super) struct Repetition<'p> {
    pub(super) inner: &'p Path,
    pub(super) from_zero: bool,
    pub(super) many: bool,
}

impl<'p> Repetition<'p> {
    /// The repetition that a path is, if it is one.
    pub(super) fn of(path: &'p Path) -> Option<Self> {
        match path {
            Path::Repeat {
                inner,
                from_zero,
                many,
            } => Some(Self {
                inner,
                from_zero: *from_zero,
                many: *many,
            }),
            Path::Link(..) | Path::Negated(..) | Path::Sequence(_) | Path::Alternative(_) => None,
        }
    }
}

/// Nodes, each once, and the seeds that have reached them.
pub(super) struct Reached {
    words: usize,
    nodes: Vec<u64>,
    /// Some words for each node.
    seeds: Vec<u64>,
    reservation: MemoryReservation,
}

impl Reached {
    /// Distinct nodes that are seeds, numbered in this order.
    pub(super) fn of_seeds(
        nodes: impl Iterator<Item = u64>,
        like: &MemoryReservation,
    ) -> Result<Self> {
        let nodes: Vec<u64> = nodes.collect();
        let words = nodes.len().div_ceil(SEEDS_PER_WORD).max(1);
        let mut seeds = vec![0; words * nodes.len()];
        for seed in 0..nodes.len() {
            seeds[seed * words + seed / SEEDS_PER_WORD] = 1 << (seed % SEEDS_PER_WORD);
        }
        Self::counted(words, nodes, seeds, like)
    }

    /// Distinct nodes that one seed has reached.
    pub(super) fn of_one_seed(nodes: Vec<u64>, like: &MemoryReservation) -> Result<Self> {
        let seeds = vec![1; nodes.len()];
        Self::counted(1, nodes, seeds, like)
    }

    fn counted(
        words: usize,
        nodes: Vec<u64>,
        seeds: Vec<u64>,
        like: &MemoryReservation,
    ) -> Result<Self> {
        let reservation = like.new_empty();
        reservation.try_grow((nodes.capacity() + seeds.capacity()) * size_of::<u64>())?;
        Ok(Self {
            words,
            nodes,
            seeds,
            reservation,
        })
    }

    /// A copy.
    pub(super) fn to_owned(&self) -> Result<Self> {
        let (nodes, seeds) = (self.nodes.clone(), self.seeds.clone());
        Self::counted(self.words, nodes, seeds, &self.reservation)
    }

    /// Words of bits that each node has.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// The nodes.
    pub(super) fn nodes(&self) -> &[u64] {
        &self.nodes
    }
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
    /// The numbers of the nodes that the level under way has reached.
    touched: Vec<u32>,
    /// The nodes that the last level has reached, ascending, with their numbers.
    frontier: Vec<(u64, u32)>,
    /// For each node of the frontier the seeds that are new to it.
    frontier_seeds: Vec<u64>,
    /// How much of the frontier has been given out.
    given_out: usize,
    /// Whether another level may follow.
    may_go_on: bool,
    counted_bytes: usize,
    reservation: MemoryReservation,
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

    /// Goes on to the end; everything that was reached.
    pub(super) async fn run(
        mut self,
        evaluator: &mut Evaluator,
        repetition: Repetition<'_>,
    ) -> Result<Reached> {
        while self.may_go_on && !self.frontier.is_empty() {
            self.may_go_on = repetition.many;
            self.level(evaluator, repetition.inner).await?;
        }
        self.into_reached()
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

    /// Appends further pairs of a seed and a node that it reaches, each once, until there are
    /// `pairs_max` or no more. `false` if nothing is left to be found. The repetition is the one that
    /// the search began with; an [ended](Self::ended) search needs none.
    pub(super) async fn next(
        &mut self,
        evaluator: &mut Evaluator,
        repetition: Option<Repetition<'_>>,
        out: &mut Walks,
        pairs_max: usize,
    ) -> Result<bool> {
        loop {
            self.give_out(out, pairs_max)?;
            if out.as_slice().len() >= pairs_max {
                return Ok(true);
            }
            let Some(repetition) = repetition else {
                return Ok(false);
            };
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
        let Some(links) = inner.links() else {
            let nodes = frontier.iter().map(|(node, _)| *node).collect();
            let starts = Reached::counted(self.words, nodes, seeds, &self.reservation)?;
            let reached = evaluator.evaluate_set(inner, starts).await?;
            self.absorb(&reached)?;
            return self.end_level();
        };
        for link in links {
            for (&(node, _), seeds) in frontier.iter().zip(seeds.chunks(self.words)) {
                let neighbours = evaluator.neighbours(link, TermId::from_bits(node))?;
                for &neighbour in &neighbours {
                    self.reach(neighbour, seeds);
                }
                evaluator.give_back(neighbours);
                self.count_some()?;
                evaluator.look_up_done().await;
            }
        }
        // Their room is used again.
        self.frontier = frontier;
        self.frontier_seeds = seeds;
        self.end_level()
    }

    /// Notes that these seeds reach a node.
    fn reach(&mut self, node: u64, seeds: &[u64]) {
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
    fn end_level(&mut self) -> Result<()> {
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
    fn count_some(&mut self) -> Result<()> {
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
