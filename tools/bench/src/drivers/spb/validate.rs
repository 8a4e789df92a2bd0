//! Validation: each aggregation query against an evaluation of our own over the same data, and the
//! editorial operations: what is inserted is there, what is updated is as it should be, what is
//! deleted is gone.
//!
//! Queries are asked before editing, beside works that were inserted and updated, and when those
//! are deleted again; the evaluation's data go along. So the database is in the end what it was.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::Serialize;

use super::client::{Client, query_text};
use super::database::{UNION, load, temporary_folder};
use crate::drivers::target::{Target, failed};
use crate::drivers::{BenchError, Binary};
use crate::http_client::HttpClient;
use crate::report::Table;
use crate::spb::answer::Answer;
use crate::spb::creative_work::{CreativeWork, deletion};
use crate::spb::maker::{Maker, Preset};
use crate::spb::naive::Naive;
use crate::spb::pool::Pool;
use crate::spb::quads::{Quads, data_files};
use crate::spb::templates::{Edit, Kind, QUERIES};
use crate::spb::vocabulary::{graph, work};
use orrery_bsbm::Random;

/// Differences that are shown in full.
const SHOWN_MAX: usize = 3;
/// Works that are inserted; every second is updated.
const EDITED_WORKS: u64 = 10;

/// What to validate.
#[derive(Clone, Debug)]
pub struct SpbValidateOptions {
    /// The data, in files and directories, as they were loaded.
    pub data: Vec<PathBuf>,
    /// A database or endpoint that has them; without one they are loaded.
    pub target: Option<Target>,
    /// Whether what is loaded gets an index of its texts.
    pub has_text_index: bool,
    /// Parameters of each query, each time.
    pub rounds: u32,
    /// The same seed draws the same operations.
    pub seed: u64,
}

/// How the operations of one kind went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpbValidated {
    /// The kind.
    pub kind: Kind,
    /// Operations that were run.
    pub operations: usize,
    /// Those whose results agree.
    pub agree: usize,
    /// Those of them whose results have something in them.
    pub with_rows: usize,
}

/// A result that is not the one expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpbDifference {
    /// What was run.
    pub kind: Kind,
    /// With which parameters.
    pub parameters: BTreeMap<String, String>,
    /// How long the result should be, and its first line that is not in the other.
    pub expected: String,
    /// The same of what came.
    pub actual: String,
}

/// What a validation found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpbValidationReport {
    /// Quads of the data.
    pub quads: usize,
    /// Kind by kind.
    pub kinds: Vec<SpbValidated>,
    /// Operations that were run.
    pub operations: usize,
    /// Those whose results agree.
    pub agree: usize,
    /// The first that do not.
    pub differences: Vec<SpbDifference>,
}

