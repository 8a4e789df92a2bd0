//! Tests of identity and order of inline literals.

use proptest::prelude::*;

use super::*;
use crate::lexical::canonical_exponent;

/// Takes a literal inline if it can be, and checks that it comes back to the letter.
fn check_identity(lexical: &str, datatype: &str) -> Option<TermId> {
    let id = inline_typed(lexical, datatype)?;
    assert!(id.is_inline());
    assert_eq!(
        id.to_inline_term(),
        Some(Term::typed(lexical, datatype).into_owned()),
        "{lexical:?}^^<{datatype}>"
    );
    Some(id)
}

#[test]
fn usual_literals_live_inside_the_id() {
    let cases: &[(&str, &[&str])] = &[
        (xsd::BOOLEAN, &["true", "false"]),
        (
            xsd::INTEGER,
            &["0", "7", "-1", "1234567890", "-36028797018963968"],
        ),
        (xsd::BYTE, &["-128", "127"]),
        (xsd::UNSIGNED_BYTE, &["255"]),
        (
            xsd::DECIMAL,
            &[
                "0",
                "0.0",
                "1.50",
                "-0.5",
                "12.000001",
                "36028797018.963967",
            ],
        ),
        (
            xsd::DOUBLE,
            &["0", "0.1", "-3.25", "1.0E0", "1.5E10", "-2.0E-3", "1000000"],
        ),
        (
            xsd::DATE,
            &[
                "2000-02-29",
                "0000-01-01",
                "9999-12-31Z",
                "2024-01-01+14:00",
            ],
        ),
        (
            xsd::DATE_TIME,
            &[
                "2008-04-01T00:00:00",
                "2010-03-12T23:44:41.011+00:00",
                "0000-01-01T00:00:00Z",
                "1969-12-31T23:59:59.5-05:30",
                "2010-01-01T00:00:00.10Z",
            ],
        ),
        (xsd::STRING, &["", "a", "1234567", "é€"]),
    ];
    for (datatype, lexicals) in cases {
        for lexical in *lexicals {
            assert!(
                check_identity(lexical, datatype).is_some(),
                "{lexical} {datatype}"
            );
        }
    }
}

#[test]
fn odd_literals_stay_outside() {
    let cases: &[(&str, &[&str])] = &[
        (xsd::BOOLEAN, &["1", "0", "TRUE", ""]),
        (
            xsd::INTEGER,
            &["01", "+1", "-0", "", "-", "1.0", "36028797018963968", " 1"],
        ),
        (xsd::BYTE, &["128", "-129"]),
        (xsd::POSITIVE_INTEGER, &["0", "-3"]),
        (
            xsd::DECIMAL,
            &[
                "-0.0",
                "-0",
                ".5",
                "5.",
                "01.5",
                "+1.0",
                "0.1234567",
                "",
                ".",
            ],
        ),
        (
            xsd::DOUBLE,
            &[
                "-0.0", "-0", "NaN", "INF", "-INF", "inf", "1e0", "1E0", "1.0E+0", "0.10", "1.0",
                "1E400", "1.0E-30",
            ],
        ),
        (
            xsd::DATE,
            &[
                "2001-02-29",
                "10000-01-01",
                "-0001-01-01",
                "2000-01-01-00:00",
                "2000-1-1",
                "2000-01-01+15:00",
            ],
        ),
        (
            xsd::DATE_TIME,
            &[
                "2008-04-01T24:00:00",
                "2008-04-01T00:00:60",
                "2008-04-01T00:00:00.1234",
                "5000-01-01T00:00:00",
                "2008-04-01 00:00:00",
                "0000-01-01T00:00:00+01:00",
                "2008-04-01T00:00:00.",
            ],
        ),
        (xsd::STRING, &["12345678", "äöüß"]),
        ("http://example.org/t", &["1"]),
    ];
    for (datatype, lexicals) in cases {
        for lexical in *lexicals {
            assert_eq!(
                inline_typed(lexical, datatype),
                None,
                "{lexical} {datatype}"
            );
        }
    }
}

