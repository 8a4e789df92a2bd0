//! Sort keys of ids, without reading terms where possible.
//!
//! The order is that of [`sort_key`](crate::values::sort_key), but the dictionary is sorted
//! already: the rank of an IRI or a string stands for its text.
//!
//! ```text
//! of rank r in the dictionary           class  2 r + 1 (8 bytes, big-endian)
//! between the ranks r - 1 and r         class  2 r     (8 bytes, big-endian)  text
//! ```
//!
//! The second form is for terms that the query computed and for short strings, which live in their
//! ids: their place among the ranks is searched for, which takes microseconds. So a query whose
//! first sorted batch has short strings sorts its strings by text instead; the choice is made once
//! per query ([`StringKeys`]), for keys of different forms must not meet. Keys of ids must not meet
//! those of computed values either, and do not: an expression whose results can be IRIs or strings
//! gives ids always or never (arithmetic may do either, but numbers have one form of key).

use std::cmp::Ordering;

use arrow::array::{Array, UInt32Array, UInt64Array};
use hashbrown::HashMap;
use orrery_term::inline::{InlineValue, ValueOrder};
use orrery_term::{TermId, TermKind, iri_key, string_key};

use crate::columns::column::{Operand, Reading, read_ids, take_ids};
use crate::columns::compare_alike::are_alike as bits_are_alike;
use crate::context::{ExpressionContext, LiteralClass, LiteralRanks, StringKeys};
use crate::error::Result;
use crate::values::sort_key::{IRI, STRING, write_sort_key};
use crate::values::value::Value;

/// Calls `each` with the row and the sort key of every id. Keys that are long are counted until the
/// last is given.
pub fn sort_keys_of_ids(
    ids: &UInt64Array,
    context: &ExpressionContext,
    mut each: impl FnMut(usize, &[u8]),
) -> Result<()> {
    let mut counted = context.count_all();
    let mut writer = SortKeyWriter {
        context,
        ranks: context.literal_ranks()?,
        strings: context.string_keys(|| first_choice(ids)),
        places: HashMap::new(),
    };
    let unread: Vec<u32> = ids
        .iter()
        .enumerate()
        .filter(|(_, id)| id.is_some_and(|id| writer.must_be_read(TermId::from_bits(id))))
        .map(|(row, _)| row as u32)
        .collect();
    let values = match unread.is_empty() {
        true => None,
        false => {
            let rows = UInt32Array::from(unread.clone());
            Some(read_ids(&take_ids(ids, &rows)?, Reading::Value, context)?)
        }
    };
    let mut unread = unread.iter().enumerate().peekable();
    let mut key = Vec::new();
    for row in 0..ids.len() {
        key.clear();
        if ids.is_null(row) {
            write_sort_key(None, &mut key);
        } else {
            let at = unread.next_if(|(_, unread_row)| **unread_row as usize == row);
            let value = at.zip(values.as_ref());
            let value = value.and_then(|((at, _), values): (_, &Operand)| values.get(at));
            writer.write(TermId::from_bits(ids.value(row)), value, &mut key)?;
        }
        counted.add_bytes(key.len())?;
        each(row, &key);
    }
    Ok(())
}

/// Whether all ids of a column, of which none is null, are such that [`order_alike`] tells their
/// order.
pub fn are_alike(ids: &UInt64Array) -> bool {
    let Some(first) = ids.values().first() else {
        return true;
    };
    match alike_order(TermId::from_bits(*first)) {
        Some(order) => ids.null_count() == 0 && bits_are_alike(ids.values(), *first, order.alike),
        None => false,
    }
}

/// The order of two ids' values, as their sort keys have it, if their bits tell it: numbers of one
/// kind, dates of one zone.
#[inline]
pub fn order_alike(left: TermId, right: TermId) -> Option<Ordering> {
    let order = alike_order(left)?;
    let (left, right) = (left.bits(), right.bits());
    ((left ^ right) & order.alike == 0).then(|| (left >> order.shift).cmp(&(right >> order.shift)))
}

/// Appends the sort key of an id that is alike itself ([`order_alike`]): nothing is read.
pub fn sort_key_of_alike(id: TermId, key: &mut Vec<u8>) {
    write_sort_key(Value::from_inline(id).as_ref(), key);
}

