//! The data of the cost paths: BSBM with a fixed seed, loaded by one thread, so that bytes are the
//! same everywhere.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::{Catalog, GenerateOptions, generate};
use orrery_loader::{LoadOptions, SilentProgress, Source};
use orrery_sparql::{Engine, EngineOptions};
use orrery_storage::{Database, Snapshot};

use crate::Error;

/// 300 products are 110,000 triples.
const DATA: GenerateOptions = GenerateOptions {
    products: 300,
    seed: 16,
};
const LOAD_MEMORY_BYTES: u64 = 256 << 20;

/// A database of BSBM data with an engine over it.
pub struct Fixture {
    pub(super) directory: PathBuf,
    pub(super) engine: Engine,
    pub(super) pool: ParameterPool,
    pub(super) product: String,
}

impl Fixture {
    /// Makes the database in a directory, unless it is there. A started one is made anew.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prepare(directory: &Path) -> Result<(), Error> {
        let database = database_of(directory);
        let is_whole = database.join("MANIFEST").is_file();
        if is_whole {
            return Ok(());
        }
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        std::fs::create_dir_all(directory).map_err(io(directory))?;
        let data = directory.join("data.nt");
        let mut file = BufWriter::new(File::create(&data).map_err(io(&data))?);
        generate(&DATA, &mut file).map_err(io(&data))?;
        drop(file);
        let options = LoadOptions {
            memory_bytes: LOAD_MEMORY_BYTES,
            threads: 1,
            ..LoadOptions::default()
        };
        let sources = [Source::File(data)];
        orrery_loader::load(&database, &sources, &options, &SilentProgress)?;
        Ok(())
    }

    /// Opens what [`prepare`](Self::prepare) made.
    ///
    /// # Errors
    /// When it is not there.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let database = Arc::new(Database::open(database_of(directory))?);
        let catalog = Catalog::new(&DATA);
        let pool = ParameterPool::from_catalog(&catalog);
        Ok(Self {
            directory: directory.to_owned(),
            engine: Engine::new(database, EngineOptions::default())?,
            pool: pool.map_err(|error| Error::Syntax(error.to_string()))?,
            product: catalog.product(DATA.products / 2).to_string(),
        })
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.engine.database().snapshot()
    }

    /// The data as N-Triples.
    pub(super) fn text(&self) -> Result<Vec<u8>, Error> {
        let path = self.directory.join("data.nt");
        std::fs::read(&path).map_err(|source| Error::Io { path, source })
    }
}

fn database_of(directory: &Path) -> PathBuf {
    directory.join("bsbm.db")
}
