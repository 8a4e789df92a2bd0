//! The program that compares answers to random queries: our engine in all variants, and `spareval`.
//!
//! `make oracle`, or `testsuite oracle [--queries N] [--seed N] [--threads N] [--differences N]`.
//! `testsuite oracle --estimates N [--seed N]` reports instead how good the planner's estimates are
//! on the first N queries, `testsuite oracle --updates N [--seed N]` compares N cases of updates,
//! and `testsuite oracle --syntax N [--seed N]` compares the parser with spargebra's on N damaged
//! texts.
//!
//! `make oracle-policies`, or `testsuite oracle --policies N [--seed N]`, asks N queries under
//! random rules about graphs: the engine has all quads, the reference only those that the rules let
//! the asker read.
//!
//! In both, `--set N` asks data set N alone; a reported difference names it.
//!
//! `make oracle-sql`, or `testsuite oracle --sql N [--seed N] [--threads N]`, compares N queries in
//! SQL with DuckDB; `testsuite oracle --sql-set N [--seed N]` prints the statements that make the
//! tables of data set N, and its queries.

use std::process::ExitCode;
use std::time::Instant;

use orrery_testsuite::oracle::{
    Options, Report, SqlOptions, UpdateOptions, UpdateReport, estimates, numbers, run, run_sql,
    run_updates, sql_of_data_set, syntax_of_damaged,
};

/// For so many queries, one over numbers alone.
const QUERIES_PER_NUMBER_QUERY: u64 = 20;
/// Queries between two lines of progress.
const PROGRESS_QUERIES: u64 = 20_000;
const PROGRESS_SQL_QUERIES: u64 = 2_000;

