//! Settings of the server, with their defaults.

use orrery_flight::FlightOptions;
use orrery_http::{ClientTimes, HttpOptions, TrustedProxies};
use orrery_http_client::AllowList;
use orrery_object_store::ObjectFileSystem;
use orrery_postgres::PostgresOptions;
use orrery_service::endpoints::EndpointOptions;
use orrery_service::oidc::OidcOptions;
use orrery_service::options::ServiceOptions;
use orrery_sparql::EngineOptions;
use orrery_storage::WriterOptions;
use orrery_tls::TlsFiles;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Default port of the server.
pub const PORT_DEFAULT: u16 = 7878;

/// The options of `serve`.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Directory of the database.
    pub db: PathBuf,
    /// The object store's file system that the directory is on; none for a local directory.
    pub objects: Option<Arc<ObjectFileSystem>>,
    /// Address to listen on; loopback by default: a database without users answers every request.
    pub listen: SocketAddr,
    /// Memory that all queries together may use before they spill to disk.
    pub memory_bytes: u64,
    /// Busy-thread limit; beyond it each large query gets one thread. All cores if not given.
    pub threads: Option<usize>,
    /// Whether that memory bounds the process as a whole.
    pub is_process_bound: bool,
    /// Directory that queries spill to. It should not be on a memory file system.
    pub temp_dir: PathBuf,
    /// Longest text of a query, in bytes.
    pub query_bytes_max: usize,
    /// Limits and behaviour of statements, whichever protocol they come by.
    pub service: ServiceOptions,
    /// Limits and behaviour of the HTTP interface.
    pub http: HttpOptions,
    /// How long running requests may continue after a stop was requested.
    pub grace: Duration,
    /// Accepts no changes, and leaves the writer's lock to others.
    pub is_read_only: bool,
    /// Takes the writer role whenever it is free, and follows the server that has it.
    pub stands_by: bool,
    /// URL at which other servers reach this one; derived from the listening address if not given.
    pub advertise: Option<String>,
    /// Accepts changes even if other machines can reach the server.
    pub allow_writes: bool,
    /// Directory whose files `LOAD` of an update may read as `file:` IRIs.
    pub load_dir: Option<PathBuf>,
    /// Hosts that `LOAD` of an update may ask.
    pub load_allow: AllowList,
    /// Options of the writer.
    pub writer: WriterOptions,
    /// Number of changes that starts a background compaction, if they also are an eighth of the
    /// base.
    pub compact_quads: u64,
    /// Reads the database into memory in the background, up to this many bytes.
    pub warm_bytes: Option<u64>,
    /// Connections open at the same time; more wait in the system's queue.
    pub connections_max: usize,
    /// HTTP connections that one address may have open; more are closed at once. Programs of this
    /// machine and trusted proxies have no such limit.
    pub connections_per_address: usize,
    /// Counts connections of this machine like those of others: for tests.
    pub counts_loopback: bool,
    /// Proxies whose headers about the client's address are trusted.
    pub trust_proxy: TrustedProxies,
    /// How long HTTP clients may keep a connection waiting.
    pub client_times: ClientTimes,
    /// Endpoints that `SERVICE` may ask.
    pub endpoints: EndpointOptions,
    /// Creates an administrator in a database without users, and passes the name and password to
    /// this function, which shows them once. A database with users requires authentication anyway.
    pub auth: Option<fn(&str, &str)>,
    /// Address of the admin socket, for users, groups, keys and rules; none if not given.
    pub admin: Option<SocketAddr>,
    /// Certificate and key: with them HTTP and the admin socket speak only TLS.
    pub tls: Option<TlsFiles>,
    /// The OpenID provider whose tokens authenticate users; none if not given.
    pub oidc: Option<OidcOptions>,
    /// Options of PostgreSQL's port; none if it is not served.
    pub postgres: Option<PostgresOptions>,
    /// Options of the Arrow Flight SQL port; none if it is not served.
    pub flight: Option<FlightOptions>,
}

impl ServerOptions {
    /// The defaults for a database.
    pub fn new(db: impl Into<PathBuf>) -> Self {
        Self {
            db: db.into(),
            objects: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT_DEFAULT)),
            memory_bytes: 4 << 30,
            threads: None,
            is_process_bound: false,
            temp_dir: std::env::temp_dir(),
            query_bytes_max: EngineOptions::default().query_bytes_max,
            service: ServiceOptions::default(),
            http: HttpOptions::default(),
            grace: Duration::from_secs(10),
            is_read_only: false,
            stands_by: false,
            advertise: None,
            allow_writes: false,
            compact_quads: 250_000,
            load_dir: None,
            load_allow: AllowList::default(),
            writer: WriterOptions::default(),
            warm_bytes: None,
            connections_max: 1024,
            connections_per_address: 256,
            counts_loopback: false,
            trust_proxy: TrustedProxies::default(),
            client_times: ClientTimes::default(),
            endpoints: EndpointOptions::default(),
            auth: None,
            admin: None,
            tls: None,
            oidc: None,
            postgres: None,
            flight: None,
        }
    }
}
