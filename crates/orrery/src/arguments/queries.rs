//! What can be said on the command line about queries that run.

use clap::{Args, Subcommand};

use super::common::ReportFormat;

/// What to do with what runs.
#[derive(Subcommand)]
pub(crate) enum QueriesCommand {
    /// List what runs, the oldest first
    List {
        #[command(flatten)]
        socket: AdminSocket,
        /// How to report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// End what runs; a change is not made then
    Kill {
        #[command(flatten)]
        socket: AdminSocket,
        /// Its number, as a list has it
        #[arg(value_name = "ID")]
        id: u64,
    },
}

/// Where a running server is asked.
#[derive(Args)]
pub(crate) struct AdminSocket {
    /// The admin socket of a running server, such as http://127.0.0.1:7879; who asks is in the environment's ORRERY_USER and ORRERY_PASSWORD, or ORRERY_KEY
    #[arg(long, value_name = "URL")]
    pub(crate) server: String,
}
