//! The life of a server: binds its listeners from options, accepts connections, and stops in three
//! steps.
//!
//! The accept loop is our own rather than `axum::serve`: it bounds the number of connections, gives
//! slow headers a time limit, and can announce to running requests that the grace period is over. A
//! stop has three steps: no new connections are accepted; idle ones are closed and running requests
//! may finish; after the grace period queries without an answer fail, and requests still running
//! are dropped.

use crate::first_user;
use crate::options::ServerOptions;
use crate::port::{Port, PortListener};
use crate::temporary::TemporaryFiles;
use crate::warming::Warming;
use axum::Router;
use orrery_flight::FlightOptions;
use orrery_http::{
    ALPN, AddressRule, ClientTimes, Documents, FarEnd, HttpState, OpenConnections, TrustedProxies,
    admin_routes, answer, router,
};
use orrery_loader::{BackgroundCompaction, BackgroundOptions};
use orrery_postgres::PostgresOptions;
use orrery_service::audit::Act;
use orrery_service::cluster::standby::StandBy;
use orrery_service::metrics::{Listens, Metrics};
use orrery_service::oidc::{OidcError, OidcProvider};
use orrery_service::options::compaction_within;
use orrery_service::ports::connections::Connections;
use orrery_service::ports::guests::answer_guests;
use orrery_service::query_log::QueryLog;
use orrery_service::query_threads::STACK_BYTES;
use orrery_service::traces::Tracer;
use orrery_service::users::authentication::Authentication;
use orrery_service::writes::seat::Seat;
use orrery_service::{Service, ServiceParts};
use orrery_sparql::{Engine, EngineOptions};
use orrery_sql::Guests;
use orrery_storage::{ByteCount, Database, Error as StorageError, Writer, reason};
use orrery_tls::Tls;
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Interval at which the server looks for a new state of the database.
const REFRESH_PERIOD: Duration = Duration::from_secs(1);
/// Least memory of a server.
pub const MEMORY_BYTES_MIN: u64 = 256 << 20;
/// Memory per concurrent query: each needs a thread, whose allocator retains pages.
const MEMORY_BYTES_PER_QUERY: u64 = 64 << 20;
/// How long last answers may take after the grace period.
const LAST_WORD_MAX: Duration = Duration::from_secs(1);
/// Pause after a failed accept, which mostly means that all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Why the server could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The memory limit is too small.
    #[error(
        "{} of memory are not enough for a server; give it --memory {}M at least",
        ByteCount(*memory_bytes),
        MEMORY_BYTES_MIN >> 20
    )]
    Memory {
        /// The limit given.
        memory_bytes: u64,
    },
    /// The address is in use, or not of this machine.
    #[error(
        "cannot listen on {address}: {}; choose another with {option}",
        reason(source)
    )]
    Listen {
        /// The option that gives the address.
        option: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The database could not be opened.
    #[error("cannot serve {}: {source}", db.display())]
    Database {
        /// Directory of the database.
        db: PathBuf,
        /// The storage's error.
        source: orrery_storage::Error,
    },
    /// The engine could not be set up.
    #[error("cannot start the query engine: {0}")]
    Engine(#[from] orrery_sparql::QueryError),
    /// The client for requests to remote endpoints could not be set up.
    #[error(transparent)]
    Remote(#[from] orrery_http_client::Error),
    /// PostgreSQL's port could not be set up.
    #[error(transparent)]
    Postgres(#[from] orrery_postgres::StartError),
    /// The Arrow Flight SQL port could not be set up.
    #[error(transparent)]
    Flight(#[from] orrery_flight::StartError),
    /// TLS for HTTP could not be set up.
    #[error(transparent)]
    Tls(#[from] orrery_tls::TlsError),
    /// The OpenID provider's settings are not valid.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// An option authenticates users, and there are none.
    #[error("{option} is about users, and the database has none; start the server with --auth")]
    NobodyToVouchFor {
        /// The option.
        option: &'static str,
    },
    /// Users, groups and rules cannot be read or written.
    #[error(transparent)]
    Users(#[from] orrery_access::Error),
    /// One password for all clients of a port was given, and users have passwords of their own.
    #[error(
        "the database has users, who have passwords of their own: leave the one password of {port} out ({options})"
    )]
    OnePassword {
        /// The port.
        port: &'static str,
        /// The options that give the password.
        options: &'static str,
    },
    /// There are no users, and none can be created.
    #[error(
        "the database has no users, and is only read here; make an administrator with `orrery user add NAME --administrator`"
    )]
    NoAdministrator,
    /// Another process created users while this server answered every request.
    #[error("the database has users now: start the server again, so that it asks who asks")]
    UsersCame,
    /// The system refused threads.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// A server that is bound, and does not answer yet.
#[derive(Debug)]
pub struct Server {
    database: Arc<Database>,
    listener: TcpListener,
    router: Router,
    /// None if there is no admin socket.
    admin: Option<(TcpListener, Router)>,
    /// None if PostgreSQL's port is not served.
    postgres: Option<Port>,
    /// None if the Arrow Flight SQL port is not served.
    flight: Option<Port>,
    /// Clients of other nodes whose changes run here; none without a cluster.
    guests: Option<Arc<Guests>>,
    /// Announces to the router that the grace period is over.
    over: watch::Sender<bool>,
    /// Whether requests are authenticated.
    has_users: bool,
    seat: Arc<Seat>,
    warming: Warming,
    /// None if no directory could be created.
    temporary: Option<TemporaryFiles>,
    /// None if there is no query log.
    query_log: Option<Arc<QueryLog>>,
    metrics: Arc<Metrics>,
    /// None if no traces are sent.
    tracer: Option<Arc<Tracer>>,
    /// Whether requests carry the client's address, for logs and for limits of unknown senders.
    wants_peers: bool,
    /// None if HTTP is not encrypted.
    tls: Option<Arc<Tls>>,
    grace: Duration,
    connections_max: usize,
    /// Open connections by address.
    open: Arc<OpenConnections>,
    /// None if no proxy is trusted.
    proxies: Option<Arc<TrustedProxies>>,
    client_times: ClientTimes,
}

impl Server {
    /// Wraps the router in a layer, such as authentication; see [`router`](orrery_http::router()).
    #[must_use]
    pub fn around(mut self, layer: impl FnOnce(Router) -> Router) -> Self {
        self.router = layer(self.router);
        self
    }

    /// Opens the database and binds the address. Port 0 takes any free port.
    pub async fn bind(mut options: ServerOptions) -> Result<Self, ServeError> {
        if options.is_process_bound {
            bind_process(&mut options)?;
        }
        let database = Arc::new(open(&options)?);
        let warming = Warming::start(&database, options.warm_bytes)?;
        let own_address = own_address(&options);
        if let (Some(objects), Some(address)) = (&options.objects, &own_address) {
            objects.set_own_address(address.clone());
        }
        let mut writer = writer(&database, &options);
        let background = compaction_options(&options);
        let temporary = TemporaryFiles::of_server(&mut options.temp_dir);
        let defaults = EngineOptions::default();
        let engine_options = EngineOptions {
            memory_bytes: options.memory_bytes,
            is_process_bound: options.is_process_bound,
            temp_dir: options.temp_dir.clone(),
            service: options.endpoints.service()?,
            query_bytes_max: options.query_bytes_max,
            threads: options.threads.unwrap_or(defaults.threads),
            ..defaults
        };
        let engine = Engine::new(Arc::clone(&database), engine_options)?;
        let engine = Arc::new(orrery_r2rml::mapped(engine, &options.service.foreign));
        let take = || self::writer(&database, &options);
        let first_administrator = first_user::make(&database, &options, &mut writer, take).await?;
        let tls = options.tls.take();
        let asks_for_certificates = tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let tls = tls.map(|files| Tls::open(files, ALPN)).transpose()?;
        let oidc = options.oidc.take().map(OidcProvider::new).transpose()?;
        let mut authentication = Authentication::of(&database)?;
        if authentication.is_none() {
            let by_certificates = asks_for_certificates.then_some("--tls-client-ca");
            let option = by_certificates.or(oidc.as_ref().map(|_| "--oidc-issuer"));
            if let Some(option) = option {
                return Err(ServeError::NobodyToVouchFor { option });
            }
        }
        if let (Some(authentication), Some(oidc)) = (&mut authentication, oidc) {
            authentication.take_tokens_of(oidc);
        }
        if authentication.is_some() {
            ask_users(options.postgres.as_mut(), options.flight.as_mut())?;
        }
        match (&authentication, options.auth) {
            (None, Some(_)) => return Err(ServeError::NoAdministrator),
            (Some(_), _) if tls.is_none() && is_public(options.listen, options.admin) => {
                tracing::warn!(
                    "passwords and keys come in the clear: give --tls-certificate and --tls-key, or let a proxy with TLS stand before this server"
                )
            }
            _ => {}
        }
        // Before the HTTP port: a client that reaches that port finds this one, too.
        let postgres = match options.postgres.take() {
            Some(options) => Some(orrery_postgres::Listener::bind(options).await?),
            None => None,
        };
        let flight = options.flight.take();
        let flight = flight.map(orrery_flight::Listener::bind).transpose()?;
        let admin = match options.admin {
            Some(address) => Some(listen(address, "--admin").await?),
            None => None,
        };
        let listener = listen(options.listen, "--listen").await?;
        // Also without --stand-by: a server that found the role taken, or whose store was away,
        // must not stay without it.
        let stand_by = (!options.is_read_only).then(|| StandBy {
            database: Arc::clone(&database),
            writer: options.writer.clone(),
            compaction: background.clone(),
            objects: options.objects.clone(),
            cluster: options.service.cluster.clone(),
            own_address,
            leaves_when_failed: options.stands_by || options.objects.is_some(),
            trouble: Mutex::default(),
        });
        let compaction = writer
            .as_ref()
            .ok()
            .map(|writer| BackgroundCompaction::start(writer.clone(), background));
        let compaction = compaction.transpose();
        let compaction = compaction.map_err(|error| ServeError::System(io::Error::other(error)))?;
        let documents = Documents::new(options.load_dir, options.load_allow)
            .map_err(|error| ServeError::System(io::Error::other(error)))?
            .counted_in(&engine);
        let proxies = (!options.trust_proxy.is_empty()).then(|| Arc::new(options.trust_proxy));
        let (over, is_over) = watch::channel(false);
        let has_users = authentication.is_some();
        options.service.lists_queries |= options.admin.is_some();
        let service = Service::start(ServiceParts {
            engine,
            options: options.service,
            authentication,
            documents: Some(Arc::new(documents)),
            writer,
            compaction,
            is_over,
        })?;
        let state = HttpState::new(
            Arc::clone(&service),
            options.http,
            options.listen,
            options.allow_writes,
        );
        if let (Some(audit), Some(name)) = (&service.audit, first_administrator) {
            audit.act(&Act {
                user: None,
                client: None,
                act: &format!("make the first administrator {name}"),
                outcome: "done",
                commit: None,
            });
        }
        let admin = admin.zip(options.admin);
        let admin =
            admin.map(|(listener, address)| (listener, admin_routes(Arc::clone(&state), address)));
        let flight = flight.map(PortListener::Flight);
        let flight = flight.map(|listener| Port::new(listener, &service));
        let postgres = postgres.map(PortListener::Postgres);
        let postgres = postgres.map(|listener| Port::new(listener, &service));
        let guests = match &service.options.cluster {
            Some(cluster) => {
                let guests = answer_guests(cluster.as_ref(), &service);
                Some(guests.map_err(io::Error::other)?)
            }
            None => None,
        };
        if let Some(guests) = &guests {
            service.metrics.set_guests(guests);
        }
        if let Some(stand_by) = stand_by {
            tokio::spawn(stand_by.run(Arc::downgrade(&service)));
        }
        service.metrics.set_connections_max(options.connections_max);
        if let Some(objects) = options.objects {
            service.metrics.set_objects(objects);
        }
        Ok(Self {
            database,
            listener,
            seat: Arc::clone(&service.seat),
            query_log: service.query_log.clone(),
            metrics: Arc::clone(&service.metrics),
            tracer: service.tracer.clone(),
            wants_peers: service.query_log.is_some()
                || service.running.is_some()
                || service.audit.is_some()
                || service.tracer.is_some()
                || service.authentication.is_some(),
            router: router(state),
            admin,
            postgres,
            flight,
            guests,
            over,
            has_users,
            warming,
            temporary,
            tls,
            grace: options.grace,
            connections_max: options.connections_max,
            open: OpenConnections::new(AddressRule {
                connections_max: options.connections_per_address,
                counts_loopback: options.counts_loopback,
                proxies: proxies.clone(),
            }),
            proxies,
            client_times: options.client_times,
        })
    }

    /// The address that clients can connect to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address that PostgreSQL's clients can connect to.
    pub fn postgres_addr(&self) -> Option<io::Result<SocketAddr>> {
        self.postgres.as_ref().map(Port::local_addr)
    }

    /// The address that clients of Arrow Flight SQL can connect to.
    pub fn flight_addr(&self) -> Option<io::Result<SocketAddr>> {
        self.flight.as_ref().map(Port::local_addr)
    }

    /// The address of the admin socket.
    pub fn admin_addr(&self) -> Option<io::Result<SocketAddr>> {
        self.admin
            .as_ref()
            .map(|(listener, _)| listener.local_addr())
    }

    /// Answers requests until `shutdown` completes and the grace period is over.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let (stop, stopping) = watch::channel(false);
        let postgres = self.postgres.map(|it| it.start(stopping.clone()));
        let flight = self.flight.map(|it| it.start(stopping.clone()));
        let tls = self.tls;
        if let Some(tls) = &tls {
            tls.watch();
        }
        let mut connections = JoinSet::new();
        let times = self.client_times;
        let metrics = &self.metrics;
        let of_http = metrics.connections(Listens::Http);
        let of_admin = metrics.connections(Listens::Admin);
        let mut shutdown = pin!(shutdown);
        let mut refresh = pin!(refresh_until_users_come(self.database, self.has_users));
        let mut ended = Ok(());
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = &mut refresh => {
                    ended = Err(ServeError::UsersCame);
                    break;
                }
                // Ended connections are collected as they end.
                Some(ended) = connections.join_next(), if !connections.is_empty() => {
                    if ended.is_err_and(|error| error.is_panic()) {
                        metrics.note_panic();
                    }
                }
                accepted = self.listener.accept(), if connections.len() < self.connections_max => {
                    match accepted {
                        Ok((stream, address)) => {
                            // Closed at once if its address has the maximum of connections.
                            if let Some(open) = self.open.open(address.ip()) {
                                let service = self.router.clone();
                                let peer = self.wants_peers.then(|| FarEnd::new(address.ip(), self.proxies.clone()));
                                let counted = Arc::clone(of_http);
                                let answered = answer(stream, tls.clone(), (peer, counted), times, service, stopping.clone());
                                connections.spawn(async move {
                                    answered.await;
                                    drop(open);
                                });
                            } else {
                                of_http.note_refused();
                            }
                        }
                        Err(error) => wait_to_accept(&error, of_http).await,
                    }
                }
                // Accepted beyond the limit of connections, too: administrators get in while all
                // others wait.
                accepted = accept_admin(self.admin.as_ref()) => {
                    match accepted {
                        Ok((stream, address, service)) => {
                            let peer = self.wants_peers.then(|| FarEnd::new(address.ip(), self.proxies.clone()));
                            let counted = Arc::clone(of_admin);
                            connections.spawn(answer(stream, tls.clone(), (peer, counted), times, service, stopping.clone()));
                        }
                        Err(error) => wait_to_accept(&error, of_admin).await,
                    }
                }
            }
        }
        drop((self.listener, self.admin));
        tracing::info!("stopping; {} connections are open", connections.len());
        // All receivers may be gone already.
        let _ = stop.send(true);
        if !ended_within(self.grace, &mut connections).await {
            tracing::warn!(
                "{} requests were still running after {:?} and are cancelled",
                connections.len(),
                self.grace
            );
            let _ = self.over.send(true);
            if !ended_within(LAST_WORD_MAX, &mut connections).await {
                connections.shutdown().await;
            }
        }
        if let Some(guests) = self.guests {
            guests.stop();
        }
        for (clients, served) in [("PostgreSQL", postgres), ("Flight SQL", flight)] {
            if let Some(served) = served
                && let Err(error) = served.await
            {
                tracing::error!("serving clients of {clients} failed: {error}");
            }
        }
        if let Some(tracer) = &self.tracer {
            tracer.finish().await;
        }
        let (seat, warming) = (self.seat, self.warming);
        let ending = move || {
            // This ends a running compaction, and waits for that.
            seat.close();
            drop(warming);
            // After all requests, so that their entries are in the log.
            if let Some(query_log) = self.query_log {
                query_log.finish();
            }
        };
        if let Err(error) = tokio::task::spawn_blocking(ending).await {
            tracing::error!("ending the work in the background failed: {error}");
        }
        // Removed once everything that creates temporary files has ended.
        drop(self.temporary);
        tracing::info!("stopped");
        ended
    }
}

