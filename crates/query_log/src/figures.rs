//! The figures of a report, as JSON and for its page.

use serde::Serialize;

use crate::counts::{DistinctCount, DurationFigures, TopNames};
use crate::kind::{Kind, Outcome};
use crate::shape::Shape;
use crate::time::{Day, Time};

/// The report about a server's requests in a period.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The first day with a query; none where there is no query.
    pub first_day: Option<Day>,
    /// The last day with a query.
    pub last_day: Option<Day>,
    /// Queries, updates and requests of SQL.
    pub queries: u64,
    /// Those that did not end well.
    pub failed: u64,
    /// Rows and triples of all answers.
    pub rows: u64,
    /// Bytes of all answers.
    pub bytes: u64,
    /// How many addresses asked.
    pub clients: DistinctCount,
    /// How many different texts there were.
    pub texts: DistinctCount,
    /// How many shapes these have.
    pub shapes: DistinctCount,
    /// How long they took.
    pub durations: DurationFigures,
    /// Each day with queries.
    pub days: Vec<DayFigures>,
    /// How many of each kind ended how.
    pub kinds: Vec<KindFigures>,
    /// What clients call themselves.
    pub agents: TopNames,
    /// Queries without such a name.
    pub without_agent: u64,
    /// Users, where they are known.
    pub users: TopNames,
    /// Predicates, by the number of queries and updates that name them.
    pub predicates: TopNames,
    /// Classes, by the number of queries and updates that name them.
    pub classes: TopNames,
    /// What of SPARQL could be read for that.
    pub reading: ReadingFigures,
    /// The slowest of each shape.
    pub slowest: Vec<SlowQuery>,
    /// What the log itself is like.
    pub log: LogFigures,
}

/// The figures of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DayFigures {
    /// Which one, in UTC.
    pub day: Day,
    /// Queries, updates and requests of SQL that came on it.
    pub queries: u64,
    /// Those of them that did not end well.
    pub failed: u64,
    /// Rows and triples of their answers.
    pub rows: u64,
    /// Bytes of their answers.
    pub bytes: u64,
}

/// The number of requests of a kind, by outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindFigures {
    /// What was asked.
    pub kind: Kind,
    /// How it ended.
    pub outcome: Outcome,
    /// How many.
    pub queries: u64,
}

/// The parsed share of SPARQL's queries and updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadingFigures {
    /// Those that could.
    pub parsed: u64,
    /// Those that are wrong, or have prefixes that are the database's own.
    pub not_parsed: u64,
    /// Those of which the log has the beginning only.
    pub cut: u64,
}

/// A query that was slow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowQuery {
    /// How long it took.
    pub ms: f64,
    /// When it came.
    pub time: Time,
    /// What it is.
    pub kind: Kind,
    /// How it ended.
    pub outcome: Outcome,
    /// Its shape, of which it was the slowest.
    pub shape: Shape,
    /// The beginning of its text.
    pub text: String,
}

/// The figures of the log itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogFigures {
    /// Files that were read.
    pub files: u64,
    /// Lines that are none, such as one that a crash has cut.
    pub damaged_lines: u64,
    /// Entries that the server says are lost. It does not say when, so those of all files that were
    /// read count.
    pub dropped: u64,
}
