//! One call: who makes it, and what they may do while it lasts.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use orrery_service::record::{Ending, StatementRecord};
use orrery_sql::Session;
use tonic::{Code, Request, Status};

use crate::access::by::{By, denied};
use crate::access::peer::Peer;
use crate::calls::shared::Shared;
use crate::refusal::{ending_of, refusal, refused};

/// See the module.
pub(crate) struct Call {
    shared: Arc<Shared>,
    by: By,
    client: IpAddr,
    agent: Option<String>,
    /// The statement, where others are told of it.
    watched: OnceLock<Arc<StatementRecord>>,
}

impl Deref for Call {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Call {
    /// Of a call that the guard has let in.
    pub(crate) fn new<T>(shared: &Arc<Shared>, request: &Request<T>) -> Result<Self, Status> {
        let by = request.extensions().get::<By>().cloned();
        let peer = request.extensions().get::<Peer>();
        let agent = request.metadata().get("user-agent");
        let agent = agent.and_then(|agent| agent.to_str().ok());
        Ok(Self {
            shared: Arc::clone(shared),
            client: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address),
            agent: agent.map(str::to_owned),
            watched: OnceLock::new(),
            by: by.ok_or_else(|| refusal(Code::Internal, "XX000", "a call came past the guard"))?,
        })
    }

    pub(crate) fn by(&self) -> &By {
        &self.by
    }

    /// A statement begins, of which others are told.
    pub(crate) fn watch(&self, text: &str) {
        self.watched.get_or_init(|| {
            let agent = self.agent.as_deref();
            self.host.record(text, self.by.name(), self.client, agent)
        });
    }

    /// The statement, where others are told of it.
    pub(crate) fn watched(&self) -> Option<&Arc<StatementRecord>> {
        self.watched.get()
    }

    /// Notes how the statement ended.
    pub(crate) fn ended<T>(&self, done: Result<T, Status>) -> Result<T, Status> {
        if let Some(watched) = self.watched() {
            match &done {
                Ok(_) => watched.ended(Ending::Done),
                Err(status) => watched.ended(ending_of(status)),
            }
        }
        done
    }

    /// A session of its own, of who makes the call.
    pub(crate) fn session(&self) -> Session {
        let host = &self.shared.host;
        let By::Caller(caller, admitted) = &self.by else {
            return host.session(None, "flight".to_owned(), None);
        };
        let mut session = match caller.name() {
            "" => host.session(None, "flight".to_owned(), Some(caller)),
            name => host.session(Some(name), format!("flight {name}"), Some(caller)),
        };
        session.set_scope(admitted.scope.clone());
        session.set_ruled(admitted.ruled.clone());
        session
    }

    /// A transaction's session, held to what may be done now in the state that it reads; none where it may do everything anyway.
    pub(crate) async fn held(&self, session: &Session) -> Option<Session> {
        let By::Caller(_, admitted) = &self.by else {
            return None;
        };
        let is_held = admitted.scope.is_some() || admitted.ruled.is_some();
        if !is_held && session.scope().is_none() {
            return None;
        }
        let mut session = session.clone();
        admitted.hold(&mut session).await;
        Some(session)
    }

    /// Fails where who makes the call is not let in any more, or may not do what it might when the call began: asked before that is committed which a client took its time to send.
    pub(crate) async fn require_still(&self, session: &Session) -> Result<(), Status> {
        let By::Caller(caller, began) = &self.by else {
            return Ok(());
        };
        let now = caller.admitted().await.map_err(|it| denied(&it))?;
        let mut session = session.clone();
        session.set_scope(now.scope);
        let goes_on = session.require_scope(began.scope.as_ref());
        goes_on.map_err(|error| refused(&error))
    }
}
