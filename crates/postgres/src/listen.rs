//! The listener: accepts connections, gives each a task on the query threads, and stops them
//! cleanly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use orrery_service::ports::denied::Denied;
use orrery_service::ports::host::Host;
use orrery_service::ports::users::{Caller, PortUsers};
use orrery_tls::{Served, Tls};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::connection::{Client, Connection};
use crate::options::{PostgresOptions, StartError};
use crate::refusal::{Refusal, Stop};
use crate::shared::{Shared, Stage, close};
use crate::startup::{self, greet, negotiate, prove, wrong_password};

/// Pause after a failed accept, which mostly means that all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// How long the last answers may take to send after the grace period.
const LAST_WORD_MAX: Duration = Duration::from_secs(1);
/// Connections that are not started yet, beside the open ones: they cancel statements, or are told
/// to come back.
const STARTING_MAX: usize = 64;

/// A bound listener that does not answer yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    options: PostgresOptions,
    tls: Option<Arc<Tls>>,
}

impl Listener {
    /// Binds the address. Port 0 takes any free one.
    ///
    /// # Errors
    /// When others could reach the address and there is no password, when the address is taken, or
    /// when the TLS files are unusable.
    pub async fn bind(options: PostgresOptions) -> Result<Self, StartError> {
        let address = options.listen;
        let asks_who = options.has_users || options.password.is_some();
        if !address.ip().is_loopback() && !asks_who {
            return Err(StartError::NoPassword { address });
        }
        let tls = options.tls.clone();
        let tls = tls
            .map(|files| Tls::open(files, startup::ALPN))
            .transpose()?;
        let socket = TcpListener::bind(address).await;
        Ok(Self {
            socket: socket.map_err(|source| StartError::Listen { address, source })?,
            options,
            tls,
        })
    }

