//! Reasons of refused requests, as metrics count them: those that an operator can act on. Faulty
//! queries are not among them.

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 401: the sender is unknown, and must not be.
    Unknown,
    /// 403: the sender lacks the right.
    Forbidden,
    /// 429: wrong passwords were sent for the name.
    Guesses,
    /// 429: the sender has reached a limit.
    Limit,
    /// 503: the maximum of queries runs already.
    QueriesBusy,
    /// 503: the maximum of changes waits already.
    ChangesBusy,
    /// 503: the maximum of clients follows the changes already.
    FeedsBusy,
    /// 503: a requested commit is not available here.
    Behind,
    /// 503: the time limit was reached.
    Timeout,
    /// 503: other queries hold the memory.
    MemoryBusy,
    /// 503: the server does not write, or cannot at present.
    ReadOnly,
    /// 503: ended by an administrator.
    Killed,
    /// 503: the server stops.
    Stopping,
    /// 507: the query's memory limit was reached.
    Memory,
    /// 507: no room on the disk.
    Disk,
}

impl Refusal {
    /// All refusals, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Unknown,
        Self::Forbidden,
        Self::Guesses,
        Self::Limit,
        Self::QueriesBusy,
        Self::ChangesBusy,
        Self::FeedsBusy,
        Self::Behind,
        Self::Timeout,
        Self::MemoryBusy,
        Self::ReadOnly,
        Self::Killed,
        Self::Stopping,
        Self::Memory,
        Self::Disk,
    ];

    /// The refusal's label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Forbidden => "forbidden",
            Self::Guesses => "guesses",
            Self::Limit => "limit",
            Self::QueriesBusy => "queries_busy",
            Self::ChangesBusy => "changes_busy",
            Self::FeedsBusy => "feeds_busy",
            Self::Behind => "behind",
            Self::Timeout => "timeout",
            Self::MemoryBusy => "memory_busy",
            Self::ReadOnly => "read_only",
            Self::Killed => "killed",
            Self::Stopping => "stopping",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    /// The HTTP status.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unknown => "401",
            Self::Forbidden => "403",
            Self::Guesses | Self::Limit => "429",
            Self::QueriesBusy
            | Self::ChangesBusy
            | Self::FeedsBusy
            | Self::Behind
            | Self::Timeout
            | Self::MemoryBusy
            | Self::ReadOnly
            | Self::Killed
            | Self::Stopping => "503",
            Self::Memory | Self::Disk => "507",
        }
    }
}

/// The sender's limit that a request reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentLimit {
    /// Requests at the same time.
    Concurrent,
    /// Touches per period.
    Cost,
    /// Rows of an answer.
    Rows,
    /// Bytes of an answer.
    Bytes,
}

impl SpentLimit {
    /// All limits, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Concurrent, Self::Cost, Self::Rows, Self::Bytes];

    /// The limit's label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Concurrent => "concurrent",
            Self::Cost => "cost",
            Self::Rows => "rows",
            Self::Bytes => "bytes",
        }
    }
}
