//! The workload: each read by itself, then the mix.
//!
//! First one client runs each complex read with all its parameters, and each short read about what
//! those found, one after the other. Then several clients run the mix: once at full speed, which
//! says what can be hoped for, then at rates below that until 95 % of the operations start on time.
//! That rate is the throughput.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::clients::{self, Pace, Run};
use super::schedule::{DataSet, Scheduled};
use super::walk::{Remembered, Walk};
use crate::drivers::target::{Target, failed};
use crate::drivers::{BenchError, Binary};
use crate::report::{Table, Times, quantile_ms};
use crate::snb::operation::{Kind, Operation};
use crate::snb::session::{Session, SessionError};
use orrery_bsbm::Random;

/// The share of the operations that have to start on time.
const ON_TIME_MIN: f64 = 0.95;
/// Rates that are tried, as shares of full speed.
const SHARES: [f64; 8] = [0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3];
/// Walks of short reads after each complex read that is run by itself.
const WALKS: usize = 2;

/// How to measure.
#[derive(Clone, Debug)]
pub struct SnbOptions {
    /// The data set: Turtle, update streams, substitution parameters.
    pub data: PathBuf,
    /// The scale factor, by which the specification says how often complex reads come.
    pub scale: f64,
    /// Clients of the mix.
    pub clients: u32,
    /// The length of each run of the mix.
    pub seconds: u32,
    /// Runs of each complex read with each of its parameters, by itself.
    pub rounds: u32,
    /// An endpoint that has the data set; without one it is loaded, and served by us.
    pub endpoint: Option<String>,
}

/// The times of one kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KindTimes {
    /// The kind.
    pub kind: Kind,
    /// Its times.
    #[serde(flatten)]
    pub times: Times,
    /// 99 of 100 runs took no longer.
    pub p99_ms: f64,
}

/// A run of the mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnbRun {
    /// Operations a second that were asked for; none at full speed.
    pub rate: Option<f64>,
    /// Real time for time of the network.
    pub time_compression_ratio: Option<f64>,
    /// Operations, short reads too.
    pub operations: usize,
    /// How long it took.
    pub seconds: f64,
    /// Operations a second.
    pub operations_per_second: f64,
    /// The share of updates and complex reads that started within a second of their times.
    pub on_time: Option<f64>,
    /// Kind by kind.
    pub kinds: Vec<KindTimes>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnbReport {
    /// The time of the load, if there was one.
    pub load_seconds: Option<f64>,
    /// Reads by themselves, one client.
    pub alone: Vec<KindTimes>,
    /// Clients of the mix.
    pub clients: u32,
    /// The mix at full speed.
    pub full_speed: SnbRun,
    /// The mix at rates below, the last one with 95 % on time if any had.
    pub rates: Vec<SnbRun>,
}

