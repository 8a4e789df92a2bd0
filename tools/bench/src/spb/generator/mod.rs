//! A generator of data in the benchmark's schema, at any size and deterministic by seed.
//!
//! First come the entities, stand-ins of ours (`stand_ins`) or those of reference data that are
//! given (`reference`), which are loaded beside what is written here. Then work after work, each
//! drawn from its number alone: one of three is of an event, after which fewer and fewer works are
//! about it, one is of two entities that go together for a while, and one is of anything at any
//! time (`phenomena`). It is written as it is drawn; in memory are the entities, some 200 bytes
//! each, and the events.

mod phenomena;
mod reference;
mod stand_ins;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use thiserror::Error;

use super::maker::Maker;
use super::quads::QuadsError;
use phenomena::Phenomena;

/// Quads of a work, by which numbers of events and entities are chosen.
const QUADS_PER_WORK: u64 = 23;
const BUFFER_BYTES: usize = 1 << 20;

/// What to generate.
#[derive(Clone, Debug)]
pub struct SpbGenerateOptions {
    /// The works end with the first that reaches so many quads, entities included.
    pub quads: u64,
    /// The same seed gives the same data.
    pub seed: u64,
    /// Reference data, in files or directories: works are about its entities, which are not written
    /// again.
    pub reference: Vec<PathBuf>,
}

/// What was generated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpbGenerateReport {
    /// Quads written, all different.
    pub quads: u64,
    /// Creative works, each in a graph of its own.
    pub works: u64,
    /// Entities that works can be about, and places.
    pub entities: usize,
    /// How long it took.
    pub seconds: f64,
}

