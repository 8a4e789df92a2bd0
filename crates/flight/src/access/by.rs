//! The caller of a call, as authenticated by the guard, and the owner of what outlives the call.

use std::fmt;
use std::sync::Arc;

use orrery_service::ports::denied::Denied;
use orrery_service::ports::users::{Admitted, Caller};
use orrery_sql::SqlScope;
use tonic::{Code, Status};

use crate::handles::Owner;
use crate::refusal::refusal;

/// The caller of a call; stored in its extensions.
#[derive(Clone)]
pub(crate) enum By {
    /// The database has no users: every accepted client may do everything.
    Anybody,
    /// An authenticated user, and their rights now.
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
    /// The owner of what outlives the call: other users do not find it.
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

    /// The caller's scope, where that is not everything.
    pub(crate) fn scope(&self) -> Option<&Arc<SqlScope>> {
        match self {
            Self::Anybody => None,
            Self::Caller(_, admitted) => admitted.scope.as_ref(),
        }
    }

    /// The caller's limits, where statements are counted.
    pub(crate) fn limited(&self) -> Option<&Admitted> {
        match self {
            Self::Anybody => None,
            Self::Caller(_, admitted) => Some(&**admitted).filter(|admitted| admitted.is_limited()),
        }
    }

    /// Fails when the caller is not allowed in any more.
    pub(crate) fn require(&self) -> Result<(), Status> {
        match self {
            Self::Anybody => Ok(()),
            Self::Caller(caller, _) => caller.require().map_err(|it| denied(&it)),
        }
    }

    /// The token by which the caller is known from now on, if not by their own credentials.
    pub(crate) fn token(&self) -> Option<String> {
        match self {
            Self::Anybody => None,
            Self::Caller(caller, _) => caller.token(),
        }
    }
}

/// The status for a caller who is refused, or has used up their budget.
pub(crate) fn denied(denied: &Denied) -> Status {
    let code = match denied {
        Denied::Unknown(_) | Denied::Wait(_) | Denied::Gone => Code::Unauthenticated,
        Denied::Concurrent(_) | Denied::UsedUp(_) => Code::ResourceExhausted,
        Denied::Failed(_) => Code::Unavailable,
    };
    refusal(code, denied.code(), denied.to_string())
}
