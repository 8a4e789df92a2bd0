//! The identity of the asker: a user, anonymous, or the process itself.

use std::fmt;

/// The identity of an asker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asker {
    /// Somebody at a server whom nothing is known of.
    Anonymous,
    /// A user of the database, by number.
    User(u64),
    /// Whoever runs the process, who can read the database's files anyhow: the command line, a
    /// server's own work.
    Process,
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("anonymous"),
            Self::User(number) => write!(f, "user {number}"),
            Self::Process => f.write_str("process"),
        }
    }
}
