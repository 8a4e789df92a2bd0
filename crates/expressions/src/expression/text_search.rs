//! Text tests (`CONTAINS`, `REGEX` ...) over a column, answered by a search of the dictionary.
//!
//! Each different term is asked once. Where there are many literals of the dictionary, what all
//! texts that pass contain is searched for in their encoded form (`KeySearch`), and only those that
//! have it are decoded, or none.

use arrow::array::{BooleanArray, UInt64Array};
use orrery_storage::{KeySearch, KeyText};
use orrery_term::{TermId, TermKind};

use crate::columns::column::DistinctIds;
use crate::context::{ExpressionContext, LiteralClass};
use crate::error::Result;
use crate::functions::TextTest;

/// Fewer literals are decoded at once: a search has tables to fill.
const SEARCHED_TERMS_MIN: usize = 128;

/// The answers of a test for terms.
pub(super) fn test_of_terms(
    test: &TextTest,
    ids: &UInt64Array,
    context: &ExpressionContext,
) -> Result<BooleanArray> {
    let distinct = DistinctIds::of(ids);
    let mut answers = vec![None; distinct.ids.len()];
    answer(test, &distinct.ids, context, &mut answers)?;
    // What the nulls point at.
    answers.push(None);
    let index = distinct.index.into_iter();
    Ok(index.map(|place| answers[place as usize]).collect())
}

/// The answers for strictly ascending ids.
fn answer(
    test: &TextTest,
    ids: &[TermId],
    context: &ExpressionContext,
    answers: &mut [Option<bool>],
) -> Result<()> {
    let (before, others) = ids.split_at(ids.partition_point(|id| id.kind() < TermKind::Literal));
    let literals = others.partition_point(|id| id.kind() == TermKind::Literal);
    let search = match literals < SEARCHED_TERMS_MIN {
        true => None,
        false => test.search(context.dictionary()),
    };
    let Some(search) = search else {
        return decode(test, ids, context, answers);
    };
    let ranks = context.literal_ranks()?;
    let class_ends = |class| {
        let texts = &others[..literals];
        before.len() + texts.partition_point(|id| ranks.class(id.payload()) <= class)
    };
    let (tagged, strings) = (
        class_ends(LiteralClass::Language),
        class_ends(LiteralClass::String),
    );
    let start = before.len();
    decode(test, before, context, &mut answers[..start])?;
    let (ids_of, texts) = (&ids[start..tagged], &mut answers[start..tagged]);
    search_texts(
        test,
        (search, KeyText::AfterFirstZero),
        ids_of,
        context,
        texts,
    )?;
    let (ids_of, texts) = (&ids[tagged..strings], &mut answers[tagged..strings]);
    search_texts(
        test,
        (search, KeyText::AfterFirstByte),
        ids_of,
        context,
        texts,
    )?;
    decode(test, &ids[strings..], context, &mut answers[strings..])
}

/// The answers for terms that are decoded.
fn decode(
    test: &TextTest,
    ids: &[TermId],
    context: &ExpressionContext,
    answers: &mut [Option<bool>],
) -> Result<()> {
    context.terms(ids, |place, term| answers[place] = test.of_term(&term))
}

/// The answers for texts of the dictionary, all with a language or all without.
fn search_texts(
    test: &TextTest,
    (search, text): (&KeySearch, KeyText),
    ids: &[TermId],
    context: &ExpressionContext,
    answers: &mut [Option<bool>],
) -> Result<()> {
    let ranks: Vec<u64> = ids.iter().map(|id| id.payload()).collect();
    let dictionary = context.dictionary();
    let found = |place: usize, is_found| answers[place] = Some(is_found);
    dictionary.keys_containing(&ranks, search, text, found)?;
    if test.is_answered_by_search() {
        return Ok(());
    }
    let places: Vec<usize> = (0..ids.len())
        .filter(|&place| answers[place] == Some(true))
        .collect();
    test.note_search(ids.len(), places.len());
    let left: Vec<TermId> = places.iter().map(|&place| ids[place]).collect();
    context.terms(&left, |at, term| answers[places[at]] = test.of_term(&term))
}

#[cfg(test)]
mod tests {
    use orrery_term::{Direction, Term};
    use proptest::prelude::*;
    use spargebra::algebra::Function;

    use super::*;
    use crate::testing;
    use crate::values::value::Value;
    use crate::xpath_regex::RegexCache;