/// Short strings are not among them: their place among the strings of the dictionary must be
/// searched for.
#[inline]
fn alike_order(id: TermId) -> Option<ValueOrder> {
    match id.kind() {
        TermKind::ShortString => None,
        _ => id.value_order(),
    }
}

fn first_choice(ids: &UInt64Array) -> StringKeys {
    let is_short = |id: u64| TermId::from_bits(id).kind() == TermKind::ShortString;
    if ids.iter().flatten().any(is_short) {
        StringKeys::Texts
    } else {
        StringKeys::Ranks
    }
}

struct SortKeyWriter<'a> {
    context: &'a ExpressionContext,
    ranks: LiteralRanks,
    strings: StringKeys,
    /// The places of terms that are not in the dictionary.
    places: HashMap<TermId, u64>,
}

impl SortKeyWriter<'_> {
    /// Whether the id alone does not tell the key.
    #[inline]
    fn must_be_read(&self, id: TermId) -> bool {
        match id.kind() {
            TermKind::QueryLocal | TermKind::Delta | TermKind::TripleTerm => true,
            TermKind::Literal => {
                self.strings == StringKeys::Texts
                    || self.ranks.class(id.payload()) != LiteralClass::String
            }
            _ => false,
        }
    }

    fn write(&mut self, id: TermId, value: Option<&Value>, key: &mut Vec<u8>) -> Result<()> {
        match (id.kind(), value) {
            (TermKind::Iri, _) => write_rank(IRI, id, key),
            (TermKind::Literal, None) => write_rank(STRING, id, key),
            (TermKind::ShortString, _) => match (self.strings, id.inline_value()) {
                (StringKeys::Ranks, Some(InlineValue::String(text))) => {
                    self.write_between(STRING, id, text.as_str(), key)?;
                }
                _ => write_sort_key(Value::from_inline(id).as_ref(), key),
            },
            (TermKind::QueryLocal | TermKind::Delta, Some(Value::Iri(iri))) => {
                self.write_between(IRI, id, iri, key)?;
            }
            (TermKind::QueryLocal | TermKind::Delta, Some(Value::String(text)))
                if self.strings == StringKeys::Ranks =>
            {
                self.write_between(STRING, id, text, key)?;
            }
            (_, Some(value)) => write_sort_key(Some(value), key),
            (_, None) => write_sort_key(Value::from_inline(id).as_ref(), key),
        }
        Ok(())
    }

    /// The key of a term that is not in the dictionary.
    fn write_between(
        &mut self,
        class: u8,
        id: TermId,
        text: &str,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let place = match self.places.get(&id) {
            Some(&place) => place,
            None => {
                let mut term_key = Vec::with_capacity(text.len() + 1);
                match class {
                    IRI => iri_key(text, &mut term_key),
                    _ => string_key(text, &mut term_key),
                }
                let place = self.context.dictionary().lower_bound(&term_key)?;
                self.places.insert(id, place);
                place
            }
        };
        key.push(class);
        key.extend_from_slice(&(2 * place).to_be_bytes());
        key.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// The key of a term of the dictionary.
#[inline]
fn write_rank(class: u8, id: TermId, key: &mut Vec<u8>) {
    key.push(class);
    key.extend_from_slice(&(2 * id.payload() + 1).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use orrery_term::Term;
    use orrery_term::vocabulary::xsd;

    use super::*;
    use crate::testing::context;

    /// Terms of all kinds in their order.
    fn ascending(with_short_strings: bool) -> Vec<Term<'static>> {
        let mut terms = vec![
            Term::BlankNode(3),
            Term::iri("http://example.com/a"),
            Term::iri("http://example.com/ab"),
            Term::iri("http://example.com/b"),
            Term::iri("http://example.com/c"),
            Term::typed("-1.5", xsd::DECIMAL),
            Term::typed("007", xsd::INTEGER),
            Term::typed("12345678901234567", xsd::INTEGER),
            Term::typed("2000-01-01", xsd::DATE),
            Term::string("a string of the dictionary"),
            Term::string("a string of the dictionary and more"),
            Term::string("b: a string of the query"),
            Term::string("c: a string of the dictionary"),
            Term::string("d: a string of the query"),
            Term::language("a tagged string", "en"),
            Term::language("b tagged string", "en"),
            Term::typed("x", "http://example.com/datatype"),
        ];
        if with_short_strings {
            terms.insert(9, Term::string("a"));
            terms.insert(13, Term::string("bb"));
            terms.insert(16, Term::string("z"));
        }
        terms
    }

    fn is_stored(term: &Term<'_>) -> bool {
        term.to_string().contains("dictionary")
            || [
                Term::iri("http://example.com/a"),
                Term::iri("http://example.com/c"),
                Term::typed("007", xsd::INTEGER),
                Term::language("b tagged string", "en"),
            ]
            .contains(term)
    }

    fn check(first_batch: &[Term<'static>], terms: &[Term<'static>], expected: StringKeys) {
        let stored: Vec<_> = terms
            .iter()
            .filter(|term| is_stored(term))
            .cloned()
            .collect();
        let context = context(&stored);
        let keys_of = |terms: &[Term<'static>]| -> Vec<Vec<u8>> {
            let ids: UInt64Array = terms
                .iter()
                .map(|term| Some(context.intern(term).unwrap().bits()))
                .chain([None])
                .collect();
            let mut keys = Vec::new();
            sort_keys_of_ids(&ids, &context, |row, key| {
                assert_eq!(row, keys.len());
                keys.push(key.to_vec());
            })
            .unwrap();
            keys
        };
        keys_of(first_batch);
        assert_eq!(context.string_keys(|| StringKeys::Ranks), expected);
        let mut keys = keys_of(terms);
        let unbound = keys.pop().unwrap();
        keys.insert(0, unbound);
        for (at, pair) in keys.windows(2).enumerate() {
            assert!(pair[0] < pair[1], "{:?} is not in its place", terms[at]);
        }
    }

    /// Where bits tell an order, it is that of the keys.
    #[test]
    fn alike_ids_are_in_the_order_of_their_keys() {
        let typed = |texts: &[&'static str], datatype| -> Vec<TermId> {
            let terms = texts.iter().map(|text| Term::typed(*text, datatype));
            terms
                .map(|term| orrery_term::inline(&term).unwrap())
                .collect()
        };
        let columns = [
            typed(&["-5", "0", "7", "123456"], xsd::INTEGER),
            typed(&["-1.50", "-1.5", "0.1", "3.0"], xsd::DECIMAL),
            typed(&["-1.5E0", "1.0E-2", "5.86029E3"], xsd::DOUBLE),
            typed(&["2008-01-01", "2008-03-05", "1969-12-31"], xsd::DATE),
            typed(
                &[
                    "2008-01-01T00:00:00Z",
                    "2008-01-01T00:00:00.5Z",
                    "1969-12-31T23:59:59Z",
                ],
                xsd::DATE_TIME,
            ),
        ];
        let mut compared = 0;
        for column in &columns {
            assert!(are_alike(
                &column.iter().map(|id| Some(id.bits())).collect()
            ));
        }
        let all: Vec<TermId> = columns.iter().flatten().copied().collect();
        assert!(!are_alike(&all.iter().map(|id| Some(id.bits())).collect()));
        for &left in &all {
            for &right in &all {
                let key = |id| {
                    let mut key = Vec::new();
                    sort_key_of_alike(id, &mut key);
                    key
                };
                if let Some(order) = order_alike(left, right) {
                    assert_eq!(order, key(left).cmp(&key(right)), "{left:?} {right:?}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 16 + 16 + 9 + 9 + 9);
        let short = orrery_term::inline(&Term::string("a")).unwrap();
        assert_eq!(order_alike(short, short), None);
        assert!(!are_alike(&UInt64Array::from(vec![
            Some(all[0].bits()),
            None
        ])));
    }

    #[test]
    fn keys_of_ids_ascend_by_rank() {
        check(&ascending(false), &ascending(false), StringKeys::Ranks);
    }

    #[test]
    fn keys_of_ids_ascend_by_text() {
        check(&ascending(true), &ascending(true), StringKeys::Texts);
    }

    #[test]
    fn short_strings_that_come_late_find_their_place() {
        check(&ascending(false), &ascending(true), StringKeys::Ranks);
    }
}
