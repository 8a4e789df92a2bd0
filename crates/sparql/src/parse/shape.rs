//! The shape of a query's text: the text with its constants taken out.
//!
//! ```text
//! SELECT ?o { <http://a/s1> ?p ?o FILTER(?o > 20) }      a query
//! SELECT ?o { <^I> ?p ?o FILTER(?o > ^N) }               its shape (^ is U+0001)
//! [ http://a/s1, 20 ]                                    its constants
//! ```
//!
//! Queries that differ in constants only have the same shape, and the same algebra but for these. What is taken out
//! is what cannot change how the rest is read: absolute IRIs of plain characters (not those of prologues and datatypes,
//! nor names of functions), strings in single quotation marks of either kind without escapes, whole numbers without
//! a sign (not those of `LIMIT` and `OFFSET`). Everything else, blanks and comments too, stays where it is.
//!
//! Cost: one pass over the text.

use super::skip::{skip_comment, skip_iri, skip_string};
use super::tokens::is_name;

/// Stands before the letter that tells the kind of a constant that was taken out.
const MARK: char = '\u{1}';
/// More constants than this and the text is not worth it.
const CONSTANTS_MAX: usize = 256;

/// A constant that was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constant<'t> {
    /// An absolute IRI, without its brackets.
    Iri(&'t str),
    /// The text of a literal, without its quotation marks.
    Text(&'t str),
    /// The digits of an integer.
    Number(&'t str),
}

impl<'t> Constant<'t> {
    /// Its part of the query's text.
    pub(super) fn text(self) -> &'t str {
        match self {
            Self::Iri(text) | Self::Text(text) | Self::Number(text) => text,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Iri(_) => 'I',
            Self::Text(_) => 'T',
            Self::Number(_) => 'N',
        }
    }
}

/// A text taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shaped<'t> {
    /// What remains, with a mark in the place of each constant.
    pub(super) shape: String,
    /// The constants, in the order of the text.
    pub(super) constants: Vec<Constant<'t>>,
}

/// Takes a text apart; `None` where that is not possible, or not worth it.
pub(super) fn shaped(text: &str) -> Option<Shaped<'_>> {
    let bytes = text.as_bytes();
    if bytes.contains(&(MARK as u8)) {
        return None;
    }
    let mut shape = String::with_capacity(text.len());
    let mut constants = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    // Where the last word or sign begins and ends.
    let mut last = (0, 0);
    while at < bytes.len() {
        let start = at;
        let constant = match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'#' => {
                at = skip_comment(bytes, at) + 1;
                continue;
            }
            b'"' | b'\'' => {
                at = skip_string(bytes, at) + 1;
                plain_text(text, start, at).map(Constant::Text)
            }
            b'<' => {
                at = skip_iri(bytes, at) + 1;
                let is_asked = is_term(&text[last.0..last.1]) && !is_function(bytes, at);
                plain_iri(text, start, at)
                    .filter(|_| is_asked)
                    .map(Constant::Iri)
            }
            b'\\' => {
                at += 2;
                None
            }
            byte if is_word(byte) => {
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| is_word(**byte))
                    .count();
                let word = text.get(start..at)?;
                let is_bound = is_bound_of_rows(&text[last.0..last.1]);
                (word.bytes().all(|byte| byte.is_ascii_digit()) && !is_bound)
                    .then_some(Constant::Number(word))
            }
            _ => {
                at += 1;
                None
            }
        };
        at = at.min(bytes.len());
        last = (start, at);
        let Some(constant) = constant else { continue };
        let inner = match constant {
            Constant::Iri(_) | Constant::Text(_) => (start + 1, at - 1),
            Constant::Number(_) => (start, at),
        };
        shape.push_str(text.get(copied..inner.0)?);
        shape.push(MARK);
        shape.push(constant.letter());
        copied = inner.1;
        constants.push(constant);
    }
    if constants.is_empty() || constants.len() > CONSTANTS_MAX {
        return None;
    }
    shape.push_str(text.get(copied..)?);
    Some(Shaped { shape, constants })
}