/// Has the other ports authenticate clients as users.
fn ask_users(
    postgres: Option<&mut PostgresOptions>,
    flight: Option<&mut FlightOptions>,
) -> Result<(), ServeError> {
    if let Some(postgres) = postgres {
        postgres.has_users = true;
        if postgres.password.is_some() {
            return Err(ServeError::OnePassword {
                port: "PostgreSQL's clients",
                options: "--pg-password-file, ORRERY_PG_PASSWORD",
            });
        }
    }
    if let Some(flight) = flight {
        flight.has_users = true;
        if flight.password.is_some() {
            return Err(ServeError::OnePassword {
                port: "Flight SQL",
                options: "--flight-password-file, ORRERY_FLIGHT_PASSWORD",
            });
        }
    }
    Ok(())
}

/// Whether other machines can reach an address at which users authenticate.
fn is_public(listen: SocketAddr, admin: Option<SocketAddr>) -> bool {
    let addresses = [Some(listen), admin];
    let mut addresses = addresses.into_iter().flatten();
    addresses.any(|address| !address.ip().is_loopback())
}

async fn listen(address: SocketAddr, option: &'static str) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| ServeError::Listen {
        option,
        address,
        source,
    })
}

/// The next connection to the admin socket; never, without one.
async fn accept_admin(
    admin: Option<&(TcpListener, Router)>,
) -> io::Result<(TcpStream, SocketAddr, Router)> {
    match admin {
        Some((listener, router)) => {
            let (stream, address) = listener.accept().await?;
            Ok((stream, address, router.clone()))
        }
        None => std::future::pending().await,
    }
}

