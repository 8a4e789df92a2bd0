//! Adjacency lists in compressed sparse rows.

use std::ops::Range;

use super::pairs::{ends, pair};

/// The neighbours of each node, ascending.
pub(super) struct Csr {
    /// Where the list of each node begins; one more than there are nodes.
    offsets: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Csr {
    /// Of pairs that ascend: the lists are those of the first of each pair.
    fn of_sorted(nodes: usize, pairs: impl Iterator<Item = u64>) -> Self {
        let mut offsets = Vec::with_capacity(nodes + 1);
        let mut neighbours = Vec::with_capacity(pairs.size_hint().0);
        for pair in pairs {
            let (node, neighbour) = ends(pair);
            while offsets.len() <= node as usize {
                offsets.push(neighbours.len());
            }
            neighbours.push(neighbour);
        }
        offsets.resize(nodes + 1, neighbours.len());
        Self {
            offsets,
            neighbours,
        }
    }

    /// From where edges come to each node, of pairs that ascend. Each goes to the next free place
    /// of its end's list, so that lists ascend, too.
    pub(super) fn incoming(nodes: usize, edges: &[u64]) -> Self {
        let mut offsets = vec![0_usize; nodes + 1];
        for &edge in edges {
            offsets[ends(edge).1 as usize + 1] += 1;
        }
        for node in 0..nodes {
            offsets[node + 1] += offsets[node];
        }
        let mut neighbours = vec![0; edges.len()];
        for &edge in edges {
            let (start, end) = ends(edge);
            let place = &mut offsets[end as usize];
            neighbours[*place] = start;
            *place += 1;
        }
        // Each offset has come to that of the next list.
        offsets.copy_within(..nodes, 1);
        offsets[0] = 0;
        Self {
            offsets,
            neighbours,
        }
    }

    /// Neighbours in any direction, without the node itself.
    pub(super) fn undirected(nodes: usize, mut edges: Vec<u64>) -> Self {
        edges.retain(|&edge| {
            let (start, end) = ends(edge);
            start != end
        });
        let count = edges.len();
        edges.reserve_exact(count);
        for at in 0..count {
            let (start, end) = ends(edges[at]);
            edges.push(pair(end, start));
        }
        edges.sort_unstable();
        edges.dedup();
        Self::of_sorted(nodes, edges.into_iter())
    }

    /// The lists, each with only what `keeps` of its node and the neighbour.
    pub(super) fn filtered(&self, keeps: impl Fn(u32, u32) -> bool) -> Self {
        let mut offsets = Vec::with_capacity(self.offsets.len());
        let mut neighbours = Vec::new();
        for node in 0..self.nodes() as u32 {
            offsets.push(neighbours.len());
            let kept = self.of(node).iter().filter(|&&it| keeps(node, it));
            neighbours.extend(kept.copied());
        }
        offsets.push(neighbours.len());
        Self {
            offsets,
            neighbours,
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.neighbours[self.offsets[node]..self.offsets[node + 1]]
    }

    /// Ranges of nodes that have about as many neighbours each.
    pub(super) fn pieces(&self, count: usize) -> Vec<Range<usize>> {
        // A node counts, too.
        let all = self.neighbours.len() + self.nodes();
        let mut pieces = Vec::with_capacity(count + 1);
        let mut first = 0;
        for node in 0..self.nodes() {
            let so_far = self.offsets[node + 1] + node + 1;
            if so_far >= (pieces.len() + 1) * all / count.max(1) || node + 1 == self.nodes() {
                pieces.push(first..node + 1);
                first = node + 1;
            }
        }
        pieces
    }
}
