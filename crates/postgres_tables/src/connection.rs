//! Connections to foreign servers, with settings under which texts and comparisons mean the same
//! everywhere.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_postgres::config::SslMode as WantedTls;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{Server, SslMode};
use crate::error::{Error, Result};
use crate::passwords::password;
use crate::rights::Rights;
use crate::tls::connector;

/// What makes texts and comparisons mean the same whatever the server's and the role's settings
/// are; nothing is written.
const SETTINGS: &str = "SET default_transaction_read_only = on; SET search_path = pg_catalog; SET standard_conforming_strings = on; \
     SET DateStyle = 'ISO, YMD'; SET IntervalStyle = postgres; SET TimeZone = 'UTC'; SET bytea_output = hex; SET extra_float_digits = 3; \
     SET client_min_messages = error";
/// The encoding that a server is to have: in others texts have another order.
const ENCODING: &str = "UTF8";
/// After so long without a sign of the other side it is asked for one.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// A connection to a server; ends when it is dropped.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) tls: MakeRustlsConnect,
    pub(crate) task: AbortHandle,
}

/// Connects to the first address of the host that is allowed and answers.
pub(crate) async fn connect(rights: &Rights, server: &Server) -> Result<Connection> {
    let failed = |words: String| Error::Connect {
        server: server.to_string(),
        words,
    };
    let found = tokio::net::lookup_host((server.host.as_str(), server.port)).await;
    let found = found.map_err(|error| failed(error.to_string()))?;
    let (mut last, mut refused) = (None, None);
    for address in found.map(|address: SocketAddr| address.ip()) {
        if let Err(error) = rights.check_address(server, address) {
            refused = Some(error);
            continue;
        }
        match connect_to(rights, server, address).await {
            Ok(connection) => return Ok(connection),
            Err(error) => last = Some(error),
        }
    }
    let error = last.or(refused);
    Err(error.unwrap_or_else(|| failed("its name leads to no address".to_owned())))
}

async fn connect_to(rights: &Rights, server: &Server, address: IpAddr) -> Result<Connection> {
    let mut config = Config::new();
    config
        .host(&server.host)
        .hostaddr(address)
        .port(server.port)
        .user(&server.user)
        .dbname(&server.database)
        .application_name("orrery")
        .connect_timeout(server.connect_timeout)
        .keepalives_idle(KEEPALIVE_IDLE)
        .ssl_mode(match server.ssl_mode {
            SslMode::Disable => WantedTls::Disable,
            SslMode::Prefer => WantedTls::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => WantedTls::Require,
        });
    if let Some(password) = password(server, rights.passwords.as_deref())? {
        config.password(password);
    }
    let tls = connector(server)?;
    let name = server.to_string();
    let connected = config.connect(tls.clone()).await;
    let (client, connection) = connected.map_err(|error| Error::of_connect(&error, &name))?;
    let encoding = connection.parameter("server_encoding").map(str::to_owned);
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection to {name} ended: {error}");
        }
    });
    let connection = Connection {
        client,
        tls,
        task: task.abort_handle(),
    };
    if encoding.as_deref() != Some(ENCODING) {
        return Err(Error::Unsupported {
            what: format!(
                "{server} has the encoding {}, and only {ENCODING} is read",
                encoding.unwrap_or_default()
            ),
            hint: "Texts have another order there.".to_owned(),
        });
    }
    let settings = connection.client.batch_execute(SETTINGS).await;
    settings.map_err(|error| Error::of_connect(&error, &server.to_string()))?;
    Ok(connection)
}
