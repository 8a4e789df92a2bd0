//! Which ids a text can have that begins in a certain way.
//!
//! ```text
//! STRSTARTS(?x, "abc")   REGEX(?x, "^abc")    the dictionary's strings of every language that begin so, short strings
//! STRSTARTS(STR(?x), "http://example.org/")   IRIs and literals of every type that begin so
//! ```
//!
//! The dictionary is sorted by term key ([`orrery_term::key`]): type first, then the text. So all
//! terms of one type that begin in the same way are a range of ranks; the types (languages, datatypes) are
//! visited by skipping from one to the next. Terms that came by updates have ids without an order and always
//! remain. What comes out is a superset, the filter decides.

use orrery_operators::pattern::ObjectRanges;
use orrery_storage::Snapshot;
use orrery_term::{TermId, TermKind, inline_string, iri_key, key, string_key};
use spargebra::algebra::{Expression, Function};

use super::Result;

/// Languages, and datatypes, that are looked at one by one; what is behind them remains whole.
const TYPES_MAX: usize = 32;
/// No key has this byte where a text goes on: it is not in UTF-8.
const BEHIND_ALL_TEXT: u8 = 0xff;
/// Bytes of a string inside an id.
const SHORT_STRING_BYTES: usize = 7;

/// The beginning of a text, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextPrefix {
    text: String,
    /// Whether it is the text of any term by `STR`, or of a string.
    is_of_any_term: bool,
}

impl TextPrefix {
    /// What the filter says of the beginning of a variable's text.
    pub(super) fn of(filter: &Expression, variable: &str) -> Option<Self> {
        let Expression::FunctionCall(function, arguments) = filter else {
            return None;
        };
        let (subject, Expression::Literal(literal)) = (arguments.first()?, arguments.get(1)?)
        else {
            return None;
        };
        let text = match (function, arguments.get(2)) {
            (Function::StrStarts, None) => literal.value().to_owned(),
            (Function::Regex, None) => literal_beginning(literal.value())?,
            _ => return None,
        };
        let is_variable = |expression: &Expression| matches!(expression, Expression::Variable(name) if name.as_str() == variable);
        let is_of_any_term = match subject {
            Expression::FunctionCall(Function::Str, inner) if inner.iter().all(is_variable) => true,
            plain if is_variable(plain) => false,
            _ => return None,
        };
        (!text.is_empty()).then_some(Self {
            text,
            is_of_any_term,
        })
    }

    /// The ids of terms whose text may begin so.
    pub(super) fn passing_ids(&self, snapshot: &Snapshot) -> Result<ObjectRanges> {
        let mut intervals = whole(&[TermKind::Delta, TermKind::QueryLocal]);
        intervals.extend(self.short_strings());
        let mut beginning = Vec::new();
        string_key(&self.text, &mut beginning);
        push_ranks(
            snapshot,
            with_beginning(snapshot, &beginning)?,
            &mut intervals,
        );
        self.push_typed(snapshot, &mut intervals, b'L')?;
        if self.is_of_any_term {
            beginning.clear();
            iri_key(&self.text, &mut beginning);
            push_ranks(
                snapshot,
                with_beginning(snapshot, &beginning)?,
                &mut intervals,
            );
            self.push_typed(snapshot, &mut intervals, b'T')?;
            if may_begin_a_number_or_boolean(&self.text) {
                intervals.extend(whole(&[
                    TermKind::Boolean,
                    TermKind::Integer,
                    TermKind::Decimal,
                    TermKind::Double,
                    TermKind::DoublePlain,
                    TermKind::Date,
                    TermKind::DateTime,
                ]));
            }
        }
        Ok(ObjectRanges::new(intervals))
    }

    /// Strings inside of ids: seven bytes, the first one highest, then four bits of length.
    fn short_strings(&self) -> Option<(TermId, TermId)> {
        let low = inline_string(&self.text)?;
        let bits_behind = 4 + 8 * SHORT_STRING_BYTES.checked_sub(self.text.len())?;
        let high = TermId::from_bits(low.bits() | ((1 << bits_behind) - 1));
        Some((low, high))
    }

