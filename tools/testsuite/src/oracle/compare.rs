//! The check of an answer against the reference of its query.
//!
//! Solutions are multisets up to the names of blank nodes that the query made; those of the data
//! have one name everywhere. With a `LIMIT`, the rows must be among all rows, as many as it leaves,
//! and each may stand where it stands; with an `ORDER BY`, no row comes after one that it must
//! precede.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use oxrdf::Term;

use super::answer::{Answer, Solutions};
use super::data::Kind;
use super::grammar::SEPARATOR;
use super::order::compare_rows;
use super::reference::Modifiers;
use crate::w3c::{Cell, Numbers, Table};

/// What an answer must be.
pub(crate) struct Expected {
    pub(crate) whole: Answer,
    pub(crate) modifiers: Modifiers,
    /// Labels of the data's blank nodes.
    pub(crate) known_nodes: BTreeSet<String>,
    pub(crate) kind: Kind,
}

impl Expected {
    /// What is wrong with an answer, if anything is.
    pub(crate) fn difference(&self, answer: &Answer) -> Option<String> {
        match (&self.whole, answer) {
            (Answer::Boolean(expected), Answer::Boolean(actual)) => {
                (expected != actual).then(|| "another truth value".to_owned())
            }
            (Answer::Graph(expected), Answer::Graph(actual)) => {
                let rows = |triples: &[oxrdf::Triple]| -> Vec<Vec<Option<Term>>> {
                    let row = |triple: &oxrdf::Triple| {
                        vec![
                            Some(triple.subject.clone().into()),
                            Some(triple.predicate.clone().into()),
                            Some(triple.object.clone()),
                        ]
                    };
                    triples.iter().map(row).collect()
                };
                let mut tables = [rows(expected), rows(actual)].map(|rows| self.table(&rows));
                // A graph is a set; engines may give a triple twice.
                tables.iter_mut().for_each(Table::dedup);
                let same = tables[0].is_isomorphic(&tables[1]);
                (!same).then(|| "other triples".to_owned())
            }
            (Answer::Solutions(expected), Answer::Solutions(actual)) => {
                self.solutions_difference(expected, actual)
            }
            (Answer::Boolean(_) | Answer::Graph(_) | Answer::Solutions(_), _) => {
                Some("another form of answer".to_owned())
            }
        }
    }

    fn solutions_difference(&self, whole: &Solutions, actual: &Solutions) -> Option<String> {
        let keys = self.modifiers.descending.len();
        let width = whole.variables.len() - keys;
        let Some(whole) = &in_columns_of(whole, width, &actual.variables) else {
            return Some("other variables".to_owned());
        };
        let all: Vec<Vec<Option<Term>>> =
            whole.rows.iter().map(|row| row[..width].to_vec()).collect();
        let after_offset = all.len().saturating_sub(self.modifiers.offset);
        let expected_rows = self
            .modifiers
            .limit
            .map_or(after_offset, |limit| limit.min(after_offset));
        if actual.rows.len() != expected_rows {
            return Some(format!("{} rows, not {expected_rows}", actual.rows.len()));
        }
        if expected_rows == all.len() {
            if !self.table(&all).is_isomorphic(&self.table(&actual.rows)) {
                return Some("other rows".to_owned());
            }
        } else if let Some(row) = self.not_within(&all, &actual.rows) {
            return Some(format!("a row that is not in the whole answer: {row}"));
        }
        self.order_difference(whole, width, actual)
    }

