//! Warnings about valid but surely unintended parts of a query, such as invalid constant patterns
//! of `REGEX`.
//!
//! SPARQL makes them errors of an expression, so a filter with them finds nothing, a template adds
//! nothing, and nobody knows why. They are searched in the text, which has their places: a plan has
//! no places, and a cached plan (decision 0012) comes without its text being parsed. Texts without
//! these functions cost a search for brackets; texts with them, another pass of the lexer.

use std::ops::Range;

use oxiri::IriRef;

use orrery_expressions::{RegexFault, pattern_fault, replacement_fault};
use orrery_syntax::{BuiltIn, Lexer, Position, Token, TokenKind, string_of};

use crate::parse::without_mark;

/// Warnings of one text.
const WARNINGS_MAX: usize = 8;
/// Brackets inside each other beyond which the rest is not looked at.
const NESTING_MAX: usize = 256;
/// Characters of a pattern that a warning repeats.
const SHOWN_CHARACTERS_MAX: usize = 40;
/// The functions that take patterns, and those that make IRIs.
const NAMES: [&str; 4] = ["REGEX", "REPLACE", "IRI", "URI"];

/// Something that is surely not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is, and what it does.
    pub message: String,
    /// The bytes of the text, without a byte-order mark.
    pub span: Range<usize>,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (line, column) = (self.line, self.column);
        write!(f, "line {line}, column {column}: {}", self.message)
    }
}

/// The warnings about a parsed text.
pub fn warnings(text: &str) -> Vec<Warning> {
    let text = without_mark(text);
    match calls_functions(text.as_bytes()) {
        true => Scan::new(text).run(),
        false => Vec::new(),
    }
}

/// Whether one of the functions may stand before a bracket.
fn calls_functions(text: &[u8]) -> bool {
    memchr::memchr_iter(b'(', text).any(|bracket| {
        let before = text[..bracket].trim_ascii_end();
        NAMES.iter().any(|name| {
            let start = before.len().checked_sub(name.len());
            start.is_some_and(|start| before[start..].eq_ignore_ascii_case(name.as_bytes()))
        })
    })
}

/// One argument: its first token; if there is more of it, it is no constant.
#[derive(Clone, Copy, Debug, Default)]
struct Argument {
    first: Option<Token>,
    is_more: bool,
}

/// An open bracket.
#[derive(Debug, Default)]
struct Bracket {
    /// The function whose arguments it holds, if it is one of ours.
    function: Option<BuiltIn>,
    arguments: Vec<Argument>,
    last: Argument,
}

struct Scan<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    open: Vec<Bracket>,
    found: Vec<Warning>,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            lexer: Lexer::new(text),
            open: Vec::new(),
            found: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Warning> {
        let mut before = None;
        loop {
            let token = self.lexer.next_token();
            let is_enough = self.found.len() >= WARNINGS_MAX || self.open.len() > NESTING_MAX;
            match token.kind {
                TokenKind::End => return self.found,
                _ if is_enough => return self.found,
                TokenKind::LeftParen => self.open.push(Bracket {
                    function: before.filter(|it: &BuiltIn| NAMES.contains(&it.name())),
                    ..Bracket::default()
                }),
                TokenKind::RightParen => {
                    if let Some(bracket) = self.open.pop() {
                        self.close(bracket);
                    }
                    self.part(token);
                }
                TokenKind::Comma => {
                    if let Some(bracket) = self.open.last_mut()
                        && bracket.function.is_some()
                    {
                        let argument = std::mem::take(&mut bracket.last);
                        bracket.arguments.push(argument);
                    }
                }
                _ => self.part(token),
            }
            before = match token.kind {
                TokenKind::BuiltIn(function) => Some(function),
                _ => None,
            };
        }
    }

    /// A token is part of the argument that is being read.
    fn part(&mut self, token: Token) {
        if let Some(bracket) = self.open.last_mut() {
            match bracket.last.first {
                None => bracket.last.first = Some(token),
                Some(_) => bracket.last.is_more = true,
            }
        }
    }

    /// Looks at the arguments of a function.
    fn close(&mut self, mut bracket: Bracket) {
        let Some(function) = bracket.function else {
            return;
        };
        bracket.arguments.push(bracket.last);
        let constant = |number: usize| {
            let argument = bracket.arguments.get(number)?;
            let token = argument.first.filter(|it| it.kind == TokenKind::String)?;
            let value = string_of(token.text(self.text))?;
            (!argument.is_more).then_some((token, value))
        };
        if matches!(function.name(), "IRI" | "URI") {
            if let Some((token, value)) = constant(0)
                && let Err(error) = IriRef::parse(value.as_str())
            {
                let warning = self.no_iri(function, token, &value, &error.to_string());
                self.found.push(warning);
            }
            return;
        }
        let is_replace = function.name() == "REPLACE";
        let place_of_flags = if is_replace { 3 } else { 2 };
        let flags = constant(place_of_flags);
        if bracket.arguments.len() > place_of_flags && flags.is_none() {
            return;
        }
        let pattern = constant(1);
        let replacement = constant(2).filter(|_| is_replace);
        let value_of = |it: &Option<(Token, String)>| it.as_ref().map(|(_, value)| value.clone());
        let flags_value = value_of(&flags).unwrap_or_default();
        // The flags may be wrong whatever the pattern is.
        let pattern_value = value_of(&pattern).unwrap_or_default();
        let faults = [
            pattern_fault(&pattern_value, &flags_value),
            value_of(&replacement).and_then(|value| replacement_fault(&value, &flags_value)),
        ];
        for fault in faults.into_iter().flatten() {
            let at = match fault {
                RegexFault::Flag(_) => &flags,
                RegexFault::Pattern => &pattern,
                RegexFault::Replacement => &replacement,
            };
            if let Some((token, value)) = at {
                let warning = self.warning(function, fault, *token, value);
                self.found.push(warning);
            }
        }
    }

    fn warning(&self, function: BuiltIn, fault: RegexFault, token: Token, value: &str) -> Warning {
        let (name, shown) = (function.name(), shown(value));
        let what = match fault {
            RegexFault::Flag(flag) => {
                let flag = flag.escape_default();
                format!("{name} has no flag `{flag}`, only s, m, i, x and q")
            }
            RegexFault::Pattern => format!(
                "the pattern `{shown}` of {name} is no regular expression (with the flag q it is taken as plain text)"
            ),
            RegexFault::Replacement => format!(
                "the replacement `{shown}` of {name} is none (groups are $1, the signs themselves \\$ and \\\\)"
            ),
        };
        self.told(
            token,
            format!("{what}; each call is an error, and a FILTER with it finds nothing"),
        )
    }

    fn no_iri(&self, function: BuiltIn, token: Token, value: &str, why: &str) -> Warning {
        let (name, shown) = (function.name(), shown(value));
        self.told(
            token,
            format!(
                "`{shown}` in {name} is no IRI ({why}); each call is an error: BIND leaves its variable without a value, and a template with \
                 it adds nothing; write %23 for a second `#`, %20 for a space"
            ),
        )
    }

    fn told(&self, token: Token, message: String) -> Warning {
        let span = token.start as usize..token.end as usize;
        let Position { line, column } = Position::of(self.text, span.start);
        Warning {
            message,
            span,
            line,
            column,
        }
    }
}