    /// Texts of words that come often, so that a vocabulary has them, and of others; with
    /// languages, directions, datatypes, and no texts.
    fn terms() -> Vec<Term<'static>> {
        let words = ["puzzle", "sing", "King", "a", "zz", "dazzling", "é", "ing"];
        let text = |number: usize| {
            let word = |place: usize| words[(number * 7 + place * number / 3) % words.len()];
            let text: Vec<&str> = (0..3 + number % 9).map(word).collect();
            format!("{}{number}", text.join([" ", ", ", " - "][number % 3]))
        };
        let term = |number: usize| match number % 7 {
            0 | 1 => Term::string(text(number)),
            2 | 3 => Term::language(text(number), ["en", "zz-puzzle"][number % 2]),
            4 => Term::directional(text(number), "en", Direction::RightToLeft),
            5 => Term::typed(text(number), "http://example.com/puzzle"),
            _ => match number % 2 {
                0 => Term::iri(format!("http://example.com/puzzle{number}")),
                _ => Term::string(format!("zz{}", number % 1_000)),
            },
        };
        (0..3_000).map(term).collect()
    }

    fn test(question: &str, argument: &str) -> TextTest {
        let argument_value = Value::string(argument);
        let of_function = |function| TextTest::of_function(&function, &argument_value);
        let test = match question {
            "contains" => of_function(Function::Contains),
            "starts" => of_function(Function::StrStarts),
            "ends" => of_function(Function::StrEnds),
            flags => {
                let pattern = RegexCache::default().get(argument, flags).ok().flatten();
                pattern.map(TextTest::matches)
            }
        };
        test.unwrap_or_else(|| panic!("{question} {argument}"))
    }

    #[test]
    fn answers_are_those_of_each_term_by_itself() {
        let terms = terms();
        let context = testing::context(&terms);
        let mut ids: Vec<Option<u64>> = terms
            .iter()
            .map(|term| Some(context.intern(term).unwrap().bits()))
            .collect();
        let own = Term::string("a puzzle that only the query knows");
        ids.extend([None, Some(context.intern(&own).unwrap().bits())]);
        let column = UInt64Array::from(ids);
        for (question, argument) in [
            ("contains", "zzle"),
            ("contains", "ing "),
            ("contains", " sing"),
            ("contains", "g, K"),
            ("contains", "en"),
            ("contains", "é"),
            ("contains", ""),
            ("contains", "missing"),
            ("starts", "puzzle"),
            ("starts", ""),
            ("ends", "zling71"),
            ("", "zz.*ing"),
            ("", "^(puzzle|King) "),
            ("i", "^k.*puZZle"),
            ("i", "SING"),
            ("", "[a-z]"),
        ] {
            let test = test(question, argument);
            let expected: Vec<Option<bool>> = terms
                .iter()
                .map(|term| test.of_term(term))
                .chain([None, test.of_term(&own)])
                .collect();
            // Twice: then what was found out of the words is known.
            for _ in 0..2 {
                let answers = test_of_terms(&test, &column, &context).unwrap();
                assert_eq!(
                    answers.iter().collect::<Vec<_>>(),
                    expected,
                    "{question} {argument}"
                );
            }
        }
    }

    #[test]
    fn texts_are_decoded_where_the_search_leaves_most_of_them() {
        let terms: Vec<Term<'static>> = (0..4_000)
            .map(|number| Term::string(format!("this is the text number {number}")))
            .collect();
        let context = testing::context(&terms);
        let column: UInt64Array = terms
            .iter()
            .map(|term| Some(context.intern(term).unwrap().bits()))
            .collect();
        let dictionary = context.dictionary();
        for (pattern, pays) in [("text number [0-9]*7$", false), ("number 39[0-9]*7$", true)] {
            let test = test("", pattern);
            assert!(test.search(dictionary).is_some(), "{pattern}");
            let first = test_of_terms(&test, &column, &context).unwrap();
            assert_eq!(test.search(dictionary).is_some(), pays, "{pattern}");
            let second = test_of_terms(&test, &column, &context).unwrap();
            assert_eq!(first, second);
            assert!(first.true_count() > 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_text_is_found_where_it_is(
            texts in proptest::collection::vec("(é|[aAkKs. ]|ab ?|zz){1,12}", 150..400),
            needle in "[aAkKsz. é]{1,4}",
            is_tagged: bool,
        ) {
            let term = |text: String| match is_tagged {
                true => Term::language(text, "a-zz"),
                false => Term::string(text),
            };
            let terms: Vec<Term<'static>> = texts.into_iter().map(term).collect();
            let context = testing::context(&terms);
            let ids = terms.iter().map(|term| context.intern(term).unwrap().bits());
            let column = UInt64Array::from_iter_values(ids);
            let of_function = |function| TextTest::of_function(&function, &Value::string(needle.as_str()));
            let ignoring_case = RegexCache::default().get(&needle.replace('.', r"\."), "i").unwrap();
            let tests = [
                of_function(Function::Contains),
                of_function(Function::StrEnds),
                ignoring_case.map(TextTest::matches),
            ];
            for test in tests.into_iter().flatten() {
                let expected: Vec<Option<bool>> = terms.iter().map(|term| test.of_term(term)).collect();
                let answers = test_of_terms(&test, &column, &context).unwrap();
                prop_assert_eq!(answers.iter().collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_search_is_of_one_dictionary() {
        let terms = terms();
        let first = testing::context(&terms);
        let second = testing::context(&terms[..2_000]);
        let test = test("contains", "zzle");
        for context in [&first, &second, &first] {
            let here = &terms[..2_000];
            let column: UInt64Array = here
                .iter()
                .map(|term| Some(context.intern(term).unwrap().bits()))
                .collect();
            let expected: Vec<Option<bool>> = here.iter().map(|term| test.of_term(term)).collect();
            let answers = test_of_terms(&test, &column, context).unwrap();
            assert_eq!(answers.iter().collect::<Vec<_>>(), expected);
        }
    }
}
