//! The run of many cases on several threads, and its summary.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use oxrdf::GraphName;

use super::case::{Difference, Opinion, Outcome, check};
use super::data::{Arrival, DataSet};
use super::derived;
use super::grammar::{self, PREFIXES};
use super::random::Random;
use super::rules::{Rules, quad_of};
use super::shrink::{Failure, opinion, shrink};
use super::sql_under_rules;
use super::store::{Compared, Place, Store, Twins, Variant, VariantCounts};
use super::threads::on_threads;
use super::tree::Tree;
use super::updates::{UpdatesUnderRules, updates_under_rules};
use super::weights;
use crate::Error;

/// Queries over one data set, so that building databases costs little.
pub(super) const QUERIES_PER_DATA_SET: u64 = 100;
/// And over one with rules, of which there are to be many.
const QUERIES_UNDER_RULES: u64 = 10;
/// Seeds of rules for each seed.
const RULES_PER_SEED: u64 = 1 << 32;
/// Attempts at a query that the parser takes.
const ATTEMPTS_MAX: usize = 20;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many queries.
    pub queries: u64,
    /// Another seed, other queries.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Whether all is asked under rules about graphs.
    pub under_rules: bool,
    /// The only data set that is asked, of those that so many queries have; all of them without
    /// one.
    pub only_set: Option<u64>,
    /// Differences after which the run ends.
    pub differences_max: usize,
}

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Queries whose answers were compared with the reference.
    pub with_reference: u64,
    /// Queries whose answers were compared among our plans.
    pub among_plans: u64,
    /// Queries that were left out because their answers are too large.
    pub too_large: u64,
    /// Rows in all.
    pub rows: u64,
    /// Queries with at least one row.
    pub with_rows: u64,
    /// Of all these queries, those over a database whose data came by updates.
    pub over_updates: u64,
    /// And those over a database with graphs that the asker may not see.
    pub among_hidden: u64,
    /// And those over a database of which rules hide some.
    pub under_rules: u64,
    /// Of these, queries of a state that is past.
    pub old_states: u64,
    /// Queries of which all that is told was compared with what a database tells that differs in
    /// what is hidden.
    pub told_twice: u64,
    /// Of these, queries of what is derived from all data.
    pub of_derived: u64,
    /// Those of them that were refused, or failed.
    pub refused_of_derived: u64,
    /// And of these, queries of edge weights, and of paths that are searched by weights.
    pub of_weights: u64,
    /// Those of them that were refused, or failed.
    pub refused_of_weights: u64,
    /// Statements of SQL of which all that is told was compared in the same way.
    pub in_sql: u64,
    /// Those of them that were refused, or failed.
    pub refused_in_sql: u64,
    /// Updates under rules that were compared with those over what their author sees.
    pub updates: UpdatesUnderRules,
    /// How many plans were taken that were kept of earlier queries of the same shape.
    pub plans_again: u64,
    /// How often each variant was run.
    pub variants: VariantCounts,
    /// What differed, made small.
    pub differences: Vec<FoundDifference>,
}

/// A difference that was found.
#[derive(Clone, Debug)]
pub struct FoundDifference {
    /// Which data set and which query of it.
    pub number: (u64, u64),
    /// How the data came.
    pub arrival: Arrival,
    /// The data in N-Quads.
    pub data: String,
    /// The query.
    pub query: String,
    /// What differs.
    pub difference: Difference,
    /// The query in which it was found.
    pub found_in: String,
}

impl std::fmt::Display for FoundDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (set, query) = self.number;
        writeln!(f, "data set {set}, query {query}: {}", self.difference.what)?;
        write!(
            f,
            "data ({:?}):\n{}query:\n{PREFIXES}{}\n",
            self.arrival, self.data, self.query
        )?;
        writeln!(
            f,
            "expected, before ORDER BY and LIMIT:\n{}",
            self.difference.expected
        )?;
        writeln!(f, "came:\n{}", self.difference.actual)?;
        writeln!(f, "found in: {}", self.found_in)
    }
}

