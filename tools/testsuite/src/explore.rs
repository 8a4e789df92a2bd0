//! The BSBM explore queries over the official data set, with golden answers.
//!
//! A golden entry holds the parameters, the number of rows without LIMIT and OFFSET,
//! and a digest of those rows: ties in ORDER BY make which rows a LIMIT leaves
//! ambiguous, all rows are not. The first rows stand beside, for readers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::instantiate;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::answer::Answer;

/// The official data set, within the shared test data.
pub const DATA: &str = "bsbm/bsbm-1m.nt.zst";
/// The official query templates, within the shared test data.
pub const TEMPLATES: &str = "bsbm/queries/explore";
/// Parameter sets for each query.
pub const SETS_PER_QUERY: u32 = 20;

const SEED: u64 = 1;
const SHOWN_LINES_MAX: usize = 2;
const SHOWN_CHARACTERS_MAX: usize = 200;

/// One query with its parameters and the answer of the reference evaluator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Golden {
    /// Number of the explore query.
    pub query: u8,
    /// Values of its parameters.
    pub values: BTreeMap<String, String>,
    /// Rows without LIMIT and OFFSET.
    pub rows: usize,
    /// [`Answer::digest`] of those rows.
    pub digest: String,
    /// The first of those rows in sorted order, cut.
    pub first_rows: Vec<String>,
}

/// One instantiated query.
pub struct Case {
    /// Number of the explore query.
    pub query: u8,
    /// Values of its parameters.
    pub values: BTreeMap<String, String>,
    /// The text as the benchmark runs it.
    pub text: String,
}

impl Case {
    /// The query without LIMIT and OFFSET.
    pub fn unlimited_text(&self) -> String {
        without_modifier(&without_modifier(&self.text, "LIMIT"), "OFFSET")
    }

    /// Makes the golden entry of an answer to [`Case::unlimited_text`].
    pub fn golden(&self, answer: &Answer) -> Golden {
        Golden {
            query: self.query,
            values: self.values.clone(),
            rows: answer.rows(),
            digest: answer.digest(),
            first_rows: answer
                .sorted_lines()
                .iter()
                .take(SHOWN_LINES_MAX)
                .map(|line| line.chars().take(SHOWN_CHARACTERS_MAX).collect())
                .collect(),
        }
    }
}

/// Takes `KEYWORD number` out of a query.
fn without_modifier(text: &str, keyword: &str) -> String {
    let Some(at) = text.rfind(keyword) else {
        return text.to_owned();
    };
    let after = text[at + keyword.len()..].trim_start();
    let rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    format!("{}{rest}", &text[..at])
}

/// Where the golden answers are kept.
pub fn golden_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/explore.json")
}

/// Decompresses the official data set into a file.
pub fn decompress(data: &Path, target: &Path) -> Result<(), Error> {
    let io = |source| Error::Io {
        path: data.to_owned(),
        source,
    };
    let mut reader = zstd::Decoder::new(File::open(data).map_err(io)?).map_err(io)?;
    let mut writer = File::create(target).map_err(io)?;
    std::io::copy(&mut reader, &mut writer).map_err(io)?;
    Ok(())
}

/// All cases: every template in the directory that the pool knows, with its parameter sets.
pub fn cases(templates: &Path, data: impl BufRead) -> Result<Vec<Case>, Error> {
    let syntax = |error: &dyn std::fmt::Display| Error::Syntax(error.to_string());
    let pool = ParameterPool::from_ntriples(data).map_err(|error| syntax(&error))?;
    let sets = pool
        .parameter_sets(SEED, SETS_PER_QUERY)
        .map_err(|error| syntax(&error))?;
    sets.into_iter()
        .map(|set| {
            let path = templates.join(format!("query{}.txt", set.query));
            let template =
                fs::read_to_string(&path).map_err(|source| Error::Io { path, source })?;
            let text = instantiate(&template, &set.values).map_err(|error| syntax(&error))?;
            Ok(Case {
                query: set.query,
                values: set.values,
                text,
            })
        })
        .collect()
}

/// The cases over a data file in N-Triples form.
pub fn cases_of_file(templates: &Path, data: &Path) -> Result<Vec<Case>, Error> {
    let file = File::open(data).map_err(|source| Error::Io {
        path: data.to_owned(),
        source,
    })?;
    cases(templates, BufReader::with_capacity(1 << 20, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_taken_out() {
        let text = "SELECT * { } ORDER BY ?x\nOFFSET 5\nLIMIT 10";
        let case = Case {
            query: 4,
            values: BTreeMap::new(),
            text: text.to_owned(),
        };
        assert_eq!(case.unlimited_text().trim(), "SELECT * { } ORDER BY ?x");
    }
}
