//! `/cluster`: the nodes that hold the database together, where it is served by a cluster.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | `GET /cluster` | asks each node how it is | `{"node":1,"leads":true,"nodes":{"1":{...},"2":{...}}}` |
//! | `POST /cluster?node=4&address=10.0.0.4:7979` | adds a node that runs; answers when it has everything and votes | `{"added":4}` |
//! | `DELETE /cluster?node=4` | removes one, which may be lost | `{"removed":4}` |
//!
//! What the nodes are made of is not the server's affair: it knows them by [`crate::Cluster`].

use crate::answer::error_response::ErrorResponse as _;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{Method, request::Parts};
use axum::response::{IntoResponse, Response};

use crate::edge::around;
use crate::request::parameters::{unknown, url_parameters};
use crate::state::HttpState;
use orrery_service::errors::ServiceError;

/// `/cluster`
pub(crate) async fn cluster(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let answered = answer(&state, &parts).await;
    answered.unwrap_or_else(|error| error.into_response_for(&parts.headers))
}

async fn answer(state: &HttpState, parts: &Parts) -> Result<Response, ServiceError> {
    let Some(cluster) = &state.options.cluster else {
        return Err(ServiceError::Missing {
            message: "this server is no node of a cluster; see `orrery serve --cluster`".to_owned(),
        });
    };
    let failed = |message: String| ServiceError::NotWritable { message };
    if matches!(parts.method, Method::GET | Method::HEAD) {
        around::require_administrator(parts, "see how the cluster is")?;
        crate::request::parameters::none(parts.uri.query())?;
        let status = cluster.status().await.map_err(failed)?;
        return Ok(Json(status).into_response());
    }
    state.check_write_rule(parts)?;
    around::require_administrator(parts, "change the cluster")?;
    let (node, address) = member(parts.uri.query())?;
    let done = match (&parts.method, address) {
        (&Method::POST, Some(address)) => {
            cluster.add(node, &address).await.map_err(failed)?;
            serde_json::json!({ "added": node })
        }
        (&Method::DELETE, None) => {
            cluster.remove(node).await.map_err(failed)?;
            serde_json::json!({ "removed": node })
        }
        _ => {
            return Err(ServiceError::bad_request(
                "a node is added by POST with `node` and `address`, and removed by DELETE with `node`",
            ));
        }
    };
    Ok(Json(done).into_response())
}

fn member(url_query: Option<&str>) -> Result<(u64, Option<String>), ServiceError> {
    let (mut node, mut address) = (None, None);
    for (name, value) in url_parameters(url_query)? {
        match name.as_str() {
            "node" => {
                node = Some(value.parse().map_err(|_| {
                    ServiceError::bad_request(format!(
                        "parameter `node` is the number of a node, not `{value}`"
                    ))
                })?);
            }
            "address" => address = Some(value),
            _ => return Err(unknown(&name, "node, address")),
        }
    }
    match node {
        Some(node) => Ok((node, address)),
        None => Err(ServiceError::bad_request("parameter `node` is missing")),
    }
}
