//! The evaluation of a path from many seeds at once, and of a search's levels; the two are
//! recursive.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;
use orrery_term::TermId;

use super::compile::Path;
use super::counted::{Walk, Walks};
use super::edges::Edges;
use super::reached::{Reached, Repetition, SEEDS_PER_WORD};
use super::search::Search;

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
    pub(super) edges: Edges,
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

    /// Continues each walk along the path: one result per way, but each end once below a
    /// repetition.
    pub(super) fn evaluate<'a>(
        &'a mut self,
        path: &'a Path,
        walks: Walks,
    ) -> BoxFuture<'a, Result<Walks>> {
        async move {
            match path {
                Path::Link(..) | Path::Negated(..) => self.link(path, walks).await,
                Path::Sequence(parts) => {
                    let mut walks = walks;
                    for part in parts {
                        walks = self.evaluate(part, walks).await?;
                    }
                    Ok(walks)
                }
                Path::Alternative(parts) => {
                    let mut all = Walks::new(&self.reservation);
                    for part in parts {
                        let from = walks.as_slice().iter().copied();
                        let from = Walks::of(from, &self.reservation)?;
                        let found = self.evaluate(part, from).await?;
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
                    self.repeat(repetition, walks).await
                }
            }
        }
        .boxed()
    }

    /// The nodes that the path leads to, each with the seeds that reach it: once, however many ways
    /// there are.
    pub(super) fn evaluate_set<'a>(
        &'a mut self,
        path: &'a Path,
        starts: Reached,
    ) -> BoxFuture<'a, Result<Reached>> {
        async move {
            if let Some(repetition) = Repetition::of(path) {
                return Search::new(repetition, starts)?.run(self, repetition).await;
            }
            match path {
                Path::Sequence(parts) => {
                    let mut reached = starts;
                    for part in parts {
                        reached = self.evaluate_set(part, reached).await?;
                    }
                    Ok(reached)
                }
                Path::Alternative(parts) if path.links().is_none() => {
                    let mut all = Search::empty(starts.words(), &self.reservation);
                    for part in parts {
                        let from = starts.to_owned()?;
                        all.absorb(&self.evaluate_set(part, from).await?)?;
                    }
                    all.into_reached()
                }
                Path::Link(..) | Path::Negated(..) | Path::Alternative(_) | Path::Repeat { .. } => {
                    let once = Repetition {
                        inner: path,
                        from_zero: false,
                        many: false,
                    };
                    Search::new(once, starts)?.run(self, once).await
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
        let groups: Vec<&[Walk]> = list.chunk_by(|a, b| a.1 == b.1).collect();
        let mut continued = Walks::new(&self.reservation);
        for groups in groups.chunks(SEEDS_PER_SEARCH) {
            let starts = groups.iter().map(|same| same[0].1);
            let starts = Reached::of_seeds(starts, &self.reservation)?;
            let mut search = Search::new(repetition, starts)?;
            let mut reached = Walks::new(&self.reservation);
            search
                .next(self, Some(repetition), &mut reached, usize::MAX)
                .await?;
            for &(number, end) in reached.as_slice() {
                let same = groups[number as usize].iter();
                continued.extend(same.map(|&(seed, _)| (seed, end)))?;
            }
        }
        Ok(continued)
    }

    /// Keeps the nodes of the active graph.
    pub(super) async fn retain_nodes(&mut self, nodes: &mut Vec<u64>) -> Result<()> {
        let mut kept = Vec::with_capacity(nodes.len());
        for &node in nodes.iter() {
            if self.edges.has_node(TermId::from_bits(node))? {
                kept.push(node);
            }
            self.look_up_done().await;
        }
        *nodes = kept;
        Ok(())
    }
}

impl Search {
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

    /// Appends further pairs of a seed and a node that it reaches, each once, until there are
    /// `pairs_max` or no more. `false` if nothing is left to be found. The repetition is the one
    /// that the search began with; an [ended](Self::ended) search needs none.
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
}