/// Runs the oracle; `progress` is called after each data set with the number of queries done.
pub fn run(options: Options, progress: &(dyn Fn(u64) + Sync)) -> Result<Report, Error> {
    let done = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let per_set = match options.under_rules {
        true => QUERIES_UNDER_RULES,
        false => QUERIES_PER_DATA_SET,
    };
    let sets = match options.only_set {
        Some(set) => set..set + 1,
        None => 0..options.queries.div_ceil(per_set),
    };
    let next = AtomicU64::new(sets.start);
    let work = || -> Result<(), Error> {
        loop {
            let set = next.fetch_add(1, Ordering::Relaxed);
            if set >= sets.end {
                return Ok(());
            }
            let queries = per_set.min(options.queries.saturating_sub(set * per_set));
            let of_set = run_data_set(options, set, queries)?;
            let Ok(mut report) = report.lock() else {
                return Ok(());
            };
            report.add(of_set);
            if report.differences.len() >= options.differences_max {
                next.store(sets.end, Ordering::Relaxed);
            }
            progress(done.fetch_add(queries, Ordering::Relaxed) + queries);
        }
    };
    on_threads(options.threads, work)?;
    report
        .into_inner()
        .map_err(|_| Error::Reference("a thread panicked".to_owned()))
}

impl Report {
    fn add(&mut self, other: Self) {
        self.with_reference += other.with_reference;
        self.among_plans += other.among_plans;
        self.too_large += other.too_large;
        self.rows += other.rows;
        self.with_rows += other.with_rows;
        self.over_updates += other.over_updates;
        self.among_hidden += other.among_hidden;
        self.under_rules += other.under_rules;
        self.old_states += other.old_states;
        self.told_twice += other.told_twice;
        self.of_derived += other.of_derived;
        self.refused_of_derived += other.refused_of_derived;
        self.of_weights += other.of_weights;
        self.refused_of_weights += other.refused_of_weights;
        self.in_sql += other.in_sql;
        self.refused_in_sql += other.refused_in_sql;
        self.updates.add(other.updates);
        self.plans_again += other.plans_again;
        for (variant, count) in other.variants {
            *self.variants.entry(variant).or_default() += count;
        }
        self.differences.extend(other.differences);
    }
}

fn run_data_set(options: Options, set: u64, queries: u64) -> Result<Report, Error> {
    let seed = options.seed;
    let mut random = Random::new(seed, set);
    let mut data = DataSet::random(&mut random);
    if options.under_rules {
        let of_rules = seed.wrapping_mul(RULES_PER_SEED).wrapping_add(set);
        let rules = Rules::of(of_rules)?;
        data.quads.retain(|quad| match &quad.graph_name {
            GraphName::NamedNode(name) => rules.permit(Some(name.as_str())),
            GraphName::DefaultGraph | GraphName::BlankNode(_) => rules.permit(None),
        });
        if rules.show_lists() {
            data.quads.extend(rules.list_quads().iter().map(quad_of));
        }
        if rules.show_weights() {
            data.quads.extend(weights::shown().iter().map(quad_of));
        }
        data.arrival = Arrival::UnderRules(of_rules);
    }
    let twins = match data.arrival {
        Arrival::UnderRules(seed) => Some(Twins::new(&data.quads, seed)?),
        Arrival::Built | Arrival::Updated | Arrival::AmongHidden => None,
    };
    let asks_old_state = match data.arrival {
        Arrival::UnderRules(seed) => Rules::of(seed)?.is_about_old_state,
        Arrival::Built | Arrival::Updated | Arrival::AmongHidden => false,
    };
    let store = Store::new(&data.quads, data.arrival)?;
    let mut report = Report::default();
    for number in 0..queries {
        let mut random = query_random(seed, set, number);
        let Some(query) = parsed_query(&mut random, &data) else {
            continue;
        };
        let other = random.pick(&Variant::OTHERS);
        let partitions = random.pick(&Variant::PARTITIONS);
        let mut variants = vec![Variant::USUAL, Variant::PLAIN, other, partitions];
        if number.is_multiple_of(2) {
            variants.push(random.pick(&Variant::TRAVELLING));
        } else {
            variants.push(Variant::KEPT);
            variants.push(random.pick(&Variant::DIVIDED));
        }
        if asks_old_state {
            // Where plans are sent to there is the newest state alone.
            variants.retain(|variant| matches!(variant.place, Place::Here | Place::Again));
        }
        let before = report.under_rules;
        report.one(&store, &data, &query, &variants, (set, number));
        if asks_old_state {
            report.old_states += report.under_rules - before;
        }
        if let Some(twins) = &twins {
            report.told(twins, &data, &query.to_text(), (set, number));
            let derived = derived::query(&mut random);
            let is_refused = report.told(twins, &data, &derived, (set, number));
            report.of_derived += 1;
            report.refused_of_derived += u64::from(is_refused);
            let weighed = weights::query(&mut random);
            let is_refused = report.told(twins, &data, &weighed, (set, number));
            report.of_weights += 1;
            report.refused_of_weights += u64::from(is_refused);
            let statement = sql_under_rules::statement(&mut random, &query.to_text());
            report.told_in_sql(twins, &data, &statement, (set, number));
        }
    }
    if let Arrival::UnderRules(seed) = data.arrival {
        let updates = updates_under_rules(seed, &data)?;
        let differences = updates.differences.iter().map(|what| FoundDifference {
            number: (set, queries),
            arrival: data.arrival,
            data: data.written(),
            query: what.request.clone(),
            difference: what.difference.clone(),
            found_in: String::new(),
        });
        report.differences.extend(differences);
        report.updates.add(updates);
    }
    report.plans_again = store.plans_again();
    Ok(report)
}

