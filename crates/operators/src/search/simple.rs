//! All simple paths and cycles, by length.
//!
//! The edges around the root become known first, as far as the longest path goes. Then beginnings
//! of paths go on, each one edge at a time, those first whose paths can be the shortest: what a
//! beginning has and the exact distance that is left. So each is looked at once, the first paths
//! come first, and lengths that no path has are never looked for.
//!
//! Where there is no room for more beginnings (`beginnings`), one that has its turn does not go on,
//! but is walked: a depth-first search gives the paths that begin with it and have just the length
//! whose turn it is, turning back where the way that is left is longer than that. Then it waits for
//! the next length that it turned back from. So memory is bounded, and what is done again is what
//! is below the beginnings that there was no room to go on from.

use datafusion_common::Result;
use hashbrown::HashSet;

use super::beginnings::{Beginning, Beginnings};
use super::edges::EdgeSource;
use super::graph::{Direction, NONE};
use super::searching::{Ends, Searching};
use super::shortest::{Costs, explore};

/// Beginnings of so many edges are as long to look through as hundreds of edges.
const LONG: u32 = 1_024;

/// What is looked for.
struct Wanted {
    count: usize,
    length_min: u32,
    length_max: u32,
    /// The distance of each node to the target, if there is one.
    remaining: Option<Costs>,
}

impl Wanted {
    /// How long a path through a node is at least, if it can be one.
    fn bound(&self, length: u32, node: u32) -> Option<u32> {
        let left = match &self.remaining {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of edges"
            )]
            Some(remaining) => remaining.get(node)? as u32,
            None => 0,
        };
        let bound = length.saturating_add(left);
        (bound <= self.length_max).then_some(bound)
    }
}

/// Costs in edges over the edges that are known.
async fn known_distances(edges: &mut EdgeSource, root: u32, direction: Direction) -> Result<Costs> {
    let mut costs = Costs::new(edges);
    costs.reach(root, 0.0, NONE)?;
    let mut at = 0;
    while let Some(&node) = costs.order.get(at) {
        at += 1;
        let cost = costs.get(node).unwrap_or_default() + 1.0;
        let mut edge = edges.first(direction, node);
        while edge != NONE {
            costs.reach(edges.graph.far(direction, edge), cost, edge)?;
            edge = edges.graph.next(direction, edge);
            edges.looked_at().await;
        }
    }
    Ok(costs)
}

