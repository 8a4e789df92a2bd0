//! The explore mixes of BSBM with updates between them, one client after the other's answer.
//!
//! Before each mix a product with its offers is inserted, and an offer deleted. Their time counts.

use std::time::Instant;

use super::{BenchError, ExploreOptions, explore};
use crate::bsbm::update::Updates;
use crate::http_client::HttpClient;

/// Runs as many mixes as the options say, without warming up, and gives mixes an hour.
///
/// # Errors
/// When a query or an update fails.
pub(super) fn explore_and_update(
    options: &ExploreOptions,
    updates: &mut Updates,
) -> Result<f64, BenchError> {
    let mut connection = HttpClient::new(&options.endpoint)?;
    let mut body = Vec::new();
    let mut seconds = 0.0;
    for mix in 0..options.mixes {
        let insert = updates.insert().map_err(|source| BenchError::File {
            path: "memory".into(),
            source,
        })?;
        let delete = updates.delete();
        let start = Instant::now();
        for text in [&insert, &delete] {
            connection
                .update(text, &mut body)
                .map_err(|source| BenchError::Query {
                    what: "a BSBM update".to_owned(),
                    source,
                })?;
        }
        seconds += start.elapsed().as_secs_f64();
        let one = ExploreOptions {
            warm_up_mixes: 0,
            mixes: 1,
            seed: u64::from(mix) + 1,
            ..options.clone()
        };
        seconds += explore(&one)?.seconds;
    }
    Ok(f64::from(options.mixes) * 3_600.0 / seconds)
}
