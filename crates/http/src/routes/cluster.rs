//! `/cluster`: reports the nodes of a cluster that hold the database, and adds or removes one.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | `GET /cluster` | asks each node for its state | `{"node":1,"leads":true,"nodes":{"1":{...},"2":{...}}}` |
//! | `POST /cluster?node=4&address=10.0.0.4:7979` | adds a running node; answers when it is current and votes | `{"added":4}` |
//! | `DELETE /cluster?node=4` | removes one, which may be lost | `{"removed":4}` |
//!
//! The server reaches the nodes through [`crate::Cluster`]; how they work is not its concern.

use axum::Json;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use orrery_service::cluster::nodes::Cluster;
use orrery_service::errors::ServiceError;

use crate::request::parameters::{none, unknown, url_parameters};
use crate::route_table::HttpRequest;
use crate::state::HttpState;

/// Reports the state of each node.
pub(crate) async fn status(request: HttpRequest) -> Result<Response, ServiceError> {
    let cluster = cluster_of(&request.state)?;
    none(request.parts.uri.query())?;
    let status = cluster.status().await.map_err(failed)?;
    Ok(Json(status).into_response())
}

/// Adds a node, or removes one.
pub(crate) async fn change(request: HttpRequest) -> Result<Response, ServiceError> {
    let cluster = cluster_of(&request.state)?;
    let parts = &request.parts;
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

fn cluster_of(state: &HttpState) -> Result<&dyn Cluster, ServiceError> {
    let cluster = state.options.cluster.as_deref();
    cluster.ok_or_else(|| ServiceError::Missing {
        message: "this server is no node of a cluster; see `orrery serve --cluster`".to_owned(),
    })
}

fn failed(message: String) -> ServiceError {
    ServiceError::NotWritable { message }
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
