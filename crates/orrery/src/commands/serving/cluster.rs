//! `orrery cluster`: manages the nodes of a cluster, through one of its servers.

use crate::arguments::ClusterCommand;
use crate::commands::http::{delete, get, post, server_url};
use crate::commands::output::Output;
use crate::failure::Failure;

pub(crate) fn run(command: ClusterCommand) -> Result<(), Failure> {
    let answer = match command {
        ClusterCommand::Status { place } => {
            return tell(&get(server_url(&place.server, "cluster")?)?);
        }
        ClusterCommand::Add {
            member: (node, address),
            place,
        } => {
            let mut url = server_url(&place.server, "cluster")?;
            url.query_pairs_mut()
                .append_pair("node", &node.to_string())
                .append_pair("address", &address);
            post(url, "text/plain", reqwest::Body::from(""))?;
            format!("node {node} is a member\n")
        }
        ClusterCommand::Remove { node, place } => {
            let mut url = server_url(&place.server, "cluster")?;
            url.query_pairs_mut().append_pair("node", &node.to_string());
            delete(url)?;
            format!("node {node} is no member any more\n")
        }
    };
    write(answer)
}

/// Prints one line per node.
fn tell(status: &str) -> Result<(), Failure> {
    let wrong = |error: serde_json::Error| Failure::Other(format!("the server's answer: {error}"));
    let status: serde_json::Value = serde_json::from_str(status).map_err(wrong)?;
    let mut text = String::new();
    let nodes = status["nodes"].as_object();
    for (number, node) in nodes.into_iter().flatten() {
        let role = node["role"].as_str().unwrap_or("no answer");
        text += &format!("node {number}: {role}");
        if let Some(error) = node["error"].as_str().or(node["stopped"].as_str()) {
            text += &format!(" ({error})");
        } else {
            text += &format!(
                ", term {}, entry {}, {} objects, {} files missing",
                node["term"], node["applied"], node["objects"], node["missing_files"]
            );
        }
        text += "\n";
    }
    write(text)
}

fn write(text: String) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}
