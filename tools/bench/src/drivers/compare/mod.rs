//! Our store and a peer, side by side in one run: load, size, the explore queries with one client
//! and with four, the business intelligence queries, eight analytical queries, explore mixes with
//! updates; same machine, same data, same parameters, same client. The answers are compared row by
//! row.
//!
//! First everything is measured on ours, then on the peer, for two servers at once would share
//! cores and file cache. The explore queries and the business intelligence queries have parameters
//! of their own for each run; the best of several runs counts of the analytical queries. Updates
//! come then, and last of all the one query that may take a store minutes: what is still at work on
//! it after the limit, disturbs nobody.

mod figures;
mod questions;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use super::mixed::explore_and_update;
use super::peer::Peer;
use super::store::{TEN_MILLION_PRODUCTS, write_data};
use super::{
    BenchError, Binary, ExploreOptions, ExploreReport, LoadOptions, explore, explore_clients, load,
};
use crate::http_client::QueryEncoding;
use orrery_bsbm::Catalog;
use orrery_bsbm::GenerateOptions;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::{ANALYTICAL, BUSINESS};
use orrery_bsbm::update::Updates;

pub use self::figures::{CompareReport, Goal, Pair};
use self::questions::{Answers, Comparison, Question};
use self::server::{Server, Serving};

const LOAD_MEMORY: &str = "4G";
/// Clients of the concurrent explore mixes.
const CLIENTS: u32 = 4;
/// What the geometric mean of the explore queries' times is to be, in milliseconds.
const EXPLORE_GOALS: [(u8, f64); 3] = [(2, 0.5), (5, 1.0), (7, 0.5)];
/// How many times faster ours is to be on queries that have no goal in milliseconds.
const FACTOR: f64 = 5.0;
/// The business intelligence query whose goal is a time, in milliseconds.
const BUSINESS_GOAL: (&str, f64) = ("BI Q4", 500.0);
/// The query that is asked last; its answers are of the data after the updates, at both stores.
const LAST: &str = BUSINESS_GOAL.0;
/// A query without an answer within this time counts as having taken it.
const LIMIT: Duration = Duration::from_secs(300);

/// What to compare.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The data set.
    pub data: GenerateOptions,
    /// Where data and databases are kept.
    pub cache: PathBuf,
    /// Mixes of the explore queries.
    pub mixes: u32,
    /// The other store.
    pub peer: Peer,
}

/// What is asked.
struct Workload {
    data: GenerateOptions,
    mixes: u32,
    pool: ParameterPool,
    explored: Vec<Question>,
    /// Those called [`LAST`] stand at the end.
    timed: Vec<Question>,
    after_updates: Vec<Question>,
}

/// What was measured over HTTP.
struct Measured {
    explore: ExploreReport,
    /// Mixes an hour of several clients together.
    concurrent: f64,
    /// Mixes an hour with updates between them.
    updated: f64,
    /// Answers to explore queries, not timed.
    explored: Answers,
    timed: Answers,
    after_updates: Answers,
}

