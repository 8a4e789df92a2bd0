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

/// Port of the server unless told otherwise.
pub const PORT_DEFAULT: u16 = 7878;

/// Everything `serve` needs to know.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Directory of the database.
    pub db: PathBuf,
    /// The file system that the directory is on, where that is one of an object store.
    pub objects: Option<Arc<ObjectFileSystem>>,
    /// Address to listen on; loopback by default: a database without users answers everybody.
    pub listen: SocketAddr,
    /// Memory that all queries together may use before they spill to disk.
    pub memory_bytes: u64,
    /// Threads that queries may keep busy together before large ones do with one each; all cores if not given.
    pub threads: Option<usize>,
    /// Whether the process as a whole is to stay within that memory.
    pub is_process_bound: bool,
    /// Where queries spill to. It should not be a memory file system.
    pub temp_dir: PathBuf,
    /// Longest query.
    pub query_bytes_max: usize,
    /// Limits and behaviour of statements, whichever protocol they come by.
    pub service: ServiceOptions,
    /// Limits and behaviour of the HTTP interface.
    pub http: HttpOptions,
    /// How long running requests may go on after a stop was asked for.
    pub grace: Duration,
    /// Takes no writes, and leaves the writer's lock to others.
    pub is_read_only: bool,
    /// Takes the writer's place whenever that is free, and follows whoever has it.
    pub stands_by: bool,
    /// Where other servers reach this one; the address that it listens on if not given.
    pub advertise: Option<String>,
    /// Takes writes also where others than this machine can reach the server.
    pub allow_writes: bool,
    /// `LOAD` of an update may read `file:` IRIs below this directory.
    pub load_dir: Option<PathBuf>,
    /// `LOAD` of an update may ask these hosts.
    pub load_allow: AllowList,
    /// How the writer works.
    pub writer: WriterOptions,
    /// Changes from which on, if they also are an eighth of the base, they are taken into it in the background.
    pub compact_quads: u64,
    /// Reads the database into memory beside the first requests, as far as it goes into so many bytes.
    pub warm_bytes: Option<u64>,
    /// Connections open at the same time; more wait in the system's queue.
    pub connections_max: usize,
    /// Connections of HTTP that one address may have open; more are closed at once. Programs of this machine and trusted proxies have no bound of their own.
    pub connections_per_address: usize,
    /// Counts the connections of this machine as those of others: for tests.
    pub counts_loopback: bool,
    /// Proxies whose word is taken for whom they were asked by.
    pub trust_proxy: TrustedProxies,
    /// How long clients of HTTP may keep a connection waiting.
    pub client_times: ClientTimes,
    /// Whom `SERVICE` may ask.
    pub endpoints: EndpointOptions,
    /// Has a database without users get an administrator, whose name and password this is told: they are seen once. A database with users
    /// asks who asks anyway.
    pub auth: Option<fn(&str, &str)>,
    /// Where users, groups, keys and rules are administered, if anywhere.
    pub admin: Option<SocketAddr>,
    /// Certificate and key: with them HTTP and the admin socket speak TLS alone.
    pub tls: Option<TlsFiles>,
    /// Who vouches for users by tokens, if anybody.
    pub oidc: Option<OidcOptions>,
    /// How PostgreSQL's clients are served, if they are.
    pub postgres: Option<PostgresOptions>,
    /// How clients of Arrow Flight SQL are served, if they are.
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
