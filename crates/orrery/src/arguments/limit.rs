//! Arguments of `orrery limit`, which sets limits of users, groups and keys.

use std::str::FromStr;

use clap::{ArgGroup, Args, Subcommand};
use orrery_access::Budget;
use orrery_units::parse_time;

use super::access::{AccessPlace, WhomArguments};
use super::common::ReportFormat;
use crate::units::{Bytes, Seconds};

/// What to do with limits.
#[derive(Subcommand)]
pub(crate) enum LimitCommand {
    /// Set limits of a user, group or key, replacing earlier ones. What is not given has the
    /// server's limit
    Set {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        of: LimitedArguments,
        #[command(flatten)]
        limits: LimitArguments,
    },
    /// List limits
    List {
        #[command(flatten)]
        place: AccessPlace,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Remove limits
    Remove {
        #[command(flatten)]
        place: AccessPlace,
        #[command(flatten)]
        of: LimitedArguments,
    },
}

/// Whom limits are for: what is said of a user wins over what is said of groups, of which the
/// largest holds, and that over what is said of all.
#[derive(Args)]
pub(crate) struct LimitedArguments {
    #[command(flatten)]
    pub(crate) whom: WhomArguments,
    /// Key the limits are for, in addition to those of its user
    #[arg(long, value_name = "KEY", group = "whom")]
    pub(crate) key: Option<String>,
}

/// How much.
#[derive(Args)]
#[command(group = ArgGroup::new("limits").required(true).multiple(true))]
pub(crate) struct LimitArguments {
    /// Maximum number of concurrent requests
    #[arg(long, value_name = "N", group = "limits")]
    pub(crate) concurrent: Option<u32>,
    /// Maximum timeout of a request, such as 30s
    #[arg(long, value_name = "TIME", group = "limits")]
    pub(crate) time: Option<Seconds>,
    /// Maximum rows, or triples, of an answer
    #[arg(long, value_name = "N", group = "limits")]
    pub(crate) rows: Option<u64>,
    /// Maximum bytes of an answer before compression, such as 10M
    #[arg(long, value_name = "BYTES", group = "limits")]
    pub(crate) bytes: Option<Bytes>,
    /// Maximum memory of all concurrent queries together, such as 64M
    #[arg(long, value_name = "BYTES", group = "limits")]
    pub(crate) memory: Option<Bytes>,
    /// Budget of row touches and the time in which it refills, such as 5000000/1h
    #[arg(long, value_name = "TOUCHES/TIME", group = "limits")]
    pub(crate) cost: Option<CostBudget>,
}

/// `5000000/1h`.
#[derive(Clone, Copy)]
pub(crate) struct CostBudget(pub(crate) Budget);

impl FromStr for CostBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected touches and the time that refills them, such as 5000000/1h";
        let (touches, time) = text.split_once('/').ok_or_else(wrong)?;
        let touches = touches.parse().map_err(|_| wrong())?;
        let time = parse_time(time).map_err(|error| error.to_string())?;
        let seconds = time.as_secs().max(1);
        Ok(Self(Budget { touches, seconds }))
    }
}
