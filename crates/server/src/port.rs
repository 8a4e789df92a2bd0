//! The port of an SQL protocol: a listener of PostgreSQL or Flight SQL, and the service behind it.

use orrery_service::Service;
use orrery_service::metrics::Listens;
use orrery_service::ports::host::Host;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The listener of a protocol.
#[derive(Debug)]
pub(crate) enum PortListener {
    Postgres(orrery_postgres::Listener),
    Flight(orrery_flight::Listener),
}

/// A listener, and the service that it answers from.
#[derive(Debug)]
pub(crate) struct Port {
    listener: PortListener,
    service: Arc<Service>,
}

impl Port {
    pub(crate) fn new(listener: PortListener, service: &Arc<Service>) -> Self {
        Self {
            listener,
            service: Arc::clone(service),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.listener {
            PortListener::Postgres(listener) => listener.local_addr(),
            PortListener::Flight(listener) => listener.local_addr(),
        }
    }

    /// Answers clients until `stop` becomes true and the grace period is over.
    pub(crate) fn start(self, stop: watch::Receiver<bool>) -> JoinHandle<()> {
        let (clients, listens) = match &self.listener {
            PortListener::Postgres(_) => ("PostgreSQL's clients", Listens::Postgres),
            PortListener::Flight(_) => ("clients of Flight SQL", Listens::Flight),
        };
        if let Ok(address) = self.local_addr() {
            tracing::info!("listening for {clients} on {address}");
        }
        let metrics = Arc::clone(&self.service.metrics);
        let host = Host::new(self.service, listens);
        tokio::spawn(async move {
            let _panics = metrics.watch_panics();
            match self.listener {
                PortListener::Postgres(listener) => listener.run(host, stop).await,
                PortListener::Flight(listener) => listener.run(host, stop).await,
            }
        })
    }
}