/// Validates a database or an endpoint.
///
/// # Errors
/// When data cannot be read or an operation fails.
pub fn validate_spb(
    binary: &Binary,
    options: &SpbValidateOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<SpbValidationReport, BenchError> {
    let files = data_files(&options.data).map_err(|source| failed("the data", source))?;
    progress("read the data");
    let quads = Quads::read(&files).map_err(|source| failed("the data", source))?;
    let folder = temporary_folder()?;
    let target = match &options.target {
        Some(target) => target.clone(),
        None => {
            progress("load");
            load(binary, &options.data, folder.path(), options.has_text_index)?
        }
    };
    let serving = target.serve(&[UNION])?;
    let pool = Pool::read(&mut HttpClient::new(serving.endpoint())?)
        .map_err(|source| failed("the parameters", source))?;
    let mut validation = Validation {
        client: Client::new(serving.endpoint())?,
        pool,
        random: Random::new(options.seed),
        kinds: BTreeMap::new(),
        differences: Vec::new(),
        quads,
    };
    let before = validation.quads.len();
    progress("queries");
    validation.queries(options.rounds)?;
    progress("editorial operations");
    validation.edit(options)?;
    let kinds: Vec<SpbValidated> = validation.kinds.into_values().collect();
    Ok(SpbValidationReport {
        quads: before,
        operations: kinds.iter().map(|kind| kind.operations).sum(),
        agree: kinds.iter().map(|kind| kind.agree).sum(),
        kinds,
        differences: validation.differences,
    })
}

struct Validation {
    client: Client,
    pool: Pool,
    random: Random,
    quads: Quads,
    kinds: BTreeMap<Kind, SpbValidated>,
    differences: Vec<SpbDifference>,
}

impl Validation {
    fn compare(
        &mut self,
        kind: Kind,
        parameters: BTreeMap<String, String>,
        expected: &Answer,
        actual: &Answer,
    ) {
        let report = self.kinds.entry(kind).or_insert(SpbValidated {
            kind,
            operations: 0,
            agree: 0,
            with_rows: 0,
        });
        report.operations += 1;
        report.with_rows += usize::from(!expected.is_empty());
        if expected == actual {
            report.agree += 1;
        } else if self.differences.len() < SHOWN_MAX {
            let (expected, actual) = expected.difference(actual);
            self.differences.push(SpbDifference {
                kind,
                parameters,
                expected,
                actual,
            });
        }
    }

    /// Each query with some parameters.
    fn queries(&mut self, rounds: u32) -> Result<(), BenchError> {
        for _ in 0..rounds {
            for number in 1..=QUERIES {
                let parameters = self.pool.draw(number, &mut self.random);
                self.query(number, parameters)?;
            }
        }
        Ok(())
    }

    fn query(
        &mut self,
        number: u8,
        parameters: BTreeMap<String, String>,
    ) -> Result<(), BenchError> {
        let search = self.pool.search();
        let expected = Naive::new(&self.quads, &parameters, search).answer(number);
        let expected = expected
            .ok_or_else(|| failed(Kind::Query(number), "parameters that cannot be evaluated"))?;
        let text = query_text(number, search, &parameters)?;
        let is_ordered = matches!(expected, Answer::Ordered(_));
        let actual = self.client.answer(number, &text, is_ordered)?;
        self.compare(Kind::Query(number), parameters, &expected, &actual);
        Ok(())
    }

    /// The graph of a work has these triples and no others.
    fn check_graph(&mut self, edit: Edit, number: u64) -> Result<(), BenchError> {
        let name = graph(number);
        let triples = self.quads.of_graph(&name).into_iter();
        let expected = Answer::unordered(
            triples
                .map(|triple| triple.map(str::to_owned).to_vec())
                .collect(),
        );
        let text = format!("SELECT ?s ?p ?o {{ GRAPH {name} {{ ?s ?p ?o }} }}");
        let actual = self.client.rows(&name, &text)?;
        let parameters = BTreeMap::from([("graph".to_owned(), name)]);
        self.compare(Kind::Edit(edit), parameters, &expected, &actual);
        Ok(())
    }

    fn apply(&mut self, edit: Edit, work: &CreativeWork) -> Result<(), BenchError> {
        let text = match edit {
            Edit::Insert => work.insertion(),
            Edit::Update => work.replacement(),
            Edit::Delete => deletion(work.number),
        };
        let applied = self.client.update(&text);
        applied.map_err(|source| failed(Kind::Edit(edit), source))?;
        let name = graph(work.number);
        self.quads.drop_graph(&name);
        if edit != Edit::Delete {
            for triple in work.triples() {
                self.quads.add(&triple, &name);
            }
        }
        self.check_graph(edit, work.number)
    }

    /// Queries that a work is in the answers of.
    fn queries_about(&mut self, edited: &CreativeWork) -> Result<(), BenchError> {
        let parameters = |pairs: &[(&str, String)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect()
        };
        let about = edited.about.first().cloned().unwrap_or_default();
        let one = parameters(&[("work", work(edited.number))]);
        self.query(2, one.clone())?;
        self.query(9, one)?;
        let topic = [
            ("relation", "cwork:about".to_owned()),
            ("entity", about.clone()),
        ];
        self.query(1, parameters(&topic))?;
        self.query(12, parameters(&[("tag", about)]))
    }

    fn edit(&mut self, options: &SpbValidateOptions) -> Result<(), BenchError> {
        let maker = Maker::new(options.seed);
        let first = self.pool.next_work();
        let works: Vec<u64> = (first..first + EDITED_WORKS).collect();
        let make = |validation: &mut Self, number: u64| {
            let preset = Preset {
                created_ms: validation.pool.draw_created_ms(&mut validation.random),
                ..Preset::default()
            };
            let entities = validation.pool.entities();
            maker.work(number, entities, &preset, &mut validation.random)
        };
        for number in &works {
            let new = make(self, *number);
            self.apply(Edit::Insert, &new)?;
            self.queries_about(&new)?;
        }
        for number in works.iter().step_by(2) {
            let new = make(self, *number);
            self.apply(Edit::Update, &new)?;
            self.queries_about(&new)?;
        }
        self.queries(options.rounds.min(2))?;
        for number in &works {
            let old = make(self, *number);
            self.apply(Edit::Delete, &old)?;
        }
        self.queries(options.rounds.min(2))
    }
}

impl Display for SpbValidationReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["kind", "operations", "with rows", "agree"]);
        for kind in &self.kinds {
            table.row([
                kind.kind.to_string(),
                kind.operations.to_string(),
                kind.with_rows.to_string(),
                kind.agree.to_string(),
            ]);
        }
        table.fmt(formatter)?;
        for difference in &self.differences {
            writeln!(
                formatter,
                "\n{} with {:?}\n  expected {}\n  actual   {}",
                difference.kind, difference.parameters, difference.expected, difference.actual
            )?;
        }
        writeln!(
            formatter,
            "{} of {} operations agree, {} quads",
            self.agree, self.operations, self.quads
        )
    }
}
