//! The throughput test: streams of queries, and the refreshes beside them.

use std::time::Instant;

use super::BenchError;
use super::database::{Client, TpchDatabase};
use super::files::{RefreshFiles, TpchFiles};
use super::held::Held;
use crate::tpch::{Query, REFRESH_SETS_MAX, Scale, ThroughputTimes, query_order};

/// The first refresh set that is left to it: the power test has used one.
const FIRST_SET: u32 = 2;

/// Runs so many streams, and as many pairs of refreshes one after the other.
pub(super) fn run(
    database: &TpchDatabase,
    files: &TpchFiles,
    scale: Scale,
    streams: usize,
    held: &mut Held,
) -> Result<ThroughputTimes, BenchError> {
    let sets = (FIRST_SET..=REFRESH_SETS_MAX).take(streams);
    let refreshes = sets.map(|number| files.refresh(number));
    let refreshes: Vec<RefreshFiles> = refreshes.collect::<Result<_, _>>()?;
    let begin = Instant::now();
    let (came, went) = std::thread::scope(|scope| {
        let asking: Vec<_> = (1..=streams)
            .map(|stream| scope.spawn(move || ask(&database.client(), scale, stream)))
            .collect();
        let changing = scope.spawn(|| change(&database.client(), &refreshes));
        for stream in asking {
            joined(stream)?;
        }
        joined(changing)
    })?;
    let elapsed = begin.elapsed().as_secs_f64();
    held.lines = held.lines + came - went;
    Ok(ThroughputTimes { streams, elapsed })
}

fn joined<T>(
    thread: std::thread::ScopedJoinHandle<'_, Result<T, BenchError>>,
) -> Result<T, BenchError> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// One stream.
fn ask(client: &Client<'_>, scale: Scale, stream: usize) -> Result<(), BenchError> {
    let queries = query_order(stream).iter();
    for query in queries.filter_map(|number| Query::numbered(*number)) {
        client.run(&query.text(scale))?;
    }
    Ok(())
}

/// All refreshes; the lines that came and went.
fn change(client: &Client<'_>, refreshes: &[RefreshFiles]) -> Result<(u64, u64), BenchError> {
    let (mut came, mut went) = (0, 0);
    for refresh in refreshes {
        came += client.insert(refresh)?;
        went += client.delete(refresh)?;
    }
    Ok((came, went))
}
