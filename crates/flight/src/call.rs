//! One call: who makes it, and what they may do while it lasts.

use std::ops::Deref;
use std::sync::Arc;

use orrery_sql::Session;
use tonic::{Code, Extensions, Status};

use crate::by::By;
use crate::refusal::refusal;
use crate::shared::Shared;

/// See the module.
pub(crate) struct Call {
    shared: Arc<Shared>,
    by: By,
}

impl Deref for Call {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Call {
    /// Of a call that the guard has let in.
    pub(crate) fn new(shared: &Arc<Shared>, extensions: &Extensions) -> Result<Self, Status> {
        let by = extensions.get::<By>().cloned();
        Ok(Self {
            shared: Arc::clone(shared),
            by: by.ok_or_else(|| refusal(Code::Internal, "XX000", "a call came past the guard"))?,
        })
    }

    pub(crate) fn by(&self) -> &By {
        &self.by
    }

    /// A session of its own, of who makes the call.
    pub(crate) fn session(&self) -> Session {
        let sessions = self.shared.sessions();
        match &self.by {
            By::Anybody => sessions.another(),
            By::Caller(caller, admitted) => {
                let mut session = match caller.name() {
                    "" => sessions.another(),
                    name => sessions.another_of(name, format!("flight {name}")),
                };
                session.set_scope(admitted.scope.clone());
                session
            }
        }
    }

    /// A session that there is, held to what may be done now; none where it may do everything anyway.
    pub(crate) fn held(&self, session: &Session) -> Option<Session> {
        match &self.by {
            By::Anybody => None,
            By::Caller(_, admitted) => {
                let mut session = session.clone();
                session.set_scope(admitted.scope.clone());
                Some(session)
            }
        }
    }
}
