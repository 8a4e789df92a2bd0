//! Shortest paths by edges, and cheapest paths by weight.
//!
//! A search leaves the cost of reaching each node from its root, and the edge by which it was
//! reached first. Where all paths are wanted they are walked back from where they lead, over the
//! edges whose weight is just the difference, so that all of them come, and none that is longer;
//! where any one is, over the edges that were first. Where both ends are known and edges have no
//! weights, it goes from both, each time from the side whose frontier is smaller.
//!
//! In which order edges come, and which of equal nodes is first, goes by ids, which terms have a
//! part in that an asker does not see. So what a search looks at must not: levels are looked at
//! whole, of paths that cost the same those of fewer edges are first, and any one of them costs its
//! edges.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::edges::EdgeSource;
use super::graph::{Direction, NONE};
use super::searching::{Ends, Searching};

/// What a node's cost takes of memory.
const COST_BYTES: usize = 40;

/// What it costs to come from a node to others, counted against the query's memory.
pub(super) struct Costs {
    of: HashMap<u32, Way, FixedState>,
    /// The nodes in the order in which they were reached.
    pub(super) order: Vec<u32>,
    reservation: MemoryReservation,
    room: usize,
}

/// How a node was reached.
#[derive(Clone, Copy)]
struct Way {
    cost: f64,
    /// The last edge; none for the root.
    edge: u32,
}

impl Costs {
    pub(super) fn new(edges: &EdgeSource) -> Self {
        Self {
            of: HashMap::default(),
            order: Vec::new(),
            reservation: edges.graph.scratch(),
            room: 0,
        }
    }

    /// Notes the cost of a node that has none yet, and the edge to it; whether that is so.
    pub(super) fn reach(&mut self, node: u32, cost: f64, edge: u32) -> Result<bool> {
        if self.of.contains_key(&node) {
            return Ok(false);
        }
        if self.of.len() == self.room {
            let more = self.room.max(64);
            self.reservation.try_grow(more * COST_BYTES)?;
            self.room += more;
        }
        self.of.insert(node, Way { cost, edge });
        self.order.push(node);
        Ok(true)
    }

    pub(super) fn get(&self, node: u32) -> Option<f64> {
        self.of.get(&node).map(|way| way.cost)
    }

    /// Adds the edges by which a node was reached first, the last one first.
    pub(super) async fn add_edges_back(
        &self,
        edges: &mut EdgeSource,
        direction: Direction,
        node: u32,
        path: &mut Vec<u32>,
    ) {
        let mut at = node;
        while let Some(way) = self.of.get(&at).filter(|way| way.edge != NONE) {
            path.push(way.edge);
            at = edges.graph.far(direction.opposite(), way.edge);
            edges.looked_at().await;
        }
    }
}

/// Costs in edges, as far as the search may go. Edges become known on the way.
pub(super) async fn breadth_first(
    edges: &mut EdgeSource,
    root: u32,
    direction: Direction,
    length_max: u32,
) -> Result<Costs> {
    let mut costs = Costs::new(edges);
    costs.reach(root, 0.0, NONE)?;
    let mut level = 0..1;
    let mut depth = 0;
    while !level.is_empty() && depth < length_max {
        edges.expand(direction, &costs.order[level.clone()]).await?;
        depth += 1;
        let end = level.end;
        for at in level {
            let node = costs.order[at];
            let mut edge = edges.first(direction, node);
            while edge != NONE {
                let next = edges.graph.far(direction, edge);
                costs.reach(next, f64::from(depth), edge)?;
                edge = edges.graph.next(direction, edge);
                edges.looked_at().await;
            }
        }
        level = end..costs.order.len();
    }
    Ok(costs)
}

/// Sees to it that the edges are known as far as a search may go.
pub(super) async fn explore(
    edges: &mut EdgeSource,
    root: u32,
    direction: Direction,
    length_max: u32,
) -> Result<()> {
    if !edges.is_whole() {
        breadth_first(edges, root, direction, length_max).await?;
    }
    Ok(())
}

/// A node to go on from, the cheapest first, of these the one that is fewer edges away.
struct Reached {
    cost: f64,
    length: u32,
    node: u32,
    /// The edge to it.
    edge: u32,
}

impl PartialEq for Reached {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Reached {}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_cost = other.cost.total_cmp(&self.cost);
        let nearer = other.length.cmp(&self.length);
        by_cost.then(nearer).then(other.node.cmp(&self.node))
    }
}

