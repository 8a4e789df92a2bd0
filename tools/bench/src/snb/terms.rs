//! The IRIs and literals of the data set.
//!
//! Numbers and times are those of the official driver: 64 bits, milliseconds since 1970. Posts and
//! comments share their numbers, so that a message of a number is one of two addresses.

/// Where persons, forums and messages live.
pub const DATA: &str = "http://www.ldbc.eu/ldbc_socialnet/1.0/data/";
/// Where tags live.
pub const TAG: &str = "http://www.ldbc.eu/ldbc_socialnet/1.0/tag/";
/// The vocabulary.
pub const VOCABULARY: &str = "http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

pub use orrery_bsbm::literals::{date, date_time, days_of, milliseconds, string};

/// The address of a person.
pub fn person(number: u64) -> String {
    format!("<{DATA}pers{number:020}>")
}

/// The address of a forum.
pub fn forum(number: u64) -> String {
    format!("<{DATA}forum{number:020}>")
}

/// The address of a post.
pub fn post(number: u64) -> String {
    format!("<{DATA}post{number:020}>")
}

/// The address of a comment.
pub fn comment(number: u64) -> String {
    format!("<{DATA}comm{number:020}>")
}

/// The address of a comment, or of a post.
pub fn message(number: u64, is_comment: bool) -> String {
    match is_comment {
        true => comment(number),
        false => post(number),
    }
}

/// The number at the end of an address, with or without its brackets.
pub fn number_of(address: &str) -> Option<u64> {
    let address = address.strip_suffix('>').unwrap_or(address);
    let digits = address.len() - address.bytes().rev().take_while(u8::is_ascii_digit).count();
    address.get(digits..)?.parse().ok()
}

/// A number as messages, persons and forums have it.
pub fn long(number: u64) -> String {
    format!("\"{number}\"^^<{XSD}long>")
}

/// A length of a text.
pub fn int(number: u64) -> String {
    format!("\"{number}\"^^<{XSD}int>")
}

/// A year.
pub fn integer(number: i64) -> String {
    format!("\"{number}\"^^<{XSD}integer>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_number() {
        assert_eq!(number_of(&person(933)), Some(933));
        assert_eq!(number_of(post(17).trim_matches(['<', '>'])), Some(17));
        assert_eq!(number_of("<http://example.org/>"), None);
    }
}