pub(crate) fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let OracleArguments {
        options,
        estimated,
        updates,
        texts,
        sql,
        sql_set,
    } = match options(arguments) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("oracle: {message}");
            return ExitCode::FAILURE;
        }
    };
    let start = Instant::now();
    if let Some(number) = sql_set {
        print!("{}", sql_of_data_set(options.seed, number));
        return ExitCode::SUCCESS;
    }
    if sql > 0 {
        return compare_sql(sql, &options, start);
    }
    // Panics of an engine are differences, and told as such.
    std::panic::set_hook(Box::new(|_| {}));
    if estimated > 0 {
        return match estimates(estimated, options.seed) {
            Ok(report) => {
                println!("{report}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("oracle: {error}");
                ExitCode::FAILURE
            }
        };
    }
    if texts > 0 {
        let report = syntax_of_damaged(texts, options.seed);
        println!("{report}");
        println!("seed {}, {} s", options.seed, start.elapsed().as_secs());
        return ExitCode::from(u8::from(!report.differences.is_empty()));
    }
    if updates > 0 {
        let options = UpdateOptions {
            cases: updates,
            seed: options.seed,
            threads: options.threads,
            differences_max: options.differences_max,
        };
        return match run_updates(options, &|_| {}) {
            Ok(report) => {
                print_updates(&report);
                println!("seed {}, {} s", options.seed, start.elapsed().as_secs());
                ExitCode::from(u8::from(!report.differences.is_empty()))
            }
            Err(error) => {
                eprintln!("oracle: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let progress = |done: u64| {
        if done.is_multiple_of(PROGRESS_QUERIES) {
            eprintln!("{done} queries after {} s", start.elapsed().as_secs());
        }
    };
    let asked = run(options, &progress).and_then(|report| {
        let number_queries = match options.under_rules {
            true => 0,
            false => options.queries.div_ceil(QUERIES_PER_NUMBER_QUERY),
        };
        let numbers = numbers(number_queries, options.seed, options.differences_max)?;
        Ok((report, number_queries, numbers))
    });
    match asked {
        Ok((report, number_queries, numbers)) => {
            print(&report);
            numbers
                .iter()
                .for_each(|difference| println!("{difference}"));
            println!(
                "{number_queries} queries over numbers, {} differences",
                numbers.len()
            );
            println!("seed {}, {} s", options.seed, start.elapsed().as_secs());
            if report.differences.is_empty() && numbers.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare_sql(queries: u64, options: &Options, start: Instant) -> ExitCode {
    let options = SqlOptions {
        queries,
        seed: options.seed,
        threads: options.threads,
        differences_max: options.differences_max,
    };
    let progress = |done: u64| {
        if done.is_multiple_of(PROGRESS_SQL_QUERIES) {
            eprintln!("{done} queries after {} s", start.elapsed().as_secs());
        }
    };
    match run_sql(options, &progress) {
        Ok(report) if report.version.is_empty() => {
            eprintln!("oracle: Python has no DuckDB; `make setup` installs it");
            ExitCode::FAILURE
        }
        Ok(report) => {
            println!("{report}");
            println!("seed {}, {} s", options.seed, start.elapsed().as_secs());
            ExitCode::from(u8::from(!report.differences.is_empty()))
        }
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line asks for.
struct OracleArguments {
    options: Options,
    /// Of how many queries to report the estimates instead.
    estimated: u64,
    /// How many cases of updates to compare instead.
    updates: u64,
    /// How many damaged texts to parse instead.
    texts: u64,
    /// How many queries of SQL to compare instead.
    sql: u64,
    /// Of which data set of these to print what makes it.
    sql_set: Option<u64>,
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<OracleArguments, String> {
    let (mut estimated, mut updates, mut texts, mut sql, mut sql_set) = (0, 0, 0, 0, None);
    let mut options = Options {
        queries: 200_000,
        seed: 1,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        under_rules: false,
        only_set: None,
        differences_max: 20,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{name} wants a number"))?;
        let small = usize::try_from(value).unwrap_or(usize::MAX);
        match name.as_str() {
            "--queries" => options.queries = value,
            "--policies" => (options.queries, options.under_rules) = (value, true),
            "--estimates" => estimated = value,
            "--updates" => updates = value,
            "--syntax" => texts = value,
            "--sql" => sql = value,
            "--sql-set" => sql_set = Some(value),
            "--seed" => options.seed = value,
            "--set" => options.only_set = Some(value),
            "--threads" => options.threads = small,
            "--differences" => options.differences_max = small,
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(OracleArguments {
        options,
        estimated,
        updates,
        texts,
        sql,
        sql_set,
    })
}

fn print_updates(report: &UpdateReport) {
    for difference in &report.differences {
        println!("{difference}\n----");
    }
    println!("{} requests compared with the model", report.requests);
    println!("{} changed something", report.changed);
    println!("{} asked other endpoints", report.with_service);
    println!("{} were refused by both", report.refused);
    println!("{} left out: too many solutions", report.left_out);
    println!(
        "{} compactions, with {} commits beside them",
        report.compactions, report.beside_compactions
    );
    println!(
        "{} old states compared, {} not kept any more",
        report.old_states, report.forgotten_states
    );
    println!("{} differences", report.differences.len());
}

fn print(report: &Report) {
    for difference in &report.differences {
        println!("{difference}\n----");
    }
    println!("{} queries compared with spareval", report.with_reference);
    println!("{} queries compared among our plans", report.among_plans);
    println!("{} queries left out: too many rows", report.too_large);
    println!("{} over data that came by updates", report.over_updates);
    println!(
        "{} of them beside graphs that the asker may not see",
        report.among_hidden
    );
    println!(
        "{} under rules that hide graphs from their asker",
        report.under_rules
    );
    println!("{} of them of a state that is past", report.old_states);
    println!(
        "{} queries about which the same is told whatever is hidden, plan, cost and errors included; {} of them of texts, trigrams, places, paths and language tags ({} refused), {} of edge weights ({} refused); and {} statements of SQL ({} refused)",
        report.told_twice,
        report.of_derived,
        report.refused_of_derived,
        report.of_weights,
        report.refused_of_weights,
        report.in_sql,
        report.refused_in_sql
    );
    println!(
        "{} updates under rules, of which {} changed something and {} were refused",
        report.updates.requests, report.updates.changed, report.updates.refused
    );
    println!(
        "{} plans were taken again that were kept of other constants",
        report.plans_again
    );
    println!("{} had rows, {} rows in all", report.with_rows, report.rows);
    for (variant, count) in &report.variants {
        println!("{count} runs with {variant}");
    }
    println!("{} differences", report.differences.len());
}
