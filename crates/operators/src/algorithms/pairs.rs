//! Edges as they come: pairs of dense numbers.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::Error;

/// What a node costs: its id, its number in a table that has room, its place in the order of ids.
const NODE_BYTES: usize = 48;
/// What an edge costs while its list grows.
const EDGE_BYTES: usize = 12;
/// Nodes at most: their numbers have 32 bits.
const NODES_MAX: usize = u32::MAX as usize;

/// Pairs of nodes.
pub(super) struct Pairs {
    ids: Vec<u64>,
    numbers: HashMap<u64, u32, FixedState>,
    /// The start in the upper half, the end in the lower.
    edges: Vec<u64>,
    reservation: MemoryReservation,
    room: [usize; 2],
    /// The last start: edges mostly come by their start.
    last: Option<(u64, u32)>,
}

/// Edges over nodes that are numbered in the order of their ids; each edge once, ascending.
pub(super) struct Edges {
    pub(super) ids: Vec<u64>,
    pub(super) edges: Vec<u64>,
    pub(super) reservation: MemoryReservation,
}

pub(super) fn pair(start: u32, end: u32) -> u64 {
    (u64::from(start) << 32) | u64::from(end)
}

/// Both halves.
pub(super) fn ends(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

impl Pairs {
    pub(super) fn new(reservation: MemoryReservation) -> Self {
        Self {
            ids: Vec::new(),
            numbers: HashMap::default(),
            edges: Vec::new(),
            reservation,
            room: [0; 2],
            last: None,
        }
    }

    /// Makes room for so many more edges.
    pub(super) fn reserve(&mut self, edges: usize) -> Result<()> {
        if self.ids.len() + 2 * edges > NODES_MAX {
            let message = "an algorithm over more than 4 billion nodes".to_owned();
            return Err(Error::Unsupported(message).into());
        }
        // Few edges of a batch bring new nodes, which are counted when they have come.
        let wanted = [self.ids.len(), self.edges.len() + edges];
        for (kind, bytes) in [NODE_BYTES, EDGE_BYTES].into_iter().enumerate() {
            if wanted[kind] > self.room[kind] {
                let room = wanted[kind] + wanted[kind] / 2;
                self.reservation
                    .try_grow((room - self.room[kind]) * bytes)?;
                self.room[kind] = room;
            }
        }
        Ok(())
    }

    fn node(&mut self, id: u64) -> u32 {
        let next = self.ids.len() as u32;
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            self.ids.push(id);
        }
        number
    }

    pub(super) fn add(&mut self, start: u64, end: u64) {
        let start = match self.last {
            Some((id, number)) if id == start => number,
            _ => {
                let number = self.node(start);
                self.last = Some((start, number));
                number
            }
        };
        let end = self.node(end);
        self.edges.push(pair(start, end));
    }

    pub(super) fn len(&self) -> usize {
        self.edges.len()
    }

    /// The same in order.
    pub(super) fn sorted(self) -> Edges {
        let Self {
            ids,
            numbers,
            mut edges,
            reservation,
            ..
        } = self;
        drop(numbers);
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_unstable_by_key(|&node| ids[node as usize]);
        let mut place = vec![0_u32; ids.len()];
        for (at, &node) in order.iter().enumerate() {
            place[node as usize] = at as u32;
        }
        for edge in &mut edges {
            let (start, end) = ends(*edge);
            *edge = pair(place[start as usize], place[end as usize]);
        }
        edges.sort_unstable();
        edges.dedup();
        let ids = order.iter().map(|&node| ids[node as usize]).collect();
        Edges {
            ids,
            edges,
            reservation,
        }
    }
}