    /// The address that clients can connect to.
    ///
    /// # Errors
    /// When the system does not know it.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers until `stop` becomes true (or its sender goes) and the grace period is over.
    pub async fn run(self, host: Host, mut stop: watch::Receiver<bool>) {
        let (stages, stage) = watch::channel(Stage::Serving);
        let grace = self.options.grace;
        if let Some(tls) = &self.tls {
            tls.watch();
        }
        let shared = Arc::new(Shared {
            connections: Arc::new(Semaphore::new(self.options.connections_max)),
            tls: self.tls,
            keys: Arc::default(),
            options: self.options,
            host,
            stage,
        });
        let open_max = shared.options.connections_max + STARTING_MAX;
        let mut open = JoinSet::new();
        let stopped = async {
            // Without a sender nothing can stop it later.
            let _ = stop.wait_for(|is_stopping| *is_stopping).await;
        };
        let mut stopped = std::pin::pin!(stopped);
        loop {
            tokio::select! {
                () = &mut stopped => break,
                Some(_) = open.join_next(), if !open.is_empty() => {}
                accepted = self.socket.accept(), if open.len() < open_max => match accepted {
                    Ok((stream, address)) => {
                        let shared = Arc::clone(&shared);
                        let threads = shared.host.threads().clone();
                        let counted = shared.host.connections().accept();
                        let served = async move {
                            let _counted = counted;
                            serve(stream.into_std(), address, shared).await;
                        };
                        open.spawn_on(served, &threads);
                    }
                    Err(error) => {
                        shared.host.connections().note_refused();
                        tracing::warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(self.socket);
        // Every receiver may be gone already.
        let _ = stages.send(Stage::Stopping);
        if ended_within(grace, &mut open).await {
            return;
        }
        tracing::warn!(
            "{} statements of PostgreSQL's clients were still running after {grace:?} and are cancelled",
            open.len()
        );
        let _ = stages.send(Stage::Over);
        if !ended_within(LAST_WORD_MAX, &mut open).await {
            open.shutdown().await;
        }
    }
}

/// Whether all connections end by themselves within this time.
async fn ended_within(time: Duration, open: &mut JoinSet<()>) -> bool {
    let ended = async { while open.join_next().await.is_some() {} };
    tokio::time::timeout(time, ended).await.is_ok()
}

/// Serves one connection, from its first byte to its last.
async fn serve(
    stream: std::io::Result<std::net::TcpStream>,
    address: SocketAddr,
    shared: Arc<Shared>,
) {
    let served = async {
        let stream = TcpStream::from_std(stream?)?;
        // Without it the kernel delays the second half of a small answer by 40 ms.
        stream.set_nodelay(true)?;
        let started = start(stream, address, Arc::clone(&shared));
        let started = tokio::time::timeout(shared.options.startup_time_max, started).await;
        match started {
            Ok(Ok(Some((connection, _permit)))) => connection.run().await,
            Ok(Ok(None)) => Ok(()),
            Ok(Err(stop)) => Err(stop),
            Err(_elapsed) => Err(Refusal::fatal("57P05", "nothing came").into()),
        }
    };
    match served.await {
        Ok(()) => {}
        Err(Stop::Gone(error)) => tracing::debug!("PostgreSQL client {address} ended: {error}"),
        Err(Stop::Refused(refusal)) => tracing::debug!(
            "PostgreSQL client {address} was refused: {} ({})",
            refusal.message,
            refusal.code
        ),
    }
}

/// Authenticates a client and starts its session.
async fn start(
    stream: TcpStream,
    address: SocketAddr,
    shared: Arc<Shared>,
) -> Result<Option<(Connection, OwnedSemaphorePermit)>, Stop> {
    let bytes_max = shared.options.message_bytes_max;
    // One configuration for the whole start: the password exchange is bound to the certificate that
    // the client has seen.
    let tls = shared.tls.as_ref().map(|tls| tls.served());
    let greeted = greet(stream, tls.as_ref(), &shared.keys, bytes_max).await?;
    let Some(mut greeted) = greeted else {
        return Ok(None);
    };
    let let_in = let_in(&mut greeted, address, tls.as_ref(), &shared).await;
    let startup::Greeted {
        mut wire, greeting, ..
    } = greeted;
    match let_in {
        Ok((caller, permit)) => {
            let client = Client { address, caller };
            let connection = Connection::start(wire, greeting, client, shared).await?;
            Ok(connection.map(|connection| (connection, permit)))
        }
        Err(Stop::Refused(refusal)) => {
            shared.host.connections().note_refused();
            refusal.write(&mut wire.output);
            close(wire).await;
            Err(refusal.into())
        }
        Err(gone) => Err(gone),
    }
}

async fn let_in(
    greeted: &mut startup::Greeted,
    address: SocketAddr,
    tls: Option<&Served>,
    shared: &Shared,
) -> Result<(Option<Caller>, OwnedSemaphorePermit), Stop> {
    negotiate(&mut greeted.greeting, &mut greeted.wire.output);
    let user = greeted.greeting.settings.get("user").cloned();
    let user = user.unwrap_or_default();
    let tls = tls.filter(|_| greeted.is_secure);
    let caller = match (&shared.host.users, &shared.options.password) {
        (Some(users), _) => Some(known(greeted, address, tls, &user, users).await?),
        (None, Some(password)) => {
            let wire = &mut greeted.wire;
            let proof = prove(wire, password.verifier(), tls, address).await?;
            if !proof.is_right {
                return Err(wrong_password(&user).into());
            }
            proof.accept(wire)?;
            None
        }
        (None, None) => None,
    };
    let permit = Arc::clone(&shared.connections).try_acquire_owned();
    let permit = permit.map_err(|_| Refusal::fatal("53300", "sorry, too many clients already"))?;
    Ok((caller, permit))
}

/// The authenticated user that a client has named.
async fn known(
    greeted: &mut startup::Greeted,
    address: SocketAddr,
    tls: Option<&Served>,
    name: &str,
    users: &PortUsers,
) -> Result<Caller, Stop> {
    let certificate = greeted.certificate.as_ref();
    let by_certificate =
        certificate.and_then(|names| users.of_certificate(name, names.as_slice(), address.ip()));
    if let Some(caller) = by_certificate {
        return Ok(caller);
    }
    let told = |denied: Denied| match denied {
        Denied::Unknown(_) => wrong_password(name),
        denied => Refusal::fatal(denied.code(), denied.to_string()),
    };
    let attempt = users.scram(name, address.ip()).map_err(told)?;
    let wire = &mut greeted.wire;
    let proof = prove(wire, attempt.keys().into(), tls, address).await?;
    let caller = attempt.shown(proof.is_right).map_err(told)?;
    proof.accept(wire)?;
    Ok(caller)
}
