//! The generator's state: random numbers, tables, unique names.

use super::super::random::Random;
use super::dual::{Kind, Sql};
use super::expression::Visible;
use super::tables::Table;

/// Makes queries over some tables.
pub(super) struct Grammar<'a> {
    pub(super) random: &'a mut Random,
    pub(super) tables: &'a [Table],
    /// Numbers the names that it gives.
    names: usize,
}

/// Where rows come from.
pub(super) struct From {
    pub(super) sql: Sql,
    pub(super) scope: Vec<Visible>,
    pub(super) is_large: bool,
}

/// A query: the text, the kinds of its columns, and whether its rows are few enough.
pub(super) type Part = (Sql, Vec<Kind>, bool);

impl<'a> Grammar<'a> {
    pub(super) fn new(random: &'a mut Random, tables: &'a [Table]) -> Self {
        Self {
            random,
            tables,
            names: 0,
        }
    }

    pub(super) fn order(&mut self, columns: usize) -> Sql {
        let mut places: Vec<usize> = (1..=columns).collect();
        for at in (1..places.len()).rev() {
            places.swap(at, self.random.below(at + 1));
        }
        let parts = places.into_iter().map(|place| {
            let how = self.random.pick(&[
                "",
                " desc",
                " nulls first",
                " desc nulls last",
                " asc nulls last",
            ]);
            Sql::same(format!("{place}{how}"))
        });
        let parts: Vec<Sql> = parts.collect();
        Sql::of(" order by {}", &[&Sql::join(&parts, ", ")])
    }

    pub(super) fn name(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }
}

/// Columns with names of their own: two may be one expression.
pub(super) fn named(columns: &[Sql]) -> Sql {
    let columns = columns.iter().enumerate();
    let named = columns.map(|(at, column)| Sql::of(&format!("{{}} as k{at}"), &[column]));
    Sql::join(&named.collect::<Vec<_>>(), ", ")
}
