//! `orrery demo`: generates a data set, loads it and serves it, in one command.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use orrery_bsbm::GenerateOptions;
use orrery_loader::{LoadOptions, Source, TerminalProgress};
use orrery_server::stop_signal;
use tempfile::TempDir;

use crate::arguments::DemoArguments;
use crate::commands::serving::serve;
use crate::database_place::{DatabasePlace, only_a_directory};
use crate::failure::Failure;
use crate::units::{Counted, ShowCount};

/// Sample queries over the generated data, shown as links.
const SAMPLES: [(&str, &str); 3] = [
    (
        "the ten products with the most reviews",
        "PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>\n\
         PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n\
         SELECT ?label (COUNT(?review) AS ?reviews) {\n  \
           ?review bsbm:reviewFor ?product . ?product rdfs:label ?label\n\
         } GROUP BY ?product ?label ORDER BY DESC(?reviews) LIMIT 10",
    ),
    (
        "vendors by country, with their offers",
        "PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>\n\
         SELECT ?country (COUNT(DISTINCT ?vendor) AS ?vendors) (COUNT(?offer) AS ?offers) {\n  \
           ?offer bsbm:vendor ?vendor . ?vendor bsbm:country ?country\n\
         } GROUP BY ?country ORDER BY DESC(?offers)",
    ),
    (
        "how often each predicate is used",
        "SELECT ?predicate (COUNT(*) AS ?quads) { ?s ?predicate ?o }\n\
         GROUP BY ?predicate ORDER BY DESC(?quads)",
    ),
];

pub(crate) fn run(arguments: DemoArguments) -> Result<(), Failure> {
    if let Some(directory) = &arguments.directory {
        only_a_directory("demo", directory)?;
    }
    // Held until the server has stopped, then removed.
    let (directory, _temporary) = place(arguments.directory)?;
    if !directory.join("MANIFEST").exists() {
        fill(&directory, arguments.products)?;
    }
    let place = DatabasePlace::of_directory(&directory);
    let options = serve::options(&place, &arguments.server)?;
    orrery_server::serve(options, announce, stop_signal())?;
    Ok(())
}

fn place(directory: Option<PathBuf>) -> Result<(PathBuf, Option<TempDir>), Failure> {
    match directory {
        Some(directory) => Ok((directory, None)),
        None => {
            let temporary = tempfile::Builder::new()
                .prefix("orrery-demo-")
                .tempdir()
                .map_err(|error| Failure::file(&std::env::temp_dir(), error))?;
            Ok((temporary.path().join("db"), Some(temporary)))
        }
    }
}

/// Generates a data set and loads it.
fn fill(directory: &Path, products: u32) -> Result<(), Failure> {
    let stage = tempfile::Builder::new()
        .prefix("orrery-demo-data-")
        .tempdir()
        .map_err(|error| Failure::file(&std::env::temp_dir(), error))?;
    let data = stage.path().join("bsbm.nt");
    let file = File::create(&data).map_err(|error| Failure::file(&data, error))?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let options = GenerateOptions {
        products,
        ..GenerateOptions::default()
    };
    eprintln!("Generating {} ...", Counted(products.into(), "product"));
    let generated = orrery_bsbm::generate(&options, &mut writer)
        .and_then(|report| writer.flush().map(|()| report))
        .map_err(|error| Failure::file(&data, error))?;
    eprintln!("Loading {} ...", Counted(generated.triples, "triple"));
    let report = orrery_loader::load(
        directory,
        &[Source::File(data)],
        &LoadOptions::default(),
        &TerminalProgress::new(),
    )?;
    eprintln!(
        "Loaded in {:.1} s: {} triples a second, {:.1} bytes a triple.",
        report.seconds,
        ShowCount(report.quads_per_second() as u64),
        report.bytes_per_quad()
    );
    Ok(())
}

/// Prints the address, and links that run the sample queries in the console.
fn announce(address: SocketAddr) {
    let address = format!("http://{address}/");
    eprintln!("\nOrrery is at {address} (stop it with Ctrl+C). Queries to click:\n");
    for (title, query) in SAMPLES {
        eprintln!(
            "  {title}:\n    {address}?query={}\n",
            utf8_percent_encode(query, RESERVED)
        );
    }
}

/// All but the unreserved characters (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
