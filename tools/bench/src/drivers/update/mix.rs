//! The explore queries beside updates, against the same without.
//!
//! ```text
//! server without updates   mix 1 ... mix 10 |                             | mix 11 ... mix 20 |
//! server with updates                       | update, mix 1 ... update, mix 10 |               | ...
//! ```
//!
//! Two servers over copies of one database take turns of ten mixes, so that whatever else the
//! machine does meets both. Both run the same queries with the same parameters. An update is the
//! two transactions of [`Updates`]; one client sends them before each mix and waits for their
//! answers, so their time counts. Warm-up mixes have updates too, as those of the official driver.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::super::explore::{MixClient, Runs, mixes_an_hour};
use super::super::mixed::{MixedClient, MixedTimes};
use super::super::{BenchError, Binary, ExploreOptions};
use super::options::UpdateBenchOptions;
use crate::http_client::HttpClient;
use crate::report::Times;
use orrery_bsbm::Catalog;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::update::Updates;

/// Mixes before the measurement.
const WARM_UP_MIXES: u32 = 10;
/// Mixes that one server runs before it is the other's turn.
const TURN_MIXES: u32 = 10;
const SEED: u64 = 1;

/// What updates cost who reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixReport {
    /// Query mixes an hour without updates.
    pub alone_per_hour: f64,
    /// The same with an insertion and a deletion before each mix, their time counted.
    pub beside_per_hour: f64,
    /// The queries of a mix without updates.
    pub alone: Times,
    /// The queries of a mix between updates, without these.
    pub beside: Times,
    /// Insertions of a product and its offers.
    pub insert: Times,
    /// Deletions of an offer.
    pub delete: Times,
    /// Milliseconds of the queries of each mix between updates, in order.
    pub beside_ms: Vec<f64>,
}

impl MixReport {
    /// Mixes with updates, as a share of those without.
    pub fn share(&self) -> f64 {
        self.beside_per_hour / self.alone_per_hour
    }
}

/// Runs the mixes on two equal databases, one of which is changed.
pub(super) fn mix(
    binary: &Binary,
    options: &UpdateBenchOptions,
    unchanged: &Path,
    changed: &Path,
) -> Result<MixReport, BenchError> {
    let pool = ParameterPool::from_catalog(&Catalog::new(&options.data))?;
    let (unchanged, changed) = (binary.serve(unchanged)?, binary.serve(changed)?);
    let mut alone = MixClient::new(HttpClient::new(unchanged.endpoint())?, &pool, SEED);
    let beside = ExploreOptions {
        seed: SEED,
        ..ExploreOptions::new(changed.endpoint())
    };
    let updates = Updates::new(&options.data, WARM_UP_MIXES + options.mixes);
    let mut beside = MixedClient::new(&beside, &pool, updates)?;
    let mut alone_times = Vec::new();
    for measured in [WARM_UP_MIXES, options.mixes] {
        alone_times.clear();
        beside.take_times();
        let mut left = measured;
        while left > 0 {
            let turn = left.min(TURN_MIXES);
            for _ in 0..turn {
                alone_times.push(alone.run(&mut Runs::default())?);
            }
            for _ in 0..turn {
                beside.run()?;
            }
            left -= turn;
        }
    }
    Ok(report(&alone_times, &beside.take_times()))
}

fn report(alone: &[Duration], beside: &MixedTimes) -> MixReport {
    let beside_ms = beside.queries.iter().map(|time| time.as_secs_f64() * 1e3);
    MixReport {
        alone_per_hour: mixes_an_hour(alone.len(), alone.iter().sum()),
        beside_per_hour: beside.mixes_an_hour(),
        alone: Times::of(alone),
        beside: Times::of(&beside.queries),
        insert: Times::of(&beside.insert),
        delete: Times::of(&beside.delete),
        beside_ms: beside_ms.collect(),
    }
}
