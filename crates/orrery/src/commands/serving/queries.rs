//! `orrery queries`: what a server runs now, and its end.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::arguments::{QueriesCommand, ReportFormat};
use crate::commands::http::{delete, get, server_url};
use crate::commands::serving::access::{unexpected, write_out};
use crate::failure::Failure;

/// Of the admin socket.
const PATH: &str = "queries";
/// How much of a query a line shows.
const SHOWN: usize = 100;

/// What a server tells of one.
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

/// Does it.
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

/// A line for each: number, seconds, touches, kind, who, from where, and how it begins.
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

/// What strangers write stays on its line, and does nothing to a terminal.
fn plain(character: char) -> char {
    match character.is_control() {
        true => ' ',
        false => character,
    }
}
