//! The k cheapest simple paths, and cheapest paths of bounded length, by best-first search.
//!
//! What a path would cost in all is known from below: what it has cost so far, and what the way
//! that is left costs at least (by a search from the target). The path with the smallest such sum
//! goes on; one that has come to the target is the next answer. With the exact remaining cost as
//! bound little is looked at that is no beginning of an answer, unless many ways are barred because
//! they would not be simple. All that cost no more than the last answer are looked at, so that what
//! is looked at does not depend on the order of ids. Beginnings are kept as links to what they go
//! on from, 40 bytes each, counted against the query's memory.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use datafusion_common::Result;

use super::graph::NONE;
use super::searching::{Ends, Searching};
use super::shortest::{breadth_first, by_weight, explore};

/// A beginning of a path.
struct Beginning {
    node: u32,
    /// The last edge, and the beginning before it.
    edge: u32,
    before: u32,
    length: u32,
    cost: f64,
}

/// A beginning that waits for its turn, by what the whole path would cost at least.
struct Waiting {
    bound: f64,
    beginning: u32,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_bound = other.bound.total_cmp(&self.bound);
        by_bound.then(other.beginning.cmp(&self.beginning))
    }
}

/// How many paths there are to be.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    First(usize),
    /// Those that cost as little as the first: all of them, or any one.
    Cheapest {
        is_all: bool,
    },
}

impl Searching {
    /// The first so many paths to the target, or to each node.
    pub(super) async fn first(&mut self, ends: &Ends, count: usize) -> Result<()> {
        self.best_first(ends, Wanted::First(count)).await
    }

    /// The cheapest paths of bounded length.
    pub(super) async fn cheapest_bounded(&mut self, ends: &Ends, is_all: bool) -> Result<()> {
        self.best_first(ends, Wanted::Cheapest { is_all }).await
    }

    async fn best_first(&mut self, ends: &Ends, wanted: Wanted) -> Result<()> {
        let length_max = self.plan.specification.length_max.unwrap_or(u32::MAX);
        let (root, direction) = (ends.root, ends.direction);
        if let Some(target) = ends.target {
            explore(&mut self.edges, root, direction, length_max).await?;
            return self.best_to(ends, target, wanted).await;
        }
        let reached = breadth_first(&mut self.edges, root, direction, length_max).await?;
        for &node in reached.order.iter().filter(|&&node| node != root) {
            if self.emitter.is_done() {
                break;
            }
            self.best_to(ends, node, wanted).await?;
        }
        Ok(())
    }

    async fn best_to(&mut self, ends: &Ends, target: u32, wanted: Wanted) -> Result<()> {
        let direction = ends.direction;
        let specification = &self.plan.specification;
        let length_max = specification.length_max.unwrap_or(u32::MAX);
        let length_min = specification.length_min;
        let remaining = by_weight(&mut self.edges, target, direction.opposite()).await?;
        let Some(bound) = remaining.get(ends.root) else {
            return Ok(());
        };
        let memory = self.edges.graph.scratch();
        let mut room = 0;
        let mut beginnings = vec![Beginning {
            node: ends.root,
            edge: NONE,
            before: NONE,
            length: 0,
            cost: 0.0,
        }];
        let mut heap = BinaryHeap::from([Waiting {
            bound,
            beginning: 0,
        }]);
        let count = match wanted {
            Wanted::First(count) => count,
            Wanted::Cheapest { is_all } => match is_all {
                true => usize::MAX,
                false => 1,
            },
        };
        let (mut found, mut cost_max) = (0, f64::INFINITY);
        // Paths that cost the same, of which those of fewest edges are wanted first: which comes
        // first goes by ids.
        let mut alike: Vec<u32> = Vec::new();
        while let Some(Waiting { beginning, bound }) = heap.pop() {
            if alike
                .first()
                .is_some_and(|&path| bound > beginnings[path as usize].cost)
            {
                found += self
                    .give_shortest(ends, &beginnings, &mut alike, count - found)
                    .await?;
                if found >= count {
                    break;
                }
            }
            if bound > cost_max || self.emitter.is_done() {
                break;
            }
            let Beginning {
                node, length, cost, ..
            } = beginnings[beginning as usize];
            if node == target {
                // One that is too short shows, too, what the cheapest cost.
                if let Wanted::Cheapest { .. } = wanted {
                    cost_max = cost;
                }
                if length < length_min {
                    continue;
                }
                if count == usize::MAX {
                    let path = edges_of(&beginnings, beginning);
                    self.give(ends, target, &path, false).await?;
                } else {
                    alike.push(beginning);
                }
                continue;
            }
            if length == length_max {
                continue;
            }
            let mut edge = self.edges.first(direction, node);
            while edge != NONE {
                let next = self.edges.graph.far(direction, edge);
                let this = edge;
                edge = self.edges.graph.next(direction, edge);
                self.edges.looked_at().await;
                let Some(left) = remaining.get(next) else {
                    continue;
                };
                if has_node(&beginnings, beginning, next) {
                    continue;
                }
                let cost = cost + self.edges.graph.weight(this);
                if beginnings.len() >= room {
                    let more = room.max(64);
                    memory.try_grow(more * (size_of::<Beginning>() + size_of::<Waiting>()))?;
                    room += more;
                }
                heap.push(Waiting {
                    bound: cost + left,
                    beginning: beginnings.len() as u32,
                });
                beginnings.push(Beginning {
                    node: next,
                    edge: this,
                    before: beginning,
                    length: length + 1,
                    cost,
                });
            }
        }
        self.give_shortest(ends, &beginnings, &mut alike, count - found)
            .await?;
        Ok(())
    }

    /// Gives so many of some paths, those of fewest edges first, and drops the others; how many it
    /// gave.
    async fn give_shortest(
        &mut self,
        ends: &Ends,
        beginnings: &[Beginning],
        paths: &mut Vec<u32>,
        count: usize,
    ) -> Result<usize> {
        paths.sort_by_key(|&path| beginnings[path as usize].length);
        paths.truncate(count);
        for &path in paths.iter() {
            let end = beginnings[path as usize].node;
            let edges = edges_of(beginnings, path);
            self.give(ends, end, &edges, false).await?;
            if self.emitter.is_done() {
                break;
            }
        }
        let given = paths.len();
        paths.clear();
        Ok(given)
    }
}

/// Whether a beginning has come through a node.
fn has_node(beginnings: &[Beginning], from: u32, node: u32) -> bool {
    let mut at = from;
    while let Some(beginning) = beginnings.get(at as usize) {
        if beginning.node == node {
            return true;
        }
        at = beginning.before;
    }
    false
}

/// The edges of a beginning, in order.
fn edges_of(beginnings: &[Beginning], last: u32) -> Vec<u32> {
    let mut path = Vec::new();
    let mut at = last;
    while let Some(beginning) = beginnings.get(at as usize).filter(|it| it.edge != NONE) {
        path.push(beginning.edge);
        at = beginning.before;
    }
    path.reverse();
    path
}
