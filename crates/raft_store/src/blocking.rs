//! The execution of disk calls: on blocking threads, or inline in simulations.

use tokio::task::spawn_blocking;

use crate::error::{Error, Result};

/// Whether calls of the disk may hold up the thread that makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// They run on threads of their own.
    Elsewhere,
    /// They run at once: the disk is memory, and a thread would make the order of events a matter
    /// of luck.
    #[cfg(test)]
    Here,
}

impl Blocking {
    /// Runs a call of the disk.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self {
            Self::Elsewhere => spawn_blocking(job)
                .await
                .map_err(|error| Error::Stopped(format!("a task of the disk: {error}")))?,
            #[cfg(test)]
            Self::Here => job(),
        }
    }
}
