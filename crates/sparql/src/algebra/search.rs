//! The variables that path searches and algorithms bind.

use orrery_operators::search::SearchColumn;

use super::{GraphAlgorithm, PathSearch, Slot, VarSet};

impl PathSearch {
    /// The variables that it can begin with.
    pub(crate) fn bindable(&self) -> VarSet {
        let ends = [self.source, self.destination];
        VarSet::of(ends.into_iter().filter_map(Slot::variable))
    }

    pub(crate) fn visible(&self) -> VarSet {
        let mut visible = self.bindable();
        for (var, _) in &self.output {
            visible.insert(*var);
        }
        visible
    }

    pub(crate) fn certain(&self) -> VarSet {
        let mut certain = self.bindable();
        for (var, column) in &self.output {
            let is_certain = match column {
                SearchColumn::Exported(at) => self.edges.certain.contains(self.exported[*at]),
                SearchColumn::Triple(_) => false,
                SearchColumn::Input
                | SearchColumn::Source
                | SearchColumn::Destination
                | SearchColumn::PathIndex
                | SearchColumn::EdgeIndex
                | SearchColumn::Length
                | SearchColumn::Cost
                | SearchColumn::Start
                | SearchColumn::End => true,
            };
            if is_certain {
                certain.insert(*var);
            }
        }
        certain
    }

    /// A guess: paths of some edges, between the ends that are there.
    pub(crate) fn expected_rows(&self) -> f64 {
        const ROWS_OF_PAIR: f64 = 10.0;
        const ENDS: f64 = 1_000.0;
        let open = [self.source, self.destination].into_iter();
        let open = open.filter(|end| end.variable().is_some()).count();
        ROWS_OF_PAIR * ENDS.powi(i32::try_from(open).unwrap_or(2))
    }
}

impl GraphAlgorithm {
    /// Nodes of a graph of which nothing is known.
    pub(crate) const ROWS: f64 = 10_000.0;

    pub(crate) fn visible(&self) -> VarSet {
        VarSet::of(self.output.iter().map(|(var, _)| *var))
    }
}
