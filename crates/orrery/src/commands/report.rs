//! `orrery report`: what a server was asked, from its query log.

use orrery_usage::{Period, report};

use super::output::Output;
use crate::arguments::{ReportCommand, UsageArguments, UsageFormat};
use crate::failure::Failure;

pub(crate) fn run(command: ReportCommand) -> Result<(), Failure> {
    match command {
        ReportCommand::Usage(arguments) => usage(&arguments),
    }
}

fn usage(arguments: &UsageArguments) -> Result<(), Failure> {
    let period = Period {
        from: arguments.from,
        to: arguments.to,
    };
    let report = report(&arguments.directory, period)?;
    let text = match arguments.format {
        UsageFormat::Html => report.to_html(),
        UsageFormat::Json => report
            .to_json()
            .map_err(|error| Failure::Other(error.to_string()))?,
    };
    // Opened when there is something to write: a log that is not there leaves an old report as it is.
    let mut output = Output::open(arguments.out.as_deref())?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}
