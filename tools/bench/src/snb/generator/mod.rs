//! A generator of data in the benchmark's schema, at any scale and deterministic by seed.
//!
//! `world` has what is there at every scale, `persons` who knows whom, `activity` what they write;
//! what happens before the cut goes into the data set as N-Triples, what happens after into the
//! update streams (`output`). Persons and friendships are held in memory, some 500 bytes a person
//! and 16 a friendship, and the update streams, a tenth of all, until they are sorted; all else is
//! written as it is drawn. It is not the official generator: sizes are like those of its scale
//! factors, its results are not.

mod activity;
mod draw;
mod output;
mod parameters;
mod persons;
mod world;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use activity::Activity;
use output::{Line, Output};
use world::World;

const BUFFER_BYTES: usize = 1 << 20;

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub struct SnbGenerateOptions {
    /// The scale factor: 0.1 has some 1,700 persons, 1 some 11,000.
    pub scale: f64,
    /// The same seed gives the same data.
    pub seed: u64,
}

/// What was generated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SnbGenerateReport {
    /// Persons, those of the update stream too.
    pub persons: u32,
    /// Friendships.
    pub friendships: u64,
    /// Triples of persons and of what they do.
    pub triples: u64,
    /// Lines of the update streams.
    pub updates: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Persons at a scale: 11,000 at 1, some seven times as many at ten times the scale, as the
/// official generator has them; in between in proportion.
fn person_count(scale: f64) -> u32 {
    const KNOWN: [(f64, f64); 7] = [
        (0.0, 0.0),
        (0.1, 1_700.0),
        (1.0, 11_000.0),
        (10.0, 73_000.0),
        (100.0, 499_000.0),
        (1_000.0, 3_600_000.0),
        (10_000.0, 24_000_000.0),
    ];
    let above = KNOWN.iter().position(|(at, _)| *at >= scale);
    let above = above.unwrap_or(KNOWN.len() - 1).max(1);
    let ((low, few), (high, many)) = (KNOWN[above - 1], KNOWN[above]);
    let persons = few + (many - few) * ((scale - low) / (high - low));
    (persons as u32).max(20)
}

/// Writes a data set with its update streams and substitution parameters into a directory, which is
/// made.
///
/// # Errors
/// When a file cannot be written.
pub fn generate(options: &SnbGenerateOptions, directory: &Path) -> io::Result<SnbGenerateReport> {
    let start = Instant::now();
    fs::create_dir_all(directory)?;
    let file = |name: &str| -> io::Result<BufWriter<File>> {
        let file = File::create(directory.join(name))?;
        Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
    };
    let world = World::new(options.seed);
    let mut fixed = file("social_network_static_0_0.nt")?;
    world.write(&mut fixed)?;
    fixed.flush()?;
    let mut person_file = file("social_network_person_0_0.nt")?;
    let mut activity_file = file("social_network_activity_0_0.nt")?;
    let mut output = Output::new(&world.catalog, &mut person_file, &mut activity_file);
    let count = person_count(options.scale);
    let persons = persons::persons(count, options.seed, &world, &mut output)?;
    Activity::new(options.seed, &world, &persons, &mut output).write()?;
    let triples = output.triples;
    let streams = [output.person_stream, output.forum_stream];
    person_file.flush()?;
    activity_file.flush()?;
    let mut updates = 0;
    let mut times = Vec::new();
    for (name, mut lines) in ["person", "forum"].into_iter().zip(streams) {
        lines.sort();
        updates += lines.len() as u64;
        times.extend(lines.first().map(|(due, _)| *due));
        times.extend(lines.last().map(|(due, _)| *due));
        write_stream(&lines, &mut file(&format!("updateStream_0_0_{name}.csv"))?)?;
    }
    let (first, last) = (times.iter().min(), times.iter().max());
    let span = last.zip(first).map_or(0, |(last, first)| last - first);
    fs::write(
        directory.join("updateStream.properties"),
        format!(
            "ldbc.snb.interactive.min_write_event_start_time:{}\n\
             ldbc.snb.interactive.max_write_event_start_time:{}\n\
             ldbc.snb.interactive.update_interleave:{}\n\
             ldbc.snb.interactive.num_events:{updates}\n",
            first.copied().unwrap_or_default(),
            last.copied().unwrap_or_default(),
            span / i64::try_from(updates.max(1)).unwrap_or(i64::MAX),
        ),
    )?;
    parameters::write(&persons, &world, options.seed, directory)?;
    let friendships: usize = persons.iter().map(|person| person.friends.len()).sum();
    Ok(SnbGenerateReport {
        persons: count,
        friendships: friendships as u64 / 2,
        triples,
        updates,
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn write_stream(lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    for (_, line) in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snb::{parameters as run_parameters, update_stream};

    const SMALL: SnbGenerateOptions = SnbGenerateOptions {
        scale: 0.003,
        seed: 7,
    };

    fn all(directory: &Path) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for folder in [
            directory.to_owned(),
            directory.join("substitution_parameters"),
        ] {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    files.push((name, fs::read_to_string(path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }

    #[test]
    fn a_seed_is_a_data_set() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other, third) = (
            folder.path().join("one"),
            folder.path().join("other"),
            folder.path().join("third"),
        );
        let report = generate(&SMALL, &one).unwrap();
        generate(&SMALL, &other).unwrap();
        assert_eq!(all(&one), all(&other));
        generate(&SnbGenerateOptions { seed: 8, ..SMALL }, &third).unwrap();
        assert_ne!(all(&one), all(&third));
        assert!(report.updates > 0 && report.triples > 10_000, "{report:?}");
    }

    #[test]
    fn triples_streams_and_parameters_are_read() {
        let folder = tempfile::tempdir().unwrap();
        generate(&SMALL, folder.path()).unwrap();
        let mut updates = 0;
        for (name, text) in all(folder.path()) {
            if name.ends_with(".nt") {
                for triple in oxttl::NTriplesParser::new().for_slice(text.as_bytes()) {
                    triple.unwrap();
                }
            } else if name.ends_with(".csv") {
                let mut before = i64::MIN;
                for line in text.lines() {
                    let update = update_stream::read_line(line).unwrap();
                    assert!(
                        update.depends_on < update.due && before <= update.due,
                        "{line}"
                    );
                    before = update.due;
                    updates += 1;
                }
            } else if let Some(number) = name.strip_prefix("interactive_") {
                let number = number.split('_').next().unwrap().parse().unwrap();
                let runs = run_parameters::read(number, &text).unwrap();
                assert!(!runs.is_empty(), "{name}");
            }
        }
        assert!(updates > 100);
    }

    #[test]
    fn scales_are_like_the_official_ones() {
        assert_eq!(person_count(0.1), 1_700);
        assert_eq!(person_count(1.0), 11_000);
        assert_eq!(person_count(3.0), 11_000 + 62_000 * 2 / 9);
        assert_eq!(person_count(0.0), 20);
    }
}
