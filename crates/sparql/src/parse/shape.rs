//! The shape of a query: its text without constants.
//!
//! ```text
//! SELECT ?o { <http://a/s1> ?p ?o FILTER(?o > 20) }      a query
//! SELECT ?o { <^I> ?p ?o FILTER(?o > ^N) }               its shape (^ is U+0001)
//! [ http://a/s1, 20 ]                                    its constants
//! ```
//!
//! Queries that differ in constants only have the same shape, and the same algebra but for these.
//! What is taken out is what cannot change how the rest is read: absolute IRIs of plain characters
//! (not those of prologues and datatypes, nor names of functions), strings in single quotation
//! marks of either kind without escapes, whole numbers without a sign (not those of `LIMIT`,
//! `OFFSET` and the `LENGTH` of paths). Everything else, blanks and comments too, stays where it
//! is.
//!
//! Cost: one pass over the text.

use orrery_syntax::{Keyword, Lexer, Token, TokenKind, is_plain_iri};

/// Stands before the letter that tells the kind of a constant that was taken out.
const MARK: char = '\u{1}';
/// More constants than this and the text is not worth it.
const CONSTANTS_MAX: usize = 256;

/// A constant that was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant<'t> {
    /// An absolute IRI, without its brackets.
    Iri(&'t str),
    /// The text of a literal, without its quotation marks.
    Text(&'t str),
    /// The digits of an integer.
    Number(&'t str),
}

impl<'t> Constant<'t> {
    /// Its part of the query's text.
    pub(crate) fn text(self) -> &'t str {
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
    if memchr::memchr(MARK as u8, text.as_bytes()).is_some() {
        return None;
    }
    let mut shape = String::with_capacity(text.len());
    let mut constants = Vec::new();
    let mut copied = 0;
    let mut lexer = Lexer::new(text);
    let mut last = lexer.next_token();
    let mut token = last;
    // An IRI that was taken out is put back where a bracket follows: it is the name of a function,
    // perhaps.
    let mut last_iri: Option<(usize, usize)> = None;
    while token.kind != TokenKind::End {
        let constant = match token.kind {
            TokenKind::String => plain_text(token.text(text)).map(Constant::Text),
            TokenKind::Iri if is_term(last, text) => plain_iri(token.text(text)).map(Constant::Iri),
            TokenKind::Integer if is_term_number(last, token, text) => {
                Some(Constant::Number(token.text(text)))
            }
            TokenKind::LeftParen => {
                if let Some((length, place)) = last_iri {
                    shape.truncate(length);
                    copied = place;
                    constants.pop();
                }
                None
            }
            _ => None,
        };
        last_iri = None;
        if let Some(constant) = constant {
            let marks = usize::from(!matches!(constant, Constant::Number(_)));
            if matches!(constant, Constant::Iri(_)) {
                last_iri = Some((shape.len(), copied));
            }
            shape.push_str(text.get(copied..token.start as usize + marks)?);
            shape.push(MARK);
            shape.push(constant.letter());
            copied = token.end as usize - marks;
            constants.push(constant);
        }
        last = token;
        token = lexer.next_token();
    }
    if constants.is_empty() || constants.len() > CONSTANTS_MAX {
        return None;
    }
    shape.push_str(text.get(copied..)?);
    Some(Shaped { shape, constants })
}

/// Whether an IRI after this is a term: not what a prologue declares, and no datatype.
fn is_term(last: Token, text: &str) -> bool {
    match last.kind {
        TokenKind::PrefixedName => !last.text(text).ends_with(':'),
        TokenKind::Datatype | TokenKind::Keyword(Keyword::Base) => false,
        _ => true,
    }
}

/// Whether a number is a term by itself: no bound of rows or of paths, and no part of a number with
/// a sign.
fn is_term_number(last: Token, number: Token, text: &str) -> bool {
    match last.kind {
        TokenKind::Word => !last.text(text).eq_ignore_ascii_case("LENGTH"),
        TokenKind::Keyword(Keyword::Limit | Keyword::Offset) => false,
        TokenKind::Plus | TokenKind::Minus => last.end != number.start,
        _ => true,
    }
}

/// An absolute IRI that resolving and checking leave as it is.
fn plain_iri(token: &str) -> Option<&str> {
    let iri = token.strip_prefix('<')?.strip_suffix('>')?;
    is_plain_iri(iri).then_some(iri)
}

/// The text of a string that stands for itself.
fn plain_text(token: &str) -> Option<&str> {
    let inner = token.get(1..token.len().checked_sub(1)?)?;
    // An empty string would be found everywhere.
    let is_plain = !inner.is_empty()
        && inner
            .bytes()
            .all(|byte| !matches!(byte, b'"' | b'\'' | b'\\' | b'\n' | b'\r'));
    is_plain.then_some(inner)
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
            "PATHS START ?x END ?y VIA :p MIN LENGTH 2 MAX length 4",
            "SELECT * { ?s ?p 'open",
            "SELECT * { ?s ?p <http://e/open",
            "# 5 'x' <http://e/s>\nASK {}",
        ] {
            assert_eq!(shaped(text), None, "{text}");
        }
    }
}
