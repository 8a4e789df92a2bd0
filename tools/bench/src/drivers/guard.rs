//! The driver that measures the cost of access rules, limits, and waits of short queries beside
//! long ones.
//!
//! ```text
//! BSBM data, each subject in one of 10,000 graphs -> database without users, database with users -> a server over each
//! explore mixes by turns: nobody (no users), an administrator, a user of 1,000 rules, a user with limits -> times, as parts of the first
//! point queries beside long queries of others -> the 99th percentile
//! ```
//!
//! Rules allow all graphs, ten each, so that all see the same and get the same answers: what
//! differs is that it was looked at.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_access::{Budget, Command, LimitedWhom, Limits, Name, NewPassword, Right, Target, Whom};
use orrery_storage::{Database, WriterOptions};
use serde::Serialize;

use super::binary::Binary;
use super::explore::{MixClient, Runs};
use super::floor::{HEAVY_QUERY, point_query, products};
use super::load::{LoadOptions, load};
use super::store::{LOAD_MEMORY, table_of, write_data};
use super::{Bar, BenchError, RESULTS_JSON, parameter_pool};
use crate::http_client::HttpClient;
use crate::report::{Table, Times};
use orrery_bsbm::{GenerateOptions, Random};

/// Rules, each about graphs whose names begin alike.
const RULES: u32 = 1_000;
/// Graphs of each rule.
const GRAPHS_OF_RULE: u32 = 10;
/// What the names of all graphs begin with.
const GRAPHS: &str = "http://bench.example/graph/";
const PASSWORD: &str = "of the benchmark";
/// A user may take so many times the time that nobody takes where nothing is looked at.
const COST_MAX: f64 = 1.1;
/// A short query waits no longer beside long ones, 99 times of 100.
const SHORT_MS_MAX: f64 = 20.0;
/// Mixes of one turn.
const MIXES_PER_TURN: u32 = 5;
/// Short queries beside the long ones.
const SHORT_QUERIES: u32 = 2_000;
/// Between short queries: who asks them is a person, or a page.
const PAUSE: Duration = Duration::from_millis(2);
/// How long the long queries get to be under way.
const START_TIME: Duration = Duration::from_secs(1);
const SEED: u64 = 1;

/// What to measure with.
#[derive(Clone, Debug)]
pub struct GuardOptions {
    /// Where data and databases are kept.
    pub cache: PathBuf,
    /// The data.
    pub data: GenerateOptions,
    /// Turns of each asker; one more warms up.
    pub rounds: u32,
    /// Long queries beside the short ones.
    pub heavy: u32,
}

/// What an asker's explore mixes took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AskerReport {
    /// Who, and what was looked at.
    pub asker: &'static str,
    /// Milliseconds of the turns.
    #[serde(flatten)]
    pub turns: Times,
    /// The median in those of nobody, where nothing is looked at.
    pub ratio: f64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardReport {
    /// By asker.
    pub askers: Vec<AskerReport>,
    /// Long queries beside the short ones.
    pub heavy: u32,
    /// Short queries beside them.
    pub short: Times,
    /// The 99th percentile of these.
    pub short_p99_ms: f64,
    /// The figures beside their bars.
    pub bars: Vec<Bar>,
}

/// Measures; makes the databases anew.
///
/// # Errors
/// When data cannot be made, a server does not start, or a query fails.
pub fn guard(
    binary: &Binary,
    options: &GuardOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<GuardReport, BenchError> {
    progress("data");
    let quads = quads(options)?;
    let [open, guarded] = ["open", "guarded"].map(|name| options.cache.join("guard").join(name));
    for database in [&open, &guarded] {
        progress("load");
        let options = LoadOptions {
            database: database.clone(),
            files: vec![quads.clone()],
            memory: LOAD_MEMORY.to_owned(),
        };
        load(binary, &options)?;
    }
    add_users(&guarded)?;
    let serve = |database: &Path| binary.serve_with(database, &["--union-default-graph"]);
    let (open, guarded) = (serve(&open)?, serve(&guarded)?);
    let client = |user: Option<&str>| -> Result<HttpClient, BenchError> {
        Ok(match user {
            None => HttpClient::new(open.endpoint())?,
            Some(user) => HttpClient::new(guarded.endpoint())?.with_password(user, PASSWORD),
        })
    };
    progress("explore mixes by turns");
    let askers = by_turns(options, &client)?;
    progress("short queries beside long ones");
    let heavy = format!("{}?timeout=600", guarded.endpoint());
    let held = (0..options.heavy).map(|_| {
        let client = HttpClient::new(&heavy)?.with_password("rules", PASSWORD);
        client.begin_query(HEAVY_QUERY, RESULTS_JSON)
    });
    let held = held.collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(START_TIME);
    let short = short_queries(client(Some("limits"))?)?;
    let are_running = held.iter().all(|query| query.is_running().unwrap_or(false));
    drop(held);
    if !are_running {
        return Err(BenchError::Result {
            what: "a query without end was answered".to_owned(),
        });
    }
    Ok(report(options, askers, &short))
}

fn report(options: &GuardOptions, askers: Vec<AskerReport>, short: &[Duration]) -> GuardReport {
    let mut sorted = short.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100).max(1) - 1;
    let short_p99 = sorted.get(rank).copied().unwrap_or_default();
    let short_p99_ms = short_p99.as_secs_f64() * 1e3;
    let mut bars: Vec<Bar> = askers
        .iter()
        .skip(1)
        .map(|asker| Bar::at_most(asker.asker, "times nobody's", asker.ratio, COST_MAX))
        .collect();
    let what = format!("short query beside {} long ones, p99", options.heavy);
    bars.push(Bar::at_most(what, "ms", short_p99_ms, SHORT_MS_MAX));
    GuardReport {
        askers,
        heavy: options.heavy,
        short: Times::of(short),
        short_p99_ms,
        bars,
    }
}

