//! Walks a path from many seeds at once.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use futures::FutureExt;
use futures::future::BoxFuture;
use hashbrown::HashSet;
use orrery_term::TermId;

use super::compile::{Direction, Path};
use super::edges::Edges;

/// How long to work before giving way.
const WORK_TIME_MAX: Duration = Duration::from_millis(1);
/// Look-ups between two glances at the clock.
const LOOK_UPS_PER_GLANCE: usize = 64;
/// What an entry of a visited set takes, with the empty places of the hash table.
const VISITED_BYTES: usize = 32;

/// A walk: the number of the seed it began at, and the node it has reached.
pub(super) type Walk = (u32, u64);

/// Walks paths in one graph.
pub(super) struct Evaluator {
    edges: Edges,
    reservation: MemoryReservation,
    last_pause: Instant,
    neighbours: Vec<u64>,
}

impl Evaluator {
    pub(super) fn new(edges: Edges, reservation: MemoryReservation) -> Self {
        Self {
            edges,
            reservation,
            last_pause: Instant::now(),
            neighbours: Vec::new(),
        }
    }

    /// Forgets what was counted for the seeds before.
    pub(super) fn free(&mut self) {
        self.reservation.free();
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

    /// Continues each walk along the path: one result per way, but each end once below a repetition.
    pub(super) fn evaluate<'a>(
        &'a mut self,
        path: &'a Path,
        walks: Vec<Walk>,
    ) -> BoxFuture<'a, Result<Vec<Walk>>> {
        async move {
            match path {
                Path::Link(..) | Path::Negated(..) => self.link(path, walks).await,
                Path::Sequence(parts) => {
                    let mut walks = walks;
                    for part in parts {
                        let count = walks.len();
                        let next = self.evaluate(part, walks).await?;
                        self.release(count);
                        walks = next;
                    }
                    Ok(walks)
                }
                Path::Alternative(parts) => {
                    let mut all = Vec::new();
                    for part in parts {
                        self.hold(walks.len())?;
                        all.append(&mut self.evaluate(part, walks.clone()).await?);
                        self.release(walks.len());
                    }
                    Ok(all)
                }
                Path::Repeat {
                    inner,
                    from_zero,
                    many,
                } => self.repeat(inner, *from_zero, *many, walks).await,
            }
        }
        .boxed()
    }

    /// Counts walks that are kept.
    fn hold(&mut self, walks: usize) -> Result<()> {
        self.reservation.try_grow(walks * size_of::<Walk>())
    }

    fn release(&mut self, walks: usize) {
        let bytes = walks * size_of::<Walk>();
        self.reservation.shrink(bytes.min(self.reservation.size()));
    }

    /// Continues each walk by one triple. The nodes are looked up in ascending order, each once.
    async fn link(&mut self, path: &Path, mut walks: Vec<Walk>) -> Result<Vec<Walk>> {
        if walks.len() > 1 {
            walks.sort_unstable_by_key(|&(seed, node)| (node, seed));
        }
        let mut continued = Vec::with_capacity(walks.len());
        let mut counted = 0;
        let mut position = 0;
        let mut look_ups = 0;
        while position < walks.len() {
            let node = walks[position].1;
            let same = walks[position..].iter().take_while(|walk| walk.1 == node);
            let end = position + same.count();
            let mut neighbours = std::mem::take(&mut self.neighbours);
            neighbours.clear();
            self.neighbours_of(path, TermId::from_bits(node), &mut neighbours)?;
            for &(seed, _) in &walks[position..end] {
                continued.extend(neighbours.iter().map(|&neighbour| (seed, neighbour)));
            }
            self.neighbours = neighbours;
            position = end;
            look_ups += 1;
            if look_ups % LOOK_UPS_PER_GLANCE == 0 || continued.len() - counted > 8_192 {
                self.hold(continued.len() - counted)?;
                counted = continued.len();
                self.pause().await;
            }
        }
        self.hold(continued.len() - counted)?;
        Ok(continued)
    }

    fn neighbours_of(&mut self, path: &Path, node: TermId, out: &mut Vec<u64>) -> Result<()> {
        match path {
            Path::Link(Some(predicate), direction) => {
                self.edges.neighbours(*predicate, *direction, node, out)
            }
            Path::Negated(excluded, direction) => self
                .edges
                .neighbours_except(excluded, *direction, node, out),
            Path::Link(None, _)
            | Path::Sequence(_)
            | Path::Alternative(_)
            | Path::Repeat { .. } => Ok(()),
        }
    }

    /// Continues each walk by some repetitions of a path. Breadth first from the distinct nodes; equal nodes
    /// share the search.
    async fn repeat(
        &mut self,
        inner: &Path,
        from_zero: bool,
        many: bool,
        walks: Vec<Walk>,
    ) -> Result<Vec<Walk>> {
        let mut starts: Vec<u64> = walks.iter().map(|walk| walk.1).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut reached: Vec<Walk> = Vec::new();
        let mut visited: HashSet<Walk, FixedState> = HashSet::with_hasher(FixedState::default());
        let mut frontier: Vec<Walk> = (0..).zip(starts.iter().copied()).collect();
        self.hold(starts.len() + frontier.len())?;
        if from_zero {
            visited.extend(&frontier);
            reached.extend(&frontier);
        }
        let mut counted = 0;
        while !frontier.is_empty() {
            let frontier_walks = frontier.len();
            // Boxing a future per level would cost more than the look-up on a long chain.
            let mut next = match inner {
                Path::Link(..) | Path::Negated(..) => self.link(inner, frontier).await?,
                Path::Sequence(_) | Path::Alternative(_) | Path::Repeat { .. } => {
                    self.evaluate(inner, frontier).await?
                }
            };
            let found = next.len();
            next.retain(|walk| visited.insert(*walk));
            reached.extend(&next);
            self.release(frontier_walks + found - next.len());
            let new = visited.len() - counted;
            counted = visited.len();
            self.reservation
                .try_grow(new * (VISITED_BYTES + size_of::<Walk>()))?;
            self.pause().await;
            frontier = if many { next } else { Vec::new() };
        }
        drop(visited);
        self.reservation
            .shrink((counted * VISITED_BYTES).min(self.reservation.size()));
        self.join(&walks, &starts, reached).await
    }

    /// Continues each walk to the ends that were reached from its node.
    async fn join(
        &mut self,
        walks: &[Walk],
        starts: &[u64],
        mut reached: Vec<Walk>,
    ) -> Result<Vec<Walk>> {
        reached.sort_unstable();
        let mut continued = Vec::with_capacity(walks.len());
        for &(seed, node) in walks {
            let Ok(start) = starts.binary_search(&node) else {
                continue;
            };
            let first = reached.partition_point(|walk| (walk.0 as usize) < start);
            let ends = reached[first..]
                .iter()
                .take_while(|walk| walk.0 as usize == start);
            let before = continued.len();
            continued.extend(ends.map(|&(_, end)| (seed, end)));
            self.hold(continued.len() - before)?;
            self.pause().await;
        }
        self.release(reached.len() + 2 * starts.len());
        Ok(continued)
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
