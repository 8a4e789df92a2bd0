//! The report: from the files of a log to figures.

use std::path::Path;
use std::thread;

use crate::error::Error;
use crate::figures::Report;
use crate::html;
use crate::log_files::{self, Period};
use crate::tally::Tally;

/// The parser goes as deep as a text is nested, and so does dropping what it gives.
const STACK_BYTES: usize = 64 << 20;

/// Reads the log of a directory, and adds up what was asked in a period.
///
/// It takes one pass, and memory that has a bound however long the log is: what is counted is
/// bounded by the constants of this crate.
///
/// # Errors
/// When the directory or one of its files cannot be read, or none is of a query log.
pub fn report(directory: &Path, period: Period) -> Result<Report, Error> {
    let read = || {
        let mut tally = Tally::new(period);
        for path in log_files::files(directory, period)? {
            tally.add_file();
            log_files::read(&path, |line| tally.add_line(line))?;
        }
        Ok(tally.report())
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let reading = thread.spawn_scoped(scope, read);
        let reading = reading.map_err(|error| Error::Thread(error.to_string()))?;
        let panicked = |_| Error::Thread("a fault of this program, please report it".to_owned());
        reading.join().map_err(panicked)?
    })
}

impl Report {
    /// The report as a page that needs nothing from elsewhere.
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// Never for figures of a log.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}
