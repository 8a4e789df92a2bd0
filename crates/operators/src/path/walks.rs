//! A list of walks whose memory is counted.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;

/// A walk: the number of the seed it began at, and the node it has reached.
pub(super) type Walk = (u32, u64);

/// Places that a list begins with.
const CAPACITY_MIN: usize = 64;

/// Walks, counted against the query's memory as long as they are there.
pub(super) struct Walks {
    list: Vec<Walk>,
    reservation: MemoryReservation,
}

impl Walks {
    /// None yet; counted by a reservation like the given one.
    pub(super) fn new(like: &MemoryReservation) -> Self {
        Self {
            list: Vec::new(),
            reservation: like.new_empty(),
        }
    }

    /// These walks.
    pub(super) fn of(
        walks: impl ExactSizeIterator<Item = Walk>,
        like: &MemoryReservation,
    ) -> Result<Self> {
        let mut all = Self::new(like);
        all.extend(walks)?;
        Ok(all)
    }

    pub(super) fn as_slice(&self) -> &[Walk] {
        &self.list
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Walk] {
        &mut self.list
    }

    pub(super) fn push(&mut self, walk: Walk) -> Result<()> {
        self.reserve(1)?;
        self.list.push(walk);
        Ok(())
    }

    pub(super) fn extend(&mut self, walks: impl ExactSizeIterator<Item = Walk>) -> Result<()> {
        self.reserve(walks.len())?;
        self.list.extend(walks);
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Makes room, in steps that double it. While a list moves, both places are counted.
    fn reserve(&mut self, additional: usize) -> Result<()> {
        let (capacity, needed) = (self.list.capacity(), self.list.len() + additional);
        if needed <= capacity {
            return Ok(());
        }
        let new_capacity = needed.max(2 * capacity).max(CAPACITY_MIN);
        self.reservation
            .try_grow(new_capacity * size_of::<Walk>())?;
        self.list.reserve_exact(new_capacity - self.list.len());
        self.reservation.shrink(capacity * size_of::<Walk>());
        Ok(())
    }
}
