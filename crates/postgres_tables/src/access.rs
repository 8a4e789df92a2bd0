//! Access to foreign servers: allowed hosts, and shared connections.
//!
//! Whoever may write statements chooses which server our process connects to, and whoever may read
//! makes it connect again. So the hosts are said when the process is started, as those of `SERVICE`
//! are, and looked at whenever a connection is made, for a new definition and for one that is
//! there: a database that was copied from elsewhere leads nowhere that this process was not allowed
//! to go.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use orrery_http_client::AllowList;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::address::Server;
use crate::error::Result;
use crate::pool::Pools;
use crate::rights::{Rights, not_allowed};

/// Whether and where sessions may connect, with the connections that they share. Cheap to clone.
#[derive(Clone, Default)]
pub struct ForeignAccess {
    shared: Option<Arc<Shared>>,
}

/// What is behind an access that allows something.
pub(crate) struct Shared {
    pub(crate) rights: Arc<Rights>,
    threads: OnceLock<Result<Runtime, String>>,
    pub(crate) pools: Mutex<Pools>,
}

impl fmt::Debug for ForeignAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_allowed() {
            true => "allowed",
            false => "refused",
        })
    }
}

impl ForeignAccess {
    /// Nowhere (42501).
    pub fn refused() -> Self {
        Self::default()
    }

    /// To any host: for who runs the process and could connect there anyway. `passwords` is a file
    /// of passwords in libpq's form.
    pub fn anywhere(passwords: Option<PathBuf>) -> Self {
        Self::new(None, passwords)
    }

    /// To the hosts of a list; an empty one allows nothing.
    pub fn to(allow: AllowList, passwords: Option<PathBuf>) -> Self {
        match allow.is_empty() {
            true => Self::refused(),
            false => Self::new(Some(allow), passwords),
        }
    }

    fn new(allow: Option<AllowList>, passwords: Option<PathBuf>) -> Self {
        let shared = Shared {
            rights: Arc::new(Rights { allow, passwords }),
            threads: OnceLock::new(),
            pools: Mutex::default(),
        };
        Self {
            shared: Some(Arc::new(shared)),
        }
    }

    /// Whether it allows anything.
    pub fn is_allowed(&self) -> bool {
        self.shared.is_some()
    }

    /// Fails if a server may not be connected to, as far as its name tells.
    ///
    /// # Errors
    /// [`Error::NotAllowed`](crate::Error::NotAllowed).
    pub fn check(&self, server: &Server) -> Result<()> {
        self.shared(server).map(drop)
    }

    pub(crate) fn shared(&self, server: &Server) -> Result<&Arc<Shared>> {
        let shared = self.shared.as_ref().ok_or_else(|| {
            let reason = "no host was allowed when the process was started";
            not_allowed(server, reason.to_owned())
        })?;
        shared.rights.check(server)?;
        Ok(shared)
    }
}

impl Shared {
    /// Where connections live: a thread of their own, made when there is the first.
    pub(crate) fn threads(&self) -> Result<&Handle, String> {
        let threads = self.threads.get_or_init(|| {
            Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("orrery-postgres-tables")
                .enable_all()
                .build()
                .map_err(|error| format!("no thread for connections: {error}"))
        });
        match threads {
            Ok(runtime) => Ok(runtime.handle()),
            Err(words) => Err(words.clone()),
        }
    }
}

impl Drop for Shared {
    /// A runtime must not be dropped where others run.
    fn drop(&mut self) {
        if let Some(Ok(runtime)) = self.threads.take() {
            runtime.shutdown_background();
        }
    }
}