/// Loads a data set and runs the workload on it.
///
/// # Errors
/// When files are missing or wrong, or an operation fails.
pub fn snb(
    binary: &Binary,
    options: &SnbOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<SnbReport, BenchError> {
    let data = DataSet::new(&options.data)?;
    let parameters = data.parameters()?;
    let schedule = data.schedule(&parameters, options.scale)?;
    let folder = tempfile::tempdir().map_err(|source| BenchError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    let (target, load_seconds) = match &options.endpoint {
        Some(endpoint) => (Target::Endpoint(endpoint.clone()), None),
        None => {
            progress("load");
            let directory = folder.path().join("db");
            let mut arguments = vec!["load".into(), "--db".into(), directory.clone()];
            arguments.extend(data.triples()?);
            let start = Instant::now();
            binary.run(&arguments)?;
            let target = Target::Database {
                binary: binary.clone(),
                directory,
            };
            (target, Some(start.elapsed().as_secs_f64()))
        }
    };
    let serving = target.serve(&[])?;
    let opened = |source: SessionError| failed("the catalog", source);
    let first = Session::open(serving.endpoint()).map_err(opened)?;
    let others = (1..options.clients).map(|_| first.another(serving.endpoint()));
    let others: Result<Vec<Session>, _> = others.collect();
    let mut sessions = vec![first];
    sessions.extend(others.map_err(opened)?);

    progress("each read by itself");
    let alone = by_themselves(&mut sessions[0], &parameters, options.rounds)
        .map_err(|(kind, source)| failed(kind, source))?;
    let mut rest = schedule.as_slice();
    let mut mix = |rest: &mut &[Scheduled], length: usize, pace: Pace| {
        let part = rest.get(..length).unwrap_or(rest);
        let run = clients::run(&mut sessions, part, pace, 1)
            .map_err(|(kind, source)| failed(kind, source))?;
        *rest = rest.get(run.scheduled..).unwrap_or_default();
        Ok::<_, BenchError>(run)
    };
    progress("the mix at full speed");
    let length = Duration::from_secs(u64::from(options.seconds));
    let run = mix(&mut rest, schedule.len(), Pace::FullSpeed(length))?;
    let each = run.operations() as f64 / run.scheduled.max(1) as f64;
    let full_speed = summarize(&run, None);
    let mut rates = Vec::new();
    for share in SHARES {
        let rate = full_speed.operations_per_second * share;
        let length = (rate * f64::from(options.seconds) / each) as usize;
        let Some(part) = rest.get(..length.max(2)) else {
            break;
        };
        let span = part.last().map_or(0, |last| last.due) - part.first().map_or(0, |it| it.due);
        let ratio = f64::from(options.seconds) * 1e3 / span.max(1) as f64;
        progress(&format!("the mix at {rate:.0} operations a second"));
        let run = mix(&mut rest, part.len(), Pace::Compressed(ratio))?;
        let summary = summarize(&run, Some((rate, ratio)));
        let is_on_time = summary.on_time.is_some_and(|share| share >= ON_TIME_MIN);
        rates.push(summary);
        if is_on_time {
            break;
        }
    }
    Ok(SnbReport {
        load_seconds,
        alone,
        clients: options.clients,
        full_speed,
        rates,
    })
}

/// Each complex read with all its parameters, and short reads about what they find.
fn by_themselves(
    session: &mut Session,
    parameters: &[Vec<Operation>],
    rounds: u32,
) -> Result<Vec<KindTimes>, (Kind, SessionError)> {
    let mut times: BTreeMap<Kind, Vec<Duration>> = BTreeMap::new();
    let mut remembered = Remembered::default();
    let mut random = Random::new(1);
    // One round more, which is not counted.
    for round in 0..=rounds {
        for operation in parameters.iter().flatten() {
            let walks = [true, false].map(Walk::new).into_iter().take(WALKS);
            let mut run = |operation: &Operation, remembered: &mut Remembered| {
                let kind = operation.kind();
                let start = Instant::now();
                let result = session.run(operation).map_err(|error| (kind, error))?;
                if round > 0 {
                    times.entry(kind).or_default().push(start.elapsed());
                }
                remembered.add(&result);
                Ok(())
            };
            run(operation, &mut remembered)?;
            for mut walk in walks {
                while let Some(short) = walk.next(&mut remembered, &mut random) {
                    run(&short, &mut remembered)?;
                }
            }
        }
    }
    Ok(kinds(&times))
}

fn kinds(times: &BTreeMap<Kind, Vec<Duration>>) -> Vec<KindTimes> {
    times
        .iter()
        .map(|(kind, times)| KindTimes {
            kind: *kind,
            times: Times::of(times),
            p99_ms: quantile_ms(times, 0.99),
        })
        .collect()
}

fn summarize(run: &Run, asked: Option<(f64, f64)>) -> SnbRun {
    let seconds = run.elapsed.as_secs_f64();
    SnbRun {
        rate: asked.map(|(rate, _)| rate),
        time_compression_ratio: asked.map(|(_, ratio)| ratio),
        operations: run.operations(),
        seconds,
        operations_per_second: run.operations() as f64 / seconds.max(f64::MIN_POSITIVE),
        on_time: asked.map(|_| run.on_time as f64 / run.scheduled.max(1) as f64),
        kinds: kinds(&run.times),
    }
}

fn show_kinds(kinds: &[KindTimes], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut table = Table::new(["kind", "runs", "median ms", "p95 ms", "p99 ms", "max ms"]);
    for kind in kinds {
        table.row([
            kind.kind.to_string(),
            kind.times.runs.to_string(),
            format!("{:.3}", kind.times.median_ms),
            format!("{:.3}", kind.times.p95_ms),
            format!("{:.3}", kind.p99_ms),
            format!("{:.3}", kind.times.max_ms),
        ]);
    }
    table.fmt(formatter)
}

impl SnbReport {
    /// The run with the greatest rate at which 95 % started on time.
    pub fn throughput(&self) -> Option<&SnbRun> {
        let is_on_time = |run: &&SnbRun| run.on_time.is_some_and(|share| share >= ON_TIME_MIN);
        self.rates.iter().find(is_on_time)
    }
}

impl fmt::Display for SnbReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seconds) = self.load_seconds {
            writeln!(formatter, "loaded in {seconds:.1} s\n")?;
        }
        writeln!(formatter, "each read by itself, one client")?;
        show_kinds(&self.alone, formatter)?;
        let shown = self.throughput().unwrap_or(&self.full_speed);
        let clients = self.clients;
        match shown.rate {
            Some(rate) => writeln!(
                formatter,
                "\nthe mix, {clients} clients, at {rate:.0} operations a second"
            )?,
            None => writeln!(formatter, "\nthe mix, {clients} clients, at full speed")?,
        }
        show_kinds(&shown.kinds, formatter)?;
        writeln!(formatter)?;
        let mut table = Table::new(["asked 1/s", "done 1/s", "compression", "on time %", "s"]);
        for run in [&self.full_speed].into_iter().chain(&self.rates) {
            let number = |value: Option<f64>, digits: usize| match value {
                Some(value) => format!("{value:.digits$}"),
                None => "-".to_owned(),
            };
            table.row([
                run.rate
                    .map_or("full speed".to_owned(), |rate| format!("{rate:.0}")),
                format!("{:.0}", run.operations_per_second),
                number(run.time_compression_ratio, 6),
                number(run.on_time.map(|share| share * 100.0), 1),
                format!("{:.1}", run.seconds),
            ]);
        }
        table.fmt(formatter)?;
        match self.throughput() {
            Some(run) => writeln!(
                formatter,
                "{:.0} operations a second with 95 % on time",
                run.operations_per_second
            ),
            None => writeln!(formatter, "no rate with 95 % on time"),
        }
    }
}
