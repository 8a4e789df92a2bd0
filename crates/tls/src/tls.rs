//! The served TLS configuration, and its replacement.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::error::TlsError;
use crate::files::{Looks, TlsFiles};

/// How often the files are looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// How long a client may take from its connection to the end of its handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Handshakes under way at the same time; more wait, within their time.
const HANDSHAKES_MAX: usize = 256;

/// TLS of one listener, or of several that speak the same protocols.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    protocols: Vec<&'static [u8]>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    served: Served,
    /// How the files looked when they were read last, whether they could be served or not.
    looks: Looks,
}

/// What is served at one time.
#[derive(Clone)]
pub struct Served {
    acceptor: TlsAcceptor,
    certificate: Arc<[u8]>,
    handshakes: Arc<Semaphore>,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files. `protocols` are the names that clients may ask for (ALPN, RFC 7301).
    ///
    /// # Errors
    /// When one of the files is not there or not what it should be, or the key is another
    /// certificate's.
    pub fn open(files: TlsFiles, protocols: &[&'static [u8]]) -> Result<Arc<Self>, TlsError> {
        // Before they are read: what is written meanwhile is seen by the next look.
        let looks = files.looks();
        let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        let served = Served::read(&files, protocols, handshakes)?;
        Ok(Arc::new(Self {
            files,
            protocols: protocols.to_vec(),
            state: Mutex::new(State { served, looks }),
        }))
    }

    /// What is served now.
    pub fn served(&self) -> Served {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.served.clone()
    }

    /// A client of TLS on a new connection.
    ///
    /// # Errors
    /// When it speaks something else, or takes too long.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.served().accept(stream).await
    }

    /// Looks at the files, and serves what they have if they are others than at the last look. What
    /// cannot be served is told once, and the old one stays.
    pub fn look(&self) {
        let looks = self.files.looks();
        let handshakes = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.looks == looks {
                return;
            }
            Arc::clone(&state.served.handshakes)
        };
        let read = Served::read(&self.files, &self.protocols, handshakes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.looks = looks;
        let of = self.files.certificate.display();
        match read {
            Ok(served) => {
                state.served = served;
                tracing::info!("the certificate {of} was read again and is served now");
            }
            Err(error) => tracing::error!(
                "still serving the certificate that {of} had before, because the files have changed and cannot be served: {error}"
            ),
        }
    }

    /// Looks at the files every second, for as long as this is held by somebody. To be called
    /// within a runtime.
    pub fn watch(self: &Arc<Self>) {
        let watched = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut period = tokio::time::interval(LOOK_PERIOD);
            period.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                period.tick().await;
                let Some(tls) = watched.upgrade() else {
                    return;
                };
                if let Err(error) = tokio::task::spawn_blocking(move || tls.look()).await {
                    tracing::error!("looking at the files of TLS failed: {error}");
                }
            }
        });
    }
}

impl Served {
    fn read(
        files: &TlsFiles,
        protocols: &[&[u8]],
        handshakes: Arc<Semaphore>,
    ) -> Result<Self, TlsError> {
        let read = files.read(protocols)?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(read.config)),
            certificate: read.certificate.into(),
            handshakes,
        })
    }

    /// The certificates as PEM, for what is bound to them (RFC 5929).
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// As [`Tls::accept`], with what was served when this was taken.
    ///
    /// # Errors
    /// When the client speaks something else, or takes too long.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let handshake = async {
            let turn = self.handshakes.acquire().await;
            let _turn = turn.map_err(io::Error::other)?;
            self.acceptor.accept(stream).await
        };
        let done = tokio::time::timeout(HANDSHAKE_TIME_MAX, handshake).await;
        done.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))
    }
}

#[cfg(test)]
mod tests;
