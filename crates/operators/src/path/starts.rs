//! The start nodes of a path with two unbound ends, read from the permutations in order.
//!
//! A path of links begins at the subjects (or objects) of its first link's triples; one that may be
//! empty, at every node. They are read some rows at a time, and lists that come out of order, or
//! from several places, are merged some nodes at a time, so that no poll works without a bound.
//! What has been read is counted as it grows.

use datafusion_common::Result;
use orrery_term::TermId;

use super::compile::{Direction, Path};
use super::counted::Nodes;
use super::edges::{Edges, NodeRows};
use super::evaluate::Evaluator;

/// Nodes that are merged between two glances at the clock.
const NODES_PER_STEP: usize = 65_536;

/// Nodes on one side of triples.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Of those with this predicate.
    With(TermId, Direction),
    /// Of all.
    Any(Direction),
}

impl Source {
    /// Where the nodes are that a path may lead away from.
    fn all_of(path: &Path, sources: &mut Vec<Self>) {
        match path {
            Path::Link(Some(predicate), direction) => {
                sources.push(Self::With(*predicate, *direction));
            }
            Path::Link(None, _) => {}
            Path::Negated(_, direction) => sources.push(Self::Any(*direction)),
            Path::Sequence(parts) => {
                if let Some(first) = parts.first() {
                    Self::all_of(first, sources);
                }
            }
            Path::Alternative(parts) => {
                for part in parts {
                    Self::all_of(part, sources);
                }
            }
            Path::Repeat {
                from_zero: true, ..
            } => sources.extend([
                Self::Any(Direction::Forward),
                Self::Any(Direction::Backward),
            ]),
            Path::Repeat { inner, .. } => Self::all_of(inner, sources),
        }
    }
}

/// The rows in which the nodes stand that a path may lead away from.
fn rows_of_starts(edges: &mut Edges, path: &Path) -> Result<Vec<NodeRows>> {
    let mut sources = Vec::new();
    Source::all_of(path, &mut sources);
    let mut rows = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        if sources[..at].contains(source) {
            continue;
        }
        match *source {
            Source::With(predicate, direction) => rows.push(edges.rows_with(predicate, direction)?),
            Source::Any(direction) => rows.extend(edges.rows_of_all(direction)?),
        }
    }
    Ok(rows)
}

/// So many nodes a path leads away from at most.
pub(super) fn starts_max(edges: &mut Edges, path: &Path) -> Result<u64> {
    let rows = rows_of_starts(edges, path)?;
    Ok(rows.iter().map(|rows| rows.range.len()).sum())
}

impl Evaluator {
    /// Every node of the active graph that the path may lead away from.
    pub(super) async fn start_nodes(&mut self, path: &Path) -> Result<Nodes> {
        let mut lists = Vec::new();
        for rows in rows_of_starts(&mut self.edges, path)? {
            self.read_nodes(rows, &mut lists).await?;
        }
        let mut all = lists
            .pop()
            .unwrap_or_else(|| Nodes::new(self.reservation()));
        while let Some(list) = lists.pop() {
            all = self.merged(list, all).await?;
        }
        Ok(all)
    }

    /// Adds the nodes of some rows, in one list if they stand in order.
    async fn read_nodes(&mut self, rows: NodeRows, lists: &mut Vec<Nodes>) -> Result<()> {
        let mut list = Nodes::new(self.reservation());
        let mut read = Vec::new();
        let mut next = rows.range.start;
        while next < rows.range.end {
            next = self.edges.read_nodes(rows, next, &mut read)?;
            if rows.is_ascending {
                let is_known = list.as_slice().last() == read.first();
                list.extend(read.iter().skip(usize::from(is_known)).copied())?;
            } else {
                read.sort_unstable();
                read.dedup();
                let piece = Nodes::of(read.iter().copied(), self.reservation())?;
                self.add(piece, lists).await?;
            }
            self.pause().await;
        }
        self.add(list, lists).await
    }

    /// Adds a list to others, of which each is more than twice as long as the next: so a node is
    /// merged few times.
    async fn add(&mut self, mut list: Nodes, lists: &mut Vec<Nodes>) -> Result<()> {
        if list.as_slice().is_empty() {
            return Ok(());
        }
        let is_short =
            |before: &mut Nodes, list: &Nodes| before.as_slice().len() <= 2 * list.as_slice().len();
        while let Some(before) = lists.pop_if(|before| is_short(before, &list)) {
            list = self.merged(before, list).await?;
        }
        lists.push(list);
        Ok(())
    }

    /// The nodes of both lists. The longer one is not moved to another place but within its own:
    /// from the back.
    async fn merged(&mut self, one: Nodes, other: Nodes) -> Result<Nodes> {
        let is_longer = one.as_slice().len() >= other.as_slice().len();
        let (mut all, other) = if is_longer {
            (one, other)
        } else {
            (other, one)
        };
        let (mut left, mut left_of_other) = (all.as_slice().len(), other.as_slice().len());
        all.extend(other.as_slice().iter().copied())?;
        while left_of_other > 0 {
            let nodes = all.as_mut_slice();
            for _ in 0..NODES_PER_STEP.min(left + left_of_other) {
                let Some(&last_of_other) = other.as_slice()[..left_of_other].last() else {
                    break;
                };
                let to = left + left_of_other - 1;
                match nodes[..left].last() {
                    Some(&last) if last > last_of_other => {
                        nodes[to] = last;
                        left -= 1;
                    }
                    Some(_) | None => {
                        nodes[to] = last_of_other;
                        left_of_other -= 1;
                    }
                }
            }
            self.pause().await;
        }
        drop(other);
        // Nothing before has moved; from there on a node may be there twice.
        let mut kept = left;
        let mut next = left;
        while next < all.as_slice().len() {
            let nodes = all.as_mut_slice();
            let end = nodes.len().min(next + NODES_PER_STEP);
            for at in next..end {
                if kept == 0 || nodes[kept - 1] != nodes[at] {
                    nodes[kept] = nodes[at];
                    kept += 1;
                }
            }
            next = end;
            self.pause().await;
        }
        all.truncate(kept);
        Ok(all)
    }
}
