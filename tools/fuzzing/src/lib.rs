//! Fuzz targets: functions that take any bytes, and must neither panic nor run for ever.
//!
//! ```text
//!   bytes -> text  -> parser of SPARQL, of a format of RDF, of another endpoint's solutions
//!         -> file  -> readers of a segment, a log, a manifest: checksums are corrected first,
//!                     because the code behind them is the target
//!         -> SQL, COPY, messages of PostgreSQL's protocol and Flight's, plans: what stands on the query engine (the feature `engine`)
//! ```
//!
//! The fuzzer is the folder `fuzz/` (`make fuzz MINUTES=n`); `tests/fuzzing/seeds.rs` runs every
//! target over its seeds and over damaged ones, so that every target stays usable. Small on
//! purpose: without the feature `engine` nothing here needs the query engine, so that the fuzzer of
//! the other targets is built within minutes.

#[cfg(feature = "engine")]
mod engine;
mod files;
mod texts;

#[cfg(feature = "engine")]
pub use engine::{make_plan, nodes_of};

/// Something that takes any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called; its seeds are in `fuzz/seeds/NAME`.
    pub name: &'static str,
    /// Takes the bytes; a panic is a fault found.
    pub run: fn(&[u8]),
}

/// Those that need no query engine.
const LIGHT: [Target; 13] = [
    target("sparql", texts::sparql),
    target("ntriples", texts::ntriples),
    target("nquads", texts::nquads),
    target("turtle", texts::turtle),
    target("trig", texts::trig),
    target("rdfxml", texts::rdfxml),
    target("jsonld", texts::jsonld),
    target("results-json", texts::results_json),
    target("results-xml", texts::results_xml),
    target("results-tsv", texts::results_tsv),
    target("segment", files::segment),
    target("log", files::log),
    target("manifest", files::manifest),
];

/// Those that do.
#[cfg(feature = "engine")]
const ENGINE: [Target; 7] = [
    target("sql", engine::sql),
    target("sql-run", engine::sql_run),
    target("copy", engine::copy),
    target("postgres-start", engine::postgres_start),
    target("postgres-messages", engine::postgres_messages),
    target("flight", engine::flight),
    target("plans", engine::plans),
];
#[cfg(not(feature = "engine"))]
const ENGINE: [Target; 0] = [];

/// All targets that there are.
pub fn targets() -> impl Iterator<Item = Target> {
    LIGHT.into_iter().chain(ENGINE)
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// The target with a name.
pub fn target_named(name: &str) -> Option<Target> {
    targets().find(|target| target.name == name)
}