/// Loads both stores with the same data and asks both the same questions.
///
/// # Errors
/// When any of it fails; answers that differ are no error but stand in the report.
pub fn compare(
    binary: &Binary,
    options: &CompareOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<CompareReport, BenchError> {
    let name = format!("bsbm-{}-{}", options.data.products, options.data.seed);
    let data = options.cache.join(format!("{name}.nt"));
    progress("generating the data");
    write_data(&options.data, &data)?;
    progress("setting up the peer");
    options.peer.setup()?;
    let workload = Workload::new(options)?;

    progress("loading ours");
    let database = options.cache.join(format!("{name}.db"));
    let our_load = load(
        binary,
        &LoadOptions {
            database: database.clone(),
            files: vec![data.clone()],
            memory: LOAD_MEMORY.to_owned(),
        },
    )?;
    progress("asking ours");
    let ours = workload.measure(&|| Ok(Box::new(binary.serve(&database)?)), None)?;

    progress("loading the peer");
    let directory = options
        .cache
        .join(format!("{name}.{}", options.peer.name()));
    super::load::remove(&directory)?;
    let peer_load = options.peer.load(&directory, &data)?;
    progress("asking the peer");
    let peer = workload.measure(
        &|| Ok(Box::new(options.peer.serve(&directory)?)),
        Some(Peer::GRAPH),
    )?;

    let triples = our_load.triples;
    let peer_rate = our_load.triples_read as f64 / peer_load.seconds;
    let peer_size = peer_load.bytes as f64 / triples as f64;
    let mut pairs = vec![
        Pair::rate(
            "bulk load",
            "triples/s",
            (our_load.triples_per_second, peer_rate),
        )
        .with_goal(Goal::AtLeast(1_500_000.0)),
        Pair::cost(
            "database size",
            "bytes/triple",
            (our_load.bytes_per_triple, peer_size),
        )
        .with_goal(Goal::AtMost(45.0)),
    ];
    pairs.extend(mix_pairs(&ours, &peer));
    let analytical_start = pairs.len() + BUSINESS.len();
    pairs.extend(query_pairs(&workload.timed, &ours.timed, &peer.timed));
    let logarithms: Vec<f64> = pairs[analytical_start..]
        .iter()
        .map(|pair| pair.factor.ln())
        .collect();
    let has_absolute_goals = options.data.products == TEN_MILLION_PRODUCTS;
    if !has_absolute_goals {
        pairs = pairs.into_iter().map(Pair::without_absolute_goal).collect();
    }
    let comparison = workload.compare(&ours, &peer);
    Ok(CompareReport {
        peer: options.peer.name().to_owned(),
        triples,
        pairs,
        analytical_factor: (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp(),
        answers_compared: comparison.compared,
        answers_timed_out: comparison.timed_out,
        limit_seconds: LIMIT.as_secs_f64(),
        has_absolute_goals,
        differences: comparison.differences,
    })
}

impl Workload {
    fn new(options: &CompareOptions) -> Result<Self, BenchError> {
        let catalog = Catalog::new(&options.data);
        let pool = ParameterPool::from_catalog(&catalog)?;
        Ok(Self {
            data: options.data,
            mixes: options.mixes,
            explored: questions::explored(&pool)?,
            timed: questions::timed(&catalog, LAST)?,
            after_updates: questions::after_updates(),
            pool,
        })
    }

    /// Asks one store everything; `graph` is the named graph where the data is, if not in the
    /// default graph.
    fn measure(
        &self,
        start: &dyn Fn() -> Result<Box<dyn Serving>, BenchError>,
        graph: Option<&str>,
    ) -> Result<Measured, BenchError> {
        let mut server = Server::start(start, LIMIT)?;
        let (timed, last) = self
            .timed
            .split_at(self.timed.partition_point(|question| question.name != LAST));
        let explore = explore(&self.explore_options(&server))?;
        let concurrent = explore_clients(&self.explore_options(&server), CLIENTS)?;
        let explored = questions::ask(&mut server, &self.explored)?;
        let timed = questions::ask(&mut server, timed)?;
        let options = self.explore_options(&server);
        let updates = Updates::new(&self.data, options.warm_up_mixes + options.mixes);
        let updated = explore_and_update(&options, &self.pool, updates.within(graph))?;
        let after_updates = questions::ask(&mut server, &self.after_updates)?;
        let last = questions::ask(&mut server, last)?;
        Ok(Measured {
            explore,
            concurrent,
            updated,
            explored,
            timed: timed.followed_by(last),
            after_updates,
        })
    }

    /// As the server stands now: it may have been started anew elsewhere.
    fn explore_options(&self, server: &Server<'_>) -> ExploreOptions {
        ExploreOptions {
            mixes: self.mixes,
            pool: Some(self.pool.clone()),
            encoding: QueryEncoding::Form,
            ..ExploreOptions::new(server.endpoint())
        }
    }

    fn compare(&self, ours: &Measured, peer: &Measured) -> Comparison {
        let mut result = Comparison::default();
        for (questions, ours, peer) in [
            (&self.explored, &ours.explored, &peer.explored),
            (&self.timed, &ours.timed, &peer.timed),
            (
                &self.after_updates,
                &ours.after_updates,
                &peer.after_updates,
            ),
        ] {
            ours.compare(questions, peer, &mut result);
        }
        result
    }
}

/// The explore mixes and their queries.
fn mix_pairs(ours: &Measured, peer: &Measured) -> Vec<Pair> {
    let alone = (
        ours.explore.query_mixes_per_hour,
        peer.explore.query_mixes_per_hour,
    );
    let mut pairs = vec![
        Pair::rate("explore, one client", "mixes/h", alone).with_goal(Goal::AtLeast(110_000.0)),
        Pair::rate(
            format!("explore, {CLIENTS} clients"),
            "mixes/h",
            (ours.concurrent, peer.concurrent),
        )
        .with_goal(Goal::AtLeast(170_000.0)),
        Pair::rate(
            "explore and update, one client",
            "mixes/h",
            (ours.updated, peer.updated),
        )
        .with_goal(Goal::AtLeast(80_000.0)),
    ];
    for (ours, peer) in ours.explore.queries.iter().zip(&peer.explore.queries) {
        let times = (ours.times.geometric_mean_ms, peer.times.geometric_mean_ms);
        let pair = Pair::cost(format!("explore Q{}", ours.query), "ms", times);
        let goal = EXPLORE_GOALS.iter().find(|(query, _)| *query == ours.query);
        pairs.push(match goal {
            Some((_, goal)) => pair.with_goal(Goal::AtMost(*goal)),
            None => pair,
        });
    }
    pairs
}

/// The business intelligence and analytical queries.
fn query_pairs(questions: &[Question], ours: &Answers, peer: &Answers) -> Vec<Pair> {
    let names = BUSINESS
        .iter()
        .chain(&ANALYTICAL)
        .map(|template| template.name);
    names
        .map(|name| {
            let (ours, peer) = (ours.mean(questions, name), peer.mean(questions, name));
            let goal = match BUSINESS_GOAL {
                (query, goal) if query == name => Goal::AtMost(goal),
                _ => Goal::Factor(FACTOR),
            };
            Pair::timed(name, ours, peer).with_goal(goal)
        })
        .collect()
}
