//! Paths as answers: an item that searches for paths over the edges that a group gives.

use orrery_operators::search::{PathKind, SearchColumn};

use super::{Group, Slot, Var, VarSet};

/// A search for paths.
#[derive(Clone, Debug)]
pub(crate) struct PathSearch {
    pub(crate) kind: PathKind,
    pub(crate) is_cyclic: bool,
    pub(crate) is_bidirectional: bool,
    pub(crate) allows_empty: bool,
    pub(crate) is_by_path: bool,
    pub(crate) length_min: u32,
    pub(crate) length_max: Option<u32>,
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
    /// The edges; its variables are its own.
    pub(crate) edges: Group,
    /// Which of these an edge leaves and reaches.
    pub(crate) ends: [Var; 2],
    /// Which of these are given out.
    pub(crate) exported: Vec<Var>,
    pub(crate) weight: Option<Var>,
    pub(crate) source: Slot,
    pub(crate) destination: Slot,
    /// What is given out, beside source and destination.
    pub(crate) output: Vec<(Var, SearchColumn)>,
}

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