#[test]
fn derived_integer_types_have_their_bounds() {
    let inside: &[(&str, &[i128])] = &[
        (xsd::INTEGER, &[i128::MIN, 0, i128::MAX]),
        (xsd::LONG, &[-(1 << 63), (1 << 63) - 1]),
        (xsd::INT, &[-(1 << 31), (1 << 31) - 1]),
        (xsd::SHORT, &[-32768, 32767]),
        (xsd::BYTE, &[-128, 127]),
        (xsd::UNSIGNED_LONG, &[0, (1 << 64) - 1]),
        (xsd::UNSIGNED_INT, &[0, (1 << 32) - 1]),
        (xsd::UNSIGNED_SHORT, &[0, 65535]),
        (xsd::UNSIGNED_BYTE, &[0, 255]),
        (xsd::NON_NEGATIVE_INTEGER, &[0, i128::MAX]),
        (xsd::POSITIVE_INTEGER, &[1, i128::MAX]),
        (xsd::NON_POSITIVE_INTEGER, &[i128::MIN, 0]),
        (xsd::NEGATIVE_INTEGER, &[i128::MIN, -1]),
    ];
    for (datatype, values) in inside {
        let integer_type = IntegerType::of_datatype(datatype).unwrap();
        assert_eq!(integer_type.iri(), *datatype);
        let (low, high) = (values[0], values[values.len() - 1]);
        for value in *values {
            assert!(integer_type.admits(*value), "{value} {datatype}");
        }
        if low != i128::MIN {
            assert!(!integer_type.admits(low - 1), "below {datatype}");
        }
        if high != i128::MAX {
            assert!(!integer_type.admits(high + 1), "above {datatype}");
        }
    }
    assert_eq!(IntegerType::of_datatype(xsd::DECIMAL), None);
    assert_eq!(IntegerType::of_datatype("urn:byte"), None);
}

