//! The shape of a text, equal for texts that differ in literals, blanks and comments only.
//!
//! A shape is 64 bits of FNV-1a over the words of a text, in which every string and every number is
//! the same one. It stands for the plan of a query, which has no number of its own: what decides a
//! plan are constants, too (decision 0032). It is the same on every machine and in every version of
//! this program, as long as [`shape_of`] is not changed. Names count as they are written: another
//! case of a keyword, another prefix, and another name of a variable make another shape.
//!
//! The texts need not be right: this is no parser, and takes anything, in linear time.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kind::Kind;

/// The hash of a text's shape, written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(u64);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let shape = u64::from_str_radix(&text, 16);
        shape.map(Self).map_err(serde::de::Error::custom)
    }
}

/// <http://www.isthe.com/chongo/tech/comp/fnv/>
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, word: &[u8]) {
        // No text has the byte behind a word.
        for byte in word.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The shape of a text.
pub fn shape_of(kind: Kind, text: &str) -> Shape {
    let is_sql = kind == Kind::Sql;
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let mut rest = text.as_bytes();
    while let Some(&first) = rest.first() {
        let length = match first {
            _ if first.is_ascii_whitespace() => {
                rest = &rest[1..];
                continue;
            }
            b'#' if !is_sql => {
                rest = &rest[line_length(rest)..];
                continue;
            }
            b'-' if is_sql && rest.starts_with(b"--") => {
                rest = &rest[line_length(rest)..];
                continue;
            }
            b'/' if is_sql && rest.starts_with(b"/*") => {
                let end = rest.windows(2).position(|it| it == b"*/");
                rest = &rest[end.map_or(rest.len(), |end| end + 2)..];
                continue;
            }
            b'\'' | b'"' if !is_sql || first == b'\'' => {
                hash.add(b"\"");
                rest = &rest[string_length(rest, is_sql)..];
                continue;
            }
            b'0'..=b'9' => {
                hash.add(b"0");
                rest = &rest[number_length(rest)..];
                continue;
            }
            b'<' if !is_sql => iri_length(rest).unwrap_or(1),
            _ => word_length(rest, is_sql).max(1),
        };
        hash.add(&rest[..length]);
        rest = &rest[length..];
    }
    Shape(hash.0)
}

fn line_length(text: &[u8]) -> usize {
    let end = text.iter().position(|&byte| byte == b'\n');
    end.unwrap_or(text.len())
}

/// A string with its quotes; to the end of the text where they are not closed.
fn string_length(text: &[u8], is_sql: bool) -> usize {
    let quote = text[0];
    let is_long = !is_sql && text.len() >= 3 && text[1] == quote && text[2] == quote;
    let width = if is_long { 3 } else { 1 };
    let mut at = width;
    while at < text.len() {
        match text[at] {
            b'\\' if !is_sql => at += 2,
            // A quote of the text.
            byte if is_sql && byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote && !is_long => return at + 1,
            byte if byte == quote && text[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => at += 1,
        }
    }
    text.len()
}

/// Digits, a point among them, an exponent.
fn number_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let is_sign = matches!(byte, b'+' | b'-') && at > 0 && matches!(text[at - 1], b'e' | b'E');
        let is_point = byte == b'.' && text.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !byte.is_ascii_alphanumeric() && !is_sign && !is_point {
            break;
        }
        at += 1;
    }
    at
}

/// `<` and what follows up to `>`, if that may be an IRI (SPARQL 1.1, 19.8, `IRIREF`).
fn iri_length(text: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| {
        matches!(
            byte,
            b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\' | 0..=b' '
        )
    };
    let end = 1 + text.get(1..)?.iter().position(is_end)?;
    (text[end] == b'>').then_some(end + 1)
}

/// Names, keywords, variables; 0 for signs.
fn word_length(text: &[u8], is_sql: bool) -> usize {
    let is_of_word = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b':' | b'?' | b'$' | b'@' | b'%')
            || byte >= 0x80
    };
    let mut is_name = false;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        is_name |= byte == b':' && !is_sql;
        // Within prefixed names, as in `ex:item-17`.
        let is_inner = matches!(byte, b'-' | b'.') && is_name;
        let goes_on = text.get(at + 1).is_some_and(|&next| is_of_word(next));
        if !(is_of_word(byte) || is_inner && goes_on) {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparql(text: &str) -> Shape {
        shape_of(Kind::Select, text)
    }

    fn sql(text: &str) -> Shape {
        shape_of(Kind::Sql, text)
    }

    #[test]
    fn literals_blanks_and_comments_do_not_count() {
        let shape = sparql("SELECT * { ?s ex:p-1 \"a\"@en ; <http://e/q> 12 } LIMIT 5");
        for other in [
            "SELECT*{?s ex:p-1 'b'@en;<http://e/q> 1.5e-3}LIMIT 10",
            "SELECT * # all of them\n{ ?s ex:p-1 '''it's \\''' a'''@en ; <http://e/q> 0 } LIMIT 5\n",
        ] {
            assert_eq!(sparql(other), shape, "{other}");
        }
        assert_eq!(
            sql("select a from t where b = 'it''s' -- x\n and c<3"),
            sql("select a from t where b = '' /* y */ and c < 17"),
        );
    }

    #[test]
    fn names_count() {
        let shape = sparql("SELECT * { ?s ex:p-1 <http://e/q> FILTER(?a < 3 && ?b > 4) }");
        for other in [
            "SELECT * { ?t ex:p-1 <http://e/q> FILTER(?a < 3 && ?b > 4) }",
            "SELECT * { ?s ex:p-2 <http://e/q> FILTER(?a < 3 && ?b > 4) }",
            "SELECT * { ?s ex:p-1 <http://e/r> FILTER(?a < 3 && ?b > 4) }",
            "SELECT * { ?s ex:p-1 <http://e/q> FILTER(?a < 3 && ?c > 4) }",
        ] {
            assert_ne!(sparql(other), shape, "{other}");
        }
        assert_ne!(sql("select \"a\""), sql("select \"b\""));
    }

    #[test]
    fn anything_is_taken_and_shapes_stay_what_they_are() {
        for text in [
            "", "\"", "'''", "<", "\\", "\"\\", "é'", "1e", "1.", "a.", "/*", "--", "\u{0}",
        ] {
            _ = (sparql(text), sql(text));
        }
        assert_eq!(sparql("ASK {}").to_string(), sparql(" ASK{ } ").to_string());
        // It is kept in logs: another value is another format.
        assert_eq!(
            sparql("SELECT ?s { ?s ?p 1 }").to_string(),
            "47b413c2a78145bb"
        );
    }
}
