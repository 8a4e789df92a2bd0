//! The program that `orrery bench` starts: generates data, and measures the `orrery` program beside
//! it.
//!
//! It is a program of its own so that the product is built and linked without it. TPC-H and the lab
//! of physical designs run the engine in this process, so it has the allocator and the order of
//! functions that `orrery` has. Exit status and messages are those of `orrery`.

mod arguments;
mod commands;
mod failure;
mod output;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::arguments::Arguments;
use crate::failure::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_log();
    match commands::run(arguments.suite) {
        // The reader of our output has gone: nothing to complain about.
        Ok(()) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("orrery: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Lines on standard error; `ORRERY_LOG` takes `level` or `target=level,target=level`.
fn start_log() {
    let filter = std::env::var("ORRERY_LOG")
        .ok()
        .and_then(|text| text.parse::<Targets>().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .init();
}