    /// A row that is not among others, or not as often.
    fn not_within(&self, all: &[Vec<Option<Term>>], rows: &[Vec<Option<Term>>]) -> Option<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for row in all {
            *counts.entry(self.line(row)).or_default() += 1;
        }
        rows.iter()
            .map(|row| self.line(row))
            .find(|line| match counts.get_mut(line) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            })
    }

    fn order_difference(
        &self,
        whole: &Solutions,
        width: usize,
        actual: &Solutions,
    ) -> Option<String> {
        let descending = &self.modifiers.descending;
        if descending.is_empty() {
            return None;
        }
        let keys = self.keys(whole, width);
        let of_rows: Vec<Option<&[Option<Term>]>> = actual
            .rows
            .iter()
            .map(|row| keys.get(&self.line(row)).copied().flatten())
            .collect();
        for (at, later) in of_rows.iter().enumerate() {
            let Some(later) = later else { continue };
            let is_after = |earlier: &[Option<Term>]| {
                compare_rows(earlier, later, descending) == Some(Ordering::Greater)
            };
            if of_rows[..at].iter().copied().flatten().any(is_after) {
                return Some(format!("row {at} comes too late"));
            }
            let place = self.modifiers.offset + at;
            let count = |ordering: Ordering| {
                let rows = whole.rows.iter();
                let keys = rows.map(|row| compare_rows(&row[width..], later, descending));
                keys.filter(|order| *order == Some(ordering)).count()
            };
            let (before, after) = (count(Ordering::Less), count(Ordering::Greater));
            if before > place || after > whole.rows.len() - 1 - place {
                return Some(format!(
                    "row {at} is not one of those that the limit leaves"
                ));
            }
        }
        None
    }

    /// The sort keys of each row; none where rows that look alike have different keys.
    fn keys<'a>(
        &self,
        whole: &'a Solutions,
        width: usize,
    ) -> BTreeMap<String, Option<&'a [Option<Term>]>> {
        let mut keys: BTreeMap<String, Option<&[Option<Term>]>> = BTreeMap::new();
        for row in &whole.rows {
            let (row, key) = row.split_at(width);
            keys.entry(self.line(row))
                .and_modify(|known| *known = known.filter(|known| *known == key))
                .or_insert(Some(key));
        }
        keys
    }

    fn table(&self, rows: &[Vec<Option<Term>>]) -> Table {
        let mut table = Table::new(self.numbers());
        for row in rows {
            let cells = row
                .iter()
                .flat_map(|term| self.cells(&mut table, term.as_ref()))
                .collect();
            table.push(cells);
        }
        table
    }

    fn numbers(&self) -> Numbers {
        match self.kind {
            Kind::Odd => Numbers::ByValue,
            Kind::Canonical | Kind::Calendar => Numbers::Exact,
        }
    }

    /// The cells of a term: one, or several of a triple term.
    fn cells(&self, table: &mut Table, term: Option<&Term>) -> Vec<Cell> {
        match term {
            Some(Term::BlankNode(node)) if self.known_nodes.contains(node.as_str()) => {
                vec![Cell::Ground(node.to_string())]
            }
            Some(Term::Literal(literal)) if literal.value().contains(SEPARATOR) => {
                let mut parts: Vec<&str> = literal.value().split(SEPARATOR).collect();
                parts.sort_unstable();
                vec![Cell::Ground(parts.join("|"))]
            }
            term => table.row([term.map(Term::as_ref)]),
        }
    }

    /// A row as text; nodes that the query made are all alike.
    fn line(&self, row: &[Option<Term>]) -> String {
        self.table(&[row.to_vec()]).lines().concat()
    }
}

/// The solutions with their first columns, so many, in the order of these variables: SPARQL says of
/// no order for those of `SELECT *`. `None` if the variables are not the same ones.
fn in_columns_of(whole: &Solutions, width: usize, variables: &[String]) -> Option<Solutions> {
    let place = |name: &String| whole.variables[..width].iter().position(|own| own == name);
    let places: Vec<usize> = variables.iter().map(place).collect::<Option<_>>()?;
    if places.len() != width {
        return None;
    }
    let row = |row: &Vec<Option<Term>>| {
        let first = places.iter().map(|&place| row[place].clone());
        first.chain(row[width..].iter().cloned()).collect()
    };
    let keys = whole.variables[width..].iter();
    Some(Solutions {
        variables: variables.iter().chain(keys).cloned().collect(),
        rows: whole.rows.iter().map(row).collect(),
    })
}
