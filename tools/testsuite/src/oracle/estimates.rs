//! The estimate report of `orrery bench estimates` over the oracle's small, irregular data.

use orrery_bench::drivers::{EstimatesReport, collect_estimates};

use super::data::DataSet;
use super::grammar::PREFIXES;
use super::random::Random;
use super::run::{QUERIES_PER_DATA_SET, parsed_query, query_random};
use super::store::Store;
use crate::Error;

/// Plans and runs the first queries of a seed, the same ones that [`run`](super::run()) compares.
/// What cannot be run is left out, with the reason.
///
/// # Errors
/// When a database cannot be built.
pub fn estimates(queries: u64, seed: u64) -> Result<EstimatesReport, Error> {
    let (mut asked, mut left_out, mut found) = (0, Vec::new(), Vec::new());
    for set in 0..queries.div_ceil(QUERIES_PER_DATA_SET) {
        let mut random = Random::new(seed, set);
        let data = DataSet::random(&mut random);
        let store = Store::new(&data.quads, data.arrival)?;
        for number in 0..QUERIES_PER_DATA_SET.min(queries - set * QUERIES_PER_DATA_SET) {
            let mut random = query_random(seed, set, number);
            let Some(query) = parsed_query(&mut random, &data) else {
                continue;
            };
            asked += 1;
            let text = format!("{PREFIXES}{}", query.to_text());
            match store.analyzed(&text) {
                Ok(plan) => collect_estimates(&plan, "oracle", &text, &mut found),
                Err(message) => left_out.push(format!("{message}\n{text}")),
            }
        }
    }
    Ok(EstimatesReport::of(asked, left_out, found))
}
