//! Isomorphism of two tables of terms with blank nodes.
//!
//! Graphs (a row is a triple or quad) and solutions (a row has a cell for each
//! variable) are both multisets of rows. Each blank node gets a colour, refined by the
//! rows in which it stands until the colours tell no more apart. Where several blank nodes
//! share a colour, one of the left is paired with each of the right in turn, and refined
//! again. Automorphic nodes pair at the first try; only regular structures, which
//! no test suite has at size, make it slow.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

use oxrdf::vocab::xsd;
use oxsdatatypes::{Decimal, Double, Float};

/// One cell of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cell {
    /// Nothing: an unbound variable, the default graph.
    Empty,
    /// A term that is the same everywhere.
    Ground(String),
    /// A blank node by its number within the table.
    Blank(usize),
}

/// Rows of cells, and how many blank nodes they name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
    labels: HashMap<String, usize>,
    numbers: Numbers,
}

/// When two numbers are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// When their terms are.
    #[default]
    Exact,
    /// Decimals, floats and doubles also when only their values are: `2.0` and `2.00`.
    ByValue,
}

type Colours = Vec<u64>;

impl Table {
    /// An empty table.
    pub(crate) fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            ..Self::default()
        }
    }

    /// The row of these terms: a cell each, and five for a triple term, two of them its brackets.
    pub(crate) fn row<'t>(
        &mut self,
        terms: impl IntoIterator<Item = Option<oxrdf::TermRef<'t>>>,
    ) -> Vec<Cell> {
        let mut row = Vec::new();
        for term in terms {
            match term {
                None => row.push(Cell::Empty),
                Some(term) => self.push_cells(term, &mut row),
            }
        }
        row
    }

    fn push_cells(&mut self, term: oxrdf::TermRef<'_>, row: &mut Vec<Cell>) {
        let cell = match term {
            oxrdf::TermRef::BlankNode(node) => self.blank(node.as_str()),
            oxrdf::TermRef::Literal(literal) if self.numbers == Numbers::ByValue => {
                Cell::Ground(with_canonical_number(literal))
            }
            oxrdf::TermRef::Triple(triple) => {
                row.push(Cell::Ground("<<(".to_owned()));
                self.push_cells(triple.subject.as_ref().into(), row);
                self.push_cells(triple.predicate.as_ref().into(), row);
                self.push_cells(triple.object.as_ref(), row);
                Cell::Ground(")>>".to_owned())
            }
            oxrdf::TermRef::NamedNode(_) | oxrdf::TermRef::Literal(_) => {
                Cell::Ground(term.to_string())
            }
        };
        row.push(cell);
    }

    /// The cell of a blank node.
    pub(crate) fn blank(&mut self, label: &str) -> Cell {
        let next = self.labels.len();
        Cell::Blank(*self.labels.entry(label.to_owned()).or_insert(next))
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Makes the place of each row a part of it, so that order counts.
    pub(crate) fn number_rows(&mut self) {
        for (number, row) in self.rows.iter_mut().enumerate() {
            row.push(Cell::Ground(format!("#{number}")));
        }
    }

    /// Drops repeated rows.
    pub(crate) fn dedup(&mut self) {
        self.rows.sort_unstable();
        self.rows.dedup();
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether some renaming of blank nodes makes the tables equal as multisets.
    pub(crate) fn is_isomorphic(&self, other: &Self) -> bool {
        self.rows.len() == other.rows.len()
            && self.labels.len() == other.labels.len()
            && matches(
                self,
                other,
                vec![0; self.labels.len()],
                vec![0; other.labels.len()],
            )
    }

    /// The rows, for messages: sorted, with blank nodes made anonymous.
    pub(crate) fn lines(&self) -> Vec<String> {
        let cell = |cell: &Cell| match cell {
            Cell::Empty => "-".to_owned(),
            Cell::Ground(text) => text.clone(),
            Cell::Blank(_) => "_:".to_owned(),
        };
        let line = |row: &Vec<Cell>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        lines.sort_unstable();
        lines
    }

    /// One round: the new colour of a node is made of its old one and the rows it stands in.
    fn refine_once(&self, colours: &Colours) -> Colours {
        let mut seen: Vec<Vec<u64>> = vec![Vec::new(); colours.len()];
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                if let Cell::Blank(node) = cell {
                    seen[*node].push(row_hash(row, *node, column, colours));
                }
            }
        }
        seen.into_iter()
            .zip(colours)
            .map(|(mut rows, colour)| {
                rows.sort_unstable();
                hash(&(colour, rows))
            })
            .collect()
    }

    fn refine(&self, mut colours: Colours) -> Colours {
        let mut classes = classes(&colours).len();
        loop {
            let refined = self.refine_once(&colours);
            let refined_classes = self::classes(&refined).len();
            colours = refined;
            if refined_classes == classes {
                return colours;
            }
            classes = refined_classes;
        }
    }

    /// The rows with colours for blank nodes, sorted.
    fn coloured(&self, colours: &Colours) -> Vec<Vec<Result<u64, &Cell>>> {
        let cell = |cell| match cell {
            &Cell::Blank(node) => Ok(colours[node]),
            other => Err(other),
        };
        let mut rows: Vec<Vec<_>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        rows.sort_unstable();
        rows
    }
}