    /// The literals that begin so, of each language or of each datatype.
    fn push_typed(
        &self,
        snapshot: &Snapshot,
        intervals: &mut Vec<(TermId, TermId)>,
        kind: u8,
    ) -> Result<()> {
        let dictionary = snapshot.dictionary();
        let mut rank = dictionary.lower_bound(&[kind])?;
        let end = dictionary.lower_bound(&[kind + 1])?;
        let mut beginning = Vec::new();
        for _ in 0..TYPES_MAX {
            if rank >= end {
                return Ok(());
            }
            dictionary.key(rank, &mut beginning)?;
            let Some(zero) = beginning.iter().position(|&byte| byte == 0) else {
                break; // not the key of a literal: let all that follows remain
            };
            beginning.truncate(zero + 1);
            beginning.extend_from_slice(self.text.as_bytes());
            push_ranks(snapshot, with_beginning(snapshot, &beginning)?, intervals);
            beginning.truncate(zero);
            beginning.push(1);
            rank = dictionary.lower_bound(&beginning)?;
        }
        push_ranks(snapshot, (rank, end), intervals);
        Ok(())
    }
}

/// The ranks of keys that begin so.
fn with_beginning(snapshot: &Snapshot, beginning: &[u8]) -> Result<(u64, u64)> {
    let dictionary = snapshot.dictionary();
    let mut behind = beginning.to_vec();
    behind.push(BEHIND_ALL_TEXT);
    Ok((
        dictionary.lower_bound(beginning)?,
        dictionary.lower_bound(&behind)?,
    ))
}

fn push_ranks(
    snapshot: &Snapshot,
    (start, end): (u64, u64),
    intervals: &mut Vec<(TermId, TermId)>,
) {
    if start < end {
        intervals.push((snapshot.id_of_rank(start), snapshot.id_of_rank(end - 1)));
    }
}

fn whole(kinds: &[TermKind]) -> Vec<(TermId, TermId)> {
    let kinds = kinds.iter();
    kinds
        .map(|&kind| (TermId::first_of(kind), TermId::last_of(kind)))
        .collect()
}

/// Numbers and dates begin with a digit, a sign or a point, further there are `true`, `false`, `INF` and `NaN`.
fn may_begin_a_number_or_boolean(text: &str) -> bool {
    let letters = ["true", "false", "INF", "NaN"];
    !text.starts_with(char::is_alphabetic) || letters.iter().any(|word| word.starts_with(text))
}

/// The text that everything begins with that a regular expression matches, without flags.
fn literal_beginning(pattern: &str) -> Option<String> {
    let mut rest = pattern.strip_prefix('^')?.chars().peekable();
    // An alternative may begin otherwise.
    if pattern.contains('|') {
        return None;
    }
    let mut text = String::new();
    while let Some(first) = rest.next() {
        let literal = match first {
            '\\' => match rest.next() {
                Some(escaped) if r".\?*+{}()[]|^$-".contains(escaped) => escaped,
                _ => break,
            },
            '.' | '[' | ']' | '(' | ')' | '{' | '}' | '*' | '+' | '?' | '^' | '$' => break,
            plain => plain,
        };
        match rest.peek() {
            // It may come no time at all.
            Some('*' | '?' | '{') => break,
            Some('+') => {
                text.push(literal);
                break;
            }
            _ => text.push(literal),
        }
    }
    Some(text)
}

