//! Background reading of the database into memory after a server has started.
//!
//! It always reads the directories of rows and terms, some hundredths of the whole: without them
//! the first look-ups wait for the disk several times each, one after the other. It reads
//! everything if the server was asked to.

use orrery_storage::{Database, WarmExtent};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The reading thread; dropping this ends it.
#[derive(Debug)]
pub(crate) struct Warming {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Warming {
    /// Starts reading the present state: everything up to `bytes_max` if given, else the
    /// directories.
    pub(crate) fn start(database: &Database, bytes_max: Option<u64>) -> io::Result<Self> {
        let snapshot = database.snapshot();
        let stop = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&stop);
        let extent = match bytes_max {
            None => WarmExtent::Directories,
            Some(bytes_max) => WarmExtent::Everything { bytes_max },
        };
        let read = move || {
            let start = Instant::now();
            let warmed = snapshot.warm(extent, &mut |_| match of_thread.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            match warmed {
                Ok(warmed) if bytes_max.is_some() => tracing::info!(
                    "read {} MiB of the database into memory in {:.1} s",
                    warmed.bytes >> 20,
                    start.elapsed().as_secs_f64()
                ),
                Ok(_) => {}
                Err(error) => tracing::error!("reading the database into memory: {error}"),
            }
        };
        Ok(Self {
            thread: Some(thread::Builder::new().name("warm".to_owned()).spawn(read)?),
            stop,
        })
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that reads the database into memory has panicked");
        }
    }
}