/// The data, each subject in one of the graphs.
fn quads(options: &GuardOptions) -> Result<PathBuf, BenchError> {
    let folder = options.cache.join("guard");
    let (triples, quads) = (folder.join("data.nt"), folder.join("data.nq"));
    write_data(&options.data, &triples)?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| BenchError::File { path, source }
    };
    let read = BufReader::new(File::open(&triples).map_err(failed(&triples))?);
    let mut written = BufWriter::new(File::create(&quads).map_err(failed(&quads))?);
    for line in read.lines() {
        let line = line.map_err(failed(&triples))?;
        let Some(statement) = line.trim_end().strip_suffix('.') else {
            continue;
        };
        let subject = statement.split(' ').next().unwrap_or_default();
        let graph = graph_of(subject);
        writeln!(written, "{statement}<{GRAPHS}{graph}> .").map_err(failed(&quads))?;
    }
    written.flush().map_err(failed(&quads))?;
    Ok(quads)
}

/// The end of the name of a subject's graph: the rule's number and the graph's.
fn graph_of(subject: &str) -> String {
    // FNV-1a: the same in each run and on each machine.
    let hash = subject.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let number = hash % (RULES * GRAPHS_OF_RULE);
    format!("{}/{}", number / GRAPHS_OF_RULE, number % GRAPHS_OF_RULE)
}

/// `root` administers, `rules` sees all graphs by many rules, `limits` by one, and has limits that
/// nothing comes to.
fn add_users(database: &Path) -> Result<(), BenchError> {
    let failed = |error: orrery_access::Error| BenchError::Output {
        command: "users".to_owned(),
        what: error.to_string(),
    };
    let name = |text: &str| Name::new(text).map_err(|error| failed(error.into()));
    let user = |text: &str| -> Result<Command, BenchError> {
        Ok(Command::AddUser {
            user: name(text)?,
            password: NewPassword::Given(PASSWORD.to_owned()),
            administrator: text == "root",
            groups: Vec::new(),
            identities: Vec::new(),
        })
    };
    let grant = |to: &str, on: Target| -> Result<Command, BenchError> {
        Ok(Command::Grant {
            to: Whom::User(name(to)?),
            right: Right::Read,
            on,
        })
    };
    let mut commands = vec![user("root")?, user("rules")?, user("limits")?];
    for rule in 0..RULES {
        let beginning = format!("{GRAPHS}{rule}/");
        commands.push(grant("rules", Target::GraphsBelow(beginning))?);
    }
    commands.push(grant("limits", Target::AllGraphs)?);
    commands.push(Command::SetLimits {
        of: LimitedWhom::Who(Whom::User(name("limits")?)),
        limits: Limits {
            concurrent: Some(1_000),
            time_ms: Some(600_000),
            rows: Some(1 << 40),
            bytes: Some(1 << 50),
            memory: Some(1 << 40),
            cost: Some(Budget {
                touches: 1 << 60,
                seconds: 3_600,
            }),
        },
    });
    let database = Arc::new(Database::open(database)?);
    let writer = database.open_writer(WriterOptions::default())?;
    let done = orrery_access::change(&writer, "bench guard", |catalog| {
        let mut catalog = catalog.clone();
        for command in &commands {
            catalog = command.apply(&catalog, 0)?.0;
        }
        Ok((catalog, ()))
    });
    done.map(drop).map_err(failed)
}

