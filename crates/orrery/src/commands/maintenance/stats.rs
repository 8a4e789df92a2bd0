//! `orrery stats`: counts of a database's contents, and the bytes of its files.

use std::path::Path;

use orrery_storage::statistics::{Figures, PredicateStatistics};
use orrery_storage::{ByteCount, Database, Permutation, ReadView, Snapshot};
use orrery_term::TermId;
use serde_json::{Value, json};

use crate::arguments::{ReportFormat, StatsArguments};
use crate::commands::output::Output;
use crate::failure::Failure;
use crate::units::{ShowCount, plural};

/// Statistics of one database, gathered before they are printed.
struct Report {
    /// None in a database that was last written before there were identities.
    identity: Option<String>,
    quads: u64,
    terms: u64,
    distinct_subjects: u64,
    distinct_objects: u64,
    named_graphs: u64,
    predicates: Vec<Predicate>,
    predicates_in_all: usize,
    characteristic_sets: usize,
    files: Vec<(String, u64)>,
}

struct Predicate {
    iri: String,
    quads: u64,
    distinct_subjects: u64,
    distinct_objects: u64,
}

pub(crate) fn run(arguments: StatsArguments) -> Result<(), Failure> {
    let database = arguments.database.place()?.open()?;
    let report = gather(&database, arguments.predicates)?;
    let text = match arguments.format {
        ReportFormat::Text => people(&report, &arguments.database.directory),
        ReportFormat::Json => format!("{}\n", programs(&report)),
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

fn gather(database: &Database, predicates_max: usize) -> Result<Report, Failure> {
    let view = database.view_of_process();
    let snapshot = view.snapshot();
    let all = all(&view)?;
    let mut predicates = predicates(&view)?;
    predicates.sort_by_key(|(id, figures)| (std::cmp::Reverse(figures.quads), *id));
    let predicates_in_all = predicates.len();
    predicates.truncate(predicates_max);
    let base = snapshot.manifest().present();
    let segments = [&base.segment].into_iter();
    let segments = segments.chain(base.deltas.last().map(|delta| &delta.delta));
    let files = segments.flat_map(|segment| segment.files());
    Ok(Report {
        identity: snapshot
            .manifest()
            .identity
            .as_ref()
            .map(ToString::to_string),
        quads: view.quad_count(),
        terms: snapshot.dictionary().len() + snapshot.delta_terms(),
        distinct_subjects: all.distinct_subjects,
        distinct_objects: all.distinct_objects,
        named_graphs: named_graphs(&view)?,
        predicates: predicates
            .into_iter()
            .map(|(id, figures)| {
                Ok(Predicate {
                    iri: term_text(snapshot, id)?,
                    quads: figures.quads,
                    distinct_subjects: figures.distinct_subjects,
                    distinct_objects: figures.distinct_objects,
                })
            })
            .collect::<Result<_, Failure>>()?,
        predicates_in_all,
        characteristic_sets: match view.figures() {
            Figures::Counted(statistics) => statistics.characteristic_sets().len(),
            Figures::Sampled(_) => 0,
        },
        files: files.map(|file| (file.name.clone(), file.bytes)).collect(),
    })
}

/// All predicates with their current number of quads; distinct subjects and objects are those of
/// the base.
fn predicates(view: &ReadView) -> Result<Vec<(TermId, PredicateStatistics)>, Failure> {
    let Some(index) = view.index(Permutation::Psog) else {
        return Ok(Vec::new());
    };
    let (mut cursor, mut predicates) = (index.cursor(), Vec::new());
    let mut last = None;
    while let Some(predicate) = cursor.distinct_next(&[], last)? {
        let figures = match view.figures() {
            Figures::Counted(statistics) => PredicateStatistics {
                quads: cursor.seek(&[predicate])?.len(),
                ..statistics.predicate(predicate).copied().unwrap_or_default()
            },
            Figures::Sampled(sampled) => sampled.predicate(predicate)?,
        };
        predicates.push((predicate, figures));
        last = Some(predicate);
    }
    Ok(predicates)
}

fn all(view: &ReadView) -> Result<PredicateStatistics, Failure> {
    Ok(match view.figures() {
        Figures::Counted(statistics) => statistics.all(),
        Figures::Sampled(sampled) => sampled.all()?,
    })
}

/// Counts named graphs; without any there is no permutation that begins with the graph.
fn named_graphs(view: &ReadView) -> Result<u64, Failure> {
    let Some(index) = view.index(Permutation::Gspo) else {
        return Ok(0);
    };
    let mut cursor = index.cursor();
    let (mut graphs, mut last) = (0, TermId::DEFAULT_GRAPH);
    while let Some(graph) = cursor.distinct_next(&[], Some(last))? {
        graphs += 1;
        last = graph;
    }
    Ok(graphs)
}

fn term_text(snapshot: &Snapshot, id: TermId) -> Result<String, Failure> {
    Ok(snapshot.term(id)?.to_string())
}

fn people(report: &Report, directory: &Path) -> String {
    let bytes: u64 = report.files.iter().map(|(_, bytes)| bytes).sum();
    let counts = [
        (report.quads, "quad", ""),
        (report.terms, "term", " in the dictionary"),
        (report.distinct_subjects, "distinct subject", ""),
        (report.distinct_objects, "distinct object", ""),
        (report.named_graphs, "named graph", ""),
        (report.characteristic_sets as u64, "characteristic set", ""),
    ];
    let mut text = format!("{}\n", directory.display());
    if let Some(identity) = &report.identity {
        text += &format!("{:>15}   {identity}\n", "identity");
    }
    for (count, noun, place) in counts {
        let noun = plural(count, noun);
        text += &format!("{:>15} {noun}{place}\n", ShowCount(count));
    }
    text += &format!(
        "{:>15} on disk, {:.1} bytes a quad\n",
        ByteCount(bytes).to_string(),
        bytes as f64 / report.quads.max(1) as f64,
    );
    for (name, bytes) in &report.files {
        text += &format!("{:>15}   {name}\n", ByteCount(*bytes).to_string());
    }
    text += &format!(
        "\n{:>15} {:>15} {:>15}  predicate ({} of {})\n",
        "quads",
        "subjects",
        "objects",
        report.predicates.len(),
        report.predicates_in_all
    );
    for predicate in &report.predicates {
        text += &format!(
            "{:>15} {:>15} {:>15}  {}\n",
            ShowCount(predicate.quads),
            ShowCount(predicate.distinct_subjects),
            ShowCount(predicate.distinct_objects),
            predicate.iri
        );
    }
    text
}

fn programs(report: &Report) -> Value {
    let files: serde_json::Map<String, Value> = report
        .files
        .iter()
        .map(|(name, bytes)| (name.clone(), json!(bytes)))
        .collect();
    let predicates: Vec<Value> = report
        .predicates
        .iter()
        .map(|predicate| {
            json!({
                "predicate": predicate.iri,
                "quads": predicate.quads,
                "distinct_subjects": predicate.distinct_subjects,
                "distinct_objects": predicate.distinct_objects,
            })
        })
        .collect();
    json!({
        "identity": report.identity,
        "quads": report.quads,
        "terms": report.terms,
        "distinct_subjects": report.distinct_subjects,
        "distinct_objects": report.distinct_objects,
        "named_graphs": report.named_graphs,
        "characteristic_sets": report.characteristic_sets,
        "bytes": report.files.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        "files": files,
        "predicates_in_all": report.predicates_in_all,
        "predicates": predicates,
    })
}
