//! The driver of explore mixes interleaved with updates, one client.
//!
//! Before each mix a product with its offers is inserted, and an offer deleted. Their time counts.
//! Queries and updates have a kept connection each. Warm-up mixes have updates too, as those of the
//! official driver.

use std::time::{Duration, Instant};

use super::explore::{MixClient, Runs, mixes_an_hour};
use super::{BenchError, ExploreOptions};
use crate::http_client::HttpClient;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::update::Updates;

/// A client that runs a mix after each update, with parameters of their own.
pub(super) struct MixedClient<'p> {
    queries: MixClient<'p>,
    updates: Updates,
    connection: HttpClient,
    times: MixedTimes,
}

/// What a [`MixedClient`] has waited for, mix by mix.
#[derive(Clone, Debug, Default)]
pub(super) struct MixedTimes {
    /// The queries of a mix.
    pub(super) queries: Vec<Duration>,
    /// Insertions of a product and its offers.
    pub(super) insert: Vec<Duration>,
    /// Deletions of an offer.
    pub(super) delete: Vec<Duration>,
}

impl<'p> MixedClient<'p> {
    /// A client of the endpoint in the options, whose numbers of mixes it leaves to the caller.
    /// `updates` must have as many as there will be mixes.
    pub(super) fn new(
        options: &ExploreOptions,
        pool: &'p ParameterPool,
        updates: Updates,
    ) -> Result<Self, BenchError> {
        Ok(Self {
            queries: MixClient::new(options.client()?, pool, options.seed),
            updates,
            connection: HttpClient::new(&options.endpoint)?,
            times: MixedTimes::default(),
        })
    }

    /// Runs an update and a mix.
    pub(super) fn run(&mut self) -> Result<(), BenchError> {
        let insert = self.updates.insert().map_err(|source| BenchError::File {
            path: "a BSBM update".into(),
            source,
        })?;
        let delete = self.updates.delete();
        let times = &mut self.times;
        for (text, times) in [(insert, &mut times.insert), (delete, &mut times.delete)] {
            let start = Instant::now();
            self.connection
                .update(&text, &mut Vec::new())
                .map_err(|source| BenchError::Query {
                    what: "a BSBM update".to_owned(),
                    source,
                })?;
            times.push(start.elapsed());
        }
        let mix = self.queries.run(&mut Runs::default())?;
        self.times.queries.push(mix);
        Ok(())
    }

    /// The times since the last call.
    pub(super) fn take_times(&mut self) -> MixedTimes {
        std::mem::take(&mut self.times)
    }
}

impl MixedTimes {
    /// Mixes an hour, the time of the updates counted.
    pub(super) fn mixes_an_hour(&self) -> f64 {
        let times = [&self.queries, &self.insert, &self.delete];
        mixes_an_hour(self.queries.len(), times.into_iter().flatten().sum())
    }
}

/// Runs as many mixes as the options say, after those that warm up, and gives mixes an hour.
///
/// # Errors
/// When a query or an update fails.
pub(super) fn explore_and_update(
    options: &ExploreOptions,
    pool: &ParameterPool,
    updates: Updates,
) -> Result<f64, BenchError> {
    let mut client = MixedClient::new(options, pool, updates)?;
    for _ in 0..options.warm_up_mixes {
        client.run()?;
    }
    client.take_times();
    for _ in 0..options.mixes {
        client.run()?;
    }
    Ok(client.take_times().mixes_an_hour())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_updates_counts() {
        let seconds = |seconds| vec![Duration::from_secs(seconds); 2];
        let times = MixedTimes {
            queries: seconds(2),
            insert: seconds(1),
            delete: seconds(1),
        };
        assert_eq!(times.mixes_an_hour(), 900.0);
        assert_eq!(MixedTimes::default().mixes_an_hour(), 0.0);
    }
}
