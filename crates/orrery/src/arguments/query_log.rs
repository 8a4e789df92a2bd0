//! Arguments of a server's query log.

use std::path::PathBuf;

use clap::Args;
use orrery_server::QueryLogOptions;

use crate::units::{Bytes, Seconds};

/// Whether and where what is asked over HTTP is logged.
#[derive(Args)]
pub(crate) struct QueryLogArguments {
    /// Directory for the query log, one line of JSON per request; none if not given
    #[arg(long, value_name = "DIR")]
    query_log: Option<PathBuf>,
    /// Maximum size of the query log; its oldest files are removed first
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "1G",
        requires = "query_log"
    )]
    query_log_bytes: Bytes,
    /// Time from which a query is also logged in slow-*.jsonl, with its plan
    #[arg(long, value_name = "TIME", requires = "query_log")]
    slow_query: Option<Seconds>,
}

impl QueryLogArguments {
    /// For the server, if there is to be a log.
    pub(crate) fn options(&self) -> Option<QueryLogOptions> {
        let directory = self.query_log.as_ref()?;
        Some(QueryLogOptions {
            bytes_max: self.query_log_bytes.0,
            slow: self.slow_query.map(|slow| slow.0),
            ..QueryLogOptions::new(directory)
        })
    }
}