#[test]
fn short_strings_sort_as_strings() {
    let mut texts = ["", "\0", "a", "a\0", "aa", "ab", "b", "é", "zzzzzzz"];
    texts.sort_unstable();
    let ids: Vec<_> = texts
        .iter()
        .map(|text| inline_string(text).unwrap())
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn instants_sort_across_time_zones() {
    let ascending = [
        "2020-01-01T00:00:00+14:00",
        "2020-01-01T00:00:00+01:00",
        "2020-01-01T00:00:00Z",
        "2020-01-01T00:00:00.001Z",
        "2020-01-01T00:00:00-05:00",
    ];
    let ids: Vec<_> = ascending
        .iter()
        .map(|lexical| check_identity(lexical, xsd::DATE_TIME).unwrap())
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
}

proptest! {
    #[test]
    fn integers_keep_identity_and_order(a in -(1i64 << 55)..(1 << 55), b in -(1i64 << 55)..(1 << 55)) {
        let id_a = check_identity(&a.to_string(), xsd::INTEGER).unwrap();
        let id_b = check_identity(&b.to_string(), xsd::INTEGER).unwrap();
        prop_assert_eq!(a.cmp(&b), id_a.cmp(&id_b));
        prop_assert_eq!(id_a.inline_value(), Some(InlineValue::Integer(a, IntegerType::Integer)));
        prop_assert_eq!(TermId::integer(a), Some(id_a));
    }

    #[test]
    fn doubles_keep_identity_and_order(a in any::<f64>(), b in -1e9f64..1e9) {
        for text in [a.to_string(), format!("{a:E}"), canonical_exponent(a)] {
            check_identity(&text, xsd::DOUBLE);
        }
        let small = a % 1e9;
        if let (Some(id_a), Some(id_b)) = (
            check_identity(&small.to_string(), xsd::DOUBLE),
            check_identity(&b.to_string(), xsd::DOUBLE),
        ) {
            prop_assert_eq!(small.partial_cmp(&b), Some(id_a.cmp(&id_b)));
            prop_assert_eq!(id_b.inline_value(), Some(InlineValue::Double(b)));
        }
    }

    #[test]
    fn decimals_keep_identity_and_order(
        a in -36_000_000_000_000_000i64..36_000_000_000_000_000,
        b in -36_000_000_000_000_000i64..36_000_000_000_000_000,
    ) {
        let text = |v: i64| format!("{}{}.{:06}", if v < 0 { "-" } else { "" }, v.abs() / 1_000_000, v.abs() % 1_000_000);
        let id_a = check_identity(&text(a), xsd::DECIMAL).unwrap();
        let id_b = check_identity(&text(b), xsd::DECIMAL).unwrap();
        prop_assert_eq!(a.cmp(&b), id_a.cmp(&id_b));
        prop_assert_eq!(id_a.inline_value(), Some(InlineValue::Decimal(a)));
    }

    #[test]
    fn whatever_is_taken_inline_comes_back_to_the_letter(
        lexical in "[-+]?[0-9]{0,12}[.]?[0-9]{0,8}([eE][-+]?[0-9]{1,3})?",
        datatype in prop::sample::select(vec![xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::INT, xsd::UNSIGNED_LONG, xsd::BOOLEAN]),
    ) {
        check_identity(&lexical, datatype);
    }

    #[test]
    fn dates_come_back_to_the_letter(
        lexical in "[0-9]{4}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]([.][0-9]{0,4})?)?(Z|[-+][01][0-9]:[0-5][0-9])?",
    ) {
        check_identity(&lexical, xsd::DATE);
        check_identity(&lexical, xsd::DATE_TIME);
    }

    #[test]
    fn no_bits_make_reading_an_id_panic(bits in any::<u64>()) {
        let id = TermId::from_bits(bits);
        let _ = (id.to_inline_term(), id.inline_value(), format!("{id:?}"));
    }

    #[test]
    fn short_strings_come_back(text in ".{0,9}") {
        check_identity(&text, xsd::STRING);
    }
}

/// The value of an id as something that Rust can compare; dates by their instant.
fn comparable(id: TermId) -> f64 {
    match id.inline_value().unwrap() {
        InlineValue::Integer(value, _) | InlineValue::Decimal(value) => value as f64,
        InlineValue::Double(value) => value,
        InlineValue::Date(date) => date.start_minutes() as f64,
        InlineValue::DateTime(date) => date.instant_ms as f64,
        value @ (InlineValue::Boolean(_) | InlineValue::String(_)) => panic!("{value:?}"),
    }
}

#[test]
fn ids_that_are_alike_compare_as_their_values() {
    let cases: &[(&str, &[&str])] = &[
        (xsd::INTEGER, &["-7", "0", "3", "4"]),
        (xsd::BYTE, &["-7", "0", "3"]),
        (xsd::DECIMAL, &["-0.5", "1.5", "1.50", "2"]),
        (xsd::DOUBLE, &["-2.5", "0", "0.1", "1.0E0", "2.0E3"]),
        (
            xsd::DATE,
            &[
                "2008-01-01",
                "2008-01-02",
                "2008-01-02Z",
                "2008-01-03+05:00",
            ],
        ),
        (
            xsd::DATE_TIME,
            &[
                "2008-01-01T00:00:00",
                "2008-01-01T00:00:00.0",
                "2008-01-01T00:00:00Z",
                "2008-01-01T00:00:00.25Z",
                "2008-01-01T00:00:00+01:00",
            ],
        ),
    ];
    let ids: Vec<TermId> = cases
        .iter()
        .flat_map(|(datatype, lexicals)| lexicals.iter().map(move |text| (text, datatype)))
        .map(|(text, datatype)| inline_typed(text, datatype).unwrap())
        .collect();
    let mut compared = 0;
    for &a in &ids {
        for &b in &ids {
            let order = a.value_order().unwrap();
            if (a.bits() ^ b.bits()) & order.alike != 0 {
                continue;
            }
            let by_bits = (a.bits() >> order.shift).cmp(&(b.bits() >> order.shift));
            assert_eq!(
                Some(by_bits),
                comparable(a).partial_cmp(&comparable(b)),
                "{a:?} {b:?}"
            );
            compared += 1;
        }
    }
    // The integers among themselves, the decimals, the two forms of doubles, dates by zone.
    assert_eq!(
        compared,
        7 * 7 + 4 * 4 + (3 * 3 + 2 * 2) + (2 * 2 + 1 + 1) + (2 * 2 + 2 * 2 + 1)
    );
    assert_eq!(TermId::boolean(true).value_order(), None);
    assert_eq!(TermId::iri(3).value_order(), None);
}

#[test]
fn the_value_of_an_integer_is_read_from_its_bits() {
    let id = inline_typed("-128", xsd::BYTE).unwrap();
    assert_eq!(id.integer_value(), Some(-128));
    assert_eq!(
        inline_typed("1.0", xsd::DECIMAL).unwrap().integer_value(),
        None
    );
}
