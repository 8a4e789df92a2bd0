//! All simple paths, and cycles, by their length.
//!
//! The edges around the root become known first, as far as the longest path goes. Then each length has its turn: a depth-first search
//! gives the paths of just this length, and turns back where the way that is left to the target is longer than what is left of the
//! length. So memory is that of one path, the first paths come first, and a length that cuts nothing off is the last.

use datafusion_common::Result;
use hashbrown::HashSet;

use super::edges::EdgeSource;
use super::graph::{Direction, NONE};
use super::searching::{Ends, Searching};
use super::shortest::{Costs, explore};

/// What a round over one length found.
#[derive(Default)]
struct Round {
    found: usize,
    /// Whether there may be longer paths.
    has_cut: bool,
}

/// Costs in edges over the edges that are known.
async fn known_distances(edges: &mut EdgeSource, root: u32, direction: Direction) -> Result<Costs> {
    let mut costs = Costs::new(edges);
    costs.reach(root, 0.0)?;
    let mut at = 0;
    while let Some(&node) = costs.order.get(at) {
        at += 1;
        let cost = costs.get(node).unwrap_or_default() + 1.0;
        let mut edge = edges.first(direction, node);
        while edge != NONE {
            costs.reach(edges.graph.far(direction, edge), cost)?;
            edge = edges.graph.next(direction, edge);
            edges.looked_at().await;
        }
    }
    Ok(costs)
}

impl Searching {
    /// All simple paths from the root to the target or to any node; where the target is the root, all simple cycles through it.
    /// After `count` of them, or after the first length that has any, there are enough.
    pub(super) async fn simple(
        &mut self,
        ends: &Ends,
        is_shortest_only: bool,
        count: usize,
    ) -> Result<()> {
        let specification = &self.plan.specification;
        let length_max = specification.length_max.unwrap_or(u32::MAX);
        let length_min = specification.length_min.max(1);
        explore(&mut self.edges, ends.root, ends.direction, length_max).await?;
        let remaining = match ends.target {
            Some(target) => {
                let back = ends.direction.opposite();
                Some(known_distances(&mut self.edges, target, back).await?)
            }
            None => None,
        };
        let mut found = 0;
        for length in length_min..=length_max {
            let left = count - found;
            let remaining = remaining.as_ref();
            let round = self.of_length(ends, length, left, remaining).await?;
            found += round.found;
            let has_enough = found >= count || (is_shortest_only && found > 0);
            let is_over = !round.has_cut || has_enough;
            if is_over || self.emitter.is_done() {
                break;
            }
        }
        Ok(())
    }

    async fn of_length(
        &mut self,
        ends: &Ends,
        length: u32,
        count: usize,
        remaining: Option<&Costs>,
    ) -> Result<Round> {
        let direction = ends.direction;
        let mut round = Round::default();
        let mut stack = vec![(ends.root, self.edges.first(direction, ends.root))];
        let mut on_path: HashSet<u32> = HashSet::new();
        on_path.insert(ends.root);
        let mut path: Vec<u32> = Vec::new();
        while let Some((node, next_edge)) = stack.last_mut() {
            let edge = *next_edge;
            if edge == NONE {
                on_path.remove(node);
                stack.pop();
                path.pop();
                continue;
            }
            *next_edge = self.edges.graph.next(direction, edge);
            self.edges.looked_at().await;
            let next = self.edges.graph.far(direction, edge);
            let depth = path.len() as u32 + 1;
            if ends.target == Some(next) {
                // Those that are shorter have had their turn.
                if depth == length {
                    round.found += 1;
                    path.push(edge);
                    self.give(ends, next, &path, false).await?;
                    path.pop();
                    if round.found >= count || self.emitter.is_done() {
                        return Ok(round);
                    }
                }
                continue;
            }
            if on_path.contains(&next) {
                continue;
            }
            match remaining {
                Some(remaining) => {
                    let Some(left) = remaining.get(next) else {
                        continue;
                    };
                    if f64::from(depth) + left > f64::from(length) {
                        round.has_cut = true;
                        continue;
                    }
                }
                None if depth == length => {
                    round.found += 1;
                    round.has_cut |= self.edges.has_edges(direction, next);
                    path.push(edge);
                    self.give(ends, next, &path, false).await?;
                    path.pop();
                    if round.found >= count || self.emitter.is_done() {
                        return Ok(round);
                    }
                    continue;
                }
                None => {}
            }
            path.push(edge);
            on_path.insert(next);
            stack.push((next, self.edges.first(direction, next)));
        }
        Ok(round)
    }
}
