//! The schedule of the mix: updates of the streams at their times, complex reads between.
//!
//! A complex read comes each so many updates, as the specification says for the scale factor; the
//! time between two of a kind is that number times the mean time between updates. Their parameters
//! are taken in turn.

use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use crate::drivers::BenchError;
use crate::drivers::target::failed;
use crate::files::open;
use crate::snb::operation::Operation;
use crate::snb::parameters::{self, COMPLEX_READS};
use crate::snb::update_stream;

/// Updates for each complex read, a column for each of [`SCALES`]: the specification's table
/// "Frequencies for each Interactive complex query and SF". A scale between two takes those of the
/// lower, one below 1 those of 1.
const FREQUENCIES: [[i64; SCALES.len()]; COMPLEX_READS as usize] = [
    [26; SCALES.len()],
    [37; SCALES.len()],
    [69, 79, 92, 106, 123, 142, 165, 189],
    [36; SCALES.len()],
    [57, 61, 66, 72, 78, 84, 91, 98],
    [129, 172, 236, 316, 434, 580, 796, 1_063],
    [87, 72, 54, 48, 38, 32, 25, 21],
    [45, 27, 15, 9, 5, 3, 1, 1],
    [157, 209, 287, 384, 527, 705, 967, 1_292],
    [30, 32, 35, 37, 40, 44, 47, 51],
    [16, 17, 19, 20, 22, 24, 26, 28],
    [44; SCALES.len()],
    [19; SCALES.len()],
    [49; SCALES.len()],
];
const SCALES: [f64; 8] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0];

/// An operation at its time, in milliseconds of the network.
#[derive(Clone, Debug)]
pub(super) struct Scheduled {
    pub(super) due: i64,
    /// For an update: all updates due until then have to be done before.
    pub(super) depends_on: Option<i64>,
    pub(super) operation: Operation,
}

/// The files of a data set.
#[derive(Debug)]
pub(super) struct DataSet {
    directory: PathBuf,
    files: Vec<PathBuf>,
}

impl DataSet {
    /// # Errors
    /// When the directory cannot be listed.
    pub(super) fn new(directory: &Path) -> Result<Self, BenchError> {
        let failed = |source| BenchError::File {
            path: directory.to_owned(),
            source,
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            files.push(entry.map_err(failed)?.path());
        }
        files.sort();
        Ok(Self {
            directory: directory.to_owned(),
            files,
        })
    }

    /// Files whose names begin so and have one of these extensions, `.gz` after it or not.
    fn named(&self, beginning: &str, extensions: &[&str]) -> Result<Vec<PathBuf>, BenchError> {
        let is_meant = |path: &&PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| {
                let plain = name.strip_suffix(".gz").unwrap_or(name);
                plain.starts_with(beginning)
                    && extensions
                        .iter()
                        .any(|extension| plain.ends_with(extension))
            })
        };
        let found: Vec<PathBuf> = self.files.iter().filter(is_meant).cloned().collect();
        if found.is_empty() {
            return Err(failed(
                self.directory.display(),
                format!("there is no {beginning}*{}", extensions.join(" or ")),
            ));
        }
        Ok(found)
    }

    /// What is loaded.
    pub(super) fn triples(&self) -> Result<Vec<PathBuf>, BenchError> {
        self.named("social_network_", &[".ttl", ".nt"])
    }

    /// The runs of each complex read.
    pub(super) fn parameters(&self) -> Result<Vec<Vec<Operation>>, BenchError> {
        let directory = self.directory.join("substitution_parameters");
        let runs = (1..=COMPLEX_READS).map(|number| {
            let path = directory.join(parameters::file_name(number));
            let text = fs::read_to_string(&path).map_err(|source| BenchError::File {
                path: path.clone(),
                source,
            })?;
            let wrong = |why: String| failed(path.display(), why);
            match parameters::read(number, &text).map_err(wrong)? {
                runs if runs.is_empty() => Err(wrong("it has no parameters".to_owned())),
                runs => Ok(runs),
            }
        });
        runs.collect()
    }

    /// All updates, by their times.
    fn updates(&self) -> Result<Vec<Scheduled>, BenchError> {
        let mut updates = Vec::new();
        for path in self.named("updateStream_", &[".csv"])? {
            let input = open(&path).map_err(|source| BenchError::File {
                path: path.clone(),
                source,
            })?;
            for (number, line) in input.lines().enumerate() {
                let line = line.map_err(|source| BenchError::File {
                    path: path.clone(),
                    source,
                })?;
                let update = update_stream::read_line(&line).map_err(|what| {
                    failed(path.display(), format!("line {}: {what}", number + 1))
                })?;
                updates.push(Scheduled {
                    due: update.due,
                    depends_on: Some(update.depends_on),
                    operation: update.operation,
                });
            }
        }
        updates.sort_by_key(|update| update.due);
        Ok(updates)
    }

    /// Updates, and complex reads with these parameters, by their times.
    pub(super) fn schedule(
        &self,
        parameters: &[Vec<Operation>],
        scale: f64,
    ) -> Result<Vec<Scheduled>, BenchError> {
        Ok(interleave(self.updates()?, parameters, scale))
    }
}

fn interleave(
    updates: Vec<Scheduled>,
    parameters: &[Vec<Operation>],
    scale: f64,
) -> Vec<Scheduled> {
    let (Some(first), Some(last)) = (updates.first(), updates.last()) else {
        return Vec::new();
    };
    let (first, last) = (first.due, last.due);
    let mean_gap = ((last - first) as f64 / updates.len() as f64).max(1.0);
    let column = SCALES.iter().rposition(|from| scale >= *from).unwrap_or(0);
    let mut schedule = updates;
    for (frequencies, runs) in FREQUENCIES.iter().zip(parameters) {
        let gap = frequencies[column] as f64 * mean_gap;
        let times = (1..).map(|number| first + (f64::from(number) * gap) as i64);
        let reads = times.zip(runs.iter().cycle());
        schedule.extend(
            reads
                .take_while(|(due, _)| *due <= last)
                .map(|(due, operation)| Scheduled {
                    due,
                    depends_on: None,
                    operation: operation.clone(),
                }),
        );
    }
    schedule.sort_by_key(|scheduled| scheduled.due);
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snb::operation::{Insertion, Kind};

    #[test]
    fn reads_come_as_often_as_the_specification_says() {
        let update = |number: i64| Scheduled {
            due: number * 10,
            depends_on: Some(0),
            operation: Operation::Insert(Box::new(Insertion::Friendship {
                person1: 1,
                person2: 2,
                creation_date: 0,
            })),
        };
        let parameters: Vec<Vec<Operation>> = (0..u64::from(COMPLEX_READS))
            .map(|number| {
                vec![Operation::Ways {
                    from: number,
                    to: number,
                }]
            })
            .collect();
        let schedule = interleave((0..2_000).map(update).collect(), &parameters, 0.1);
        let reads = |number: u64| {
            let of_number = |scheduled: &&Scheduled| matches!(scheduled.operation, Operation::Ways { from, .. } if from == number);
            schedule.iter().filter(of_number).count()
        };
        assert_eq!(reads(0), 2_000 / 26);
        assert_eq!(reads(10), 2_000 / 16);
        assert!(schedule.is_sorted_by_key(|scheduled| scheduled.due));
        let updates = schedule
            .iter()
            .filter(|scheduled| scheduled.operation.kind() == Kind::Insert(8));
        assert_eq!(updates.count(), 2_000);
    }
}