/// Why nothing is generated.
#[derive(Debug, Error)]
pub enum GenerateError {
    /// The reference data.
    #[error(transparent)]
    Reference(#[from] QuadsError),
    /// The reference data has nothing with a name.
    #[error("the reference data has no entity with a name that works could be about")]
    NoEntities,
    /// The output.
    #[error("{}: {source}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Writes N-Quads into a file, compressed if its name ends in `.gz`.
///
/// # Errors
/// When the reference data cannot be read or the file cannot be written.
pub fn generate(
    options: &SpbGenerateOptions,
    path: &Path,
) -> Result<SpbGenerateReport, GenerateError> {
    let failed = |source| GenerateError::Output {
        path: path.to_owned(),
        source,
    };
    let file = File::create(path).map_err(failed)?;
    let file = BufWriter::with_capacity(BUFFER_BYTES, file);
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut output = GzEncoder::new(file, Compression::default());
        let report = write(options, &mut output, failed)?;
        let mut file = output.finish().map_err(failed)?;
        file.flush().map_err(failed)?;
        Ok(report)
    } else {
        let mut output = file;
        let report = write(options, &mut output, failed)?;
        output.flush().map_err(failed)?;
        Ok(report)
    }
}

fn write(
    options: &SpbGenerateOptions,
    output: &mut impl Write,
    failed: impl Fn(io::Error) -> GenerateError + Copy,
) -> Result<SpbGenerateReport, GenerateError> {
    let start = Instant::now();
    let works = (options.quads / QUADS_PER_WORK).max(1);
    let mut quads = 0;
    let entities = if options.reference.is_empty() {
        stand_ins::write(works, options.seed, &mut |triple| {
            quads += 1;
            writeln!(output, "{triple} .")
        })
        .map_err(failed)?
    } else {
        reference::read(&options.reference)?
    };
    if entities.is_empty() {
        return Err(GenerateError::NoEntities);
    }
    let maker = Maker::new(options.seed);
    let phenomena = Phenomena::new(options.seed, works, &entities);
    let mut number = 0;
    // One work at least: what has none is no data of this benchmark.
    while quads < options.quads || number == 0 {
        number += 1;
        let mut random = maker.random(number);
        let preset = phenomena.preset(number, &mut random);
        let work = maker.work(number, &entities, &preset, &mut random);
        quads += work.write(output).map_err(failed)?;
    }
    Ok(SpbGenerateReport {
        quads,
        works: number,
        entities: entities.all().len() + entities.places().len(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::spb::quads::{Quads, data_files};
    use crate::spb::vocabulary::{RDF_TYPE, cwork, geo_ont};

    fn generated(quads: u64, seed: u64, reference: Vec<PathBuf>, name: &str) -> (Vec<u8>, Quads) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let options = SpbGenerateOptions {
            quads,
            seed,
            reference,
        };
        let report = generate(&options, &path).unwrap();
        let read = Quads::read(&data_files(std::slice::from_ref(&path)).unwrap()).unwrap();
        assert_eq!(report.quads, read.len() as u64, "all different");
        assert!(report.quads >= quads);
        (std::fs::read(&path).unwrap(), read)
    }

    #[test]
    fn the_seed_decides() {
        let (one, _) = generated(3_000, 1, Vec::new(), "a.nq");
        let (same, _) = generated(3_000, 1, Vec::new(), "b.nq");
        let (other, _) = generated(3_000, 2, Vec::new(), "c.nq");
        assert!(one == same);
        assert!(one != other);
    }

    #[test]
    fn works_have_what_the_schema_asks_for() {
        let (_, quads) = generated(20_000, 1, Vec::new(), "a.nq.gz");
        let mut works = BTreeSet::new();
        for class in ["NewsItem", "BlogPost", "Programme"] {
            works.extend(quads.subjects(RDF_TYPE, &cwork(class)));
        }
        assert!(works.len() > 600, "{}", works.len());
        for work in &works {
            for property in [
                "title",
                "shortTitle",
                "category",
                "description",
                "dateCreated",
                "dateModified",
                "audience",
                "liveCoverage",
                "thumbnail",
            ] {
                let count = quads.objects(work, &cwork(property)).len();
                assert_eq!(count, 1, "{property} of {work}");
            }
            assert!(!quads.objects(work, &cwork("primaryFormat")).is_empty());
            let graphs = quads.graphs(work, &cwork("title"));
            assert_eq!(graphs.len(), 1, "a graph of its own");
            for entity in quads.objects(work, &cwork("about")) {
                assert!(!quads.of_subject(entity).is_empty(), "{entity} is known");
            }
        }
        let provinces = quads.subjects(&geo_ont("featureCode"), &geo_ont("A.ADM1"));
        assert!(!provinces.is_empty());
    }

    #[test]
    fn some_entities_are_tagged_far_more_than_others() {
        let (_, quads) = generated(60_000, 1, Vec::new(), "a.nq");
        let about = cwork("about");
        let mut counts: Vec<usize> = (quads.with(RDF_TYPE).into_iter())
            .map(|entity| quads.subjects(&about, entity).len())
            .filter(|count| *count > 0)
            .collect();
        counts.sort_unstable();
        let (median, most) = (counts[counts.len() / 2], counts[counts.len() - 1]);
        assert!(most > 10 * median, "{median} {most}");
    }

    #[test]
    fn works_are_about_reference_data_that_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let names: String = (0..30)
            .map(|number| {
                format!("<http://x/e{number}> <http://xmlns.com/foaf/0.1/name> \"E{number}\" .\n")
            })
            .collect();
        std::fs::write(folder.path().join("names.nt"), names).unwrap();
        let reference = vec![folder.path().to_owned()];
        let (_, quads) = generated(2_000, 1, reference, "a.nq");
        assert!(
            quads.of_subject("<http://x/e0>").is_empty(),
            "not written again"
        );
        assert!((0..30).any(|number| {
            let entity = format!("<http://x/e{number}>");
            !quads.subjects(&cwork("about"), &entity).is_empty()
        }));
    }

    #[test]
    fn reference_data_without_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ttl");
        std::fs::write(&path, "<http://x/a> a <http://x/b> .").unwrap();
        let options = SpbGenerateOptions {
            quads: 100,
            seed: 1,
            reference: vec![path],
        };
        let error = generate(&options, &folder.path().join("out.nq")).unwrap_err();
        assert!(
            error.to_string().contains("no entity with a name"),
            "{error}"
        );
    }
}
