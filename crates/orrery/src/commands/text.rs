//! `orrery text`: the index of texts of a database.

use std::path::Path;
use std::time::Instant;

use orrery_storage::text::{TextReader, TextRules};
use orrery_storage::{ByteCount, Database};
use serde_json::json;

use super::output::Output;
use crate::arguments::{ReportFormat, TextCommand};
use crate::failure::Failure;
use crate::units::{Bytes, Counted};

pub(crate) fn run(command: TextCommand) -> Result<(), Failure> {
    let text = match command {
        TextCommand::Create {
            database,
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
                    url::Url::parse(iri).map_err(|error| {
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
            make(&database.directory, Some(rules), &memory)?
        }
        TextCommand::List { database, format } => list(&database.directory, format)?,
        TextCommand::Rebuild { database, memory } => make(&database.directory, None, &memory)?,
        TextCommand::Drop { database } => {
            let database = Database::open(&database.directory)?;
            if database.snapshot().text_rules().is_none() {
                return Err(no_index());
            }
            database.set_text_rules(None, None)?;
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

fn list(directory: &Path, format: ReportFormat) -> Result<String, Failure> {
    let database = Database::open(directory)?;
    let view = database.view_of_process();
    let reader = TextReader::new(&view)?.ok_or_else(no_index)?;
    let rules = reader.rules().cloned().unwrap_or_default();
    let (in_base, in_memory) = reader.documents()?;
    let (bytes, memory_bytes) = view.snapshot().text_bytes().unwrap_or_default();
    if matches!(format, ReportFormat::Json) {
        let report = json!({
            "properties": rules.predicates,
            "classes": rules.classes,
            "graphs": rules.graphs,
            "languages": rules.languages,
            "grams": rules.grams,
            "texts": in_base,
            "texts_since": in_memory,
            "bytes": bytes,
            "memory_bytes": memory_bytes,
        });
        return Ok(format!("{report}\n"));
    }
    let mut text = String::new();
    let each = |all: &[String], otherwise: &str, show: &dyn Fn(&String) -> String| match all {
        [] => otherwise.to_owned(),
        some => some.iter().map(show).collect::<Vec<_>>().join(" "),
    };
    let properties = each(&rules.predicates, "all", &|iri| format!("<{iri}>"));
    let languages = each(&rules.languages, "all", &|tag| match tag.is_empty() {
        true => "\"\"".to_owned(),
        false => tag.clone(),
    });
    let classes = each(&rules.classes, "any", &|iri| format!("<{iri}>"));
    let graphs = each(&rules.graphs, "all", &|iri| match iri.is_empty() {
        true => "default".to_owned(),
        false => format!("<{iri}>"),
    });
    let grams = if rules.grams { "yes" } else { "no" };
    text += &format!(
        "properties {properties}\nclasses    {classes}\ngraphs     {graphs}\nlanguages  {languages}\ngrams      {grams}\n"
    );
    text += &format!(
        "{}, {} on disk; {} since the base was written, {} in memory\n",
        Counted(in_base, "text"),
        ByteCount(bytes),
        in_memory,
        ByteCount(memory_bytes)
    );
    Ok(text)
}

fn no_index() -> Failure {
    Failure::Other(
        "the database has no index of texts; `orrery text create --db DIR` makes one".to_owned(),
    )
}
