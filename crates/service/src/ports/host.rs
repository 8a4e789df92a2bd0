//! The host of an SQL listener: the service behind it, its users, its sessions and connections.

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
use crate::second_try::SecondTry;
use crate::service::Service;

/// What a listener needs of the service.
#[derive(Debug, Clone)]
pub struct Host {
    service: Arc<Service>,
    /// None if the database has no users.
    pub users: Option<PortUsers>,
    /// The source of the writer.
    pub writer: WriterSource,
    /// The observers of statements.
    observers: Arc<Observers>,
    /// The session that clients' sessions are made from.
    sessions: Session,
}

impl Host {
    /// Creates the host of a listener.
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

    /// A session of a client, whose commits are by `who`. `user` is the answer of `current_user`;
    /// the database's owner if none.
    pub fn session(&self, user: Option<&str>, who: String, caller: Option<&Caller>) -> Session {
        let passport = caller.map(|caller| caller.passport().into());
        let user = user.unwrap_or(DATABASE);
        self.sessions.another_of(user, who).with_passport(passport)
    }

    /// The threads for statements and connections.
    pub fn threads(&self) -> &Handle {
        self.service.query_threads.handle()
    }

    /// The counters of the listener's connections.
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
    /// When no turn is free within the waiting time, or the server stops.
    pub async fn turn_of(&self, session: &Session) -> Result<Turn, ServiceError> {
        self.service.turn_of(session).await
    }

    /// Waits for the right to a second try of a statement that has its turn, and ran out of memory
    /// before any of its rows was sent.
    ///
    /// # Errors
    /// When the server stops, or there is no turn to be had.
    pub async fn second_try(&self, session: &Session) -> Result<(SecondTry, Turn), ServiceError> {
        self.service.second_try(session).await
    }
}
