//! Usage per user and day, for bills and limits.
//!
//! ```text
//! entries of a period -> day and user -> requests, seconds, rows, bytes, touches -> CSV, JSON
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::entry::{Entry, Line};
use crate::error::Error;
use crate::kind::Outcome;
use crate::log_files::{self, Period};
use crate::time::Day;

/// Days and users that are added up at most.
const LINES_MAX: usize = 1_000_000;

/// The usage of all users, by day.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bill {
    /// In the order of days, and of names on each; whoever is not known comes first.
    pub lines: Vec<BillLine>,
    /// Entries of the log that were lost, whoever they were of: the sums are too small by these.
    pub dropped: u64,
    /// Lines of the log that cannot be read.
    pub damaged_lines: u64,
}

/// The usage of one user on one day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BillLine {
    /// The day (UTC) on which the requests came.
    pub day: Day,
    /// The user; none for all who are not known.
    pub user: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub used: Used,
}

/// An amount of usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Used {
    /// Queries, updates and requests of SQL.
    pub requests: u64,
    /// Those of them that did not come to their end.
    pub failed: u64,
    /// From their heads to the last bytes of their answers, added up.
    pub seconds: f64,
    /// Rows or triples of the answers.
    pub rows: u64,
    /// Bytes of the answers, as they were sent.
    pub bytes: u64,
    /// Touches of rows, of queries of SPARQL.
    pub touches: u64,
}

/// Adds up what the log of a directory has of a period. One pass; memory for each day and user.
///
/// # Errors
/// When the directory or one of its files cannot be read, none is of a query log, or there are more
/// days and users than a million.
pub fn bill(directory: &Path, period: Period) -> Result<Bill, Error> {
    let mut sums = Sums::default();
    for path in log_files::files(directory, period)? {
        log_files::read(&path, |line| sums.add_line(line, period))?;
        if sums.used.len() > LINES_MAX {
            return Err(Error::TooMuch { max: LINES_MAX });
        }
    }
    Ok(sums.bill())
}

#[derive(Default)]
struct Sums {
    used: BTreeMap<(Day, Option<String>), Used>,
    dropped: u64,
    damaged_lines: u64,
}

impl Sums {
    fn add_line(&mut self, line: Option<&[u8]>, period: Period) {
        match line.map(Line::parse) {
            Some(Ok(Line::Entry(entry))) if period.has(entry.time.day()) => self.add(*entry),
            Some(Ok(Line::Entry(_))) => {}
            Some(Ok(Line::Dropped(count))) => self.dropped = self.dropped.saturating_add(count),
            Some(Err(_)) | None => self.damaged_lines += 1,
        }
    }

    fn add(&mut self, entry: Entry) {
        // One file may have many names more than there may be: they are noticed at its end.
        if self.used.len() > LINES_MAX {
            return;
        }
        let used = self.used.entry((entry.time.day(), entry.user));
        let used = used.or_default();
        used.requests += 1;
        used.failed += u64::from(entry.outcome != Outcome::Ok);
        used.seconds += entry.ms / 1000.0;
        used.rows = used.rows.saturating_add(entry.rows);
        used.bytes = used.bytes.saturating_add(entry.bytes);
        used.touches = used.touches.saturating_add(entry.touches.unwrap_or(0));
    }

    fn bill(self) -> Bill {
        let lines = self.used.into_iter();
        let lines = lines.map(|((day, user), used)| BillLine { day, user, used });
        Bill {
            lines: lines.collect(),
            dropped: self.dropped,
            damaged_lines: self.damaged_lines,
        }
    }
}

impl Bill {
    /// The usage as CSV with a header; anonymous lines have no name.
    pub fn to_csv(&self) -> String {
        let mut text = "day,user,requests,failed,seconds,rows,bytes,touches\r\n".to_owned();
        for BillLine { day, user, used } in &self.lines {
            let user = csv_field(user.as_deref().unwrap_or(""));
            let Used {
                requests,
                failed,
                seconds,
                rows,
                bytes,
                touches,
            } = used;
            text.push_str(&format!(
                "{day},{user},{requests},{failed},{seconds:.3},{rows},{bytes},{touches}\r\n"
            ));
        }
        text
    }

    /// The usage as JSON.
    ///
    /// # Errors
    /// Never for figures of a log.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// Names of users have nothing that needs quotes; what stands in a log that others wrote may (RFC
/// 4180).
fn csv_field(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time: &str, user: &str, rest: &str) -> String {
        let user = match user {
            "" => String::new(),
            user => format!("\"user\":{},", serde_json::Value::from(user)),
        };
        format!(
            "{{\"time\":\"{time}\",\"kind\":\"select\",\"text\":\"\",\"shape\":\"0000000000000000\",{user}{rest}}}\n"
        )
    }

    const OK: &str = "\"outcome\":\"ok\",\"ms\":1500,\"rows\":3,\"bytes\":100,\"touches\":7";
    const OVER: &str = "\"outcome\":\"exceeded\",\"ms\":500,\"rows\":0,\"bytes\":10";

    #[test]
    fn each_user_has_a_line_for_each_day() {
        let directory = tempfile::tempdir().unwrap();
        let text = [
            line("2026-11-24T23:59:59.999Z", "ann", OK),
            line("2026-11-24T10:00:00.000Z", "ann", OVER),
            line("2026-11-24T10:00:00.000Z", "", OK),
            line("2026-11-25T00:00:00.000Z", "ann", OK),
            line("2026-11-24T10:00:00.000Z", "a,\"b\"", OK),
            line("2026-11-23T10:00:00.000Z", "ann", OK),
            "{\"dropped\":4}\nno line\n".to_owned(),
        ];
        let file = directory.path().join("queries-2026-11-24-0001.jsonl");
        std::fs::write(file, text.concat()).unwrap();
        let period = Period {
            from: Some("2026-11-24".parse().unwrap()),
            to: Some("2026-11-25".parse().unwrap()),
        };
        let bill = bill(directory.path(), period).unwrap();
        assert_eq!((bill.dropped, bill.damaged_lines), (4, 1));
        assert_eq!(
            bill.to_csv(),
            "day,user,requests,failed,seconds,rows,bytes,touches\r\n\
             2026-11-24,,1,0,1.500,3,100,7\r\n\
             2026-11-24,\"a,\"\"b\"\"\",1,0,1.500,3,100,7\r\n\
             2026-11-24,ann,2,1,2.000,3,110,7\r\n\
             2026-11-25,ann,1,0,1.500,3,100,7\r\n"
        );
        let json: serde_json::Value = serde_json::from_str(&bill.to_json().unwrap()).unwrap();
        assert_eq!(json["lines"][2]["user"], "ann");
        assert_eq!(json["lines"][2]["touches"], 7);
        assert_eq!(json["lines"][0]["user"], serde_json::Value::Null);
    }
}
