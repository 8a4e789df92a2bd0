//! The process's allocator.
//!
//! Operators and loads allocate and free large buffers all the time. glibc returns them to the
//! system each time; mimalloc caches them for the next allocation. That is fast, but a server with
//! a memory limit suffers: what one thread has freed, another thread cannot always take. With 16
//! clients that sort, join and group, `orrery serve --memory 256M` held 769 MB of anonymous memory
//! with mimalloc's defaults. So a server with little memory returns freed pages at once. A server
//! with more keeps them for a moment, because the system clears each page that it hands out again:
//! a third of the time of an analytical query (BSBM BI 1, 3, reviews by country), for 140 MB more
//! with those 16 clients.
//!
//! mimalloc also asks the system for huge pages. When most of a huge page was returned, the system
//! rebuilds it (`khugepaged`), full of zeros that nobody counts. A 256M server to which 600 MB were
//! copied again and again held 250 MB at rest after the eighth copy, and refused the ninth for lack
//! of memory. Without huge pages it holds 75 MB, and 242 MB instead of 397 at the peak. So a
//! process with little memory has no huge pages.

use std::ffi::{c_int, c_long};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`: milliseconds until freed pages are given back.
const PURGE_DELAY: c_int = 15;
/// `mi_option_page_full_retain`: empty pages of each size that a thread keeps.
const PAGE_FULL_RETAIN: c_int = 36;

unsafe extern "C" {
    /// Of mimalloc, which the crate `mimalloc` links; the numbers are those of its version 3.
    fn mi_option_set(option: c_int, value: c_long);
}

/// How long a server with enough memory keeps freed pages; mimalloc multiplies this by 10 for most.
const KEPT_MS: c_long = 20;
/// As a delay: never.
const NEVER: c_long = -1;
/// What is enough.
const ENOUGH_BYTES: u64 = 1 << 30;

/// The setting for `orrery load`, `orrery compact`, `orrery sql` and TPC-H's benchmark, where each
/// stage or query takes what the one before it freed. A process that may have `ENOUGH_BYTES` never
/// returns memory: the system's clearing of pages was an eighth of a load of 10 million triples. A
/// process with less returns memory at once: 60 to 110 MB less at the peak with 64M to 512M.
pub fn for_load(memory_bytes: u64) {
    if memory_bytes >= ENOUGH_BYTES {
        // SAFETY: as in `give_back`.
        unsafe { mi_option_set(PURGE_DELAY, NEVER) };
    } else {
        give_back(memory_bytes);
    }
}

/// Makes freed memory return to the system from now on: after a moment if there is enough, else at
/// once.
pub fn give_back(memory_bytes: u64) {
    let delay_ms = match memory_bytes >= ENOUGH_BYTES {
        true => KEPT_MS,
        false => 0,
    };
    if memory_bytes < ENOUGH_BYTES {
        without_huge_pages();
    }
    // SAFETY: sets two numbers of the allocator's options table, which it reads at each use; both
    // options exist in the version that the lock file names, and an unknown one would be ignored.
    unsafe {
        mi_option_set(PURGE_DELAY, delay_ms);
        mi_option_set(PAGE_FULL_RETAIN, 0);
    }
}

/// Turns huge pages off for this process, where the system allows that.
fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay in use");
    }
}
