//! One call: its caller, and their rights while it lasts.

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

/// A call of an authenticated caller, with the record of its statement.
pub(crate) struct Call {
    shared: Arc<Shared>,
    by: By,
    client: IpAddr,
    agent: Option<String>,
    /// The record of the statement, once it has begun.
    watched: OnceLock<Arc<StatementRecord>>,
}

impl Deref for Call {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Call {
    /// Reads the caller of a request that the guard has authenticated.
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

    /// Begins the record of a statement, for the log and the list of running statements.
    pub(crate) fn watch(&self, text: &str) {
        self.watched.get_or_init(|| {
            let agent = self.agent.as_deref();
            self.host.record(text, self.by.name(), self.client, agent)
        });
    }

    /// The record of the statement, once it has begun.
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

    /// Makes a new session for the caller.
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

    /// A transaction's session, limited to the caller's present rights in the snapshot that it
    /// reads; none if they may do everything anyway.
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

    /// Fails where the caller is not allowed in any more, or has lost rights since the call began.
    ///
    /// Checked before the commit of data that a client took its time to send.
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