/// What a query of a data set is drawn from.
pub(super) fn query_random(seed: u64, set: u64, number: u64) -> Random {
    Random::new(seed ^ 0x5eed, set * QUERIES_PER_DATA_SET + number)
}

pub(super) fn parsed_query(random: &mut Random, data: &DataSet) -> Option<Tree> {
    (0..ATTEMPTS_MAX)
        .map(|_| grammar::query(random, data.kind, data.has_graphs()))
        .find(|query| {
            let text = format!("{PREFIXES}{}", query.to_text());
            spargebra::SparqlParser::new().parse_query(&text).is_ok()
        })
}

impl Report {
    /// Whether all that is told about a query is the same whatever is hidden. Returns whether it is
    /// an error.
    fn told(&mut self, twins: &Twins, data: &DataSet, text: &str, number: (u64, u64)) -> bool {
        self.told_twice += 1;
        let compared = twins.difference(&format!("{PREFIXES}{text}"));
        let is_refused = compared.is_refused;
        self.shows(compared, data, text, number);
        is_refused
    }

    /// The same of a statement of SQL.
    fn told_in_sql(&mut self, twins: &Twins, data: &DataSet, text: &str, number: (u64, u64)) {
        self.in_sql += 1;
        let compared = twins.difference_in_sql(text);
        self.refused_in_sql += u64::from(compared.is_refused);
        self.shows(compared, data, text, number);
    }

    fn shows(&mut self, compared: Compared, data: &DataSet, text: &str, number: (u64, u64)) {
        let Some((expected, actual)) = compared.difference else {
            return;
        };
        self.differences.push(FoundDifference {
            number,
            arrival: data.arrival,
            data: data.written(),
            query: text.to_owned(),
            difference: Difference {
                what: "what is hidden shows".to_owned(),
                expected,
                actual,
            },
            found_in: text.to_owned(),
        });
    }

    fn one(
        &mut self,
        store: &Store,
        data: &DataSet,
        query: &Tree,
        variants: &[Variant],
        number: (u64, u64),
    ) {
        let text = query.to_text();
        let opinion = opinion(query);
        let quads = (&data.quads[..], data.kind);
        let outcome = check(store, quads, &text, opinion, variants);
        match outcome {
            Outcome::NoQuery => return,
            Outcome::TooLarge => {
                self.too_large += 1;
                return;
            }
            Outcome::Same { rows } => {
                self.rows += rows as u64;
                self.with_rows += u64::from(rows > 0);
            }
            Outcome::Different(difference) => {
                let failure = Failure {
                    quads: data.quads.clone(),
                    query: query.clone(),
                    difference,
                };
                let small = shrink(failure, data.kind, data.arrival);
                let lines = small.quads.iter().map(|quad| format!("{quad} .\n"));
                self.differences.push(FoundDifference {
                    number,
                    arrival: data.arrival,
                    data: lines.collect(),
                    query: small.query.to_text(),
                    difference: small.difference,
                    found_in: text,
                });
            }
        }
        self.over_updates += u64::from(data.arrival != Arrival::Built);
        self.among_hidden += u64::from(data.arrival == Arrival::AmongHidden);
        if let Arrival::UnderRules(seed) = data.arrival {
            let rules = Rules::of(seed);
            self.under_rules += u64::from(rules.is_ok_and(|rules| rules.hide_some()));
        }
        match opinion {
            Opinion::Reference => self.with_reference += 1,
            Opinion::OurPlainPlan => self.among_plans += 1,
        }
        for variant in variants {
            *self.variants.entry(*variant).or_default() += 1;
        }
    }
}
