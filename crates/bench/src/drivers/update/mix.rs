//! The explore queries of BSBM beside updates, against the same queries without them.
//!
//! ```text
//! server without updates   mix 1 ... mix 10 |                             | mix 11 ... mix 20 |
//! server with updates                       | update, mix 1 ... update, mix 10 |               | ...
//! ```
//!
//! Two servers over copies of one database take turns of ten mixes, so that whatever else the machine does
//! meets both. Both run the same queries with the same parameters. An update is the two transactions of
//! [`Updates`]; one client sends them before each mix and waits for their answers, so their time counts. Warm-up
//! mixes have updates too, as those of the official driver.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::super::explore::{MixClient, Runs};
use super::super::{BenchError, Binary};
use super::{UpdateBenchOptions, failed};
use crate::bsbm::Catalog;
use crate::bsbm::parameters::ParameterPool;
use crate::bsbm::update::Updates;
use crate::http_client::HttpClient;
use crate::report::Times;

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

/// One server and what came of it.
struct Side<'p> {
    mixes: MixClient<'p>,
    times: Vec<Duration>,
}

impl Side<'_> {
    fn mix(&mut self) -> Result<(), BenchError> {
        self.times.push(self.mixes.run(&mut Runs::default())?);
        Ok(())
    }
}

/// The client that changes the data.
struct Changer {
    updates: Updates,
    client: HttpClient,
    insert: Vec<Duration>,
    delete: Vec<Duration>,
}

impl Changer {
    fn change(&mut self) -> Result<(), BenchError> {
        let insert = self.updates.insert().map_err(|source| BenchError::File {
            path: "a BSBM update".into(),
            source,
        })?;
        let delete = self.updates.delete();
        for (text, times) in [(insert, &mut self.insert), (delete, &mut self.delete)] {
            let start = Instant::now();
            self.client
                .update(&text, &mut Vec::new())
                .map_err(failed("a BSBM update"))?;
            times.push(start.elapsed());
        }
        Ok(())
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
    let side = |endpoint: &str| -> Result<Side<'_>, BenchError> {
        Ok(Side {
            mixes: MixClient::new(HttpClient::new(endpoint)?, &pool, SEED),
            times: Vec::new(),
        })
    };
    let (mut alone, mut beside) = (side(unchanged.endpoint())?, side(changed.endpoint())?);
    let mut changer = Changer {
        updates: Updates::new(&options.data, WARM_UP_MIXES + options.mixes),
        client: HttpClient::new(changed.endpoint())?,
        insert: Vec::new(),
        delete: Vec::new(),
    };
    for measured in [WARM_UP_MIXES, options.mixes] {
        for times in [&mut alone.times, &mut beside.times] {
            times.clear();
        }
        changer.insert.clear();
        changer.delete.clear();
        let mut left = measured;
        while left > 0 {
            let turn = left.min(TURN_MIXES);
            for _ in 0..turn {
                alone.mix()?;
            }
            for _ in 0..turn {
                changer.change()?;
                beside.mix()?;
            }
            left -= turn;
        }
    }
    Ok(report(&alone.times, &beside.times, &changer))
}

fn report(alone: &[Duration], beside: &[Duration], changer: &Changer) -> MixReport {
    let per_hour = |times: &[&[Duration]]| {
        let seconds: f64 = times
            .iter()
            .copied()
            .flatten()
            .map(Duration::as_secs_f64)
            .sum();
        alone.len() as f64 * 3_600.0 / seconds
    };
    MixReport {
        alone_per_hour: per_hour(&[alone]),
        beside_per_hour: per_hour(&[beside, &changer.insert, &changer.delete]),
        alone: Times::of(alone),
        beside: Times::of(beside),
        insert: Times::of(&changer.insert),
        delete: Times::of(&changer.delete),
        beside_ms: beside.iter().map(|time| time.as_secs_f64() * 1e3).collect(),
    }
}
