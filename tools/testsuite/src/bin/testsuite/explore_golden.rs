//! The program that writes `golden/explore.json`, the reference answers of the explore queries.
//! Takes some minutes.
//!
//! `cargo run --release -p orrery-testsuite --bin testsuite explore-golden`

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use orrery_testsuite::{Error, explore, reference, shared};

pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("explore-golden: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let (Some(data), Some(templates)) = (
        shared::find(explore::DATA),
        shared::find(explore::TEMPLATES),
    ) else {
        return Ok(());
    };
    let path = explore::golden_path();
    let io = |source| Error::Io {
        path: path.clone(),
        source,
    };
    let home = tempfile::tempdir().map_err(io)?;
    let plain = home.path().join("bsbm.nt");
    explore::decompress(&data, &plain)?;
    let cases = explore::cases_of_file(&templates, &plain)?;
    let file = File::open(&plain).map_err(io)?;
    let dataset = reference::read_nquads(BufReader::with_capacity(1 << 20, file))?;
    let mut golden = Vec::new();
    for case in cases {
        let answer = reference::evaluate(&dataset, &case.unlimited_text())?;
        eprintln!("query {}: {} rows", case.query, answer.rows());
        golden.push(case.golden(&answer));
    }
    let json =
        serde_json::to_string_pretty(&golden).map_err(|error| Error::Syntax(error.to_string()))?;
    std::fs::write(&path, json + "\n").map_err(io)
}
