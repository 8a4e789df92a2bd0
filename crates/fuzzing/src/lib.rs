//! What fuzzers give bytes to: each target is a function that takes any bytes, and must neither panic nor take for ever.
//!
//! ```text
//!   bytes -> text  -> parser of SPARQL, of a format of RDF, of another endpoint's solutions
//!         -> file  -> readers of a segment, a log, a manifest: checksums are made right first, for what stands behind them is what is looked for
//! ```
//!
//! The fuzzer is the folder `fuzz/` (`make fuzz MINUTES=n`); `tests/seeds.rs` runs every target over its seeds and over damaged ones, so that
//! none of them rots. Small on purpose: nothing here needs the query engine, so that the fuzzer is built within minutes.

mod files;
mod texts;

/// Something that takes any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called; its seeds are in `fuzz/seeds/NAME`.
    pub name: &'static str,
    /// Takes the bytes; a panic is a fault found.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 13] = [
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

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// The target with a name.
pub fn target_named(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
