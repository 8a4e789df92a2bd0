//! The lab of physical designs: TPC-H Q9 on five data layouts, by column and row, with three vector
//! sizes.
//!
//! ```text
//! generator -> tables and indexes of all designs    `shape`, `tables`      in two stores: files of columns, pages of rows
//!           -> a database, Q9 as SQL                                       the right answer
//! design x store x vector size -> plan -> look-ups in vectors -> sums     `plans`, `step`, `profit`
//!           -> time, place, and whether the answer is SQL's                `report`
//! ```
//!
//! The plans are executed here and not by the engine, so that nothing but design, store and size of
//! vectors varies: one executor for both stores, which asks them for columns of rows by number and
//! for numbers of rows by key (`store`), and hands rows on from step to step in vectors. The store
//! of columns is the storage's own, through its public interface; that of rows is in memory.
//!
//! What a vector is good for: its keys are sorted and looked up in one pass, so that keys which lie
//! together share the search from above and the decoding of their block; the columns of the rows
//! found are read in their order; and what a call costs is shared.

mod columns;
mod fields;
mod plans;
mod profit;
mod report;
mod rows;
mod shape;
mod step;
mod store;
mod tables;
mod vector;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::BenchError;
use super::tpch::{TpchDatabase, TpchFiles};
use crate::tpch::{Answer, Query, Scale};

use self::plans::Run;
use self::tables::Stores;
use self::vector::{Limit, Stop};

pub use self::report::{DesignSpace, VectorCell, VectorsReport};
pub use self::shape::Design;
pub use self::store::Store;
pub use self::vector::VectorSize;

/// The query of the lab.
const QUERY: u8 = 9;

/// What to measure.
#[derive(Clone, Debug)]
pub struct VectorsOptions {
    /// How large the database is.
    pub scale: Scale,
    /// Where files and the database are made.
    pub cache: PathBuf,
    /// A folder with the right answers, of which `q09.csv` is read; without it SQL's alone is
    /// believed.
    pub answers: Option<PathBuf>,
    /// Threads of each run.
    pub threads: usize,
    /// Memory of the engine that runs SQL.
    pub memory_bytes: u64,
    /// How often each cell is run; the quickest counts.
    pub runs: u32,
    /// When a run is given up; a cell is not run again after so much time.
    pub cell_limit: Duration,
}

/// Makes everything, runs every cell. `progress` is told what comes next.
///
/// # Errors
/// When any of it fails; a wrong answer is no error but stands in the report.
pub fn vectors(
    options: &VectorsOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<VectorsReport, BenchError> {
    let query = Query::numbered(QUERY).ok_or_else(|| BenchError::Engine {
        message: format!("there is no query {QUERY}"),
    })?;
    let mut mistakes = Vec::new();
    let (right, sql_milliseconds) = ask_sql(options, query, progress)?;
    if let Some(folder) = &options.answers {
        let file = Answer::read_file(&folder.join(format!("q{QUERY:02}.csv")))?;
        let difference = right.difference(&file, query);
        mistakes.extend(difference.map(|it| format!("SQL: {it}")));
    }
    let folder = tempfile::tempdir_in(&options.cache).map_err(|source| BenchError::File {
        path: options.cache.clone(),
        source,
    })?;
    let stores = Stores::build(options.scale, folder.path(), progress)?;
    let mut space = Vec::new();
    let mut cells = Vec::new();
    let mut answers_compared = 0;
    for design in Design::ALL {
        for store in Store::ALL {
            let tables = stores.of(store);
            space.push(DesignSpace {
                design,
                store,
                bytes: tables.bytes(design),
            });
            for size in VectorSize::ALL {
                let name = format!("{}, {}, {}", design.name(), store.name(), size.name());
                progress(&name);
                let run = |limit| Run {
                    design,
                    tables,
                    size,
                    threads: options.threads,
                    limit,
                };
                let ran = ran(options, |limit| run(limit).ask())?;
                if let Some(ran) = &ran {
                    answers_compared += 1;
                    let difference = ran.answer.difference(&right, query);
                    mistakes.extend(difference.map(|it| format!("{name}: {it}")));
                }
                cells.push(VectorCell {
                    design,
                    store,
                    vector: size,
                    milliseconds: ran.as_ref().map(|ran| ran.best.as_secs_f64() * 1e3),
                    vector_rows: ran.map(|ran| ran.vector_rows),
                });
            }
        }
    }
    Ok(VectorsReport {
        scale: options.scale.factor(),
        threads: options.threads,
        runs: options.runs,
        cell_seconds_max: options.cell_limit.as_secs_f64(),
        space,
        cells,
        sql_milliseconds,
        rows: right.rows(),
        answers_compared,
        is_file_compared: options.answers.is_some(),
        mistakes,
    })
}

/// The answer of SQL on a database with the tables as their definitions have them, and the quickest
/// run's milliseconds.
fn ask_sql(
    options: &VectorsOptions,
    query: &Query,
    progress: &mut dyn FnMut(&str),
) -> Result<(Answer, f64), BenchError> {
    progress("loading the database");
    let files = TpchFiles::new(&options.cache, options.scale)?;
    files.write_tables()?;
    let folder = tempfile::tempdir_in(&options.cache).map_err(|source| BenchError::File {
        path: options.cache.clone(),
        source,
    })?;
    let directory = folder.path().join("db");
    let database = TpchDatabase::create(&directory, options.threads, options.memory_bytes)?;
    let client = database.client();
    client.load(&files)?;
    progress("asking SQL");
    let text = query.text(options.scale);
    let mut best = Duration::MAX;
    for _ in 0..options.runs {
        let begin = Instant::now();
        client.run(&text)?;
        best = best.min(begin.elapsed());
    }
    Ok((client.ask(&text)?, best.as_secs_f64() * 1e3))
}

/// What the runs of a cell came to.
struct Ran {
    answer: Answer,
    best: Duration,
    /// Of the quickest run, as all of them have it.
    vector_rows: usize,
}

/// Runs a cell as often as asked and the limit allows; nothing if no run ended in time.
fn ran(
    options: &VectorsOptions,
    run: impl Fn(Limit) -> Result<(Answer, usize), Stop>,
) -> Result<Option<Ran>, BenchError> {
    let mut ran: Option<Ran> = None;
    let limit = Limit(Instant::now() + options.cell_limit);
    for _ in 0..options.runs {
        let begin = Instant::now();
        let (answer, vector_rows) = match run(limit) {
            Ok(found) => found,
            Err(Stop::Late) => break,
            Err(Stop::Failed(error)) => return Err(error),
        };
        let best = begin.elapsed();
        if ran.as_ref().is_none_or(|before| best < before.best) {
            ran = Some(Ran {
                answer,
                best,
                vector_rows,
            });
        }
    }
    Ok(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_given_up_at_the_limit() {
        let cache = tempfile::tempdir().unwrap();
        let options = VectorsOptions {
            scale: Scale::new(0.01).unwrap(),
            cache: cache.path().to_owned(),
            answers: None,
            threads: 2,
            memory_bytes: 1 << 30,
            runs: 1,
            cell_limit: Duration::ZERO,
        };
        let report = vectors(&options, &mut |_| ()).unwrap();
        assert_eq!(report.answers_compared, 0);
        assert!(report.cells.iter().all(|it| it.milliseconds.is_none()));
        assert!(report.to_string().contains("| > 0 |"), "{report}");
    }
}
