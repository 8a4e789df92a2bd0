//! `orrery text`: manages the full-text index of a local database or a running server.

use std::time::Instant;

use orrery_storage::ByteCount;
use orrery_storage::text::{TextReport, TextRules};
use serde::Deserialize;
use url::Url;

use crate::arguments::{PrefixPlace, ReportFormat, TextCommand};
use crate::commands::http::{delete, get, post, server_url};
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;
use crate::units::{Bytes, Counted};

pub(crate) fn run(command: TextCommand) -> Result<(), Failure> {
    let text = match command {
        TextCommand::Create {
            place,
            properties,
            classes,
            graphs,
            languages,
            grams,
            memory,
        } => {
            let graph_iris: Vec<String> = graphs
                .iter()
                .filter(|iri| !iri.is_empty())
                .cloned()
                .collect();
            for (option, iris) in [
                ("--property", &properties),
                ("--class", &classes),
                ("--graph", &graph_iris),
            ] {
                for iri in iris {
                    Url::parse(iri).map_err(|error| {
                        Failure::Other(format!("{option} {iri:?} is no absolute IRI: {error}"))
                    })?;
                }
            }
            let rules = TextRules {
                predicates: properties,
                classes,
                graphs,
                languages: languages.iter().map(|tag| tag.to_lowercase()).collect(),
                grams,
            };
            match of(&place)? {
                Of::Here(place) => make(&place, Some(rules), &memory)?,
                Of::Server(mut url) => {
                    let grams = if rules.grams { "true" } else { "false" };
                    for (name, values) in [
                        ("property", &rules.predicates),
                        ("class", &rules.classes),
                        ("graph", &rules.graphs),
                        ("language", &rules.languages),
                    ] {
                        let pairs = values.iter().map(|value| (name, value));
                        url.query_pairs_mut().extend_pairs(pairs);
                    }
                    url.query_pairs_mut().append_pair("grams", grams);
                    made_by_server(url)?
                }
            }
        }
        TextCommand::List { place, format } => {
            let report = match of(&place)? {
                Of::Here(place) => TextReport::of(&place.open()?)?,
                Of::Server(url) => parsed::<Listed>(&get(url)?)?.index,
            };
            let report = report.ok_or_else(no_index)?;
            written(&report, format)?
        }
        TextCommand::Rebuild { place, memory } => match of(&place)? {
            Of::Here(place) => make(&place, None, &memory)?,
            Of::Server(mut url) => {
                url.query_pairs_mut().append_pair("rebuild", "true");
                made_by_server(url)?
            }
        },
        TextCommand::Drop { place } => {
            match of(&place)? {
                Of::Here(place) => {
                    let database = place.open()?;
                    if database.snapshot().text_rules().is_none() {
                        return Err(no_index());
                    }
                    database.set_text_rules(None, None)?;
                }
                Of::Server(url) => drop(delete(url)?),
            }
            "the index of texts is gone\n".to_owned()
        }
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

/// Creates an index by these rules, or rebuilds it by the existing ones.
fn make(
    place: &DatabasePlace,
    rules: Option<TextRules>,
    memory: &Bytes,
) -> Result<String, Failure> {
    let database = place.open()?;
    let rules = match rules {
        Some(rules) => rules,
        None => {
            let snapshot = database.snapshot();
            let known = snapshot.text_rules_to_come();
            known.cloned().ok_or_else(no_index)?
        }
    };
    let started = Instant::now();
    let memory_bytes = usize::try_from(memory.0).unwrap_or(usize::MAX);
    database.set_text_rules(Some(rules), Some(memory_bytes))?;
    let seconds = started.elapsed().as_secs_f64();
    let report = TextReport::of(&database)?.ok_or_else(no_index)?;
    Ok(made(&report, seconds))
}

/// Has a server create an index; returns when it is done.
fn made_by_server(url: Url) -> Result<String, Failure> {
    let Made { index, seconds } = parsed(&post(url, "text/plain", Vec::new().into())?)?;
    Ok(made(&index, seconds))
}

/// A server's answer to a request for its index.
#[derive(Deserialize)]
struct Listed {
    index: Option<TextReport>,
}

/// A server's answer after it has created an index.
#[derive(Deserialize)]
struct Made {
    index: TextReport,
    seconds: f64,
}

fn parsed<T: for<'de> Deserialize<'de>>(answer: &str) -> Result<T, Failure> {
    serde_json::from_str(answer)
        .map_err(|error| Failure::Other(format!("the server did not answer as expected: {error}")))
}

fn made(report: &TextReport, seconds: f64) -> String {
    format!(
        "{} in {seconds:.1} s, {} on disk\n",
        Counted(report.texts, "text"),
        ByteCount(report.bytes)
    )
}

/// Formats a report of a local or a server's index for printing.
fn written(report: &TextReport, format: ReportFormat) -> Result<String, Failure> {
    if matches!(format, ReportFormat::Json) {
        let json = serde_json::to_string(report);
        let json =
            json.map_err(|error| Failure::Other(format!("cannot write the report: {error}")));
        return Ok(json? + "\n");
    }
    let each = |all: &[String], otherwise: &str, show: &dyn Fn(&String) -> String| match all {
        [] => otherwise.to_owned(),
        some => some.iter().map(show).collect::<Vec<_>>().join(" "),
    };
    let iri = |iri: &String| format!("<{iri}>");
    let properties = each(&report.properties, "all", &iri);
    let classes = each(&report.classes, "any", &iri);
    let graphs = each(&report.graphs, "all", &|graph| match graph.is_empty() {
        true => "default".to_owned(),
        false => iri(graph),
    });
    let languages = each(&report.languages, "all", &|tag| match tag.is_empty() {
        true => "\"\"".to_owned(),
        false => tag.clone(),
    });
    let grams = if report.grams { "yes" } else { "no" };
    Ok(format!(
        "properties {properties}\nclasses    {classes}\ngraphs     {graphs}\nlanguages  {languages}\ngrams      {grams}\n\
        {}, {} on disk; {} since the base was written, {} in memory\n",
        Counted(report.texts, "text"),
        ByteCount(report.bytes),
        report.texts_since,
        ByteCount(report.memory_bytes)
    ))
}

/// The database of the index: local or a server's.
enum Of {
    Here(DatabasePlace),
    Server(Url),
}

fn of(place: &PrefixPlace) -> Result<Of, Failure> {
    match (&place.directory, &place.server) {
        (Some(directory), _) => Ok(Of::Here(DatabasePlace::of(directory, &place.cache)?)),
        (None, Some(server)) => Ok(Of::Server(server_url(server, "text")?)),
        (None, None) => Err(Failure::Other(
            "no database; give --db DIR or --server URL".to_owned(),
        )),
    }
}

fn no_index() -> Failure {
    Failure::Other(
        "the database has no index of texts; `orrery text create --db DIR` makes one".to_owned(),
    )
}
