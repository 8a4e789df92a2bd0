//! What a listener for clients works with, whichever protocol they speak: the engine, and the door before the threads of queries.

use std::fmt;
use std::sync::Arc;

use orrery_postgres_tables::ForeignAccess;
use orrery_runtime::Runtime;
use orrery_storage::Database;
use tokio::runtime::Handle;

use crate::distributed::writer_source::WriterSource;
use crate::graph::GraphSource;
use crate::listener::connections::Connections;
use crate::listener::turns::Turns;
use crate::listener::users::Users;
use crate::listener::watch::Watch;
use crate::mapped::GraphMappings;

/// What sessions are made of, and where they compute.
#[derive(Clone)]
pub struct Host {
    /// Memory and threads.
    pub runtime: Arc<Runtime>,
    /// The database.
    pub database: Arc<Database>,
    /// Who writes, if anybody does.
    pub writer: WriterSource,
    /// Where `sparql('...')` and `quads` come from.
    pub graphs: Arc<dyn GraphSource>,
    /// Graphs out of tables.
    pub mappings: Arc<dyn GraphMappings>,
    /// Tables of other servers that may be read.
    pub foreign: ForeignAccess,
    /// None where nobody is told of statements.
    pub watch: Option<Arc<dyn Watch>>,
    /// None where the database has no users.
    pub users: Option<Arc<dyn Users>>,
    /// The door.
    pub turns: Arc<dyn Turns>,
    /// Where statements compute, and connections live.
    pub threads: Handle,
    /// Where the listener's connections are counted.
    pub connections: Arc<Connections>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}
