//! The driver of first queries on a cold database.
//!
//! Each round, for each way to begin: the file cache forgets the database's files, a new server
//! begins in that way, one mix of the explore queries is run and timed; then others, so that the
//! process is warm; then the first one again. The ratio of the two is what the disk costs. Nothing
//! else may have the database open meanwhile: what a process has mapped is not forgotten.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use orrery_storage::io::LocalFileSystem;
use serde::Serialize;

use super::explore::{MixClient, Runs};
use super::{BenchError, Binary, parameter_pool};
use crate::http_client::HttpClient;
use crate::report::{Table, Times};
use orrery_bsbm::parameters::ParameterPool;

/// Mixes between the first and its repetition, with other parameters.
const OTHER_MIXES: u32 = 10;
/// How often the first mix is repeated; the median counts.
const REPETITIONS: usize = 5;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ColdOptions {
    /// The database, with BSBM data.
    pub database: PathBuf,
    /// How often; each time with other parameters.
    pub rounds: u32,
    /// The seed of the parameters.
    pub seed: u64,
    /// Another build of `orrery`, measured in turn with this one.
    pub against: Option<Binary>,
}

/// The figures of one way to begin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColdStart {
    /// How the server began.
    pub start: &'static str,
    /// The first mix.
    pub cold: Times,
    /// The same one when everything is in memory.
    pub warm: Times,
    /// The median of the ratios of the rounds.
    pub ratio: f64,
    /// What was done before the server started, if anything.
    pub before_seconds: Option<f64>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColdReport {
    /// By way to begin.
    pub starts: Vec<ColdStart>,
}

/// The ratio that the first mix may have.
const RATIO_BAR: f64 = 5.0;

/// A way to begin.
struct Way<'a> {
    name: &'static str,
    binary: &'a Binary,
    /// Run before the server.
    before: Option<&'static str>,
    /// For the server.
    arguments: &'static [&'static str],
    rounds: Vec<Round>,
}

struct Round {
    cold: Duration,
    warm: Duration,
    before: Option<Duration>,
}

/// Runs all rounds.
///
/// # Errors
/// When the database cannot be served or a query fails.
pub fn cold(binary: &Binary, options: &ColdOptions) -> Result<ColdReport, BenchError> {
    let pool = {
        let server = binary.serve_with(&options.database, &["--read-only"])?;
        parameter_pool(&mut HttpClient::new(server.endpoint())?)?
    };
    let way = |name, binary, before, arguments| Way {
        name,
        binary,
        before,
        arguments,
        rounds: Vec::new(),
    };
    let mut ways = vec![
        way("serve", binary, None, &["--read-only"][..]),
        way("serve --warm", binary, None, &["--read-only", "--warm"]),
        way("warm, then serve", binary, Some("warm"), &["--read-only"]),
    ];
    if let Some(other) = &options.against {
        ways.push(way("serve, other build", other, None, &["--read-only"]));
    }
    for number in 0..options.rounds {
        for way in &mut ways {
            let seed = options.seed + u64::from(number);
            let round = run(way, &options.database, &pool, seed)?;
            way.rounds.push(round);
        }
    }
    Ok(ColdReport {
        starts: ways.iter().map(summarize).collect(),
    })
}

fn run(
    way: &Way<'_>,
    database: &Path,
    pool: &ParameterPool,
    seed: u64,
) -> Result<Round, BenchError> {
    forget(database)?;
    let before = match way.before {
        None => None,
        Some(command) => {
            let arguments = [command.as_ref(), "--db".as_ref(), database.as_os_str()];
            Some(way.binary.time(&arguments)?)
        }
    };
    let server = way.binary.serve_with(database, way.arguments)?;
    let mix = |seed| {
        let client = HttpClient::new(server.endpoint())?;
        MixClient::new(client, pool, seed).run(&mut Runs::default())
    };
    let cold = mix(seed)?;
    for other in 1..=OTHER_MIXES {
        mix(seed + 1_000 * u64::from(other))?;
    }
    let mut warm = (0..REPETITIONS)
        .map(|_| mix(seed))
        .collect::<Result<Vec<_>, _>>()?;
    warm.sort_unstable();
    Ok(Round {
        cold,
        warm: warm[REPETITIONS / 2],
        before,
    })
}

/// Lets the file cache forget all files of a directory.
fn forget(directory: &Path) -> Result<(), BenchError> {
    let of_file = |path: &Path| {
        let path = path.to_owned();
        |source| BenchError::File { path, source }
    };
    for entry in std::fs::read_dir(directory).map_err(of_file(directory))? {
        let path = entry.map_err(of_file(directory))?.path();
        if path.is_dir() {
            forget(&path)?;
        } else {
            LocalFileSystem
                .drop_cached(&path)
                .map_err(|error| of_file(&path)(std::io::Error::other(error)))?;
        }
    }
    Ok(())
}

fn summarize(way: &Way<'_>) -> ColdStart {
    let times = |of: fn(&Round) -> Duration| {
        let times: Vec<Duration> = way.rounds.iter().map(of).collect();
        Times::of(&times)
    };
    let ratio = |round: &Round| round.cold.as_secs_f64() / round.warm.as_secs_f64();
    let before: Vec<Duration> = way.rounds.iter().filter_map(|round| round.before).collect();
    ColdStart {
        start: way.name,
        cold: times(|round| round.cold),
        warm: times(|round| round.warm),
        ratio: median(way.rounds.iter().map(ratio).collect()),
        before_seconds: (!before.is_empty()).then(|| Times::of(&before).median_ms / 1_000.0),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for ColdReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "start",
            "rounds",
            "before, s",
            "first mix, ms",
            "the same warm, ms",
            "ratio",
            "bar",
        ]);
        for start in &self.starts {
            table.row([
                start.start.to_owned(),
                start.cold.runs.to_string(),
                start
                    .before_seconds
                    .map_or_else(String::new, |seconds| format!("{seconds:.2}")),
                format!("{:.1}", start.cold.median_ms),
                format!("{:.1}", start.warm.median_ms),
                format!("{:.1}", start.ratio),
                format!("{RATIO_BAR:.0}"),
            ]);
        }
        table.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_rounds() {
        let binary = Binary::new("orrery");
        let round = |cold, warm| Round {
            cold: Duration::from_millis(cold),
            warm: Duration::from_millis(warm),
            before: None,
        };
        let way = Way {
            name: "serve",
            binary: &binary,
            before: None,
            arguments: &[],
            rounds: vec![round(40, 10), round(90, 10), round(50, 10)],
        };
        let start = summarize(&way);
        assert_eq!(start.ratio, 5.0);
        assert_eq!(start.cold.median_ms, 50.0);
        assert_eq!(start.before_seconds, None);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = forget(Path::new("/no/such/database")).unwrap_err();
        assert!(error.to_string().contains("/no/such/database"), "{error}");
    }
}
