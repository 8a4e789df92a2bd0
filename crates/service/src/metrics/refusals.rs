//! Why requests are refused, as it is counted: what an operator may do something about. A wrong query is not among it.

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 401: who asks is not known, and has to be.
    Unknown,
    /// 403
    Forbidden,
    /// 429: wrong passwords were sent for the name.
    Guesses,
    /// 429: who asks has used up what they may.
    Limit,
    /// 503: as many queries run as may.
    QueriesBusy,
    /// 503: as many changes wait as may.
    ChangesBusy,
    /// 503: as many follow the changes as may.
    FeedsBusy,
    /// 503: a commit that is asked for is not here.
    Behind,
    /// 503: over its time.
    Timeout,
    /// 503: others hold the memory.
    MemoryBusy,
    /// 503: the server does not write, or cannot now.
    ReadOnly,
    /// 503: ended by an administrator.
    Killed,
    /// 503: the server stops.
    Stopping,
    /// 507: over its memory.
    Memory,
    /// 507: no room on the disk.
    Disk,
}

impl Refusal {
    /// All of them, in the order of their numbers.
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

    /// As metrics call it.
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

    /// The status of HTTP.
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

/// Which limit of who asks a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentLimit {
    /// Requests at the same time.
    Concurrent,
    /// Touches in a time.
    Cost,
    /// Rows of an answer.
    Rows,
    /// Bytes of an answer.
    Bytes,
}

impl SpentLimit {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Concurrent, Self::Cost, Self::Rows, Self::Bytes];

    /// As metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Concurrent => "concurrent",
            Self::Cost => "cost",
            Self::Rows => "rows",
            Self::Bytes => "bytes",
        }
    }
}
