//! The times and limits of requests, leases and retries.

use std::time::Duration;

/// Times and limits of a database in an object store. The defaults suit stores across a network;
/// tests shorten them.
#[derive(Debug, Clone)]
pub struct Timing {
    /// How long a request may take, beside a second for each MiB that it moves.
    pub request: Duration,
    /// How often a request is tried.
    pub attempts_max: u32,
    /// The wait before the second try; it doubles with each.
    pub backoff_first: Duration,
    /// The longest wait between two tries.
    pub backoff_max: Duration,
    /// A writer that has not renewed its lease for so long may be followed by another.
    pub lease: Duration,
    /// How often a writer renews its lease.
    pub lease_renewal: Duration,
    /// How often a writer looks for objects that can be deleted.
    pub garbage_every: Duration,
    /// What this process gave up is kept for so long.
    pub garbage_after: Duration,
    /// What an earlier process gave up is kept for so long, by the clocks of machines.
    pub garbage_after_restart: Duration,
    /// When a reader first says what it reads.
    pub reader_first: Duration,
    /// How often it says so after that.
    pub reader_every: Duration,
    /// What a reader said counts for so long.
    pub reader_lease: Duration,
    /// A log is ended by a checkpoint after so many objects, for who opens the database reads them
    /// all.
    pub log_objects_max: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(15),
            attempts_max: 8,
            backoff_first: Duration::from_millis(50),
            backoff_max: Duration::from_secs(3),
            lease: Duration::from_secs(30),
            lease_renewal: Duration::from_secs(10),
            garbage_every: Duration::from_secs(10),
            garbage_after: Duration::from_secs(60),
            garbage_after_restart: Duration::from_secs(60 * 60),
            reader_first: Duration::from_secs(5),
            reader_every: Duration::from_secs(10),
            reader_lease: Duration::from_secs(60),
            log_objects_max: 1000,
        }
    }
}

impl Timing {
    /// How long a request may take that moves so many bytes.
    pub(crate) fn of_bytes(&self, bytes: u64) -> Duration {
        self.request + Duration::from_secs(bytes >> 20)
    }

    /// The wait after so many tries that failed; by chance a little more or less, so that many
    /// clients do not come back at once.
    pub(crate) fn backoff(&self, failed: u32) -> Duration {
        let whole = self.backoff_first.saturating_mul(1 << failed.min(16));
        let whole = whole.min(self.backoff_max);
        let share = (crate::random::word() % 512) as u32;
        whole / 2 + whole * share / 1024
    }
}