/// Bytes of words in the widest sense: names, variables, numbers of all kinds, language tags, prefixed names.
fn is_word(byte: u8) -> bool {
    is_name(byte) || matches!(byte, b'?' | b'$' | b':' | b'.' | b'-' | b'%' | b'@' | b'_')
}

/// Whether an IRI after this is a term: not what a prologue declares, and no datatype.
fn is_term(last: &str) -> bool {
    !(last.ends_with(':') || last == "^" || last.eq_ignore_ascii_case("BASE"))
}

fn is_bound_of_rows(last: &str) -> bool {
    last.eq_ignore_ascii_case("LIMIT") || last.eq_ignore_ascii_case("OFFSET")
}

/// Whether a bracket follows: the IRI is the name of a function, perhaps.
fn is_function(bytes: &[u8], at: usize) -> bool {
    let mut rest = bytes[at.min(bytes.len())..].iter();
    // A comment in between is taken for a bracket, too.
    rest.find(|byte| !byte.is_ascii_whitespace())
        .is_some_and(|byte| matches!(byte, b'(' | b'#'))
}

/// An absolute IRI that resolving and checking leave as it is.
fn plain_iri(text: &str, start: usize, end: usize) -> Option<&str> {
    let iri = text.get(start + 1..end.checked_sub(1)?)?;
    if text.as_bytes().get(end - 1) != Some(&b'>') {
        return None;
    }
    let (scheme, rest) = iri.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.' | b'#');
    // One fragment, and no segments of dots, which are resolved.
    let is_whole = rest.starts_with(|first: char| first.is_ascii_alphanumeric())
        && rest.bytes().all(is_plain)
        && !rest.contains("/.")
        && rest.bytes().filter(|byte| *byte == b'#').count() <= 1;
    (is_scheme && is_whole).then_some(iri)
}

/// The text of a string that stands for itself.
fn plain_text(text: &str, start: usize, end: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let inner = text.get(start + 1..end.checked_sub(1)?)?;
    let is_closed = end > start + 1 && bytes.get(end - 1) == Some(&bytes[start]);
    // An empty string may be the beginning of a long one.
    let is_plain = !inner.is_empty()
        && inner
            .bytes()
            .all(|byte| !matches!(byte, b'"' | b'\'' | b'\\' | b'\n' | b'\r'));
    (is_closed && is_plain).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(text: &str) -> (String, Vec<String>) {
        let shaped = shaped(text).unwrap();
        let constants = shaped.constants.iter();
        let constants = constants.map(|constant| constant.text().to_owned());
        (shaped.shape.replace(MARK, "^"), constants.collect())
    }

    #[test]
    fn constants_are_taken_out() {
        assert_eq!(
            apart("PREFIX e: <http://e/> SELECT ?o { <http://a/s1> e:p ?o , 'x'@en FILTER(?o > 20 && ?o < \"2\"^^<http://e/t>) } LIMIT 5"),
            (
                "PREFIX e: <http://e/> SELECT ?o { <^I> e:p ?o , '^T'@en FILTER(?o > ^N && ?o < \"^T\"^^<http://e/t>) } LIMIT 5".to_owned(),
                vec!["http://a/s1".to_owned(), "x".to_owned(), "20".to_owned(), "2".to_owned()],
            )
        );
    }

    #[test]
    fn what_may_change_how_the_rest_is_read_stays() {
        for text in [
            "BASE <http://e/> SELECT * { ?s ?p ?o } OFFSET 10 LIMIT 20",
            "SELECT * { ?s <p> <urn:x> , <http://e/a/../b> , <http://e/a b> , <http://e/%41> }",
            "SELECT * { ?s ?p '' , 'a\\n' , '''b''' , \"it's\" , 1.5 , 1e3 , ?x1 , e:4 , -4 }",
            "SELECT (<http://e/f>(?x) AS ?y) (<http://e/f> # no\n (?x) AS ?z) {}",
            "SELECT * { ?s ?p ?o FILTER(?s<?o&&?o>?p) }",
            "SELECT * { ?s ?p 'open",
            "SELECT * { ?s ?p <http://e/open",
            "# 5 'x' <http://e/s>\nASK {}",
        ] {
            assert_eq!(shaped(text), None, "{text}");
        }
    }
}
