//! Searches as users of other stores write them: a pattern whose predicate is no property of the data.
//!
//! ```text
//! ?l bif:contains "'red wine' AND cellar"        Virtuoso
//! ?l ql:contains-word "red win*"                 QLever
//! ```
//!
//! Both say of a literal that it matches. What they say it in is near enough to our queries: Virtuoso quotes phrases with apostrophes too, and its operators may be in
//! small letters; QLever's words are all wanted, and `*` stands at the end of a beginning.

use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::error::{QueryError, Result};

const CONTAINS: &str = "bif:contains";
const CONTAINS_WORD: &str = "http://qlever.cs.uni-freiburg.de/builtin-functions/contains-word";

/// A search for the literals of a variable.
pub(in crate::algebra::normalise) struct ForeignSearch<'p> {
    pub(in crate::algebra::normalise) literal: &'p Variable,
    /// In our notation.
    pub(in crate::algebra::normalise) query: String,
    /// As it was called.
    pub(in crate::algebra::normalise) name: &'static str,
}

impl<'p> ForeignSearch<'p> {
    /// The search that a pattern means, if it means one.
    pub(in crate::algebra::normalise) fn of(pattern: &'p TriplePattern) -> Result<Option<Self>> {
        let NamedNodePattern::NamedNode(predicate) = &pattern.predicate else {
            return Ok(None);
        };
        let name = match predicate.as_str() {
            CONTAINS => "bif:contains",
            CONTAINS_WORD => "ql:contains-word",
            _ => return Ok(None),
        };
        let (TermPattern::Variable(literal), TermPattern::Literal(query)) =
            (&pattern.subject, &pattern.object)
        else {
            return Err(QueryError::unsupported(format!(
                "{name} between other things than a variable and a string, as in ?label {name} \"red wine\""
            )));
        };
        let query = match name {
            "bif:contains" => ours(query.value()),
            _ => query.value().to_owned(),
        };
        Ok(Some(Self {
            literal,
            query,
            name,
        }))
    }
}

/// A text expression of Virtuoso in our notation.
fn ours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let mut quote = None;
    let end_word = |word: &mut String, out: &mut String| {
        let capital = word.to_ascii_uppercase();
        out.push_str(match capital.as_str() {
            "AND" | "OR" | "NOT" => &capital,
            _ => word,
        });
        word.clear();
    };
    for char in text.chars() {
        match (quote, char) {
            (Some(open), char) if char == open => {
                quote = None;
                let is_beginning = word.ends_with('*') && !word.contains(char::is_whitespace);
                match is_beginning {
                    true => out.push_str(&word),
                    false => out.extend(["\"", &word, "\""]),
                }
                word.clear();
            }
            // Within apostrophes a quotation mark would end the phrase for us.
            (Some(_), '"') => word.push(' '),
            (Some(_), char) => word.push(char),
            (None, '\'' | '"') if word.is_empty() => quote = Some(char),
            (None, char) if char.is_whitespace() || matches!(char, '(' | ')') => {
                end_word(&mut word, &mut out);
                out.push(char);
            }
            (None, char) => word.push(char),
        }
    }
    match quote {
        None => end_word(&mut word, &mut out),
        // Not closed: told as such.
        Some(_) => out.extend(["\"", &word]),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_virtuoso_become_ours() {
        for (text, expected) in [
            ("'red wine'", "\"red wine\""),
            (
                "red and \"old cellar\" or 'win*'",
                "red AND \"old cellar\" OR win*",
            ),
            ("(red or white) and not wine", "(red OR white) AND NOT wine"),
            ("don't and", "don't AND"),
        ] {
            assert_eq!(ours(text), expected);
        }
    }
}
