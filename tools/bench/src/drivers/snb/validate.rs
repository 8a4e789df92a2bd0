//! The validation: operations of a file in order, with compared results.
//!
//! Insertions change the database, as the results of the reads after them expect.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::drivers::BenchError;
use crate::drivers::target::{Target, failed};
use crate::files::open;
use crate::report::Table;
use crate::snb::operation::Kind;
use crate::snb::session::Session;
use crate::snb::{answer, validation};

/// Differences that are shown in full.
const SHOWN_MAX: usize = 3;

/// How the operations of one kind went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindReport {
    /// The kind.
    pub kind: Kind,
    /// Operations that were run.
    pub operations: usize,
    /// Those whose results agree.
    pub agree: usize,
}

/// An operation whose result is not the one expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The line of the file, from 1.
    pub line: usize,
    /// What was run.
    pub kind: Kind,
    /// What the file has.
    pub expected: Value,
    /// What came.
    pub actual: Value,
}

/// What a validation found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationReport {
    /// Kind by kind.
    pub kinds: Vec<KindReport>,
    /// Operations that were run.
    pub operations: usize,
    /// Those whose results agree.
    pub agree: usize,
    /// The first that do not.
    pub differences: Vec<Difference>,
}

/// Validates what an endpoint serves with a file, which may be compressed by gzip. The endpoint is
/// only asked for when the file has been read. `by_edge_weight`: whether complex read 14 goes by an
/// edge weight, which is defined in the database first.
///
/// # Errors
/// When the file is not one of validation (then nothing is run), or an operation fails.
pub fn validate(
    target: &Target,
    file: &Path,
    by_edge_weight: bool,
) -> Result<ValidationReport, BenchError> {
    let input = open(file).map_err(|source| BenchError::File {
        path: file.to_owned(),
        source,
    })?;
    let expectations = validation::read(input).map_err(|source| failed(file.display(), source))?;
    let server = target.serve(&[])?;
    let mut session =
        Session::open(server.endpoint()).map_err(|source| failed("the catalog", source))?;
    if by_edge_weight {
        session
            .define_edge_weight()
            .map_err(|source| failed("the edge weight", source))?;
    }
    let mut kinds: BTreeMap<Kind, KindReport> = BTreeMap::new();
    let mut differences = Vec::new();
    for expectation in &expectations {
        let kind = expectation.operation.kind();
        let actual = session
            .run(&expectation.operation)
            .map_err(|source| failed(format!("line {}, {kind}", expectation.line), source))?;
        let agrees = answer::agree(kind, &expectation.result, &actual);
        let report = kinds.entry(kind).or_insert(KindReport {
            kind,
            operations: 0,
            agree: 0,
        });
        report.operations += 1;
        report.agree += usize::from(agrees);
        if !agrees && differences.len() < SHOWN_MAX {
            differences.push(Difference {
                line: expectation.line,
                kind,
                expected: expectation.result.clone(),
                actual,
            });
        }
    }
    let kinds: Vec<KindReport> = kinds.into_values().collect();
    Ok(ValidationReport {
        operations: kinds.iter().map(|kind| kind.operations).sum(),
        agree: kinds.iter().map(|kind| kind.agree).sum(),
        kinds,
        differences,
    })
}

impl fmt::Display for ValidationReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["kind", "operations", "agree"]);
        for kind in &self.kinds {
            table.row([
                kind.kind.to_string(),
                kind.operations.to_string(),
                kind.agree.to_string(),
            ]);
        }
        table.fmt(formatter)?;
        for difference in &self.differences {
            writeln!(
                formatter,
                "\nline {}, {}\n  expected {}\n  actual   {}",
                difference.line, difference.kind, difference.expected, difference.actual
            )?;
        }
        writeln!(
            formatter,
            "{} of {} operations agree",
            self.agree, self.operations
        )
    }
}
