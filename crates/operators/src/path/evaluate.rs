//! Walks a path from many seeds at once.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;
use orrery_term::TermId;

use super::compile::{Direction, Path};
use super::edges::Edges;
use super::search::{Repetition, SEEDS_PER_WORD, Search};
use super::walks::{Walk, Walks};

/// How long to work before giving way.
const WORK_TIME_MAX: Duration = Duration::from_millis(1);
/// Look-ups between two glances at the clock.
const LOOK_UPS_PER_GLANCE: usize = 64;
/// Seeds of one search below another step of the path.
const SEEDS_PER_SEARCH: usize = 4 * SEEDS_PER_WORD;
/// Neighbours read at once that are too many to go uncounted.
const NEIGHBOURS_UNCOUNTED_MAX: usize = 8_192;

/// Walks paths in one graph.
pub(super) struct Evaluator {
    edges: Edges,
    /// Counts the list of neighbours; the other structures have reservations like it.
    reservation: MemoryReservation,
    last_pause: Instant,
    look_ups: usize,
    neighbours: Vec<u64>,
}

impl Evaluator {
    pub(super) fn new(edges: Edges, reservation: MemoryReservation) -> Self {
        Self {
            edges,
            reservation,
            last_pause: Instant::now(),
            look_ups: 0,
            neighbours: Vec::new(),
        }
    }

    /// What others make their reservations like.
    pub(super) fn reservation(&self) -> &MemoryReservation {
        &self.reservation
    }

    /// Lets other tasks run, if it is time.
    pub(super) async fn pause(&mut self) {
        if self.last_pause.elapsed() < WORK_TIME_MAX {
            return;
        }
        let mut has_paused = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut has_paused, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.last_pause = Instant::now();
    }

    /// To be called after each look-up: gives way now and then.
    pub(super) async fn look_up_done(&mut self) {
        self.look_ups += 1;
        if self.look_ups.is_multiple_of(LOOK_UPS_PER_GLANCE) {
            self.pause().await;
        }
    }

