//! In-memory endpoints of the federation tests. Answers go out through the server's serializer, as
//! over HTTP.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use orrery_formats::SolutionFormat;
use orrery_sparql::service::{RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceOptions};
use orrery_sparql::{Engine, QueryOptions, QueryResults};

use super::Files;
use super::engine::{engine, write_solutions};
use super::syntax::load;

/// The endpoints of one test.
#[derive(Default)]
pub(crate) struct Endpoints {
    engines: OnceLock<HashMap<String, Arc<Engine>>>,
}

/// A way to the endpoints that does not keep them alive: their own engines have one.
#[derive(Clone)]
struct Access(Weak<Endpoints>);

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("endpoints of a test")
    }
}

impl Endpoints {
    /// Loads the data of each endpoint into a database below a directory.
    pub(crate) fn load(
        files: &Files,
        directory: &Path,
        services: &[(String, Vec<String>)],
    ) -> Result<Arc<Self>, String> {
        let endpoints = Arc::new(Self::default());
        let mut engines = HashMap::new();
        for (number, (endpoint, data)) in services.iter().enumerate() {
            let directory = directory.join(format!("endpoint-{number}"));
            for file in data {
                load(files, &directory, file, None)?
                    .map_err(|error| format!("data of <{endpoint}>: {error}"))?;
            }
            let engine = engine(&directory, Some(endpoints.options()))?;
            engines.insert(endpoint.clone(), Arc::new(engine));
        }
        endpoints
            .engines
            .set(engines)
            .map_err(|_| "the endpoints are made twice".to_owned())?;
        Ok(endpoints)
    }

    /// The engine's setting to ask them.
    pub(crate) fn options(self: &Arc<Self>) -> ServiceOptions {
        ServiceOptions::new(Arc::new(Access(Arc::downgrade(self))))
    }
}

impl RemoteEndpoints for Access {
    fn ask(
        &self,
        endpoint: &str,
        query: String,
        _accept: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let endpoints = self.0.upgrade();
        let engines = endpoints.as_ref().and_then(|all| all.engines.get());
        let engine = engines.and_then(|engines| engines.get(endpoint)).cloned();
        async move {
            let engine = engine.ok_or_else(|| RemoteFailure::new("there is no such endpoint"))?;
            let bytes = answer(&engine, &query)
                .await
                .map_err(|error| RemoteFailure::new(format!("{error} in {query}")))?;
            Ok(RemoteAnswer {
                content_type: Some("application/sparql-results+json".to_owned()),
                body: futures::stream::iter([Ok(bytes.into())]).boxed(),
            })
        }
        .boxed()
    }
}

async fn answer(engine: &Engine, query: &str) -> Result<Vec<u8>, String> {
    let failed = |error: orrery_sparql::QueryError| error.to_string();
    let prepared = engine
        .prepare(query, &QueryOptions::of_process())
        .map_err(failed)?;
    let QueryResults::Solutions(stream) = prepared.execute().await.map_err(failed)? else {
        return Err("not a SELECT query".to_owned());
    };
    let mut bytes = Vec::new();
    write_solutions(stream, SolutionFormat::Json, &mut bytes)
        .await
        .map_err(failed)?;
    Ok(bytes)
}
