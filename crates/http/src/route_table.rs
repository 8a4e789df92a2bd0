//! The table of routes: what a server answers at which path, who may ask for it, and where it is done.
//!
//! ```text
//! rows (routes/mod.rs, admin/mod.rs): paths | methods, right, metering, forwarding, handler
//!   RouteTable::router    -> axum's router: right, then handler, then the error as a response
//!   RouteTable::resources -> what the edge looks up (`route`)
//! ```
//!
//! A row cannot be written without a right: whoever may not ask is refused before the handler runs,
//! and before anything of the body is read. What a path reports of itself comes from its row, so a
//! new route is one row and its handler.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::{Method, request::Parts};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, any};
use orrery_service::errors::ServiceError;

use crate::answer::error_response::ErrorResponse as _;
use crate::edge::access_log::AccessRecord;
use crate::edge::around;
use crate::route::{Forwarding, Metering, Resources, Right, RouteRow, Who};
use crate::state::HttpState;

/// A request whose sender may make it, without its body.
pub(crate) struct HttpRequest {
    pub(crate) state: Arc<HttpState>,
    pub(crate) record: Arc<AccessRecord>,
    pub(crate) parts: Arc<Parts>,
}

/// Refuses who may not make a request.
fn check(right: Right, state: &HttpState, parts: &Parts) -> Result<(), ServiceError> {
    if right.is_change {
        state.check_write_rule(parts)?;
    }
    if right.of_all_graphs {
        around::require_all_graphs(parts)?;
    }
    match right.who {
        Who::Nobody | Who::Reader => Ok(()),
        Who::Changer => around::require_changes(parts),
        Who::Scraper => around::require_metrics(parts, state.http.metrics_token.is_some()),
        Who::User(what) => around::require_user(parts, what).map(drop),
        Who::Administrator(what) => around::require_administrator(parts, what),
    }
}

/// Adds the handler of a row to axum's router of a path.
type Attach = dyn Fn(MethodRouter<Arc<HttpState>>, MethodFilter) -> MethodRouter<Arc<HttpState>>
    + Send
    + Sync;

/// What one method of a path does.
pub(crate) struct Act {
    row: RouteRow,
    attach: Box<Attach>,
}

impl Act {
    /// GET and HEAD, which every server answers itself.
    pub(crate) fn get<F, A>(right: Right, metering: Metering, handler: F) -> Self
    where
        F: Fn(HttpRequest) -> A + Copy + Send + Sync + 'static,
        A: Future<Output = Result<Response, ServiceError>> + Send + 'static,
    {
        Self::of(Method::GET, right, metering, Forwarding::Here, handler)
    }

    /// A method whose body nobody reads.
    pub(crate) fn of<F, A>(
        method: Method,
        right: Right,
        metering: Metering,
        forwarding: Forwarding,
        handler: F,
    ) -> Self
    where
        F: Fn(HttpRequest) -> A + Copy + Send + Sync + 'static,
        A: Future<Output = Result<Response, ServiceError>> + Send + 'static,
    {
        Self::with_body(
            method,
            right,
            metering,
            forwarding,
            move |request, body: Body| {
                drop(body);
                handler(request)
            },
        )
    }

    /// A method whose handler reads the body.
    pub(crate) fn with_body<F, A>(
        method: Method,
        right: Right,
        metering: Metering,
        forwarding: Forwarding,
        handler: F,
    ) -> Self
    where
        F: Fn(HttpRequest, Body) -> A + Copy + Send + Sync + 'static,
        A: Future<Output = Result<Response, ServiceError>> + Send + 'static,
    {
        let attach = move |router: MethodRouter<Arc<HttpState>>, filter| {
            let respond = move |State(state): State<Arc<HttpState>>,
                                Extension(record): Extension<Arc<AccessRecord>>,
                                request: Request| async move {
                let (parts, body) = request.into_parts();
                let parts = Arc::new(parts);
                record.set_asker(&parts);
                let answered = match check(right, &state, &parts) {
                    Ok(()) => {
                        let request = HttpRequest {
                            state,
                            record,
                            parts: Arc::clone(&parts),
                        };
                        handler(request, body).await
                    }
                    Err(error) => Err(error),
                };
                answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
            };
            router.on(filter, respond)
        };
        let row = RouteRow {
            // Those of its route.
            paths: &[],
            method,
            right,
            metering,
            forwarding,
        };
        Self {
            row,
            attach: Box::new(attach),
        }
    }
}

/// The paths of a resource, and what their methods do.
pub(crate) struct Route {
    paths: &'static [&'static str],
    acts: Vec<Act>,
}

impl Route {
    /// `paths`: as axum writes them: `{name}` is one segment, `{*name}` is all the rest.
    pub(crate) fn new(paths: &'static [&'static str], acts: impl Into<Vec<Act>>) -> Self {
        let mut acts = acts.into();
        for act in &mut acts {
            act.row.paths = paths;
        }
        Self { paths, acts }
    }
}

/// All routes of one listener.
pub(crate) struct RouteTable {
    routes: Vec<Route>,
    resources: Resources,
}

impl fmt::Debug for RouteTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteTable").finish_non_exhaustive()
    }
}

impl RouteTable {
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        let acts = routes.iter().flat_map(|route| &route.acts);
        let rows: Vec<_> = acts.map(|act| act.row.clone()).collect();
        Self {
            resources: Resources::of(&rows),
            routes,
        }
    }

    /// What the edge looks up.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The rows, for tests and docs.
    pub(crate) fn rows(&self) -> Vec<RouteRow> {
        let acts = self.routes.iter().flat_map(|route| &route.acts);
        acts.map(|act| act.row.clone()).collect()
    }

    /// Axum's router, with our words for what is not there.
    pub(crate) fn router(&'static self) -> Router<Arc<HttpState>> {
        let mut router = Router::new();
        for route in &self.routes {
            let resources = &self.resources;
            // Axum would say `Allow` in answers of the edge, too.
            let mut methods = any(move |request: Request| async move {
                let resource = resources.find(request.uri().path());
                let error = ServiceError::MethodNotAllowed {
                    method: request.method().to_string(),
                    allowed: resource.map_or("", |(resource, _)| resource.allowed()),
                };
                error.into_response_for(request.headers())
            });
            for act in &route.acts {
                // All methods of rows are among axum's.
                let Ok(filter) = MethodFilter::try_from(act.row.method.clone()) else {
                    continue;
                };
                methods = (act.attach)(methods, filter);
            }
            for path in route.paths {
                router = router.route(path, methods.clone());
            }
        }
        // Handlers bound the bodies that they read.
        router
            .layer(DefaultBodyLimit::disable())
            .fallback(not_found)
    }
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    ServiceError::NotFound { path }.into_response_for(request.headers())
}
