//! Who asks, as far as anybody knows.

use std::fmt;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asker {
    /// Somebody at a server whom nothing is known of.
    Anonymous,
    /// Whoever runs the process, who can read the database's files anyhow: the command line, a server's own work.
    Process,
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "anonymous",
            Self::Process => "process",
        })
    }
}
