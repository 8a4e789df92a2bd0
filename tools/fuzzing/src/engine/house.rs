//! The shared database and engine of the targets.

use std::future::Future;
use std::sync::{Arc, LazyLock};

use orrery_service::metrics::Listens;
use orrery_service::options::ServiceOptions;
use orrery_service::ports::host::Host;
use orrery_service::{Service, ServiceParts};
use orrery_sparql::{Engine, EngineOptions};
use orrery_sparql_in_sql::EngineGraphs;
use orrery_sql::{Session, SessionOptions};
use orrery_storage::io::FileSystem;
use orrery_storage::io::testing::RecordingFileSystem;
use orrery_storage::{WriterOptions, build_small_with};
use orrery_term::Term;
use tokio::sync::watch;

/// What a statement of a fuzzer may take.
const MEMORY_BYTES: u64 = 256 << 20;

const TABLES: &str = "CREATE TABLE item (id integer PRIMARY KEY, name text NOT NULL, price numeric(10,2), day date, at timestamp, flag boolean, data bytea, \
    weight double precision);
    CREATE TABLE part (id bigint PRIMARY KEY, item integer REFERENCES item (id), note varchar(20));
    CREATE INDEX part_item ON part (item);
    CREATE VIEW dear AS SELECT id, name, price FROM item WHERE price > 10;
    INSERT INTO item VALUES (1, 'lamp', 19.90, '2026-01-02', '2026-01-02 03:04:05', true, '\\x00ff', 1.5), (2, 'chair', 5, NULL, NULL, false, NULL, NULL);
    INSERT INTO part VALUES (1, 1, 'a'), (2, 1, NULL), (3, NULL, 'c')";

/// See the module.
pub(super) struct House {
    threads: tokio::runtime::Runtime,
    pub(super) engine: Arc<Engine>,
    pub(super) session: Session,
}

static HOUSE: LazyLock<House> = LazyLock::new(|| match House::build() {
    Ok(house) => house,
    Err(error) => panic!("the database was not made: {error}"),
});

type AnyError = Box<dyn std::error::Error>;

/// The house.
pub(super) fn house() -> &'static House {
    &HOUSE
}

impl House {
    fn build() -> Result<Self, AnyError> {
        let disk: Arc<dyn FileSystem> = Arc::new(RecordingFileSystem::new());
        let iri =
            |name: &str, number: usize| Term::iri(format!("http://example.com/{name}{number}"));
        let quads: Vec<_> = (0..40)
            .map(|number| {
                let graph = (number % 7 == 0).then(|| iri("g", 1));
                (
                    iri("s", number / 2),
                    iri("p", number % 3),
                    iri("s", number / 4),
                    graph,
                )
            })
            .collect();
        let database = Arc::new(build_small_with(disk, "/db", &quads)?);
        let writer = database.open_writer(WriterOptions::default())?;
        let options = EngineOptions {
            memory_bytes: MEMORY_BYTES,
            threads: 1,
            ..EngineOptions::default()
        };
        let engine = Arc::new(Engine::new(Arc::clone(&database), options)?);
        let threads = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let session = Session::new(
            engine.runtime(),
            database,
            Some(writer),
            SessionOptions::default(),
        )
        .with_graphs(Arc::new(EngineGraphs::new(Arc::clone(&engine))));
        threads.block_on(async {
            for statement in session.statements(TABLES)? {
                session.execute(&statement).await?;
            }
            Ok::<(), orrery_sql::Error>(())
        })?;
        Ok(Self {
            threads,
            engine,
            session,
        })
    }

    /// Waits for it, on this thread.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.threads.block_on(work)
    }

    /// The host of a protocol's listener. It is read-only, so that no call finds changes of an
    /// earlier one.
    pub(super) fn host(&self) -> Result<Host, AnyError> {
        let service = Service::start(ServiceParts {
            engine: Arc::clone(&self.engine),
            options: ServiceOptions::default(),
            authentication: None,
            documents: None,
            writer: Err("what one call changed, the next one would find".to_owned()),
            compaction: None,
            is_over: watch::channel(false).1,
        })?;
        Ok(Host::new(service, Listens::Flight))
    }
}
