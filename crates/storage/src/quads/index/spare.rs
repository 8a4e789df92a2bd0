//! A per-thread pool of buffers for decoded vectors.
//!
//! A cursor that looks up one key decodes a column or two. To allocate and clear 8 KiB for each was
//! a fifth of the instructions of a point query, which makes half a dozen cursors; what stands in a
//! buffer from before does not matter, for only rows that were decoded are read.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use orrery_column::{VECTOR_ROWS, VectorBuffer};

/// Buffers that a thread keeps: 512 KiB. A query with five patterns about each of some reviews has
/// 80 at work at a time.
const SPARE_MAX: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<Box<VectorBuffer>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that goes back to the thread that drops it.
#[derive(Debug)]
pub(super) struct SpareBuffer(Option<Box<VectorBuffer>>);

impl SpareBuffer {
    /// A buffer with any contents.
    pub(super) fn take() -> Self {
        // While the thread ends its spare ones may be gone already.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        let buffer = spare.ok().flatten();
        Self(Some(buffer.unwrap_or_else(|| Box::new([0; VECTOR_ROWS]))))
    }
}

impl Deref for SpareBuffer {
    type Target = VectorBuffer;

    fn deref(&self) -> &VectorBuffer {
        // Only `drop` takes it.
        self.0.as_deref().unwrap_or(&[0; VECTOR_ROWS])
    }
}

impl DerefMut for SpareBuffer {
    fn deref_mut(&mut self) -> &mut VectorBuffer {
        self.0.get_or_insert_with(|| Box::new([0; VECTOR_ROWS]))
    }
}

impl Drop for SpareBuffer {
    fn drop(&mut self) {
        let Some(buffer) = self.0.take() else { return };
        // Kept if there is room; while the thread ends nothing is.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_kept_for_the_next_and_only_so_many() {
        let spare = || SPARE.with(|spare| spare.borrow().len());
        let mut first = SpareBuffer::take();
        first[7] = 42;
        assert_eq!(first[7], 42);
        drop(first);
        assert_eq!(spare(), 1);
        let second = SpareBuffer::take();
        assert_eq!((spare(), second[7]), (0, 42));
        drop(second);
        let many: Vec<SpareBuffer> = (0..2 * SPARE_MAX).map(|_| SpareBuffer::take()).collect();
        drop(many);
        assert_eq!(spare(), SPARE_MAX);
    }
}
