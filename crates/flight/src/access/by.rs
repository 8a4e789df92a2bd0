//! Who makes a call, as the guard has found, and what that means for what outlives it.

use std::fmt;
use std::sync::Arc;

use orrery_service::ports::denied::Denied;
use orrery_service::ports::users::{Admitted, Caller};
use orrery_sql::SqlScope;
use tonic::{Code, Status};

use crate::handles::Owner;
use crate::refusal::refusal;

/// Who makes a call; in its extensions.
#[derive(Clone)]
pub(crate) enum By {
    /// The database has no users: whoever was let in may do everything.
    Anybody,
    /// Somebody who has said who they are, and what they may do now.
    Caller(Box<Caller>, Box<Admitted>),
}

impl fmt::Debug for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anybody => f.write_str("Anybody"),
            Self::Caller(caller, _) => caller.fmt(f),
        }
    }
}

impl By {
    /// Whose what outlives the call is: others do not find it.
    pub(crate) fn owner(&self) -> Owner {
        match self {
            Self::Anybody => None,
            Self::Caller(caller, _) => caller.id(),
        }
    }

    /// The user's name, if one is known.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Anybody => None,
            Self::Caller(caller, _) => Some(caller.name()).filter(|name| !name.is_empty()),
        }
    }

    /// What is read and changed, where that is not everything.
    pub(crate) fn scope(&self) -> Option<&Arc<SqlScope>> {
        match self {
            Self::Anybody => None,
            Self::Caller(_, admitted) => admitted.scope.as_ref(),
        }
    }

    /// What may be done, where statements are counted.
    pub(crate) fn limited(&self) -> Option<&Admitted> {
        match self {
            Self::Anybody => None,
            Self::Caller(_, admitted) => Some(&**admitted).filter(|admitted| admitted.is_limited()),
        }
    }

    /// Fails when who makes the call is not let in any more.
    pub(crate) fn require(&self) -> Result<(), Status> {
        match self {
            Self::Anybody => Ok(()),
            Self::Caller(caller, _) => caller.require().map_err(|it| denied(&it)),
        }
    }

    /// By what they are known from now on, if not by what they have sent.
    pub(crate) fn token(&self) -> Option<String> {
        match self {
            Self::Anybody => None,
            Self::Caller(caller, _) => caller.token(),
        }
    }
}

/// What is told to who is not let in, or may not do more now.
pub(crate) fn denied(denied: &Denied) -> Status {
    let code = match denied {
        Denied::Unknown(_) | Denied::Wait(_) | Denied::Gone => Code::Unauthenticated,
        Denied::Concurrent(_) | Denied::UsedUp(_) => Code::ResourceExhausted,
        Denied::Failed(_) => Code::Unavailable,
    };
    refusal(code, denied.code(), denied.to_string())
}
