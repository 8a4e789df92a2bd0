//! `orrery queries`: lists and kills running queries of a server.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::arguments::{QueriesCommand, ReportFormat};
use crate::commands::http::{delete, get, server_url};
use crate::commands::serving::access::{unexpected, write_out};
use crate::failure::Failure;

/// Path at the admin socket.
const PATH: &str = "queries";
/// Characters of a query's text that a line shows.
const SHOWN: usize = 100;

/// A running query in the server's answer.
#[derive(Deserialize)]
struct Running {
    id: u64,
    kind: String,
    user: Option<String>,
    client: Option<String>,
    ms: u64,
    touches: u64,
    text: String,
}

#[derive(Deserialize)]
struct List {
    queries: Vec<Running>,
}

/// Runs the command.
pub(crate) fn run(command: QueriesCommand) -> Result<(), Failure> {
    match command {
        QueriesCommand::List { socket, format } => {
            let answer = get(server_url(&socket.server, PATH)?)?;
            match format {
                ReportFormat::Json => write_out(answer + "\n"),
                ReportFormat::Text => {
                    let list: List = serde_json::from_str(&answer).map_err(unexpected)?;
                    write_out(lines(&list))
                }
            }
        }
        QueriesCommand::Kill { socket, id } => {
            let url = server_url(&socket.server, &format!("{PATH}/{id}"))?;
            delete(url)?;
            eprintln!("query {id} was ended");
            Ok(())
        }
    }
}

/// One line per query: number, seconds, touches, kind, user, client, beginning of the text.
fn lines(list: &List) -> String {
    let mut lines = String::new();
    for it in &list.queries {
        let text: String = it.text.chars().map(plain).take(SHOWN).collect();
        let (user, client) = (it.user.as_deref(), it.client.as_deref());
        let _ = writeln!(
            lines,
            "{}\t{:.1} s\t{} touches\t{}\t{}\t{}\t{text}",
            it.id,
            it.ms as f64 / 1000.0,
            it.touches,
            it.kind,
            user.unwrap_or("-"),
            client.unwrap_or("-"),
        );
    }
    lines
}

/// Replaces control characters, so that foreign text stays on its line and cannot steer the
/// terminal.
fn plain(character: char) -> char {
    match character.is_control() {
        true => ' ',
        false => character,
    }
}
