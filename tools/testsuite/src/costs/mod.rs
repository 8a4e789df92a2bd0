//! Cost paths: hot code measured in instructions and allocations, which do not depend on a
//! machine's load.
//!
//! ```text
//! Fixture: BSBM data, generated, loaded -> paths: one closure each, repeated to warm -> measured once
//!   instructions   under `valgrind --tool=callgrind`, which counts within `measured` only   scripts/instructions.sh
//!   allocations    by `CountingAllocator`, per thread                                     tests/allocations.rs
//! ```
//!
//! The figures are kept in `costs/instructions.txt` and `costs/allocations.txt`, one line a path,
//! and compared with a tolerance: a path that got dearer is seen in the commit that made it so.
//! They tell nothing of caches, of the disk, or of waiting; `orrery bench` and `cargo bench`
//! measure times.

mod allocations;
mod columns;
mod fixture;
mod path;
mod queries;
mod stored;
mod table;

pub use allocations::{Allocations, CountingAllocator, allocations_of};
pub use fixture::Fixture;
pub use path::CostPath;
pub use table::{Difference, Table, Tolerance};

use crate::Error;
use path::WARM_UP_RUNS;

/// The allocations of the point query and of the explore queries, each prepared, run and written
/// out once it is warm; for a program with the [`CountingAllocator`].
///
/// # Errors
/// When a query fails.
pub fn allocation_table(fixture: &Fixture) -> Result<Table, Error> {
    let mut table = Table::new(&[
        "Allocations and bytes of each query: prepared, run, and its answer written.",
        "`make instructions-accept` writes this file.",
    ]);
    let threads = queries::Threads::new()?;
    for query in queries::asked_queries(fixture)? {
        for _ in 0..WARM_UP_RUNS {
            query.answer(fixture, &threads)?;
        }
        let (allocations, answer) = allocations_of(|| query.answer(fixture, &threads));
        answer?;
        table.set(query.name, &[allocations.count, allocations.bytes]);
    }
    Ok(table)
}

/// All paths over a fixture.
///
/// # Errors
/// When one cannot be set up.
pub fn paths(fixture: &Fixture) -> Result<Vec<CostPath<'_>>, Error> {
    let mut paths = columns::paths();
    paths.extend(stored::paths(fixture)?);
    paths.extend(queries::paths(fixture)?);
    Ok(paths)
}