/// Explore mixes of all askers, one turn after the other, so that what else the machine does falls
/// on all alike.
fn by_turns(
    options: &GuardOptions,
    client: &impl Fn(Option<&str>) -> Result<HttpClient, BenchError>,
) -> Result<Vec<AskerReport>, BenchError> {
    const ASKERS: [(&str, Option<&str>); 4] = [
        ("nobody, no users", None),
        ("an administrator", Some("root")),
        ("a user of 1,000 rules", Some("rules")),
        ("a user with limits", Some("limits")),
    ];
    let pool = parameter_pool(&mut client(None)?)?;
    let mut turns: Vec<Vec<Duration>> = vec![Vec::new(); ASKERS.len()];
    for round in 0..=options.rounds {
        for ((_, user), turns) in ASKERS.iter().zip(&mut turns) {
            // The same parameters for all.
            let seed = SEED + u64::from(round);
            let mut mixes = MixClient::new(client(*user)?, &pool, seed);
            let mut took = Duration::ZERO;
            for _ in 0..MIXES_PER_TURN {
                took += mixes.run(&mut Runs::default())?;
            }
            if round > 0 {
                turns.push(took);
            }
        }
    }
    let times: Vec<Times> = turns.iter().map(|turns| Times::of(turns)).collect();
    let nobody = times.first().map_or(0.0, |times| times.median_ms);
    let askers = ASKERS.iter().zip(times);
    Ok(askers
        .map(|(&(asker, _), turns)| AskerReport {
            asker,
            ratio: turns.median_ms / nobody,
            turns,
        })
        .collect())
}

/// Times of point queries, one after the other.
fn short_queries(mut client: HttpClient) -> Result<Vec<Duration>, BenchError> {
    let products = products(&mut client)?;
    let mut random = Random::new(SEED);
    let mut body = Vec::new();
    let mut times = Vec::new();
    for _ in 0..SHORT_QUERIES {
        let Some(product) = random.pick(&products) else {
            break;
        };
        let query = point_query(product);
        let start = Instant::now();
        let asked = client.query(&query, RESULTS_JSON, &mut body);
        asked.map_err(|source| BenchError::Query {
            what: query,
            source,
        })?;
        times.push(start.elapsed());
        std::thread::sleep(PAUSE);
    }
    Ok(times)
}

impl fmt::Display for GuardReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turn = format!("{MIXES_PER_TURN} explore mixes");
        let mut table = Table::new([
            turn.as_str(),
            "turns",
            "median ms",
            "min ms",
            "times nobody's",
        ]);
        for asker in &self.askers {
            table.row([
                asker.asker.to_owned(),
                asker.turns.runs.to_string(),
                format!("{:.1}", asker.turns.median_ms),
                format!("{:.1}", asker.turns.min_ms),
                format!("{:.3}", asker.ratio),
            ]);
        }
        table.fmt(formatter)?;
        writeln!(
            formatter,
            "\nbeside {} long queries: {} short ones, median {:.2} ms, p95 {:.2} ms, p99 {:.2} ms, max {:.1} ms\n",
            self.heavy,
            self.short.runs,
            self.short.median_ms,
            self.short.p95_ms,
            self.short_p99_ms,
            self.short.max_ms
        )?;
        table_of(&self.bars).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn subjects_are_spread_over_all_graphs_of_all_rules() {
        let graphs: HashSet<String> = (0..200_000)
            .map(|number| graph_of(&format!("<http://e/{number}>")))
            .collect();
        assert_eq!(graphs.len(), (RULES * GRAPHS_OF_RULE) as usize);
        assert!(graphs.contains("999/9") && graphs.contains("0/0"));
    }

    #[test]
    fn bars_are_of_askers_and_of_the_99th_of_100() {
        let options = GuardOptions {
            cache: PathBuf::new(),
            data: GenerateOptions::default(),
            rounds: 1,
            heavy: 8,
        };
        let asker = |asker, ratio| AskerReport {
            asker,
            turns: Times::default(),
            ratio,
        };
        let mut short = vec![Duration::from_millis(1); 98];
        short.extend([30, 40].map(Duration::from_millis));
        let askers = vec![asker("nobody", 1.0), asker("rules", 1.2)];
        let report = report(&options, askers, &short);
        assert_eq!(report.short_p99_ms, 30.0);
        let met: Vec<bool> = report.bars.iter().map(|bar| bar.is_met).collect();
        assert_eq!(met, [false, false]);
    }
}
