//! The priority queue of partial paths, by the shortest possible completion.
//!
//! Each partial path is a link to the beginning before it and one more edge. What nothing goes on
//! from any more is given back, so what is held is what waits, and what that has come over. There
//! is room for [`BEGINNINGS_MAX`], and for what the query's memory allows below that.

use std::collections::BTreeMap;

use datafusion_execution::memory_pool::MemoryReservation;

use super::graph::NONE;

/// Beginnings that are held at most: 64 MiB.
const BEGINNINGS_MAX: usize = 1 << 20;
/// What one of them takes: itself, its place among those that wait, its place among those that are
/// free; twice, for lists double as they grow.
const BEGINNING_BYTES: usize = 64;
/// Room that is made at first.
const ROOM_MIN: usize = 64;

/// A beginning of a path.
#[derive(Clone, Copy)]
pub(super) struct Beginning {
    /// Where it has come to.
    pub(super) node: u32,
    /// Its last edge; none for the root.
    edge: u32,
    /// The beginning before that edge.
    before: u32,
    /// Its edges.
    pub(super) length: u32,
    /// Those that go on from it, and itself while it waits.
    users: u32,
}

/// A beginning that waits.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) beginning: u32,
    /// Whether the shorter paths that begin with it were given.
    pub(super) is_walked: bool,
}

/// Beginnings of paths from one root.
pub(super) struct Beginnings {
    list: Vec<Beginning>,
    free: Vec<u32>,
    /// By how long a path that begins so is at least. Of equal ones the last goes on first: so few
    /// of them wait.
    waiting: BTreeMap<u32, Vec<Waiting>>,
    reservation: MemoryReservation,
    room: usize,
    room_max: usize,
}

impl Beginnings {
    /// The root waits.
    pub(super) fn at(root: u32, reservation: MemoryReservation, room_max: Option<usize>) -> Self {
        let root = Beginning {
            node: root,
            edge: NONE,
            before: NONE,
            length: 0,
            users: 1,
        };
        let waiting = Waiting {
            beginning: 0,
            is_walked: false,
        };
        Self {
            list: vec![root],
            free: Vec::new(),
            waiting: BTreeMap::from([(0, vec![waiting])]),
            reservation,
            room: 1,
            room_max: room_max.unwrap_or(BEGINNINGS_MAX),
        }
    }

    /// Whether there is room for so many more.
    pub(super) fn has_room(&mut self, more: usize) -> bool {
        let wanted = self.list.len() - self.free.len() + more;
        if wanted <= self.room {
            return true;
        }
        let room = wanted.max(2 * self.room).max(ROOM_MIN).min(self.room_max);
        if wanted > room {
            return false;
        }
        let bytes = (room - self.room) * BEGINNING_BYTES;
        let has_grown = self.reservation.try_grow(bytes).is_ok();
        if has_grown {
            self.room = room;
        }
        has_grown
    }

    /// One more edge; there is [room](Self::has_room). It waits for paths of this length.
    pub(super) fn go_on(&mut self, before: u32, edge: u32, node: u32, bound: u32) {
        let place = &mut self.list[before as usize];
        place.users += 1;
        let beginning = Beginning {
            node,
            edge,
            before,
            length: place.length + 1,
            users: 1,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.list[at as usize] = beginning;
                at
            }
            None => {
                self.list.push(beginning);
                (self.list.len() - 1) as u32
            }
        };
        let waiting = Waiting {
            beginning: at,
            is_walked: false,
        };
        self.waiting.entry(bound).or_default().push(waiting);
    }

    /// A beginning waits again, for the longer paths.
    pub(super) fn wait_again(&mut self, beginning: u32, bound: u32) {
        let waiting = Waiting {
            beginning,
            is_walked: true,
        };
        self.waiting.entry(bound).or_default().push(waiting);
    }

    /// The next one, with how long its paths are at least. It is to be given back, or to wait
    /// again.
    pub(super) fn next(&mut self) -> Option<(u32, Waiting)> {
        let mut first = self.waiting.first_entry()?;
        let next = first.get_mut().pop();
        let bound = *first.key();
        if first.get().is_empty() {
            first.remove();
        }
        Some((bound, next?))
    }

    pub(super) fn get(&self, at: u32) -> Beginning {
        self.list[at as usize]
    }

    /// Gives a beginning back that has had its turn, and those before it that nothing goes on from.
    pub(super) fn give_back(&mut self, at: u32) {
        let mut at = at;
        while at != NONE {
            let beginning = &mut self.list[at as usize];
            beginning.users -= 1;
            if beginning.users > 0 {
                break;
            }
            let before = beginning.before;
            self.free.push(at);
            at = before;
        }
    }

    /// The nodes that it has come over, the last one first, each with the edge to it.
    fn back_from(&self, at: u32) -> impl Iterator<Item = Beginning> + '_ {
        let first = Some(self.get(at));
        std::iter::successors(first, |it| (it.before != NONE).then(|| self.get(it.before)))
    }

    /// Whether it has come over a node.
    pub(super) fn has_node(&self, at: u32, node: u32) -> bool {
        self.back_from(at).any(|it| it.node == node)
    }

    /// Its nodes, in no order.
    pub(super) fn nodes(&self, at: u32) -> impl Iterator<Item = u32> + '_ {
        self.back_from(at).map(|it| it.node)
    }

    /// Its edges, in order.
    pub(super) fn edges(&self, at: u32) -> Vec<u32> {
        let edges = self.back_from(at).map(|it| it.edge);
        let mut edges: Vec<u32> = edges.filter(|&edge| edge != NONE).collect();
        edges.reverse();
        edges
    }
}
