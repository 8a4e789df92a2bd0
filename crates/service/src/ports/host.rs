//! What a listener for SQL's protocols works with: the service behind it, its users, its connections.

use std::net::IpAddr;
use std::sync::Arc;

use orrery_query_log::Kind;
use orrery_r2rml::TableMappings;
use orrery_sql::{DATABASE, Session, SessionOptions, Turn, WriterSource};
use tokio::runtime::Handle;

use crate::cluster::port_writer::PortWriter;
use crate::errors::ServiceError;
use crate::metrics::Listens;
use crate::ports::connections::Connections;
use crate::ports::users::{Caller, PortUsers};
use crate::record::{Observers, Sender, StatementRecord};
use crate::service::Service;

/// See the module.
#[derive(Debug, Clone)]
pub struct Host {
    service: Arc<Service>,
    /// None where the database has no users.
    pub users: Option<PortUsers>,
    /// Who writes, if anybody does.
    pub writer: WriterSource,
    /// Who is told of statements.
    observers: Arc<Observers>,
    /// What each client's session is another of.
    sessions: Session,
}

impl Host {
    /// Of a listener.
    pub fn new(service: Arc<Service>, listens: Listens) -> Self {
        let cluster = service.options.cluster.as_ref();
        let database = service.engine.database();
        let writer = PortWriter::new(&service.seat, cluster, database);
        let writer = WriterSource::Changing(Arc::new(writer));
        let foreign = &service.options.foreign;
        let sessions = Session::new(
            service.engine.runtime(),
            Arc::clone(database),
            None,
            SessionOptions {
                foreign: foreign.clone(),
                ..SessionOptions::default()
            },
        )
        .with_writer_of(writer.clone())
        .with_mappings(Arc::new(TableMappings::new(
            service.engine.runtime(),
            foreign,
        )))
        .with_graphs(Arc::new(service.graphs()));
        Self {
            users: PortUsers::of(&service, listens.name()),
            writer,
            observers: Arc::new(service.observers(listens)),
            sessions,
            service,
        }
    }

    /// A session of a client, whose commits are by `who`. `user`: whom `current_user` says; the database's owner if none.
    pub fn session(&self, user: Option<&str>, who: String, caller: Option<&Caller>) -> Session {
        let passport = caller.map(|caller| caller.passport().into());
        let user = user.unwrap_or(DATABASE);
        self.sessions.another_of(user, who).with_passport(passport)
    }

    /// Where statements compute, and connections live.
    pub fn threads(&self) -> &Handle {
        self.service.query_threads.handle()
    }

    /// Where the listener's connections are counted.
    pub fn connections(&self) -> &Arc<Connections> {
        self.service.metrics.connections(self.observers.listens)
    }

    /// The record of a statement that begins.
    pub fn record(
        &self,
        text: &str,
        user: Option<&str>,
        client: IpAddr,
        agent: Option<&str>,
    ) -> Arc<StatementRecord> {
        let sender = Sender {
            client: Some(client.to_canonical()),
            agent,
            head: None,
        };
        let record = StatementRecord::new(Arc::clone(&self.observers), sender);
        if let Some(user) = user {
            record.set_user(user);
        }
        record.set_asked(Kind::Sql, text);
        Arc::new(record)
    }

    /// Waits for the turn of a statement of a session.
    ///
    /// # Errors
    /// When there is none to be had.
    pub async fn turn_of(&self, session: &Session) -> Result<Turn, ServiceError> {
        self.service.turn_of(session).await
    }
}
