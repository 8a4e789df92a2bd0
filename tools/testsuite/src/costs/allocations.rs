//! A counting allocator per thread.
//!
//! A program that wants it says `#[global_allocator] static ALLOCATOR: CountingAllocator =
//! CountingAllocator;`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts per thread what is asked of it.
pub struct CountingAllocator;

/// What was allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Allocations, and reallocations.
    pub count: u64,
    /// The bytes asked for; of a reallocation those of its new size.
    pub bytes: u64,
}

thread_local! {
    // Neither is dropped nor made on first use, so that the allocator may touch it at any time.
    static COUNTED: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

fn count(bytes: usize) {
    let mut counted = COUNTED.get();
    counted.count += 1;
    counted.bytes += bytes as u64;
    COUNTED.set(counted);
}

/// What this thread allocates while the work runs, and what came of it. Zero in a program without
/// the [`CountingAllocator`].
pub fn allocations_of<T>(work: impl FnOnce() -> T) -> (Allocations, T) {
    let before = COUNTED.get();
    let result = work();
    let after = COUNTED.get();
    let allocations = Allocations {
        count: after.count - before.count,
        bytes: after.bytes - before.bytes,
    };
    (allocations, result)
}

// SAFETY: every call goes to the system's allocator as it came; counting touches a `Cell` without
// destructor of the calling thread, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: the caller's promises are passed on; the pointer came from the system's
        // allocator.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on; the pointer came from the system's
        // allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}
