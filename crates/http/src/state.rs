//! The state that HTTP handlers share: the service, and the settings of HTTP.

use crate::answer::stream_body::Job;
use crate::edge::access_log::AccessRecord;
use crate::edge::around;
use crate::edge::guard::{HostRule, WriteRule, base_iri};
use crate::options::HttpOptions;
use crate::request::body::body_bytes;
use crate::request::conditions::Conditions;
use crate::request::media_type;
use crate::request::negotiate::AcceptedFormats;
use crate::request::parameters::parse_at;
use crate::request::protocol::QueryRequest;
use crate::routes::description::Capabilities;
use axum::http::{Method, request::Parts};
use orrery_service::Service;
use orrery_service::errors::ServiceError;
use orrery_service::metering::{Meter, Payment};
use orrery_service::query_log::Peer;
use orrery_service::time_limit::TimeLimit;
use orrery_service::writes::Writes;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// The service, and what HTTP adds: its options, its rule for changes, its host names.
pub struct HttpState {
    pub(crate) service: Arc<Service>,
    pub(crate) http: HttpOptions,
    pub(crate) write_rule: WriteRule,
    pub(crate) hosts: HostRule,
}

impl Deref for HttpState {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl fmt::Debug for HttpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpState").finish_non_exhaustive()
    }
}

impl HttpState {
    /// Wraps a service, for the address that the server listens on. `allow_writes`: the server
    /// takes changes wherever it listens.
    pub fn new(
        service: Arc<Service>,
        http: HttpOptions,
        listen: SocketAddr,
        allow_writes: bool,
    ) -> Arc<Self> {
        let hosts = HostRule::new(
            listen,
            // Reads for pages of all origins, and writes from anywhere, need no protection by a
            // host name.
            http.allow_any_origin || allow_writes,
            &http.allow_hosts,
        );
        // With users it is known who may change what.
        let allow_writes = allow_writes || service.authentication.is_some();
        Arc::new(Self {
            service,
            http,
            write_rule: WriteRule::new(listen, allow_writes),
            hosts,
        })
    }

    /// The features that the service description reports.
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            union_default_graph: self.options.union_default_graph,
            federation: self.engine.options().service.is_some(),
            update: self.seat.takes_changes(),
        }
    }

    /// Refuses a request that may not change anything here.
    pub(crate) fn check_write_rule(&self, parts: &Parts) -> Result<(), ServiceError> {
        self.write_rule.check(parts, &self.hosts)
    }

    /// The queue of changes, for a request that may change data here.
    pub(crate) fn writes(&self, parts: &Parts) -> Result<Arc<Writes>, ServiceError> {
        self.check_write_rule(parts)?;
        self.seat.writes().map_err(|elsewhere| {
            let reason = elsewhere.reason;
            match elsewhere.address {
                Some(_) => ServiceError::NotHere { reason },
                None => ServiceError::ReadOnly { reason },
            }
        })
    }

    /// Most bytes of the body of a request to `/sparql`: an update may be long, a query not.
    pub(crate) fn body_limit(&self, parts: &Parts) -> usize {
        let is_query = media_type::is_body(&parts.headers, "application/sparql-query");
        let may_update = parts.method == Method::POST && self.seat.takes_changes() && !is_query;
        if may_update {
            self.http.update_bytes_max
        } else {
            self.http.body_bytes_max
        }
    }

    /// Waits for room for the body of an update, if it is larger than that of any query.
    pub(crate) async fn update_room(
        &self,
        parts: &Parts,
    ) -> Result<Option<OwnedSemaphorePermit>, ServiceError> {
        self.room(parts, self.body_limit(parts)).await
    }

    /// Waits for room for a body of at most `limit_bytes`, if it is larger than that of any query.
    pub(crate) async fn room(
        &self,
        parts: &Parts,
        limit_bytes: usize,
    ) -> Result<Option<OwnedSemaphorePermit>, ServiceError> {
        let bytes = body_bytes(parts, limit_bytes);
        match self.seat.writes() {
            Ok(writes) if bytes > self.http.body_bytes_max => {
                Ok(Some(writes.body_room(bytes).await?))
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Admits a request into its sender's account; returns its time limit and its meter.
    ///
    /// # Errors
    /// When it asks for more time than the server allows, or its sender's budget refuses it now.
    pub(crate) fn enter_of(
        &self,
        parts: &Parts,
        asked: Option<Duration>,
    ) -> Result<(TimeLimit, Option<Arc<Meter>>), ServiceError> {
        let client = parts.extensions.get().map(|&Peer(address)| address);
        self.enter(around::rights(parts), client, asked)
    }

    /// The account of a request's work and memory; none if its cost is neither reported nor
    /// limited.
    pub(crate) fn payment_of(
        &self,
        parts: &Parts,
        meter: Option<&Arc<Meter>>,
        record: &AccessRecord,
    ) -> Option<Arc<Payment>> {
        self.payment(wants_cost(parts, record), meter, record.statement())
    }

    /// Waits for a query's admission and packs what it needs.
    pub(crate) async fn job(
        &self,
        parts: &Parts,
        request: QueryRequest,
        record: Arc<AccessRecord>,
    ) -> Result<Job, ServiceError> {
        record.set_query(&request.query);
        let conditions = Conditions::of(&parts.headers)?;
        let (mut time, meter) = self.enter_of(parts, request.timeout)?;
        let mut turn = record.unless_killed(self.admission.turn()).await?;
        let snapshot = match request.at.as_deref() {
            Some(at) => {
                let at = parse_at(at)?;
                let (snapshot, same_turn) = self.old_snapshot(at, &mut time, turn).await?;
                turn = same_turn;
                Some(snapshot)
            }
            None => around::ruled_state(parts).cloned(),
        };
        let payment = self.payment_of(parts, meter.as_ref(), &record);
        Ok(Job {
            base_iri: base_iri(parts),
            snapshot,
            engine: Arc::clone(&self.engine),
            method: parts.method.clone(),
            conditions,
            scope: around::scope(parts),
            view: None,
            accepted: AcceptedFormats::new(&parts.headers, request.format.clone()),
            waiting: Weak::new(),
            union_default_graph: self.options.union_default_graph,
            strict_prefixes: self.options.strict_prefixes,
            time,
            request,
            wants_cost: wants_cost(parts, &record),
            payment,
            second_try: None,
            meter,
            record,
            turn,
            ready: Instant::now(),
        })
    }
}

/// Whether the cost of a request is reported: to its sender, or to the query log.
fn wants_cost(parts: &Parts, record: &AccessRecord) -> bool {
    around::rights(parts).is_some() || record.entry().is_some()
}
