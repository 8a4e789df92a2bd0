//! The comparison of two SQL answers.
//!
//! Numbers are compared as numbers, whatever type they have at each side; floats to eleven digits
//! or so, for the order of their sums is free.

use super::duckdb::Rows;

/// Rows that are shown of a difference.
const SHOWN: usize = 8;

/// What differs, in a few lines.
pub(super) fn difference(ours: &Rows, theirs: &Rows, is_ordered: bool) -> Option<String> {
    let mut ours: Vec<String> = ours.iter().map(|row| line(row)).collect();
    let mut theirs: Vec<String> = theirs.iter().map(|row| line(row)).collect();
    if !is_ordered {
        ours.sort_unstable();
        theirs.sort_unstable();
    }
    if ours == theirs || are_close(&ours, &theirs) {
        return None;
    }
    let only = |of: &[String], other: &[String]| {
        let mut rest: Vec<&String> = other.iter().collect();
        rest.sort_unstable();
        let mut only = Vec::new();
        for row in of {
            match rest.binary_search(&row) {
                Ok(at) => {
                    rest.remove(at);
                }
                Err(_) => only.push(row.clone()),
            }
        }
        only
    };
    let (more, less) = (only(&ours, &theirs), only(&theirs, &ours));
    let mut words = format!("{} rows, DuckDB has {}", ours.len(), theirs.len());
    if more.is_empty() && less.is_empty() {
        words.push_str(", in another order");
        let at = ours
            .iter()
            .zip(&theirs)
            .position(|(ours, theirs)| ours != theirs);
        let at = at.unwrap_or(0);
        for row in ours.iter().skip(at).take(SHOWN) {
            words.push_str(&format!("\n  ours   {row}"));
        }
        for row in theirs.iter().skip(at).take(SHOWN) {
            words.push_str(&format!("\n  DuckDB {row}"));
        }
    }
    for row in more.iter().take(SHOWN) {
        words.push_str(&format!("\n  ours   {row}"));
    }
    for row in less.iter().take(SHOWN) {
        words.push_str(&format!("\n  DuckDB {row}"));
    }
    Some(words)
}

/// Whether rows differ in the last digits of floats alone: two that are rounded may fall to either
/// side.
fn are_close(ours: &[String], theirs: &[String]) -> bool {
    let is_close = |ours: &str, theirs: &str| {
        let (Ok(one), Ok(other)) = (ours.parse::<f64>(), theirs.parse::<f64>()) else {
            return false;
        };
        // Exact numbers have no more digits than these.
        let is_float = |text: &str| text.split_once('.').is_some_and(|(_, more)| more.len() > 6);
        (is_float(ours) || is_float(theirs))
            && (one - other).abs() <= 1e-11 * one.abs().max(other.abs())
    };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(ours, theirs)| {
            let (mut ours, mut theirs) = (ours.split(" | "), theirs.split(" | "));
            loop {
                match (ours.next(), theirs.next()) {
                    (None, None) => return true,
                    (Some(one), Some(other)) if one == other || is_close(one, other) => {}
                    _ => return false,
                }
            }
        })
}

fn line(row: &[Option<String>]) -> String {
    let values = row.iter().map(|value| match value {
        Some(value) => canonical(value),
        None => "NULL".to_owned(),
    });
    values.collect::<Vec<_>>().join(" | ")
}

fn canonical(value: &str) -> String {
    let (kind, text) = value.split_at(1);
    match kind {
        "n" => exact(text),
        "f" => float(text),
        "t" => format!("{text:?}"),
        "d" | "s" => time(text),
        _ => text.to_owned(),
    }
}

/// Without zeros at the end, and without a point that has nothing behind it.
fn exact(text: &str) -> String {
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    if text == "-0" { "0" } else { text }.to_owned()
}

fn float(text: &str) -> String {
    let Ok(value) = text.parse::<f64>() else {
        return text.to_lowercase();
    };
    let rounded = format!("{value:.11e}").parse().unwrap_or(value);
    exact(&format!("{:.15}", rounded + 0.0))
}

/// Microseconds without zeros at the end; years of five digits have no sign.
fn time(text: &str) -> String {
    exact(text.strip_prefix('+').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[&[&str]]) -> Rows {
        let row = |row: &&[&str]| row.iter().map(|value| Some((*value).to_owned())).collect();
        of.iter().map(row).collect()
    }

    #[test]
    fn numbers_are_one_in_every_type_and_texts_are_not() {
        let ours = rows(&[&["n1.50", "f2.0", "n-0.00", "s2020-01-01 00:00:00", "f-0.0"]]);
        let theirs = rows(&[&["f1.5", "n2", "n0", "s2020-01-01 00:00:00.000000", "f0.0"]]);
        assert_eq!(difference(&ours, &theirs, true), None);
        let texts = (rows(&[&["t1.50"]]), rows(&[&["t1.5"]]));
        assert!(difference(&texts.0, &texts.1, true).is_some());
    }

    #[test]
    fn floats_may_differ_in_their_last_digits_and_exact_numbers_not() {
        let close = (
            rows(&[&["f65697.5585937"]]),
            rows(&[&["f65697.55859370001"]]),
        );
        assert_eq!(difference(&close.0, &close.1, true), None);
        let exact = (
            rows(&[&["n10000000000000.01"]]),
            rows(&[&["n10000000000000.02"]]),
        );
        assert!(difference(&exact.0, &exact.1, true).is_some());
    }

    #[test]
    fn order_counts_where_there_is_one_and_rows_are_counted() {
        let ours = rows(&[&["n1"], &["n2"]]);
        let theirs = rows(&[&["n2"], &["n1"]]);
        assert_eq!(difference(&ours, &theirs, false), None);
        assert!(difference(&ours, &theirs, true).is_some());
        let twice = rows(&[&["n1"], &["n2"], &["n2"]]);
        let words = difference(&twice, &theirs, false).unwrap_or_default();
        assert!(
            words.contains("3 rows, DuckDB has 2\n  ours   2"),
            "{words}"
        );
    }
}
