//! An answer in a form that two engines can be compared by.
//!
//! Solutions are a multiset of rows; a row maps variables to terms in N-Triples
//! form. Blank nodes are compared only as "some blank node": the two engines number
//! them differently, and the data of these tests has no rows that differ in nothing
//! else. The order of rows is kept beside, for queries with ORDER BY.

use std::collections::BTreeMap;

use orrery_term::Term;
use sha2::{Digest, Sha256};

/// What a query answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Of ASK.
    Boolean(bool),
    /// Of SELECT: one row a solution, in the order they came.
    Solutions(Vec<Row>),
    /// Of CONSTRUCT and DESCRIBE: N-Triples lines.
    Triples(Vec<String>),
}

/// One solution: variable (without `?`) to term. Unbound variables are absent.
pub type Row = BTreeMap<String, String>;

/// The text of a term, with blank nodes made anonymous.
pub fn term_text(term: &Term<'_>) -> String {
    match term {
        Term::BlankNode(_) => "_:".to_owned(),
        Term::Iri(_) | Term::Literal(_) => term.to_string(),
        Term::Triple(triple) => {
            let [subject, predicate, object] = triple.parts().map(term_text);
            triple_text(&subject, &predicate, &object)
        }
    }
}

/// The text of a triple term, given that of its parts.
pub(crate) fn triple_text(subject: &str, predicate: &str, object: &str) -> String {
    format!("<<( {subject} {predicate} {object} )>>")
}

impl Answer {
    /// Number of rows or triples; 1 for a truth value.
    pub fn rows(&self) -> usize {
        match self {
            Self::Boolean(_) => 1,
            Self::Solutions(rows) => rows.len(),
            Self::Triples(triples) => triples.len(),
        }
    }

    /// The lines of the answer, sorted: equal for equal multisets.
    pub fn sorted_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = match self {
            Self::Boolean(value) => vec![value.to_string()],
            Self::Solutions(rows) => rows.iter().map(row_line).collect(),
            Self::Triples(triples) => triples.clone(),
        };
        lines.sort_unstable();
        if let Self::Triples(_) = self {
            lines.dedup();
        }
        lines
    }

    /// A digest of [`Answer::sorted_lines`], in hexadecimal.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for line in self.sorted_lines() {
            hash.update(line.as_bytes());
            hash.update(b"\n");
        }
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Whether each row of this answer is in the other one, as often at the most.
    pub fn is_within(&self, other: &Self) -> bool {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in other.sorted_lines() {
            *counts.entry(line).or_default() += 1;
        }
        self.sorted_lines().into_iter().all(|line| {
            counts
                .get_mut(&line)
                .is_some_and(|count| count.checked_sub(1).map(|left| *count = left).is_some())
        })
    }
}

fn row_line(row: &Row) -> String {
    let cells: Vec<String> = row
        .iter()
        .map(|(variable, term)| format!("?{variable} = {term}"))
        .collect();
    cells.join(" ; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solutions(values: &[&str]) -> Answer {
        Answer::Solutions(
            values
                .iter()
                .map(|value| Row::from([("x".to_owned(), (*value).to_owned())]))
                .collect(),
        )
    }

    #[test]
    fn order_does_not_matter_but_number_does() {
        assert_eq!(
            solutions(&["a", "b"]).digest(),
            solutions(&["b", "a"]).digest()
        );
        assert_ne!(solutions(&["a", "a"]).digest(), solutions(&["a"]).digest());
    }

    #[test]
    fn within_counts_duplicates() {
        assert!(solutions(&["a"]).is_within(&solutions(&["b", "a"])));
        assert!(!solutions(&["a", "a"]).is_within(&solutions(&["b", "a"])));
    }
}
