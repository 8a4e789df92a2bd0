//! Lists whose memory is counted.

use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;

/// A walk: the number of the seed it began at, and the node it has reached.
pub(super) type Walk = (u32, u64);

/// Walks, in any order.
pub(super) type Walks = CountedList<Walk>;

/// Nodes, ascending, each once.
pub(super) type Nodes = CountedList<u64>;

/// Places that a list begins with.
const CAPACITY_MIN: usize = 64;

/// A list that is counted against the query's memory as long as it is there.
pub(super) struct CountedList<T> {
    list: Vec<T>,
    reservation: MemoryReservation,
}

impl<T: Copy> CountedList<T> {
    /// Empty yet; counted by a reservation like the given one.
    pub(super) fn new(like: &MemoryReservation) -> Self {
        Self {
            list: Vec::new(),
            reservation: like.new_empty(),
        }
    }

    /// These items.
    pub(super) fn of(
        items: impl ExactSizeIterator<Item = T>,
        like: &MemoryReservation,
    ) -> Result<Self> {
        let mut all = Self::new(like);
        all.extend(items)?;
        Ok(all)
    }

    pub(super) fn as_slice(&self) -> &[T] {
        &self.list
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.list
    }

    pub(super) fn push(&mut self, item: T) -> Result<()> {
        self.reserve(1)?;
        self.list.push(item);
        Ok(())
    }

    pub(super) fn extend(&mut self, items: impl ExactSizeIterator<Item = T>) -> Result<()> {
        self.reserve(items.len())?;
        self.list.extend(items);
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Leaves the first ones.
    pub(super) fn truncate(&mut self, kept: usize) {
        self.list.truncate(kept);
    }

    /// Makes room, in steps that double it. While a list moves, both places are counted.
    fn reserve(&mut self, additional: usize) -> Result<()> {
        let (capacity, needed) = (self.list.capacity(), self.list.len() + additional);
        if needed <= capacity {
            return Ok(());
        }
        let new_capacity = needed.max(2 * capacity).max(CAPACITY_MIN);
        self.reservation.try_grow(new_capacity * size_of::<T>())?;
        self.list.reserve_exact(new_capacity - self.list.len());
        self.reservation.shrink(capacity * size_of::<T>());
        Ok(())
    }
}
