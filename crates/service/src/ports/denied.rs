//! Why a client at a port is not let in, or its statement does not begin. No sentence tells what there is.

use std::fmt;
use std::time::Duration;

use orrery_sql::{Error, SqlState};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// Not who they say, or nobody who is known.
    Unknown(String),
    /// Wrong passwords were sent: none is looked at for some time.
    Wait(Duration),
    /// The user was locked or removed, or what they came in by.
    Gone,
    /// As many statements are running as may.
    Concurrent(String),
    /// What may be used is used up.
    UsedUp(String),
    /// Users cannot be looked at.
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
    /// PostgreSQL's code for it.
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
