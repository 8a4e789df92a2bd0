//! Reasons why a port denies a client or a statement. No message reveals which users exist.

use std::fmt;
use std::time::Duration;

use orrery_sql::{Error, SqlState};

/// The reason of a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// The credentials are wrong, or the sender is unknown.
    Unknown(String),
    /// Wrong passwords were sent for the name: none is checked for some time.
    Wait(Duration),
    /// The user, or the credentials of the connection, were locked or removed.
    Gone,
    /// The maximum of concurrent statements is reached.
    Concurrent(String),
    /// A budget or limit is used up.
    UsedUp(String),
    /// The users cannot be read.
    Failed(String),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(why) | Self::Concurrent(why) | Self::UsedUp(why) | Self::Failed(why) => {
                f.write_str(why)
            }
            Self::Wait(wait) => write!(
                f,
                "wrong passwords were sent for this name; it is not looked at for {} s",
                wait.as_secs() + 1
            ),
            Self::Gone => f.write_str("the user may not come in any more"),
        }
    }
}

impl Denied {
    /// The SQLSTATE code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "28P01",
            Self::Wait(_) | Self::Gone => "28000",
            Self::Concurrent(_) => "53300",
            Self::UsedUp(_) => "53400",
            Self::Failed(_) => "58000",
        }
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        let state = SqlState::of_code(denied.code()).unwrap_or(SqlState::InsufficientPrivilege);
        Self::new(state, denied.to_string())
    }
}
