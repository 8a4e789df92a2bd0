//! Clients of Arrow Flight SQL beside those of HTTP.

use orrery_flight::Listener;
use orrery_service::metrics::Listens;
use orrery_service::ports::host::Host;
use orrery_service::service::Service;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A listener for them, with what they share with the others.
pub(crate) struct Flight {
    listener: Listener,
    service: Arc<Service>,
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

impl Flight {
    pub(crate) fn new(listener: Listener, service: Arc<Service>) -> Self {
        Self { listener, service }
    }

    pub(crate) fn local_addr(&self) -> std::io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` becomes true and the grace period is over.
    pub(crate) fn start(self, stop: watch::Receiver<bool>) -> JoinHandle<()> {
        if let Ok(address) = self.local_addr() {
            tracing::info!("listening for clients of Flight SQL on {address}");
        }
        let metrics = Arc::clone(&self.service.metrics);
        let host = Host::new(self.service, Listens::Flight);
        tokio::spawn(async move {
            let _panics = metrics.watch_panics();
            self.listener.run(host, stop).await;
        })
    }
}
