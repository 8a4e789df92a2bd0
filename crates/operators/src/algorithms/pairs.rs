//! The edge list of an algorithm, with nodes as dense numbers.
//!
//! The ids of most nodes are neighbours in the dictionary. So they are numbered by a bitmap over
//! the ids between the least and the greatest: the number of a node is how many bits are set before
//! its own. Where ids are far apart (numbers as nodes, say) a hash table numbers them.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::Error;

/// What a node costs in a hash table: its id, its number in a table that has room, its place in the
/// order of ids.
const HASHED_NODE_BYTES: usize = 48;
/// Nodes that a hash table gets room for at a time.
const HASHED_NODES: usize = 4_096;
/// What a node costs in the end.
const NODE_BYTES: usize = 8;
/// What an edge costs as it comes,
const EDGE_BYTES: usize = size_of::<[u64; 2]>();
/// and as a pair of numbers.
const PAIR_BYTES: usize = size_of::<u64>();
/// What 64 bits of the map cost.
const WORD_BYTES: usize = size_of::<Word>();
/// Ids between the least and the greatest, for each edge, up to which there is a bitmap: it is no
/// larger than the edges then.
const SPAN_PER_EDGE: u64 = 64;
/// Nodes at most: their numbers have 32 bits.
const NODES_MAX: usize = u32::MAX as usize;

/// Pairs of nodes.
pub(super) struct Pairs {
    edges: Vec<[u64; 2]>,
    reservation: MemoryReservation,
    /// How many edges there is memory for.
    room: usize,
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

fn too_many() -> datafusion_common::DataFusionError {
    let message = "an algorithm over more than 4 billion nodes".to_owned();
    Error::Unsupported(message).into()
}

impl Pairs {
    pub(super) fn new(reservation: MemoryReservation) -> Self {
        Self {
            edges: Vec::new(),
            reservation,
            room: 0,
        }
    }

    /// Makes room for so many more edges.
    pub(super) fn reserve(&mut self, edges: usize) -> Result<()> {
        let wanted = self.edges.len() + edges;
        if wanted > self.room {
            let room = wanted + wanted / 2;
            self.reservation.try_grow((room - self.room) * EDGE_BYTES)?;
            self.edges.reserve_exact(room - self.edges.len());
            self.room = room;
        }
        Ok(())
    }

    /// Adds an edge; there is room for it.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        self.edges.push([start, end]);
    }

    pub(super) fn len(&self) -> usize {
        self.edges.len()
    }

    /// The same with numbers for nodes, in order.
    pub(super) fn sorted(self) -> Result<Edges> {
        let Self {
            edges,
            reservation,
            room,
        } = self;
        reservation.try_grow(edges.len() * PAIR_BYTES)?;
        let all = || edges.iter().flatten().copied();
        let span = match (all().min(), all().max()) {
            (Some(least), Some(greatest)) => Some((least, greatest - least)),
            _ => None,
        };
        let span_max = SPAN_PER_EDGE.saturating_mul(edges.len() as u64);
        let (ids, mut pairs, numbering_bytes) = match span {
            Some((least, span)) if span < span_max => {
                let words = (span / 64) as usize + 1;
                reservation.try_grow(words * WORD_BYTES)?;
                let (ids, pairs) = numbered_by_bits(&edges, least, words, &reservation)?;
                (ids, pairs, words * WORD_BYTES)
            }
            _ => numbered_by_hash(&edges, &reservation)?,
        };
        drop(edges);
        reservation.shrink(room * EDGE_BYTES + numbering_bytes);
        if !pairs.is_sorted() {
            pairs.sort_unstable();
        }
        pairs.dedup();
        Ok(Edges {
            ids,
            edges: pairs,
            reservation,
        })
    }
}

/// Bits of ids that follow each other, and how many are set before them.
#[derive(Clone, Copy, Default)]
struct Word {
    bits: u64,
    before: u32,
}

fn numbered_by_bits(
    edges: &[[u64; 2]],
    least: u64,
    words: usize,
    reservation: &MemoryReservation,
) -> Result<(Vec<u64>, Vec<u64>)> {
    let mut map = vec![Word::default(); words];
    for id in edges.iter().flatten() {
        let at = id - least;
        map[(at / 64) as usize].bits |= 1 << (at % 64);
    }
    let mut nodes = 0_usize;
    for word in &mut map {
        word.before = u32::try_from(nodes).map_err(|_| too_many())?;
        nodes += word.bits.count_ones() as usize;
    }
    if nodes > NODES_MAX {
        return Err(too_many());
    }
    reservation.try_grow(nodes * NODE_BYTES)?;
    let mut ids = Vec::with_capacity(nodes);
    for (at, word) in map.iter().enumerate() {
        let mut bits = word.bits;
        while bits != 0 {
            ids.push(least + 64 * at as u64 + u64::from(bits.trailing_zeros()));
            bits &= bits - 1;
        }
    }
    let number = |id: u64| {
        let at = id - least;
        let word = map[(at / 64) as usize];
        let below = word.bits & ((1 << (at % 64)) - 1);
        word.before + below.count_ones()
    };
    let pairs = edges
        .iter()
        .map(|&[start, end]| pair(number(start), number(end)));
    Ok((ids, pairs.collect()))
}

/// The ids, the pairs, and bytes that are needed no longer.
fn numbered_by_hash(
    edges: &[[u64; 2]],
    reservation: &MemoryReservation,
) -> Result<(Vec<u64>, Vec<u64>, usize)> {
    let mut numbers: HashMap<u64, u32, FixedState> = HashMap::default();
    let mut ids: Vec<u64> = Vec::new();
    let mut room = 0;
    let mut pairs = Vec::with_capacity(edges.len());
    for &[start, end] in edges {
        if ids.len() + 2 > room {
            let more = HASHED_NODES.max(room / 2);
            reservation.try_grow(more * HASHED_NODE_BYTES)?;
            room += more;
        }
        if ids.len() + 2 > NODES_MAX {
            return Err(too_many());
        }
        let mut number = |id: u64| {
            let next = ids.len() as u32;
            let number = *numbers.entry(id).or_insert(next);
            if number == next {
                ids.push(id);
            }
            number
        };
        let (start, end) = (number(start), number(end));
        pairs.push(pair(start, end));
    }
    drop(numbers);
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    order.sort_unstable_by_key(|&node| ids[node as usize]);
    let mut place = vec![0_u32; ids.len()];
    for (at, &node) in order.iter().enumerate() {
        place[node as usize] = at as u32;
    }
    for edge in &mut pairs {
        let (start, end) = ends(*edge);
        *edge = pair(place[start as usize], place[end as usize]);
    }
    let ids: Vec<u64> = order.iter().map(|&node| ids[node as usize]).collect();
    let bytes = room * HASHED_NODE_BYTES - ids.len() * NODE_BYTES;
    Ok((ids, pairs, bytes))
}