/// Costs by weights (Dijkstra), over the edges that are known.
pub(super) async fn by_weight(
    edges: &mut EdgeSource,
    root: u32,
    direction: Direction,
) -> Result<Costs> {
    let mut costs = Costs::new(edges);
    let heap_memory = edges.graph.scratch();
    let mut heap = BinaryHeap::from([Reached {
        cost: 0.0,
        length: 0,
        node: root,
        edge: NONE,
    }]);
    let mut room = 0;
    while let Some(reached) = heap.pop() {
        let Reached { cost, node, .. } = reached;
        if !costs.reach(node, cost, reached.edge)? {
            continue;
        }
        let mut edge = edges.first(direction, node);
        while edge != NONE {
            let next = edges.graph.far(direction, edge);
            if costs.get(next).is_none() {
                if heap.len() == room {
                    let more = room.max(64);
                    heap_memory.try_grow(more * size_of::<Reached>())?;
                    room += more;
                }
                heap.push(Reached {
                    cost: cost + edges.graph.weight(edge),
                    length: reached.length + 1,
                    node: next,
                    edge,
                });
            }
            edge = edges.graph.next(direction, edge);
            edges.looked_at().await;
        }
    }
    Ok(costs)
}

/// What two searches have found that met.
struct Met {
    /// From the source, and from the destination.
    sides: [Costs; 2],
    /// Where.
    nodes: Vec<u32>,
    length: f64,
}

/// Searches from both ends at once, whole levels.
async fn meet(
    edges: &mut EdgeSource,
    [source, destination]: [u32; 2],
    length_max: u32,
) -> Result<Option<Met>> {
    let mut sides = [Costs::new(edges), Costs::new(edges)];
    sides[0].reach(source, 0.0, NONE)?;
    sides[1].reach(destination, 0.0, NONE)?;
    let mut levels = [0..1, 0..1];
    let mut depths = [0_u32; 2];
    while depths[0] + depths[1] < length_max {
        let side = usize::from(levels[1].len() < levels[0].len());
        let level = levels[side].clone();
        if level.is_empty() {
            return Ok(None);
        }
        let direction = [Direction::Out, Direction::In][side];
        edges
            .expand(direction, &sides[side].order[level.clone()])
            .await?;
        depths[side] += 1;
        let end = level.end;
        let mut met = Vec::new();
        for at in level {
            let mut edge = edges.first(direction, sides[side].order[at]);
            while edge != NONE {
                let next = edges.graph.far(direction, edge);
                if sides[side].reach(next, f64::from(depths[side]), edge)?
                    && sides[1 - side].get(next).is_some()
                {
                    met.push(next);
                }
                edge = edges.graph.next(direction, edge);
                edges.looked_at().await;
            }
        }
        levels[side] = end..sides[side].order.len();
        if !met.is_empty() {
            return Ok(Some(Met {
                sides,
                nodes: met,
                length: f64::from(depths[0] + depths[1]),
            }));
        }
    }
    Ok(None)
}

/// The costs from the source, those of the nodes between where both sides have met and the
/// destination too.
async fn sweep(edges: &mut EdgeSource, met: Met) -> Result<Costs> {
    let Met {
        sides: [mut costs, behind],
        nodes: mut waiting,
        length,
    } = met;
    while let Some(node) = waiting.pop() {
        let Some(left) = behind.get(node) else {
            continue;
        };
        let mut edge = edges.first(Direction::Out, node);
        while edge != NONE {
            let next = edges.graph.far(Direction::Out, edge);
            if behind.get(next) == Some(left - 1.0)
                && costs.reach(next, length - left + 1.0, edge)?
            {
                waiting.push(next);
            }
            edge = edges.graph.next(Direction::Out, edge);
            edges.looked_at().await;
        }
    }
    Ok(costs)
}

