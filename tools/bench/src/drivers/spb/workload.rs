//! The workload: load, read parameters, run all agents.

use std::time::{Duration, Instant};

use super::agents;
use super::database::{UNION, load, temporary_folder};
use super::options::SpbOptions;
use super::report::SpbReport;
use crate::drivers::target::{Target, failed};
use crate::drivers::{BenchError, Binary};
use crate::http_client::HttpClient;
use crate::spb::pool::Pool;

/// Runs editors and readers side by side.
///
/// # Errors
/// When the data cannot be loaded, the endpoint has no works, or an agent gets nothing but
/// failures.
pub fn spb(
    binary: &Binary,
    options: &SpbOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<SpbReport, BenchError> {
    let folder = temporary_folder()?;
    let (target, load_seconds) = match &options.endpoint {
        Some(endpoint) => (Target::Endpoint(endpoint.clone()), None),
        None => {
            progress("load");
            let start = Instant::now();
            let target = load(binary, &options.data, folder.path(), options.has_text_index)?;
            (target, Some(start.elapsed().as_secs_f64()))
        }
    };
    let serving = target.serve(&[UNION])?;
    progress("parameters");
    let pool = Pool::read(&mut HttpClient::new(serving.endpoint())?)
        .map_err(|source| failed("the parameters", source))?;
    progress("editors and readers");
    let warm_up = Duration::from_secs(u64::from(options.warm_up_seconds));
    let measured = Duration::from_secs(u64::from(options.seconds));
    let outcome = agents::run(serving.endpoint(), &pool, options, warm_up, measured)?;
    Ok(SpbReport::new(
        options,
        pool.search(),
        load_seconds,
        outcome,
    ))
}
