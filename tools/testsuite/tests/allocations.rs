//! Tests that queries allocate no more often than recorded in `costs/allocations.txt`.

use orrery_testsuite::costs::{CountingAllocator, Fixture, Table, Tolerance, allocation_table};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Counts differ a little between levels of optimization.
const TOLERANCE: Tolerance = Tolerance {
    percent: 10,
    besides: 20,
};

#[test]
fn queries_allocate_no_more_than_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    Fixture::prepare(directory.path()).expect("data");
    let fixture = Fixture::open(directory.path()).expect("a database");
    let now = allocation_table(&fixture).expect("answers");
    let kept = Table::parse(include_str!("../costs/allocations.txt"));
    let differences = kept.differences(&now, TOLERANCE);
    let failures: Vec<String> = differences
        .iter()
        .filter(|difference| difference.is_failure())
        .map(ToString::to_string)
        .collect();
    assert!(
        failures.is_empty(),
        "{}\nif this is meant: make instructions-accept\n{now}",
        failures.join("\n")
    );
}
