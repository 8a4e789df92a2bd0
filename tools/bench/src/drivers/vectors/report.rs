//! The table of the lab.

use std::fmt;

use serde::Serialize;

use super::shape::Design;
use super::store::Store;
use super::vector::VectorSize;
use crate::report::Table;

/// Q9 on one design in one store with one size of vectors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorCell {
    /// How the data is laid out.
    pub design: Design,
    /// How tables lie.
    pub store: Store,
    /// How long vectors are.
    pub vector: VectorSize,
    /// The quickest run; nothing if none ended within the limit.
    pub milliseconds: Option<f64>,
    /// Rows that a vector had at the end of that run, which is more than at its beginning if it
    /// grew.
    pub vector_rows: Option<usize>,
}

/// The place that a design takes in a store.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DesignSpace {
    /// How the data is laid out.
    pub design: Design,
    /// How tables lie.
    pub store: Store,
    /// The tables of Q9 and the index, if there is one.
    pub bytes: u64,
}

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorsReport {
    /// How large the database is.
    pub scale: f64,
    /// Threads of each run.
    pub threads: usize,
    /// Runs of each cell, of which the quickest counts.
    pub runs: u32,
    /// When a run was given up.
    pub cell_seconds_max: f64,
    /// Each design in each store.
    pub space: Vec<DesignSpace>,
    /// Each with each size.
    pub cells: Vec<VectorCell>,
    /// Q9 as SQL on a database of the same rows without further indexes, with as many threads; the
    /// quickest run.
    pub sql_milliseconds: f64,
    /// Rows of SQL's answer.
    pub rows: usize,
    /// Answers of cells that were compared with SQL's.
    pub answers_compared: usize,
    /// Whether SQL's answer was compared with the file of the right one.
    pub is_file_compared: bool,
    /// Where answers differ.
    pub mistakes: Vec<String>,
}

impl VectorsReport {
    fn cell(&self, design: Design, store: Store, vector: VectorSize) -> Option<&VectorCell> {
        let mut cells = self.cells.iter();
        cells.find(|it| (it.design, it.store, it.vector) == (design, store, vector))
    }

    /// A time, or that the limit came first.
    fn shown(&self, cell: Option<&VectorCell>) -> String {
        match cell.map(|cell| cell.milliseconds) {
            Some(Some(milliseconds)) => format!("{milliseconds:.1}"),
            Some(None) => format!("> {:.0}", self.cell_seconds_max * 1e3),
            None => String::new(),
        }
    }
}

impl fmt::Display for VectorsReport {
    /// As it stands in `docs/performance.md`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "TPC-H Q9 at scale {}, threads {}, best of {} runs, milliseconds\n",
            self.scale, self.threads, self.runs
        )?;
        let mut table =
            Table::markdown(["design", "store", "MB", "dynamic", "grew to", "10,000", "1"]);
        for space in &self.space {
            let cell = |vector| self.cell(space.design, space.store, vector);
            let dynamic = cell(VectorSize::Dynamic);
            let grown = dynamic.and_then(|cell| cell.vector_rows);
            table.row([
                space.design.name().to_owned(),
                space.store.name().to_owned(),
                format!("{:.1}", space.bytes as f64 / 1e6),
                self.shown(dynamic),
                grown.map_or_else(String::new, |rows| {
                    crate::report::with_thousands(rows as u64)
                }),
                self.shown(cell(VectorSize::Fixed(10_000))),
                self.shown(cell(VectorSize::Fixed(1))),
            ]);
        }
        table.fmt(formatter)?;
        writeln!(
            formatter,
            "\nThe same as SQL on a database with primary keys alone: {:.1} ms. {} answers of {} rows compared with SQL's{}, {} mistakes.",
            self.sql_milliseconds,
            self.answers_compared,
            self.rows,
            match self.is_file_compared {
                true => ", and that with the right one",
                false => "",
            },
            self.mistakes.len()
        )?;
        for mistake in &self.mistakes {
            writeln!(formatter, "\n{mistake}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_given_up_shows_the_limit() {
        let cell = |vector, milliseconds: Option<f64>| VectorCell {
            design: Design::Index,
            store: Store::Rows,
            vector,
            milliseconds,
            vector_rows: milliseconds.map(|_| 100_000),
        };
        let report = VectorsReport {
            scale: 0.1,
            threads: 1,
            runs: 3,
            cell_seconds_max: 2.0,
            space: vec![DesignSpace {
                design: Design::Index,
                store: Store::Rows,
                bytes: 12_340_000,
            }],
            cells: vec![
                cell(VectorSize::Dynamic, Some(12.34)),
                cell(VectorSize::Fixed(10_000), Some(20.0)),
                cell(VectorSize::Fixed(1), None),
            ],
            sql_milliseconds: 5.0,
            rows: 175,
            answers_compared: 2,
            is_file_compared: true,
            mistakes: vec!["index, rows, 1: 0 rows, not 175".to_owned()],
        };
        let text = report.to_string();
        assert!(
            text.contains("| index | rows | 12.3 | 12.3 | 100,000 | 20.0 | > 2000 |"),
            "{text}"
        );
        assert!(
            text.ends_with("1 mistakes.\n\nindex, rows, 1: 0 rows, not 175\n"),
            "{text}"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["cells"][2]["milliseconds"], serde_json::Value::Null);
        assert_eq!(json["cells"][1]["vector"], "10000");
    }
}
