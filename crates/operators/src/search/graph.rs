//! The graph as a search has discovered it: nodes and edges by dense numbers.
//!
//! ```text
//!   ids      node -> id of its term           first   node -> its first edge out, its first edge in
//!   ends     edge -> the nodes that it joins  next    edge -> the next one out of its first node, into its second
//!   values   edge -> its further variables    weights edge -> its weight
//! ```
//!
//! Edges come in any order and are put at the head of two lists, so that a graph that grows level
//! by level is the same thing as one that was loaded whole. An edge that is there already, with the
//! same values, is the same edge. 40 to 60 bytes an edge, 40 a node.

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;

use crate::error::Error;

/// No edge.
pub(super) const NONE: u32 = u32::MAX;
/// Edges and nodes, at most.
const COUNT_MAX: usize = (u32::MAX - 1) as usize;
/// What a node costs: its id twice, its number, the heads of its lists, room in the table.
const NODE_BYTES: usize = 40;
/// What an edge costs beside its values: its ends, its places in the lists, its weight, room in the
/// table.
const EDGE_BYTES: usize = 36;

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From their start to their end.
    Out,
    /// From their end to their start.
    In,
}

impl Direction {
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

/// Nodes and edges.
pub(super) struct Graph {
    ids: Vec<u64>,
    numbers: HashMap<u64, u32, FixedState>,
    first: [Vec<u32>; 2],
    /// The start and the end of each edge.
    ends: Vec<[u32; 2]>,
    next: [Vec<u32>; 2],
    values: Vec<u64>,
    weights: Vec<f64>,
    seen: HashTable<u32>,
    hasher: FixedState,
    exported: usize,
    is_weighted: bool,
    /// Whether all weights are integers.
    pub(super) is_integral: bool,
    reservation: MemoryReservation,
    /// How many nodes and edges there is memory for.
    room: [usize; 2],
}

impl Graph {
    pub(super) fn new(exported: usize, is_weighted: bool, reservation: MemoryReservation) -> Self {
        Self {
            ids: Vec::new(),
            numbers: HashMap::default(),
            first: Default::default(),
            ends: Vec::new(),
            next: Default::default(),
            values: Vec::new(),
            weights: Vec::new(),
            seen: HashTable::new(),
            hasher: FixedState::default(),
            exported,
            is_weighted,
            is_integral: true,
            reservation,
            room: [0; 2],
        }
    }

    /// Memory of a search's own, counted like the graph's.
    pub(super) fn scratch(&self) -> MemoryReservation {
        self.reservation.new_empty()
    }

    pub(super) fn nodes(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn id(&self, node: u32) -> u64 {
        self.ids[node as usize]
    }

    /// Makes room for some more nodes and edges.
    pub(super) fn reserve(&mut self, nodes: usize, edges: usize) -> Result<()> {
        let wanted = [self.ids.len() + nodes, self.ends.len() + edges];
        if wanted.iter().any(|&count| count > COUNT_MAX) {
            let message = "paths over more than 4 billion edges";
            return Err(Error::Unsupported(message.to_owned()).into());
        }
        let edge_bytes = EDGE_BYTES + 8 * self.exported;
        for (kind, bytes) in [NODE_BYTES, edge_bytes].into_iter().enumerate() {
            if wanted[kind] > self.room[kind] {
                // What grows doubles.
                let room = wanted[kind].max(2 * self.room[kind]);
                self.reservation
                    .try_grow((room - self.room[kind]) * bytes)?;
                self.room[kind] = room;
            }
        }
        Ok(())
    }

    /// The number of a term that is a node; there is room for it.
    pub(super) fn node(&mut self, id: u64) -> u32 {
        let next = self.ids.len() as u32;
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            self.ids.push(id);
            for first in &mut self.first {
                first.push(NONE);
            }
        }
        number
    }

    /// Adds an edge, if it is not there; there is room for it.
    pub(super) fn add(&mut self, start: u64, end: u64, values: &[u64], weight: f64) {
        debug_assert_eq!(values.len(), self.exported);
        let ends = [self.node(start), self.node(end)];
        let hash = self.hasher.hash_one((ends, values, weight.to_bits()));
        let Self {
            seen,
            ends: all_ends,
            values: all_values,
            weights,
            exported,
            hasher,
            ..
        } = self;
        let values_of = |edge: usize| &all_values[edge * *exported..(edge + 1) * *exported];
        let weight_of = |edge: usize| weights.get(edge).copied().unwrap_or(1.0);
        let is_same = |&edge: &u32| {
            let edge = edge as usize;
            all_ends[edge] == ends
                && values_of(edge) == values
                && weight_of(edge).to_bits() == weight.to_bits()
        };
        let hash_of = |&edge: &u32| {
            let edge = edge as usize;
            hasher.hash_one((all_ends[edge], values_of(edge), weight_of(edge).to_bits()))
        };
        if seen.find(hash, is_same).is_some() {
            return;
        }
        let edge = all_ends.len() as u32;
        seen.insert_unique(hash, edge, hash_of);
        self.ends.push(ends);
        for (side, node) in ends.into_iter().enumerate() {
            let first = &mut self.first[side][node as usize];
            self.next[side].push(std::mem::replace(first, edge));
        }
        self.values.extend_from_slice(values);
        if self.is_weighted {
            self.weights.push(weight);
        }
    }

    /// The first edge of a node, or [`NONE`].
    pub(super) fn first(&self, direction: Direction, node: u32) -> u32 {
        self.first[direction as usize][node as usize]
    }

    /// The edge of the same node behind this one, or [`NONE`].
    pub(super) fn next(&self, direction: Direction, edge: u32) -> u32 {
        self.next[direction as usize][edge as usize]
    }

    /// The node that an edge leads to.
    pub(super) fn far(&self, direction: Direction, edge: u32) -> u32 {
        self.ends[edge as usize][direction.opposite() as usize]
    }

    /// What an edge costs; 1 without weights.
    pub(super) fn weight(&self, edge: u32) -> f64 {
        self.weights.get(edge as usize).copied().unwrap_or(1.0)
    }

    /// The ids of an edge's nodes.
    pub(super) fn ends(&self, edge: u32) -> [u64; 2] {
        self.ends[edge as usize].map(|node| self.id(node))
    }

    /// The value of a further variable of an edge; all bits are set where it has none.
    pub(super) fn value(&self, edge: u32, variable: usize) -> u64 {
        self.values[edge as usize * self.exported + variable]
    }
}

/// An error that says what is wrong with a query, not with us.
pub(super) fn refused(message: String) -> DataFusionError {
    Error::Unsupported(message).into()
}