impl Searching {
    /// All simple paths from the root to the target or to any node; where the target is the root,
    /// all simple cycles through it. After `count` of them, or after the first length that has any,
    /// there are enough.
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
        let wanted = Wanted {
            count,
            length_min,
            length_max,
            remaining,
        };
        if wanted.bound(0, ends.root).is_none() {
            return Ok(());
        }
        if is_shortest_only && count == 1 && self.shortest_cycle(ends, &wanted).await? {
            return Ok(());
        }
        let memory = self.edges.graph.scratch();
        let room = self.plan.beginnings_max;
        let mut beginnings = Beginnings::at(ends.root, memory, room);
        let (mut found, mut length_found) = (0, u32::MAX);
        while let Some((bound, waiting)) = beginnings.next() {
            if is_shortest_only && bound > length_found {
                break;
            }
            let at = waiting.beginning;
            let given = match waiting.is_walked {
                true => {
                    self.walked(ends, &mut beginnings, (at, bound), &wanted, found)
                        .await?
                }
                false => {
                    self.gone_on(ends, &mut beginnings, (at, bound), &wanted, found)
                        .await?
                }
            };
            if given > 0 {
                found += given;
                length_found = length_found.min(bound);
            }
            if found >= count || self.emitter.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Gives one of the shortest cycles through the root, if these are long enough; whether there
    /// is nothing left to be looked for. Each edge of the root is looked at, and the way back from
    /// one of those that are nearest to it: as many edges whichever it is.
    async fn shortest_cycle(&mut self, ends: &Ends, wanted: &Wanted) -> Result<bool> {
        let Some(remaining) = &wanted.remaining else {
            return Ok(false);
        };
        let direction = ends.direction;
        let mut shortest: Option<(u32, u32)> = None;
        let mut edge = self.edges.first(direction, ends.root);
        while edge != NONE {
            let bound = wanted.bound(1, self.edges.graph.far(direction, edge));
            if let Some(bound) = bound
                && shortest.is_none_or(|(length, _)| bound < length)
            {
                shortest = Some((bound, edge));
            }
            edge = self.edges.graph.next(direction, edge);
            self.edges.looked_at().await;
        }
        let Some((length, edge)) = shortest else {
            return Ok(true);
        };
        if length < wanted.length_min {
            return Ok(false);
        }
        let (mut path, node) = (vec![edge], self.edges.graph.far(direction, edge));
        remaining
            .add_edges_back(&mut self.edges, direction.opposite(), node, &mut path)
            .await;
        self.give(ends, ends.root, &path, false).await?;
        Ok(true)
    }

    /// Lets a beginning go on by each of its edges; gives it out if it is a path. How many were
    /// given.
    async fn gone_on(
        &mut self,
        ends: &Ends,
        beginnings: &mut Beginnings,
        (at, bound): (u32, u32),
        wanted: &Wanted,
        found: usize,
    ) -> Result<usize> {
        let direction = ends.direction;
        let Beginning { node, length, .. } = beginnings.get(at);
        let is_at_target = length > 0 && ends.target == Some(node);
        let is_path = is_at_target || (length > 0 && ends.target.is_none());
        let mut given = 0;
        if is_path && length >= wanted.length_min {
            let path = beginnings.edges(at);
            self.give(ends, node, &path, false).await?;
            given = 1;
        }
        let has_enough = found + given >= wanted.count || self.emitter.is_done();
        if is_at_target || length == wanted.length_max || has_enough {
            beginnings.give_back(at);
            return Ok(given);
        }
        let mut degree = 0;
        let mut edge = self.edges.first(direction, node);
        while edge != NONE {
            degree += 1;
            edge = self.edges.graph.next(direction, edge);
        }
        if length >= LONG || !beginnings.has_room(degree) {
            match ends.target {
                // It was given itself.
                None => beginnings.wait_again(at, bound + 1),
                Some(_) => {
                    return self
                        .walked(ends, beginnings, (at, bound), wanted, found)
                        .await;
                }
            }
            return Ok(given);
        }
        let mut edge = self.edges.first(direction, node);
        while edge != NONE {
            self.edges.looked_at().await;
            let next = self.edges.graph.far(direction, edge);
            let bound_of_next = wanted.bound(length + 1, next);
            if let Some(bound_of_next) = bound_of_next
                && (ends.target == Some(next) || !beginnings.has_node(at, next))
            {
                beginnings.go_on(at, edge, next, bound_of_next.max(bound));
            }
            edge = self.edges.graph.next(direction, edge);
        }
        beginnings.give_back(at);
        Ok(given)
    }

    /// Gives the paths of one length that begin with a beginning, which waits for the next length
    /// then. How many were given.
    async fn walked(
        &mut self,
        ends: &Ends,
        beginnings: &mut Beginnings,
        (at, length): (u32, u32),
        wanted: &Wanted,
        found: usize,
    ) -> Result<usize> {
        let direction = ends.direction;
        let start = beginnings.get(at).node;
        let mut stack = vec![(start, self.edges.first(direction, start))];
        let mut on_path: HashSet<u32> = beginnings.nodes(at).collect();
        let mut path: Vec<u32> = beginnings.edges(at);
        let (mut given, mut longer) = (0, u32::MAX);
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
            let is_at_target = ends.target == Some(next);
            if !is_at_target && on_path.contains(&next) {
                continue;
            }
            let Some(bound) = wanted.bound(depth, next) else {
                continue;
            };
            if bound > length {
                longer = longer.min(bound);
                continue;
            }
            let is_end = is_at_target || (ends.target.is_none() && depth == length);
            if !is_end {
                path.push(edge);
                on_path.insert(next);
                stack.push((next, self.edges.first(direction, next)));
                continue;
            }
            if !is_at_target && self.edges.has_edges(direction, next) {
                longer = longer.min(length.saturating_add(1));
            }
            // Those that are shorter have had their turn.
            if depth < length || depth < wanted.length_min {
                continue;
            }
            path.push(edge);
            self.give(ends, next, &path, false).await?;
            path.pop();
            given += 1;
            if found + given >= wanted.count || self.emitter.is_done() {
                return Ok(given);
            }
        }
        match longer <= wanted.length_max && longer < u32::MAX {
            true => beginnings.wait_again(at, longer),
            false => beginnings.give_back(at),
        }
        Ok(given)
    }
}
