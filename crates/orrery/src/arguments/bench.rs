//! Arguments of `orrery bench`, which generates data and measures.

use std::ffi::OsString;

use clap::Args;

/// What follows `orrery bench`, `--help` too, is for the program that it starts.
#[derive(Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct BenchArguments {
    /// A suite and its options; `orrery bench --help` lists them
    #[arg(
        value_name = "SUITE",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) arguments: Vec<OsString>,
}