impl Searching {
    /// The shortest paths between the root and one node, or all others.
    pub(super) async fn shortest(&mut self, ends: &Ends, is_all: bool) -> Result<()> {
        let specification = &self.plan.specification;
        let length_max = specification.length_max.unwrap_or(u32::MAX);
        if specification.is_weighted {
            if specification.length_max.is_some() {
                return self.cheapest_bounded(ends, is_all).await;
            }
            explore(&mut self.edges, ends.root, ends.direction, u32::MAX).await?;
            let costs = by_weight(&mut self.edges, ends.root, ends.direction).await?;
            return self.walk_back_to_all(ends, &costs, is_all).await;
        }
        if let Some(target) = ends.target {
            let (source, destination) = match ends.direction {
                Direction::Out => (ends.root, target),
                Direction::In => (target, ends.root),
            };
            let met = meet(&mut self.edges, [source, destination], length_max).await?;
            let Some(met) = met else {
                return Ok(());
            };
            let ends = Ends {
                root: source,
                target: Some(destination),
                direction: Direction::Out,
                ..*ends
            };
            if !is_all {
                return self.give_over(&ends, destination, &met).await;
            }
            let costs = sweep(&mut self.edges, met).await?;
            return self.walk_back(&ends, destination, &costs, is_all).await;
        }
        let costs = breadth_first(&mut self.edges, ends.root, ends.direction, length_max).await?;
        self.walk_back_to_all(ends, &costs, is_all).await
    }

    /// One path over a node where both sides have met.
    async fn give_over(&mut self, ends: &Ends, destination: u32, met: &Met) -> Result<()> {
        let Some(&node) = met.nodes.first() else {
            return Ok(());
        };
        let [before, behind] = &met.sides;
        let (mut path, edges) = (Vec::new(), &mut self.edges);
        behind
            .add_edges_back(edges, Direction::In, node, &mut path)
            .await;
        path.reverse();
        before
            .add_edges_back(edges, Direction::Out, node, &mut path)
            .await;
        self.give(ends, destination, &path, true).await
    }

    /// The paths to the target, or to all nodes that were reached, the near ones first.
    async fn walk_back_to_all(&mut self, ends: &Ends, costs: &Costs, is_all: bool) -> Result<()> {
        if let Some(target) = ends.target {
            return self.walk_back(ends, target, costs, is_all).await;
        }
        for &node in costs.order.iter().filter(|&&node| node != ends.root) {
            if self.emitter.is_done() {
                break;
            }
            self.walk_back(ends, node, costs, is_all).await?;
        }
        Ok(())
    }

    /// The paths by which a node was reached at its cost.
    async fn walk_back(
        &mut self,
        ends: &Ends,
        node: u32,
        costs: &Costs,
        is_all: bool,
    ) -> Result<()> {
        let Some(cost) = costs.get(node) else {
            return Ok(());
        };
        let specification = &self.plan.specification;
        let length_min = specification.length_min;
        // Without weights all of them are as long as they cost.
        if !specification.is_weighted && cost < f64::from(length_min) {
            return Ok(());
        }
        if !is_all {
            let mut path = Vec::new();
            costs
                .add_edges_back(&mut self.edges, ends.direction, node, &mut path)
                .await;
            if path.len() >= length_min as usize {
                return self.give(ends, node, &path, true).await;
            }
            // One that costs the same may be long enough.
        }
        // Of those that are long enough, all are looked at: which comes first goes by ids.
        let mut shortest: Option<Vec<u32>> = None;
        let back = ends.direction.opposite();
        // Each node with the next of its edges, and what it costs.
        let mut stack = vec![(node, self.edges.first(back, node), cost)];
        let mut path: Vec<u32> = Vec::new();
        while let Some((_, next_edge, cost)) = stack.last_mut() {
            let edge = *next_edge;
            if edge == NONE {
                stack.pop();
                path.pop();
                continue;
            }
            *next_edge = self.edges.graph.next(back, edge);
            let cost = *cost;
            self.edges.looked_at().await;
            let before = self.edges.graph.far(back, edge);
            let Some(cost_before) = costs.get(before) else {
                continue;
            };
            // The same sum as the search made, so that it is equal to the last bit. Edges of no
            // weight could go round.
            let is_last = cost_before + self.edges.graph.weight(edge) == cost;
            let comes_again = cost_before == cost && stack.iter().any(|it| it.0 == before);
            if !is_last || comes_again {
                continue;
            }
            path.push(edge);
            if before != ends.root {
                stack.push((before, self.edges.first(back, before), cost_before));
                continue;
            }
            let is_shorter = |known: &Vec<u32>| path.len() < known.len();
            if is_all {
                self.give(ends, node, &path, true).await?;
            } else if path.len() >= length_min as usize && shortest.as_ref().is_none_or(is_shorter)
            {
                shortest = Some(path.clone());
            }
            path.pop();
            if self.emitter.is_done() {
                return Ok(());
            }
        }
        match shortest {
            Some(path) => self.give(ends, node, &path, true).await,
            None => Ok(()),
        }
    }
}
