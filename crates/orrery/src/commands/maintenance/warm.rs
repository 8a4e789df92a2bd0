//! `orrery warm`: reads a database into the file cache, so that the next process need not wait for
//! the disk. A database in an object store is read into the cache on this machine's disk.

use std::ops::ControlFlow;
use std::time::Instant;

use orrery_storage::{ByteCount, WarmExtent};

use crate::arguments::WarmArguments;
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;

pub(crate) fn run(arguments: WarmArguments) -> Result<(), Failure> {
    let place = arguments.database.place()?;
    let database = place.open()?;
    let bytes_max = arguments
        .memory
        .map_or_else(|| warm_bytes(&place), |bytes| bytes.0);
    let start = Instant::now();
    let extent = WarmExtent::Everything { bytes_max };
    let snapshot = database.snapshot();
    let warmed = snapshot.warm(extent, &mut |_| ControlFlow::Continue(()))?;
    let seconds = start.elapsed().as_secs_f64();
    let rest = match (warmed.is_whole, place.cache_bytes()) {
        (true, _) => "",
        (false, None) => "; the rest does not go into the memory",
        (false, Some(_)) => "; the rest does not go into the cache",
    };
    let text = format!(
        "{} of {} read in {seconds:.2} s{rest}\n",
        ByteCount(warmed.bytes),
        ByteCount(snapshot.file_bytes()),
    );
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

/// How many bytes are worth reading: the available memory or, for an object store, the cache's
/// size.
pub(crate) fn warm_bytes(place: &DatabasePlace) -> u64 {
    place.cache_bytes().unwrap_or_else(available_bytes)
}

/// Memory that the system can give to its file cache without swapping; unlimited if unknown.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map_or(u64::MAX, |kibibytes| kibibytes * 1024)
}
