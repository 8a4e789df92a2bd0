//! A work queue for several threads.

use crate::Error;

/// Does the same work on so many threads at a time, until all have ended; the first error is given.
pub(super) fn on_threads(
    threads: usize,
    work: impl Fn() -> Result<(), Error> + Copy + Send,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(Error::Reference("a thread panicked".to_owned())))
        })
    })
}
