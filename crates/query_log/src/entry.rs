//! One entry of the query log: text, asker and outcome.
//!
//! ```text
//! {"time":"2026-11-24T04:37:25.120Z","kind":"select","text":"SELECT ...","shape":"9c1f03aa5be07d12", ... ,"commit":17}
//! {"dropped":3}
//! ```
//!
//! A line is an [`Entry`], or a number of entries that were lost at this place. Fields that are not
//! known are left out; readers pass over those that they do not know. `docs/operations.md` tells
//! people what each field is.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::kind::{Kind, Outcome};
use crate::shape::Shape;
use crate::time::Time;

/// The maximum length of a logged text.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// The maximum length of a logged client name.
pub const AGENT_BYTES_MAX: usize = 256;
/// No line is longer: a text and a plan, each of whose bytes may take six in JSON, and the rest.
pub const LINE_BYTES_MAX: usize = 13 * TEXT_BYTES_MAX;

/// A query, an update, or statements of SQL, after its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When the request came.
    pub time: Time,
    /// What was asked.
    pub kind: Kind,
    /// The text, or its beginning; a URL's name and password are replaced by `***`.
    pub text: String,
    /// How long the text was; only where `text` is its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<u64>,
    /// The same for texts that differ in literals, blanks and comments only.
    pub shape: Shape,
    /// Who asked, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The other end of the connection, which may be a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// What the client calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The status of the answer; none where the client left before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// From the request's head to the answer's last byte, or to its end without one.
    pub ms: f64,
    /// From the request's head to the first bytes of the answer's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// Rows or triples of the answer.
    pub rows: u64,
    /// Bytes of the answer's body, as they were sent.
    pub bytes: u64,
    /// The commit of the snapshot that was read, or that the change made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
    /// What it cost, in touches of rows; of queries of SPARQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touches: Option<u64>,
    /// The plan; only in the log of slow queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// One entry.
    Entry(Box<Entry>),
    /// So many entries were lost here.
    Dropped(u64),
}

#[derive(Serialize, Deserialize)]
struct Dropped {
    dropped: u64,
}

/// How a line of lost entries begins, and no other.
const DROPPED: &[u8] = b"{\"dropped\":";

impl Line {
    /// Reads a line, with or without its end.
    ///
    /// # Errors
    /// When it is none, such as one that was cut by a crash.
    pub fn parse(line: &[u8]) -> serde_json::Result<Self> {
        match line.starts_with(DROPPED) {
            true => serde_json::from_slice(line).map(|Dropped { dropped }| Self::Dropped(dropped)),
            false => serde_json::from_slice(line).map(|entry| Self::Entry(Box::new(entry))),
        }
    }

    /// Appends a line with the number of lost entries.
    pub fn write_dropped(dropped: u64, lines: &mut Vec<u8>) {
        lines.extend_from_slice(format!("{{\"dropped\":{dropped}}}\n").as_bytes());
    }
}

impl Entry {
    /// Appends its line.
    ///
    /// # Errors
    /// When the entry cannot be serialized, which no valid entry causes; `lines` is unchanged.
    pub fn write(&self, lines: &mut Vec<u8>) -> serde_json::Result<()> {
        let before = lines.len();
        let written = serde_json::to_writer(&mut *lines, self);
        match written {
            Ok(()) => lines.push(b'\n'),
            Err(_) => lines.truncate(before),
        }
        written
    }
}

/// The beginning of a text, of at most so many bytes.
pub fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::shape_of;

    fn entry() -> Entry {
        Entry {
            time: Time::from_ms(1_795_258_803_250),
            kind: Kind::Select,
            text: "SELECT * { ?s ?p \"a\nb\" }".to_owned(),
            text_bytes: None,
            shape: shape_of(Kind::Select, ""),
            user: None,
            client: Some(IpAddr::from([127, 0, 0, 1])),
            agent: Some("curl/8.0".to_owned()),
            status: Some(200),
            outcome: Outcome::Ok,
            ms: 1.25,
            first_byte_ms: Some(1.0),
            rows: 3,
            bytes: 100,
            commit: Some(17),
            touches: Some(12),
            plan: None,
        }
    }

    #[test]
    fn an_entry_is_one_line_that_reads_back() {
        let mut lines = Vec::new();
        entry().write(&mut lines).unwrap();
        assert_eq!(
            String::from_utf8(lines.clone()).unwrap(),
            "{\"time\":\"2026-11-21T11:00:03.250Z\",\"kind\":\"select\",\"text\":\"SELECT * { ?s ?p \\\"a\\nb\\\" }\",\
             \"shape\":\"cbf29ce484222325\",\"client\":\"127.0.0.1\",\"agent\":\"curl/8.0\",\"status\":200,\"outcome\":\"ok\",\"ms\":1.25,\
             \"first_byte_ms\":1.0,\"rows\":3,\"bytes\":100,\"commit\":17,\"touches\":12}\n"
        );
        assert_eq!(Line::parse(&lines).unwrap(), Line::Entry(Box::new(entry())));
        assert!(Line::parse(&lines[..lines.len() / 2]).is_err());
    }

    #[test]
    fn what_was_lost_reads_back() {
        let mut lines = Vec::new();
        Line::write_dropped(12, &mut lines);
        assert_eq!(lines, b"{\"dropped\":12}\n");
        assert_eq!(Line::parse(&lines).unwrap(), Line::Dropped(12));
    }

    #[test]
    fn the_longest_line_is_within_its_bound() {
        let mut entry = entry();
        entry.text = "\u{1}".repeat(TEXT_BYTES_MAX);
        entry.plan = Some(entry.text.clone());
        entry.agent = Some("\u{1}".repeat(AGENT_BYTES_MAX));
        let mut lines = Vec::new();
        entry.write(&mut lines).unwrap();
        assert!(lines.len() <= LINE_BYTES_MAX, "{}", lines.len());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("aä", 2), "a");
        assert_eq!(cut("aä", 3), "aä");
        assert_eq!(cut("", 3), "");
    }
}
