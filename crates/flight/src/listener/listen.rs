//! The listener: accepts connections on the query threads, and stops them cleanly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use orrery_service::ports::connections::OpenConnection;
use orrery_service::ports::host::Host;
use orrery_tls::{PeerNames, Tls};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tonic::transport::Server;

use crate::access::guard::Guarded;
use crate::access::peer::Peer;
use crate::calls::shared::Shared;
use crate::handles::ConnectionId;
use crate::life::{Stage, reached};
use crate::listener::service::Service;
use crate::listener::socket::{Bytes, Socket};
use crate::metadata::capabilities::capabilities;
use crate::options::{FlightOptions, StartError};

/// gRPC speaks HTTP/2 alone.
const ALPN: &[&[u8]] = &[b"h2"];
/// Pause after a failed accept, which mostly means that all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// A silent connection is probed with this period, and closed without an answer in the time below.
const ALIVE_PERIOD: Duration = Duration::from_secs(30);
const ALIVE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long the last answers may take to send after the grace period.
const LAST_WORD_MAX: Duration = Duration::from_secs(1);
/// Most connections that wait to be accepted.
const WAITING_MAX: usize = 16;

/// A bound listener that does not answer yet.
pub struct Listener {
    socket: std::net::TcpListener,
    options: FlightOptions,
    tls: Option<Arc<Tls>>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// Binds the address. Port 0 takes any free one.
    ///
    /// # Errors
    /// When others could reach the address and there is no password or no TLS, when the address is
    /// taken, or when the TLS files are unusable.
    pub fn bind(options: FlightOptions) -> Result<Self, StartError> {
        let address = options.listen;
        if !address.ip().is_loopback() {
            if !options.has_users && options.password.is_none() {
                return Err(StartError::NoPassword { address });
            }
            if options.tls.is_none() {
                return Err(StartError::NoTls { address });
            }
        }
        let tls = options.tls.clone();
        let tls = tls.map(|files| Tls::open(files, ALPN)).transpose()?;
        let socket = std::net::TcpListener::bind(address);
        let socket = socket.and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
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
    pub async fn run(self, host: Host, stop: watch::Receiver<bool>) {
        let threads = host.threads().clone();
        let served = threads.spawn(self.serve(host, stop));
        if let Err(error) = served.await {
            match error.try_into_panic() {
                // Re-raised for the caller.
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => tracing::error!("serving Flight SQL failed: {error}"),
            }
        }
    }

    async fn serve(self, host: Host, mut stop: watch::Receiver<bool>) {
        if let Some(tls) = &self.tls {
            tls.watch();
        }
        let (stages, stage) = watch::channel(Stage::Serving);
        let options = self.options;
        let capabilities = match capabilities(!host.writer.may_write(), &options) {
            Ok(capabilities) => capabilities,
            Err(error) => {
                tracing::error!("Flight SQL is not served: {error}");
                return;
            }
        };
        let socket = match TcpListener::from_std(self.socket) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::error!("Flight SQL is not served: {error}");
                return;
            }
        };
        let shared = Arc::new(Shared::new(options, host, stage.clone(), capabilities));
        let incoming = incoming(socket, self.tls, Arc::clone(&shared), stage.clone());
        let service = FlightServiceServer::new(Service(Arc::clone(&shared)))
            .max_decoding_message_size(shared.options.message_bytes_max);
        let service = Guarded {
            guard: shared.guard.clone(),
            service,
        };
        let mut stopping = stage;
        let serving = Server::builder()
            .max_concurrent_streams(shared.options.calls_max)
            .http2_keepalive_interval(Some(ALIVE_PERIOD))
            .http2_keepalive_timeout(Some(ALIVE_TIME_MAX))
            .add_service(service)
            .serve_with_incoming_shutdown(incoming, async move {
                reached(&mut stopping, Stage::Stopping).await;
            });
        let mut serving = std::pin::pin!(serving.fuse());
        let mut expiring = std::pin::pin!(shared.expire());
        tokio::select! {
            ended = &mut serving => {
                tracing::error!("serving Flight SQL ended: {ended:?}");
                return;
            }
            () = &mut expiring => {}
            // Without a sender nothing can stop it later.
            _ = stop.wait_for(|is_stopping| *is_stopping) => {}
        }
        // Every receiver may be gone already.
        let _ = stages.send(Stage::Stopping);
        let ended = tokio::time::timeout(shared.options.grace, &mut serving).await;
        shared.clear();
        if ended.is_err() {
            tracing::warn!(
                "statements of Flight SQL were still running after {:?} and are cancelled",
                shared.options.grace
            );
            let _ = stages.send(Stage::Over);
            let _ = tokio::time::timeout(LAST_WORD_MAX, &mut serving).await;
        }
    }
}

/// Accepts connections as they come; the TLS handshake of one does not delay others.
fn incoming(
    socket: TcpListener,
    tls: Option<Arc<Tls>>,
    shared: Arc<Shared>,
    mut stage: watch::Receiver<Stage>,
) -> BoxStream<'static, std::io::Result<Socket>> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let permits = Arc::new(Semaphore::new(shared.options.connections_max));
    tokio::spawn(async move {
        let numbers = AtomicU64::new(1);
        loop {
            let permit = Arc::clone(&permits).acquire_owned();
            let accepted = async { (permit.await, socket.accept().await) };
            let (permit, accepted) = tokio::select! {
                both = accepted => both,
                () = reached(&mut stage, Stage::Stopping) => return,
            };
            let Ok(permit) = permit else {
                return;
            };
            match accepted {
                Ok((stream, address)) => {
                    let peer = Peer {
                        id: ConnectionId(numbers.fetch_add(1, Ordering::Relaxed)),
                        address: address.ip(),
                        certificate: None,
                    };
                    let (tls, shared) = (tls.clone(), Arc::clone(&shared));
                    let sender = sender.clone();
                    let counted = shared.host.connections().accept();
                    tokio::spawn(async move {
                        if let Some(socket) =
                            opened(stream, tls, peer, shared, (permit, counted)).await
                        {
                            // Nobody receives it when the server has stopped.
                            let _ = sender.send(Ok(socket)).await;
                        }
                    });
                }
                Err(error) => {
                    shared.host.connections().note_refused();
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    });
    futures::stream::unfold(receiver, |mut receiver| async move {
        let next = receiver.recv().await?;
        Some((next, receiver))
    })
    .boxed()
}

async fn opened(
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    mut peer: Peer,
    shared: Arc<Shared>,
    (permit, counted): (OwnedSemaphorePermit, OpenConnection),
) -> Option<Socket> {
    let bytes = async {
        stream.set_nodelay(true)?;
        match tls {
            None => Ok(Bytes::Plain(stream)),
            Some(tls) => {
                let stream = tls.accept(stream).await?;
                peer.certificate = PeerNames::of(&stream);
                Ok(Bytes::Tls(Box::new(stream)))
            }
        }
    };
    let bytes: std::io::Result<Bytes> = bytes.await;
    match bytes {
        Ok(bytes) => Some(Socket::new(bytes, peer, shared, permit, counted)),
        Err(error) => {
            shared.host.connections().note_refused();
            tracing::debug!("a client of Flight SQL was not let in: {error}");
            None
        }
    }
}
