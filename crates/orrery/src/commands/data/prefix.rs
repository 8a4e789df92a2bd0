//! `orrery prefix`: manages predeclared prefixes of a local database or a running server.

use std::sync::Arc;

use orrery_storage::{CommitOptions, WriterOptions};
use orrery_term::Prefixes;
use orrery_term::prefixes::well_known;
use serde_json::Value;

use crate::arguments::{PrefixCommand, PrefixPlace, ReportFormat};
use crate::commands::http::{get, post, server_url};
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;

pub(crate) fn run(command: PrefixCommand) -> Result<(), Failure> {
    let text = match command {
        PrefixCommand::List { place, format } => list(&place, format)?,
        PrefixCommand::Add {
            place,
            name,
            iri,
            replace,
        } => {
            let name = without_colon(&name);
            let parameters = [
                ("name", name),
                ("iri", &iri),
                ("replace", if replace { "true" } else { "false" }),
            ];
            let commit = change(&place, &parameters, |prefixes| {
                prefixes
                    .give(name, &iri, replace)
                    .map(drop)
                    .map_err(|error| match error {
                        taken @ orrery_term::PrefixError::Taken { .. } => Failure::Other(format!(
                            "{taken}; with --replace it stands for the other IRI from now on"
                        )),
                        other => other.into(),
                    })
            })?;
            match commit {
                Commit::Made(number) => format!("{name}: is now <{iri}> (commit {number})\n"),
                Commit::Unchanged(number) => {
                    format!("{name}: is <{iri}> already; nothing was changed (commit {number})\n")
                }
            }
        }
        PrefixCommand::Remove { place, name } => {
            let name = without_colon(&name);
            let commit = change(&place, &[("remove", name)], |prefixes| {
                Ok(prefixes.remove(name)?)
            })?;
            let (Commit::Made(number) | Commit::Unchanged(number)) = commit;
            match well_known(name) {
                Some(iri) => format!("{name}: is <{iri}> again (commit {number})\n"),
                None => format!("{name}: is removed (commit {number})\n"),
            }
        }
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

fn without_colon(name: &str) -> &str {
    name.strip_suffix(':').unwrap_or(name)
}

fn list(place: &PrefixPlace, format: ReportFormat) -> Result<String, Failure> {
    let listed = match (&place.directory, &place.server) {
        (Some(directory), _) => {
            let place = DatabasePlace::of(directory, &place.cache)?;
            let snapshot = place.open()?.snapshot();
            let all = snapshot.prefixes().iter().map(|(name, iri, origin)| {
                serde_json::json!({ "name": name, "iri": iri, "origin": origin.name() })
            });
            serde_json::json!({ "prefixes": all.collect::<Vec<_>>() })
        }
        (None, Some(server)) => {
            let answer = get(server_url(server, "prefixes")?)?;
            serde_json::from_str(&answer).map_err(|error| {
                Failure::Other(format!("{server} did not answer as expected: {error}"))
            })?
        }
        (None, None) => return Err(no_place()),
    };
    if matches!(format, ReportFormat::Json) {
        return Ok(listed.to_string() + "\n");
    }
    let all = listed["prefixes"].as_array().map_or(&[][..], Vec::as_slice);
    let part = |entry: &Value, part: &str| entry[part].as_str().unwrap_or_default().to_owned();
    let width = |what: &str| {
        let lengths = all.iter().map(|entry| part(entry, what).chars().count());
        lengths.max().unwrap_or_default()
    };
    let (names, iris) = (width("name") + 1, width("iri") + 2);
    let lines = all.iter().map(|entry| {
        let (name, iri) = (
            part(entry, "name") + ":",
            format!("<{}>", part(entry, "iri")),
        );
        format!("{name:names$} {iri:iris$} {}\n", part(entry, "origin"))
    });
    Ok(lines.collect())
}

/// The result of a change: its commit, or the last one if there was nothing to do.
enum Commit {
    Made(u64),
    Unchanged(u64),
}

fn change(
    place: &PrefixPlace,
    parameters: &[(&str, &str)],
    apply: impl FnOnce(&mut Prefixes) -> Result<(), Failure>,
) -> Result<Commit, Failure> {
    let (Some(directory), _) = (&place.directory, &place.server) else {
        let Some(server) = &place.server else {
            return Err(no_place());
        };
        let mut url = server_url(server, "prefixes")?;
        url.query_pairs_mut().extend_pairs(parameters);
        let answer = post(url, "text/plain", Vec::new().into())?;
        let answer: Option<Value> = serde_json::from_str(&answer).ok();
        let number = answer.and_then(|answer| answer["commit"].as_u64());
        return number.map(Commit::Made).ok_or_else(|| {
            Failure::Other(format!(
                "{server} did not answer with the number of a commit"
            ))
        });
    };
    let place = DatabasePlace::of(directory, &place.cache)?;
    let database = Arc::new(place.open()?);
    let writer = database.open_writer(WriterOptions::default())?;
    let mut transaction = writer.begin()?;
    let before = transaction.begins_after();
    apply(transaction.prefixes_mut())?;
    let options = CommitOptions {
        who: "orrery prefix".to_owned(),
        ..CommitOptions::default()
    };
    let commit = transaction.commit(options)?.wait()?;
    Ok(match commit == before {
        true => Commit::Unchanged(commit),
        false => Commit::Made(commit),
    })
}

fn no_place() -> Failure {
    Failure::Other("no database; give --db DIR or --server URL".to_owned())
}
