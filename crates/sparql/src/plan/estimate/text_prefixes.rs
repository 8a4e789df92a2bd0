//! The id ranges of texts with a given prefix.
//!
//! ```text
//! STRSTARTS(?x, "abc")   REGEX(?x, "^[a-m]")  the dictionary's strings of every language that begin so, short strings
//! STRSTARTS(STR(?x), "http://example.org/")   IRIs and literals of every type that begin so
//! ```
//!
//! The dictionary is sorted by term key ([`orrery_term::key`]): type first, then the text. So all
//! terms of one type that begin in the same way are a range of ranks, and so are those between two
//! beginnings; the types (languages, datatypes) are visited by skipping from one to the next. Terms
//! that came by updates have ids without an order and always remain. What comes out is a superset,
//! the filter decides.

use orrery_expressions::{Beginning, beginnings};
use orrery_operators::pattern::ObjectRanges;
use orrery_storage::Snapshot;
use orrery_term::{TermId, TermKind, inline_string, key};
use spargebra::algebra::{Expression, Function};

use crate::error::Result;

/// Languages, and datatypes, that are looked at one by one, times the beginnings; what is behind
/// them remains whole.
const TYPED_RANGES_MAX: usize = 64;
/// No key has this byte where a text goes on: it is not in UTF-8.
const BEHIND_ALL_TEXT: u8 = 0xff;
/// Bytes of a string inside an id.
const SHORT_STRING_BYTES: usize = 7;

/// How a text begins: in one of some ways, none of them empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct TextPrefix {
    beginnings: Vec<Beginning>,
    /// Whether it is the text of any term by `STR`, or of a string.
    is_of_any_term: bool,
}

impl TextPrefix {
    /// What the filter says of the beginning of a variable's text.
    pub(in crate::plan) fn of(filter: &Expression, variable: &str) -> Option<Self> {
        let Expression::FunctionCall(function, arguments) = filter else {
            return None;
        };
        let (subject, Expression::Literal(literal)) = (arguments.first()?, arguments.get(1)?)
        else {
            return None;
        };
        let text = literal.value();
        let beginnings = match (function, arguments.get(2)) {
            (Function::StrStarts, None) if !text.is_empty() => vec![Beginning {
                first: text.to_owned(),
                last: text.to_owned(),
            }],
            (Function::Regex, None) => beginnings(text, "")?,
            (Function::Regex, Some(Expression::Literal(flags))) => beginnings(text, flags.value())?,
            _ => return None,
        };
        let is_variable = |expression: &Expression| matches!(expression, Expression::Variable(name) if name.as_str() == variable);
        let is_of_any_term = match subject {
            Expression::FunctionCall(Function::Str, inner) if inner.iter().all(is_variable) => true,
            plain if is_variable(plain) => false,
            _ => return None,
        };
        Some(Self {
            beginnings,
            is_of_any_term,
        })
    }

    /// The ids of terms whose text may begin so.
    pub(in crate::plan) fn passing_ids(&self, snapshot: &Snapshot) -> Result<ObjectRanges> {
        let mut intervals = whole(&[TermKind::Delta, TermKind::QueryLocal]);
        intervals.extend(self.beginnings.iter().filter_map(short_strings));
        self.push_keys(snapshot, &mut intervals, b"S")?;
        self.push_typed(snapshot, &mut intervals, b'L')?;
        if self.is_of_any_term {
            self.push_keys(snapshot, &mut intervals, b"I")?;
            self.push_typed(snapshot, &mut intervals, b'T')?;
            if self.beginnings.iter().any(may_begin_a_number_or_boolean) {
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

    /// The terms whose keys are `before` and then a text that begins so.
    fn push_keys(
        &self,
        snapshot: &Snapshot,
        intervals: &mut Vec<(TermId, TermId)>,
        before: &[u8],
    ) -> Result<()> {
        let dictionary = snapshot.dictionary();
        for Beginning { first, last } in &self.beginnings {
            let low = [before, first.as_bytes()].concat();
            let behind = [before, last.as_bytes(), &[BEHIND_ALL_TEXT]].concat();
            let ranks = (
                dictionary.lower_bound(&low)?,
                dictionary.lower_bound(&behind)?,
            );
            push_ranks(snapshot, ranks, intervals);
        }
        Ok(())
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
        for _ in 0..TYPED_RANGES_MAX / self.beginnings.len().max(1) {
            if rank >= end {
                return Ok(());
            }
            dictionary.key(rank, &mut beginning)?;
            let Some(zero) = beginning.iter().position(|&byte| byte == 0) else {
                break; // not the key of a literal: let all that follows remain
            };
            beginning.truncate(zero + 1);
            self.push_keys(snapshot, intervals, &beginning)?;
            beginning.truncate(zero);
            beginning.push(1);
            rank = dictionary.lower_bound(&beginning)?;
        }
        push_ranks(snapshot, (rank, end), intervals);
        Ok(())
    }
}

/// Strings inside of ids: seven bytes, the first one highest, then four bits of length.
fn short_strings(Beginning { first, last }: &Beginning) -> Option<(TermId, TermId)> {
    if first == last && first.len() > SHORT_STRING_BYTES {
        return None;
    }
    let cut = |text: &str| text[..text.floor_char_boundary(SHORT_STRING_BYTES)].to_owned();
    let (first, last) = (cut(first), cut(last));
    let bits_behind = 4 + 8 * (SHORT_STRING_BYTES - last.len());
    let high = TermId::from_bits(inline_string(&last)?.bits() | ((1 << bits_behind) - 1));
    Some((inline_string(&first)?, high))
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

/// Numbers and dates begin with a digit, a sign or a point, further there are `true`, `false`,
/// `INF` and `NaN`.
fn may_begin_a_number_or_boolean(Beginning { first, last }: &Beginning) -> bool {
    let letters = ["true", "false", "INF", "NaN"];
    first != last
        || !first.starts_with(char::is_alphabetic)
        || letters.iter().any(|word| word.starts_with(first.as_str()))
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
    fn a_beginning_is_that_of_this_variable() {
        assert!(TextPrefix::of(&call(Function::Regex, false, "^.*a"), "x").is_none());
        assert!(TextPrefix::of(&call(Function::StrStarts, false, ""), "x").is_none());
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
            is_class in any::<bool>(),
        ) {
            let quads: Vec<SmallQuad> = terms
                .iter()
                .map(|term| (Term::iri("s"), Term::iri("p"), term.clone(), None))
                .collect();
            let directory = tempfile::tempdir().unwrap();
            let snapshot = build_small(directory.path(), &quads).unwrap().snapshot();
            let filter = match is_class {
                true => call(Function::Regex, of_str, "^[0-9a].*"),
                false => call(Function::StrStarts, of_str, &beginning),
            };
            let begins_so = |text: &str| match is_class {
                true => text.starts_with(['0', 'a']),
                false => text.starts_with(&beginning),
            };
            let ranges = TextPrefix::of(&filter, "x").unwrap().passing_ids(&snapshot).unwrap();
            for term in &terms {
                let (passes, is_inexact) = match term {
                    Term::Iri(iri) => (of_str && begins_so(iri), false),
                    Term::Literal(Literal { lexical, kind }) => {
                        let is_string = !matches!(kind, LiteralKind::Typed(_));
                        let begins = begins_so(lexical);
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
