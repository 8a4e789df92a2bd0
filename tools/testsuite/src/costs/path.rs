//! One cost path: a piece of work, and the frame that is counted.

use crate::Error;

/// Runs before the one that counts: caches fill, checksums are checked.
pub(super) const WARM_UP_RUNS: usize = 3;

/// A piece of work whose cost is watched.
pub struct CostPath<'f> {
    /// What the table calls it.
    pub name: &'static str,
    work: Work<'f>,
}

type Work<'f> = Box<dyn FnMut() -> Result<(), Error> + 'f>;

impl<'f> CostPath<'f> {
    pub(super) fn new(name: &'static str, work: impl FnMut() -> Result<(), Error> + 'f) -> Self {
        Self {
            name,
            work: Box::new(work),
        }
    }

    /// Runs it until it is warm, then once as what is measured.
    ///
    /// # Errors
    /// When the work fails.
    pub fn measure(&mut self) -> Result<(), Error> {
        for _ in 0..WARM_UP_RUNS {
            (self.work)()?;
        }
        measured_cost_path(&mut self.work)
    }
}

/// The frame within which callgrind counts; it is found by its name.
#[inline(never)]
fn measured_cost_path(work: &mut Work<'_>) -> Result<(), Error> {
    let done = work();
    // Keeps the call from becoming a jump, which would leave the frame before the work is done.
    std::hint::black_box(&done);
    done
}
