//! Arguments of `orrery report` and `orrery usage`, which read a query log.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use orrery_query_log::{Day, Period};

/// What to report.
#[derive(Subcommand)]
pub(crate) enum ReportCommand {
    /// Report queries per day, durations, predicates, clients and the slowest queries
    Usage(UsageArguments),
}

/// Of which log, and of which days.
#[derive(Args)]
pub(crate) struct LogArguments {
    /// Directory of the query log (`orrery serve --query-log`)
    #[arg(long = "log", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// First day, such as 2026-01-01 (UTC); the log's beginning if not given
    #[arg(long, value_name = "DATE")]
    from: Option<Day>,
    /// Last day, included; the log's end if not given
    #[arg(long, value_name = "DATE")]
    to: Option<Day>,
}

impl LogArguments {
    /// The days.
    pub(crate) fn period(&self) -> Period {
        Period {
            from: self.from,
            to: self.to,
        }
    }
}

#[derive(Args)]
pub(crate) struct UsageArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// Output file; standard output if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Output format: one page of HTML, or JSON
    #[arg(long, value_enum, default_value_t = UsageFormat::Html)]
    pub(crate) format: UsageFormat,
}

/// What users used, for bills.
#[derive(Args)]
pub(crate) struct BillArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// Output format
    #[arg(long, value_enum, default_value_t = BillFormat::Csv)]
    pub(crate) format: BillFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum BillFormat {
    Csv,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum UsageFormat {
    Html,
    Json,
}
