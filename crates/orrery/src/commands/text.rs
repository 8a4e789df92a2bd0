//! `orrery text`: the index of texts of a database here, or of a running server's.

use std::path::Path;
use std::time::Instant;

use orrery_storage::text::{TextReader, TextRules};
use orrery_storage::{ByteCount, Database};
use serde_json::{Value, json};
use url::Url;

use super::http::{delete, get, post, server_url};
use super::output::Output;
use crate::arguments::{PrefixPlace, ReportFormat, TextCommand};
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
                Of::Directory(directory) => make(directory, Some(rules), &memory)?,
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
                Of::Directory(directory) => report(directory)?,
                Of::Server(url) => {
                    let answer = get(url)?;
                    let answer = parsed(&answer)?;
                    match &answer["index"] {
                        Value::Null => return Err(no_index()),
                        index => index.clone(),
                    }
                }
            };
            written(&report, format)
        }
        TextCommand::Rebuild { place, memory } => match of(&place)? {
            Of::Directory(directory) => make(directory, None, &memory)?,
            Of::Server(mut url) => {
                url.query_pairs_mut().append_pair("rebuild", "true");
                made_by_server(url)?
            }
        },
        TextCommand::Drop { place } => {
            match of(&place)? {
                Of::Directory(directory) => {
                    let database = Database::open(directory)?;
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

/// Makes an index by these rules, or by those that there are.
fn make(directory: &Path, rules: Option<TextRules>, memory: &Bytes) -> Result<String, Failure> {
    let database = Database::open(directory)?;
    let rules = match rules {
        Some(rules) => rules,
        None => {
            let snapshot = database.snapshot();
            let known = snapshot.manifest().text.as_ref().or(snapshot.text_rules());
            known.cloned().ok_or_else(no_index)?
        }
    };
    let started = Instant::now();
    let memory_bytes = usize::try_from(memory.0).unwrap_or(usize::MAX);
    database.set_text_rules(Some(rules), Some(memory_bytes))?;
    let seconds = started.elapsed().as_secs_f64();
    let view = database.view_of_process();
    let (texts, _) = match TextReader::new(&view)? {
        Some(reader) => reader.documents()?,
        None => (0, 0),
    };
    let (bytes, _) = view.snapshot().text_bytes().unwrap_or_default();
    Ok(format!(
        "{} in {seconds:.1} s, {} on disk\n",
        Counted(texts, "text"),
        ByteCount(bytes)
    ))
}

fn report(directory: &Path) -> Result<Value, Failure> {
    let database = Database::open(directory)?;
    let view = database.view_of_process();
    let reader = TextReader::new(&view)?.ok_or_else(no_index)?;
    let rules = reader.rules().cloned().unwrap_or_default();
    let (in_base, in_memory) = reader.documents()?;
    let (bytes, memory_bytes) = view.snapshot().text_bytes().unwrap_or_default();
    Ok(json!({
        "properties": rules.predicates,
        "classes": rules.classes,
        "graphs": rules.graphs,
        "languages": rules.languages,
        "grams": rules.grams,
        "texts": in_base,
        "texts_since": in_memory,
        "bytes": bytes,
        "memory_bytes": memory_bytes,
    }))
}

/// A report, of a database here or of a server's, as it is printed.
fn written(report: &Value, format: ReportFormat) -> String {
    if matches!(format, ReportFormat::Json) {
        return format!("{report}\n");
    }
    let each = |name: &str, otherwise: &str, show: &dyn Fn(&str) -> String| {
        let all = report[name].as_array().map_or(&[][..], Vec::as_slice);
        let all: Vec<String> = all.iter().filter_map(Value::as_str).map(show).collect();
        match all.is_empty() {
            true => otherwise.to_owned(),
            false => all.join(" "),
        }
    };
    let iri = |iri: &str| format!("<{iri}>");
    let properties = each("properties", "all", &iri);
    let classes = each("classes", "any", &iri);
    let graphs = each("graphs", "all", &|graph| match graph.is_empty() {
        true => "default".to_owned(),
        false => iri(graph),
    });
    let languages = each("languages", "all", &|tag| match tag.is_empty() {
        true => "\"\"".to_owned(),
        false => tag.to_owned(),
    });
    let is_with_grams = report["grams"].as_bool().unwrap_or_default();
    let grams = if is_with_grams { "yes" } else { "no" };
    let number = |name: &str| report[name].as_u64().unwrap_or_default();
    format!(
        "properties {properties}\nclasses    {classes}\ngraphs     {graphs}\nlanguages  {languages}\ngrams      {grams}\n\
        {}, {} on disk; {} since the base was written, {} in memory\n",
        Counted(number("texts"), "text"),
        ByteCount(number("bytes")),
        number("texts_since"),
        ByteCount(number("memory_bytes"))
    )
}

/// Has a server make an index, which answers when it is done.
fn made_by_server(url: Url) -> Result<String, Failure> {
    let answer = parsed(&post(url, "text/plain", Vec::new().into())?)?;
    let number = |name: &str| answer["index"][name].as_u64().unwrap_or_default();
    Ok(format!(
        "{} in {:.1} s, {} on disk\n",
        Counted(number("texts"), "text"),
        answer["seconds"].as_f64().unwrap_or_default(),
        ByteCount(number("bytes"))
    ))
}

fn parsed(answer: &str) -> Result<Value, Failure> {
    serde_json::from_str(answer)
        .map_err(|error| Failure::Other(format!("the server did not answer as expected: {error}")))
}

/// Whose index it is.
enum Of<'p> {
    Directory(&'p Path),
    Server(Url),
}

fn of(place: &PrefixPlace) -> Result<Of<'_>, Failure> {
    match (&place.directory, &place.server) {
        (Some(directory), _) => Ok(Of::Directory(directory)),
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
