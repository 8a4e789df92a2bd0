//! The suggestion of a similar word.

use orrery_term::prefixes::{OFTEN_MEANT, WELL_KNOWN};

use crate::error::Hint;
use crate::word::BuiltIn;

/// Letters that may be wrong.
const DISTANCE_MAX: usize = 2;
/// Longer words are no misspelled keywords.
const WORD_BYTES_MAX: usize = 20;

/// The candidate that a word is a misspelling of.
pub(crate) fn closest(
    word: &str,
    candidates: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    if word.len() > WORD_BYTES_MAX || word.len() < 3 {
        return None;
    }
    let distances = candidates
        .into_iter()
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), candidate));
    let (distance, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the word may be wrong, but no more than two letters.
    let most = DISTANCE_MAX.min(candidate.len() / 3);
    (distance <= most).then_some(candidate)
}

/// Letters to insert, delete, replace or swap with their neighbours, whatever their case.
pub fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let is_same = x.eq_ignore_ascii_case(y);
            let mut least = (last[j] + usize::from(!is_same))
                .min(last[j + 1] + 1)
                .min(next[j] + 1);
            let is_swapped = i > 0
                && j > 0
                && x.eq_ignore_ascii_case(&b[j - 1])
                && a[i - 1].eq_ignore_ascii_case(y);
            if is_swapped {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or(0)
}

/// What a prefix nearly always stands for.
pub(crate) fn prefix_for(prefix: &str) -> Option<&'static str> {
    let mut known = WELL_KNOWN.iter().chain(&OFTEN_MEANT);
    known.find(|(name, _)| *name == prefix).map(|(_, iri)| *iri)
}

/// Functions of other languages, and what SPARQL has instead.
const OTHER_NAMES: [(&str, &str); 32] = [
    ("LENGTH", "STRLEN"),
    ("LEN", "STRLEN"),
    ("SUBSTRING", "SUBSTR"),
    ("MID", "SUBSTR"),
    ("LOWER", "LCASE"),
    ("TOLOWER", "LCASE"),
    ("LOWERCASE", "LCASE"),
    ("UPPER", "UCASE"),
    ("TOUPPER", "UCASE"),
    ("UPPERCASE", "UCASE"),
    ("STARTSWITH", "STRSTARTS"),
    ("STARTS_WITH", "STRSTARTS"),
    ("ENDSWITH", "STRENDS"),
    ("ENDS_WITH", "STRENDS"),
    ("IFNULL", "COALESCE"),
    ("ISNULL", "!BOUND"),
    ("NVL", "COALESCE"),
    ("CEILING", "CEIL"),
    ("AVERAGE", "AVG"),
    ("MEAN", "AVG"),
    ("MATCHES", "REGEX"),
    ("MATCH", "REGEX"),
    ("LIKE", "REGEX"),
    ("RANDOM", "RAND"),
    ("CURRENT_TIMESTAMP", "NOW"),
    ("CURRENT_DATE", "NOW"),
    ("TODAY", "NOW"),
    ("HOUR", "HOURS"),
    ("MINUTE", "MINUTES"),
    ("SECOND", "SECONDS"),
    ("STRING_AGG", "GROUP_CONCAT"),
    ("GROUPCONCAT", "GROUP_CONCAT"),
];

/// What to write for a function that SPARQL does not have.
pub(crate) fn function_for(name: &str) -> Option<Hint> {
    let mut others = OTHER_NAMES.iter();
    if let Some((_, known)) = others.find(|(other, _)| name.eq_ignore_ascii_case(other)) {
        return Some(Hint::Meant(known));
    }
    closest(name, BuiltIn::all().map(BuiltIn::name)).map(Hint::Meant)
}

/// The datatypes that are written most.
const DATATYPES: [&str; 12] = [
    "anyURI", "boolean", "date", "dateTime", "decimal", "double", "duration", "float", "int",
    "integer", "string", "time",
];

/// What to write for the name of a datatype without its prefix.
pub(crate) fn datatype_for(name: &str) -> Option<Hint> {
    let mut known = DATATYPES.iter();
    let known = known.find(|it| name.eq_ignore_ascii_case(it))?;
    Some(Hint::Write(format!("xsd:{known}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_words_are_known() {
        let words = ["SELECT", "FILTER", "OPTIONAL", "ASK"];
        for (word, meant) in [
            ("SELET", Some("SELECT")),
            ("selcet", Some("SELECT")),
            ("OPTIONNAL", Some("OPTIONAL")),
            ("fitler", Some("FILTER")),
            ("AKS", Some("ASK")),
            ("EXPLAIN", None),
            ("a", None),
        ] {
            assert_eq!(closest(word, words), meant, "{word}");
        }
        assert_eq!(function_for("length"), Some(Hint::Meant("STRLEN")));
        assert_eq!(function_for("foo"), None);
    }
}