fn with_canonical_number(literal: oxrdf::LiteralRef<'_>) -> String {
    let text = literal.value();
    let canonical = match literal.datatype() {
        xsd::DECIMAL => Decimal::from_str(text).map(|value| value.to_string()).ok(),
        xsd::FLOAT => Float::from_str(text).map(|value| value.to_string()).ok(),
        xsd::DOUBLE => Double::from_str(text).map(|value| value.to_string()).ok(),
        _ => None,
    };
    match canonical {
        Some(canonical) => {
            oxrdf::LiteralRef::new_typed_literal(&canonical, literal.datatype()).to_string()
        }
        None => literal.to_string(),
    }
}

fn hash(value: &impl Hash) -> u64 {
    // The same keys each time: colours of both tables must be comparable.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn row_hash(row: &[Cell], node: usize, column: usize, colours: &Colours) -> u64 {
    let mut hasher = DefaultHasher::new();
    column.hash(&mut hasher);
    for cell in row {
        match cell {
            Cell::Blank(other) => (*other == node, colours[*other]).hash(&mut hasher),
            ground => ground.hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// The nodes of each colour.
fn classes(colours: &Colours) -> BTreeMap<u64, Vec<usize>> {
    let mut classes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (node, colour) in colours.iter().enumerate() {
        classes.entry(*colour).or_default().push(node);
    }
    classes
}

fn matches(left: &Table, right: &Table, left_colours: Colours, right_colours: Colours) -> bool {
    let left_colours = left.refine(left_colours);
    let right_colours = right.refine(right_colours);
    if left.coloured(&left_colours) != right.coloured(&right_colours) {
        return false;
    }
    let (left_classes, right_classes) = (classes(&left_colours), classes(&right_colours));
    let shared = left_classes
        .iter()
        .filter(|(_, nodes)| nodes.len() > 1)
        .min_by_key(|(_, nodes)| nodes.len());
    let Some((colour, nodes)) = shared else {
        // Every node has a colour of its own, and the coloured rows are equal.
        return true;
    };
    let candidates = right_classes.get(colour).map_or(&[][..], Vec::as_slice);
    if candidates.len() != nodes.len() {
        return false;
    }
    let own_colour = hash(&(colour, "chosen"));
    candidates.iter().any(|candidate| {
        let (mut left_colours, mut right_colours) = (left_colours.clone(), right_colours.clone());
        left_colours[nodes[0]] = own_colour;
        right_colours[*candidate] = own_colour;
        matches(left, right, left_colours, right_colours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pairs: &[(&str, &str)]) -> Table {
        let mut table = Table::default();
        for (from, to) in pairs {
            let row = vec![table.blank(from), table.blank(to)];
            table.push(row);
        }
        table
    }

    #[test]
    fn names_of_blank_nodes_do_not_matter() {
        let left = edges(&[("a", "b"), ("b", "c")]);
        assert!(left.is_isomorphic(&edges(&[("y", "z"), ("x", "y")])));
        assert!(!left.is_isomorphic(&edges(&[("y", "z"), ("y", "x")])));
    }

    #[test]
    fn regular_structures_that_colours_cannot_tell_apart_are_told_apart() {
        let hexagon = edges(&[
            ("a", "b"),
            ("b", "c"),
            ("c", "d"),
            ("d", "e"),
            ("e", "f"),
            ("f", "a"),
        ]);
        let triangles = edges(&[
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("d", "e"),
            ("e", "f"),
            ("f", "d"),
        ]);
        assert!(hexagon.is_isomorphic(&hexagon));
        assert!(triangles.is_isomorphic(&triangles));
        assert!(!hexagon.is_isomorphic(&triangles));
    }

    #[test]
    fn rows_are_counted() {
        let mut once = Table::default();
        once.push(vec![Cell::Ground("x".to_owned())]);
        let mut twice = once.clone();
        twice.push(vec![Cell::Ground("x".to_owned())]);
        assert!(!once.is_isomorphic(&twice));
        twice.dedup();
        assert!(once.is_isomorphic(&twice));
    }
}
