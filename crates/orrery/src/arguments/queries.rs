//! Arguments of `orrery queries`, which lists and kills running queries.

use clap::{Args, Subcommand};

use super::common::ReportFormat;

/// What to do with what runs.
#[derive(Subcommand)]
pub(crate) enum QueriesCommand {
    /// List running queries, the oldest first
    List {
        #[command(flatten)]
        socket: AdminSocket,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Kill a running query; a change is rolled back
    Kill {
        #[command(flatten)]
        socket: AdminSocket,
        /// Number of the query, from `list`
        #[arg(value_name = "ID")]
        id: u64,
    },
}

/// Where a running server is asked.
#[derive(Args)]
pub(crate) struct AdminSocket {
    /// Admin socket of a running server, such as http://127.0.0.1:7879. Credentials come from
    /// ORRERY_USER and ORRERY_PASSWORD, or ORRERY_KEY
    #[arg(long, value_name = "URL")]
    pub(crate) server: String,
}
