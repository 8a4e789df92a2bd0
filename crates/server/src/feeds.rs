//! How many follow the changes of a server.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// Feeds that read the log at the same time.
const READING_MAX: usize = 16;

/// The bounds of all feeds of a server.
#[derive(Debug)]
pub(crate) struct Feeds {
    pub(crate) feeds: Arc<Semaphore>,
    pub(crate) feeds_max: usize,
    pub(crate) reading: Arc<Semaphore>,
}

impl Feeds {
    pub(crate) fn new(feeds_max: usize) -> Self {
        Self {
            feeds: Arc::new(Semaphore::new(feeds_max)),
            feeds_max,
            reading: Arc::new(Semaphore::new(READING_MAX)),
        }
    }
}
