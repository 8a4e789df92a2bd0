//! What can be said on the command line about reports.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use orrery_query_log::{Day, Period};

/// What to report.
#[derive(Subcommand)]
pub(crate) enum ReportCommand {
    /// A page, or JSON, of what was asked: queries a day, durations, predicates, agents, the slowest queries
    Usage(UsageArguments),
}

/// Of which log, and of which days.
#[derive(Args)]
pub(crate) struct LogArguments {
    /// The directory that `orrery serve --query-log` was given
    #[arg(long = "log", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The first day, such as 2026-01-01 (UTC); from the beginning if not given
    #[arg(long, value_name = "DATE")]
    from: Option<Day>,
    /// The last day, which counts, too; to the end if not given
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
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// One page for a browser, or the figures for programs
    #[arg(long, value_enum, default_value_t = UsageFormat::Html)]
    pub(crate) format: UsageFormat,
}

/// What users used, for bills.
#[derive(Args)]
pub(crate) struct BillArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// For spreadsheets, or for programs
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