    /// Continues each walk along the path: one result per way, but each end once below a repetition.
    /// `as_set`: it does not matter how often a result comes, so that it comes once where that is
    /// cheaper.
    pub(super) fn evaluate<'a>(
        &'a mut self,
        path: &'a Path,
        walks: Walks,
        as_set: bool,
    ) -> BoxFuture<'a, Result<Walks>> {
        async move {
            match path {
                Path::Link(..) | Path::Negated(..) => self.link(path, walks).await,
                Path::Sequence(parts) => {
                    let mut walks = walks;
                    for part in parts {
                        walks = self.evaluate(part, walks, as_set).await?;
                        if as_set {
                            walks.distinct();
                        }
                    }
                    Ok(walks)
                }
                Path::Alternative(parts) => {
                    let mut all = Walks::new(&self.reservation);
                    for part in parts {
                        let from = walks.as_slice().iter().copied();
                        let from = Walks::of(from, &self.reservation)?;
                        let found = self.evaluate(part, from, as_set).await?;
                        all.extend(found.as_slice().iter().copied())?;
                    }
                    Ok(all)
                }
                Path::Repeat {
                    inner,
                    from_zero,
                    many,
                } => {
                    let repetition = Repetition {
                        inner,
                        from_zero: *from_zero,
                        many: *many,
                    };
                    match as_set {
                        true => self.repeat_set(repetition, walks).await,
                        false => self.repeat(repetition, walks).await,
                    }
                }
            }
        }
        .boxed()
    }

    /// Continues each walk by one triple. The nodes are looked up in ascending order, each once.
    async fn link(&mut self, path: &Path, mut walks: Walks) -> Result<Walks> {
        let list = walks.as_mut_slice();
        list.sort_unstable_by_key(|&(seed, node)| (node, seed));
        let mut continued = Walks::new(&self.reservation);
        for same in walks.as_slice().chunk_by(|a, b| a.1 == b.1) {
            let neighbours = self.neighbours(path, TermId::from_bits(same[0].1))?;
            for &(seed, _) in same {
                continued.extend(neighbours.iter().map(|&neighbour| (seed, neighbour)))?;
            }
            self.give_back(neighbours);
            self.look_up_done().await;
        }
        Ok(continued)
    }

    /// The nodes that a link or a negated set leads to, one for each triple. The list should be
    /// [given back](Self::give_back).
    pub(super) fn neighbours(&mut self, path: &Path, node: TermId) -> Result<Vec<u64>> {
        let mut out = std::mem::take(&mut self.neighbours);
        out.clear();
        match path {
            Path::Link(Some(predicate), direction) => {
                self.edges
                    .neighbours(*predicate, *direction, node, &mut out)?;
            }
            Path::Negated(excluded, direction) => {
                self.edges
                    .neighbours_except(excluded, *direction, node, &mut out)?;
            }
            Path::Link(None, _)
            | Path::Sequence(_)
            | Path::Alternative(_)
            | Path::Repeat { .. } => {}
        }
        if out.capacity() > NEIGHBOURS_UNCOUNTED_MAX {
            let bytes = out.capacity() * size_of::<u64>();
            if bytes != self.reservation.size() {
                self.reservation.try_resize(bytes)?;
            }
        }
        Ok(out)
    }

    /// Takes a list of neighbours back, so that the next one needs no new room.
    pub(super) fn give_back(&mut self, neighbours: Vec<u64>) {
        self.neighbours = neighbours;
    }

    /// Continues each walk by some repetitions of a path. Equal nodes share the search.
    async fn repeat(&mut self, repetition: Repetition<'_>, mut walks: Walks) -> Result<Walks> {
        let list = walks.as_mut_slice();
        list.sort_unstable_by_key(|&(seed, node)| (node, seed));
        let mut numbered = Walks::new(&self.reservation);
        for (number, same) in list.chunk_by(|a, b| a.1 == b.1).enumerate() {
            numbered.push((number as u32, same[0].1))?;
        }
        let reached = self.repeat_set(repetition, numbered).await?;
        let mut continued = Walks::new(&self.reservation);
        let mut from = walks.as_slice().chunk_by(|a, b| a.1 == b.1).enumerate();
        for ends in reached.as_slice().chunk_by(|a, b| a.0 == b.0) {
            let Some((_, same)) = from.find(|(number, _)| *number == ends[0].0 as usize) else {
                continue;
            };
            for &(seed, _) in same {
                continued.extend(ends.iter().map(|&(_, end)| (seed, end)))?;
            }
            self.look_up_done().await;
        }
        Ok(continued)
    }

    /// Continues the walks of each seed by some repetitions of a path; each seed has each end
    /// once. Sorted by seed.
    async fn repeat_set(&mut self, repetition: Repetition<'_>, mut walks: Walks) -> Result<Walks> {
        walks.distinct();
        let mut reached = Walks::new(&self.reservation);
        let mut list = walks.as_slice();
        let mut seeds: Vec<u32> = Vec::with_capacity(SEEDS_PER_SEARCH);
        let mut starts: Vec<Walk> = Vec::new();
        while !list.is_empty() {
            seeds.clear();
            starts.clear();
            while let Some(&(seed, node)) = list.first() {
                if seeds.last() != Some(&seed) {
                    if seeds.len() == SEEDS_PER_SEARCH {
                        break;
                    }
                    seeds.push(seed);
                }
                starts.push((seeds.len() as u32 - 1, node));
                list = &list[1..];
            }
            let mut search = Search::new(repetition, seeds.len(), &starts, &self.reservation)?;
            let first = reached.as_slice().len();
            search
                .next(self, repetition, &mut reached, usize::MAX)
                .await?;
            let found = &mut reached.as_mut_slice()[first..];
            for walk in found.iter_mut() {
                walk.0 = seeds[walk.0 as usize];
            }
            found.sort_unstable();
        }
        Ok(reached)
    }

    /// Keeps the nodes of the active graph.
    pub(super) fn retain_nodes(&mut self, nodes: &mut Vec<u64>) -> Result<()> {
        let mut kept = Vec::with_capacity(nodes.len());
        for &node in nodes.iter() {
            if self.edges.has_node(TermId::from_bits(node))? {
                kept.push(node);
            }
        }
        *nodes = kept;
        Ok(())
    }

    /// Every node of the active graph that the path may lead away from, ascending.
    pub(super) fn start_nodes(&mut self, path: &Path) -> Result<Vec<u64>> {
        match path {
            Path::Link(Some(predicate), direction) => self.edges.nodes_with(*predicate, *direction),
            Path::Link(None, _) => Ok(Vec::new()),
            Path::Negated(_, direction) => self.edges.near_nodes(*direction),
            Path::Sequence(parts) => match parts.first() {
                Some(first) => self.start_nodes(first),
                None => Ok(Vec::new()),
            },
            Path::Alternative(parts) => {
                let mut nodes = Vec::new();
                for part in parts {
                    nodes.append(&mut self.start_nodes(part)?);
                }
                nodes.sort_unstable();
                nodes.dedup();
                Ok(nodes)
            }
            Path::Repeat {
                inner, from_zero, ..
            } => {
                if !from_zero {
                    return self.start_nodes(inner);
                }
                let mut nodes = self.edges.near_nodes(Direction::Forward)?;
                nodes.append(&mut self.edges.near_nodes(Direction::Backward)?);
                nodes.sort_unstable();
                nodes.dedup();
                Ok(nodes)
            }
        }
    }
}
