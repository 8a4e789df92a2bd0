//! `orrery report` and `orrery usage`: reports on a server's query log, by query and by user.

use orrery_query_log::{bill, report};

use crate::arguments::{BillArguments, BillFormat, ReportCommand, UsageArguments, UsageFormat};
use crate::commands::output::Output;
use crate::failure::Failure;

pub(crate) fn run(command: ReportCommand) -> Result<(), Failure> {
    match command {
        ReportCommand::Usage(arguments) => usage(&arguments),
    }
}

/// Runs `orrery usage`.
pub(crate) fn bill_of(arguments: &BillArguments) -> Result<(), Failure> {
    let bill = bill(&arguments.log.directory, arguments.log.period())?;
    if bill.dropped > 0 || bill.damaged_lines > 0 {
        let (dropped, damaged) = (bill.dropped, bill.damaged_lines);
        eprintln!(
            "the sums are too small: {dropped} entries were lost when they were logged, {damaged} lines cannot be read"
        );
    }
    let text = match arguments.format {
        BillFormat::Csv => bill.to_csv(),
        BillFormat::Json => bill
            .to_json()
            .map_err(|error| Failure::Other(error.to_string()))?,
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

fn usage(arguments: &UsageArguments) -> Result<(), Failure> {
    let report = report(&arguments.log.directory, arguments.log.period())?;
    let text = match arguments.format {
        UsageFormat::Html => report.to_html(),
        UsageFormat::Json => report
            .to_json()
            .map_err(|error| Failure::Other(error.to_string()))?,
    };
    // Opened once there is something to write: a missing log leaves an old report as it is.
    let mut output = Output::open(arguments.out.as_deref())?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}