fn shown(value: &str) -> String {
    let shown = value.chars().filter(|it| !it.is_control());
    shown.take(SHOWN_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(usize, String)> {
        let all = warnings(text).into_iter();
        all.map(|it| (it.column, it.message)).collect()
    }

    #[test]
    fn wrong_patterns_and_flags_are_told_with_their_place() {
        for (text, column, words) in [
            (
                "ASK { ?s ?p ?o FILTER regex(?o, \"(\") }",
                33,
                "`(` of REGEX",
            ),
            (
                "ASK { ?s ?p ?o FILTER(REGEX (str(?o), 'a', 'ig')) }",
                44,
                "no flag `g`",
            ),
            (
                "ASK { ?s ?p ?o FILTER regex(?o, ?p, 'z') }",
                37,
                "no flag `z`",
            ),
            (
                "ASK { BIND(Replace(concat('a', 'b'), '[', 'c') AS ?x) }",
                38,
                "`[` of REPLACE",
            ),
            (
                "ASK { BIND(REPLACE('a', 'b', '$x') AS ?x) }",
                30,
                "replacement `$x`",
            ),
            (
                "ASK { FILTER(regex(regex('a', '('), 'b')) }",
                31,
                "`(` of REGEX",
            ),
            (
                "\u{feff}ASK { FILTER regex('a', \"\"\"(\"\"\") }",
                25,
                "`(` of REGEX",
            ),
        ] {
            let told = told(text);
            assert_eq!(told.len(), 1, "{text}: {told:?}");
            assert_eq!(told[0].0, column, "{text}");
            assert!(told[0].1.contains(words), "{text}: {}", told[0].1);
        }
    }

    #[test]
    fn a_constant_that_is_no_iri_is_told_where_iri_takes_it() {
        for (text, column) in [
            (
                "INSERT { <a:s> <a:p> ?x } WHERE { BIND(IRI(\"http://e/a#b#c\") AS ?x) }",
                44,
            ),
            ("SELECT (uri('http://e/a b') AS ?x) {}", 13),
            ("ASK { FILTER(?x = Iri(\"http://e/100%\")) }", 23),
        ] {
            let told = told(text);
            assert_eq!(told.len(), 1, "{text}: {told:?}");
            assert_eq!(told[0].0, column, "{text}");
            assert!(told[0].1.contains("is no IRI"), "{text}: {}", told[0].1);
        }
        for text in [
            "ASK { BIND(IRI('http://e/a#b') AS ?x) }",
            "ASK { BIND(IRI('relative/a') AS ?x) }",
            "ASK { BIND(IRI(CONCAT('http://e/a b', ?y)) AS ?x) }",
            "ASK { BIND(ISIRI('a b') AS ?x) }",
        ] {
            assert_eq!(super::tests::told(text), [], "{text}");
        }
    }

    #[test]
    fn what_is_right_or_not_known_is_not_told() {
        for text in [
            "ASK { ?s ?p ?o FILTER regex(?o, \"(\", \"q\") }",
            "ASK { ?s ?p ?o FILTER regex(?o, \"(\", ?flags) }",
            "ASK { ?s ?p ?o FILTER regex(?o, concat(\"(\", \")\")) }",
            "ASK { ?s ?p 'regex(1, \"(\")' }",
            "ASK { ?s ?p ?o FILTER regex(?o, \"^a\", \"i\") FILTER contains(?o, \"(\") }",
        ] {
            assert_eq!(told(text), [], "{text}");
        }
        let many = "FILTER regex('a', '(') ".repeat(100);
        assert_eq!(told(&format!("ASK {{ {many} }}")).len(), WARNINGS_MAX);
        let deep = "(".repeat(100_000);
        assert_eq!(told(&format!("ASK {{ FILTER regex({deep}")), []);
    }
}
