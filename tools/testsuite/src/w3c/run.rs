//! The parallel run of all suites, each test in its own directory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Runtime;

use super::{
    Files, Outcome, SUITES, SuiteReport, Test, TestKind, evaluation, http, manifest, syntax, update,
};

/// A file system in memory, if there is one: a load of a small file spends its time in `fsync`.
const MEMORY_DIRECTORY: &str = "/dev/shm";

/// Runs every test whose name contains `filter`. Fails if a manifest cannot be read.
pub fn run(files: &Files, filter: &str) -> Result<Vec<SuiteReport>, String> {
    SUITES
        .iter()
        .map(|suite| {
            let mut tests = manifest::tests(files, suite)?;
            tests.retain(|test| test.id.contains(filter));
            Ok(SuiteReport {
                name: suite.name,
                outcomes: run_tests(files, tests)?,
            })
        })
        .collect()
}

fn run_tests(files: &Files, tests: Vec<Test>) -> Result<Vec<(Test, Outcome)>, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::with_capacity(tests.len()));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| work(files, &tests, &next, &outcomes)))
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err("a test thread panicked".to_owned()))
        })
    })?;
    let mut outcomes = outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(number, _)| *number);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
    Ok(tests.into_iter().zip(outcomes).collect())
}

fn work(
    files: &Files,
    tests: &[Test],
    next: &AtomicUsize,
    outcomes: &Mutex<Vec<(usize, Outcome)>>,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let parent = Some(PathBuf::from(MEMORY_DIRECTORY))
        .filter(|path| path.is_dir())
        .unwrap_or_else(std::env::temp_dir);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(test) = tests.get(number) else {
            return Ok(());
        };
        let home = tempfile::tempdir_in(&parent).map_err(|error| error.to_string())?;
        let run = || run_one(files, &home.path().join("db"), &runtime, test);
        let outcome = catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|_| Outcome::Failed("panicked".to_owned()));
        outcomes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((number, outcome));
    }
}

fn run_one(files: &Files, directory: &Path, runtime: &Runtime, test: &Test) -> Outcome {
    let result = match &test.kind {
        TestKind::DataPositive { data } => syntax::accepted(files, directory, data, None),
        TestKind::DataNegative { data } => syntax::refused(files, directory, data),
        TestKind::DataEvaluation { data, result } => {
            syntax::accepted(files, directory, data, Some(result))
        }
        TestKind::DataCanonical { data, result } => {
            syntax::canonical(files, directory, data, result)
        }
        TestKind::QueryPositive { query } => evaluation::accepted(files, directory, query),
        TestKind::QueryNegative { query } => evaluation::refused(files, directory, query),
        TestKind::QueryEvaluation(query) => evaluation::evaluate(files, directory, runtime, query),
        TestKind::UpdatePositive { update } => update::accepted(files, directory, update),
        TestKind::UpdateNegative { update } => update::refused(files, directory, update),
        TestKind::UpdateEvaluation(test) => update::evaluate(files, directory, runtime, test),
        TestKind::Http(test) => http::converse(files, directory, runtime, test),
        TestKind::ServiceDescription(test) => http::describe(directory, runtime, *test),
        TestKind::Waiting { reason } => return Outcome::Waiting(reason),
    };
    match result {
        Ok(()) => Outcome::Passed,
        Err(message) => Outcome::Failed(message),
    }
}