async fn wait_to_accept(error: &io::Error, connections: &Connections) {
    connections.note_refused();
    tracing::warn!("cannot accept a connection: {error}");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Whether all connections end by themselves within this time.
async fn ended_within(time: Duration, connections: &mut JoinSet<()>) -> bool {
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(time, ended).await.is_ok()
}

/// Takes up new states of the database that loads publish: running queries keep the state that they
/// began with, new ones read the new state. Ends if the database has users by now, whom this server
/// does not authenticate.
async fn refresh_until_users_come(database: Arc<Database>, has_users: bool) {
    let mut period = tokio::time::interval(REFRESH_PERIOD);
    period.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The last failure; each is logged once, not every second.
    let mut last_trouble = String::new();
    loop {
        period.tick().await;
        let refreshed = Arc::clone(&database);
        match tokio::task::spawn_blocking(move || refreshed.refresh()).await {
            Ok(Ok(true)) => {
                tracing::info!("the database has a new state, which is served now");
                let snapshot = database.snapshot();
                let users = orrery_access::read(snapshot.tables());
                if !has_users && users.is_ok_and(|users| !users.is_empty()) {
                    return;
                }
            }
            Ok(Ok(false)) => last_trouble.clear(),
            Ok(Err(error)) => {
                let trouble = error.to_string();
                if trouble != last_trouble {
                    tracing::warn!("still serving the old state: {trouble}");
                }
                last_trouble = trouble;
            }
            Err(error) => tracing::error!("looking for a new state failed: {error}"),
        }
    }
}

/// Refuses too little memory, and bounds concurrent queries to what the memory allows.
fn bind_process(options: &mut ServerOptions) -> Result<(), ServeError> {
    let memory_bytes = options.memory_bytes;
    if memory_bytes < MEMORY_BYTES_MIN {
        return Err(ServeError::Memory { memory_bytes });
    }
    let fitting = usize::try_from(memory_bytes / MEMORY_BYTES_PER_QUERY).unwrap_or(usize::MAX);
    options.service.queries_running_max = options.service.queries_running_max.min(fitting);
    Ok(())
}

/// The URL at which other servers reach this one, as far as known.
fn own_address(options: &ServerOptions) -> Option<String> {
    let listens = options.listen;
    let is_one = !listens.ip().is_unspecified() && listens.port() != 0;
    let scheme = match options.tls {
        Some(_) => "https",
        None => "http",
    };
    let advertised = options.advertise.clone();
    advertised.or_else(|| is_one.then(|| format!("{scheme}://{listens}")))
}

/// The writer, or the reason why the server only reads.
fn writer(database: &Arc<Database>, options: &ServerOptions) -> Result<Writer, String> {
    if options.is_read_only {
        return Err("it was started with --read-only".to_owned());
    }
    if let Some(cluster) = &options.service.cluster
        && !cluster.leads()
    {
        return Err("it stands by: another node leads".to_owned());
    }
    let writer = database.open_writer(options.writer.clone());
    writer.map_err(|error| {
        match options.stands_by {
            true => tracing::info!("standing by: {error}"),
            false if matches!(error, StorageError::Locked { .. }) => tracing::warn!(
                "another process writes this database: serving what it commits, and taking over when it has ended ({error})"
            ),
            false => {
                tracing::warn!("serving read-only until this database can be written: {error}");
            }
        }
        error.to_string()
    })
}

/// Options of compaction, whose memory adds to that of the queries.
fn compaction_options(options: &ServerOptions) -> BackgroundOptions {
    let defaults = BackgroundOptions::default();
    BackgroundOptions {
        changes_min: options.compact_quads,
        compact: compaction_within(options.memory_bytes),
        ..defaults
    }
}

fn open(options: &ServerOptions) -> Result<Database, ServeError> {
    let opened = match &options.objects {
        Some(files) => Database::open_with(Arc::clone(files) as _, &options.db),
        None => Database::open(&options.db),
    };
    opened.map_err(|source| ServeError::Database {
        db: options.db.clone(),
        source,
    })
}

/// Opens the database, listens, and answers until `shutdown` completes. Blocks; starts the HTTP
/// threads, one per core, within which `shutdown` is polled. Calls `listening` with the address as
/// soon as clients can connect.
pub fn serve(
    options: ServerOptions,
    listening: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let http_threads = tokio::runtime::Builder::new_multi_thread()
        .thread_name("orrery-http")
        // Small queries run here, too.
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()?;
    http_threads.block_on(async {
        let server = Server::bind(options).await?;
        let address = server.local_addr()?;
        let scheme = server.tls.as_ref().map_or("http", |_| "https");
        tracing::info!("listening on {scheme}://{address}/");
        if let Some(admin) = server.admin_addr() {
            tracing::info!(
                "users are administered at {scheme}://{}/admin/access",
                admin?
            );
        }
        listening(address);
        server.run(shutdown).await
    })
}

/// Completes when the process is asked to stop: SIGTERM, or SIGINT from a terminal.
pub async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = signal(SignalKind::terminate())
        .and_then(|terminate| Ok((terminate, signal(SignalKind::interrupt())?)));
    match signals {
        Ok((mut terminate, mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        Err(error) => {
            // The signals keep their default, which ends the process without a grace period.
            tracing::error!("no handler for signals: {error}");
            std::future::pending().await
        }
    }
}