/// Where the keys of literals of one kind stand.
const _: () = assert!(key::FIRST_LITERAL_KEY[0] == b'L' && key::FIRST_TRIPLE_KEY[0] == b'X');

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_storage::{SmallQuad, build_small};
    use orrery_term::{Literal, LiteralKind, Term};
    use proptest::prelude::*;
    use spargebra::term::{Literal as SparqlLiteral, Variable};

    fn call(function: Function, of_str: bool, text: &str) -> Expression {
        let variable = Expression::Variable(Variable::new_unchecked("x"));
        let subject = match of_str {
            true => Expression::FunctionCall(Function::Str, vec![variable]),
            false => variable,
        };
        let text = Expression::Literal(SparqlLiteral::new_simple_literal(text));
        Expression::FunctionCall(function, vec![subject, text])
    }

    #[test]
    fn the_beginning_of_a_regular_expression() {
        for (pattern, beginning) in [
            ("^abc", Some("abc")),
            ("^abc$", Some("abc")),
            (r"^http://a\.example/", Some("http://a.example/")),
            ("^ab*", Some("a")),
            ("^ab?c", Some("a")),
            ("^ab{0,2}", Some("a")),
            ("^ab+c", Some("ab")),
            ("^a.c", Some("a")),
            (r"^a\d", Some("a")),
            ("^[ab]", Some("")),
            ("^ab|c", None),
            ("abc", None),
        ] {
            assert_eq!(
                literal_beginning(pattern).as_deref(),
                beginning,
                "{pattern}"
            );
        }
        assert!(TextPrefix::of(&call(Function::Regex, false, "^.*a"), "x").is_none());
        assert!(TextPrefix::of(&call(Function::StrStarts, false, "a"), "y").is_none());
    }

    fn text() -> impl Strategy<Value = String> {
        "[ab0\u{e9}]{0,9}"
    }

    fn any_literal() -> impl Strategy<Value = Term<'static>> {
        let literal = |lexical: String, kind| {
            Term::Literal(Literal {
                lexical: lexical.into(),
                kind,
            })
        };
        let language = prop_oneof![Just("en"), Just("en-gb"), Just("fr")];
        let datatype = prop_oneof![Just("http://a/t"), Just("http://a/tt"), Just("http://b/")];
        prop_oneof![
            text().prop_map(move |text| literal(text, LiteralKind::String)),
            (text(), language)
                .prop_map(move |(text, tag)| literal(text, LiteralKind::Language(tag.into()))),
            (text(), datatype).prop_map(move |(text, datatype)| literal(
                text,
                LiteralKind::Typed(datatype.into())
            )),
            (0..200_i64).prop_map(|number| Term::typed(
                number.to_string(),
                "http://www.w3.org/2001/XMLSchema#integer"
            )),
        ]
    }

    proptest! {
        #[test]
        fn all_terms_that_begin_so_are_within_and_few_others(
            terms in proptest::collection::vec(
                prop_oneof![any_literal(), text().prop_map(Term::iri)],
                1..30,
            ),
            beginning in "[ab0\u{e9}]{1,3}",
            of_str in any::<bool>(),
        ) {
            let quads: Vec<SmallQuad> = terms
                .iter()
                .map(|term| (Term::iri("s"), Term::iri("p"), term.clone(), None))
                .collect();
            let directory = tempfile::tempdir().unwrap();
            let snapshot = build_small(directory.path(), &quads).unwrap().snapshot();
            let filter = call(Function::StrStarts, of_str, &beginning);
            let ranges = TextPrefix::of(&filter, "x").unwrap().passing_ids(&snapshot).unwrap();
            for term in &terms {
                let (passes, is_inexact) = match term {
                    Term::Iri(iri) => (of_str && iri.starts_with(&beginning), false),
                    Term::Literal(Literal { lexical, kind }) => {
                        let is_string = !matches!(kind, LiteralKind::Typed(_));
                        let begins = lexical.starts_with(&beginning);
                        (begins && (of_str || is_string), !is_string)
                    }
                    other => panic!("not made here: {other}"),
                };
                let id = snapshot.term_id(term).unwrap().unwrap();
                let within = ranges.contains(id);
                prop_assert!(within || !passes, "{} should pass", term);
                prop_assert!(!within || passes || is_inexact, "{} should not be within", term);
            }
        }
    }
}
