//! Neighbours and nodes of the active graph.

use std::sync::Arc;

use datafusion_common::{DataFusionError, Result};
use orrery_storage::{Cursor, PerPermutation, Permutation, ReadView, RowRange};
use orrery_term::TermId;

use super::compile::Direction;
use crate::pattern::GraphScope;
use crate::solutions::storage_error;
use crate::touch_counter::{LocalTouches, TouchCounter};

/// Rows read at a time while nodes are collected.
const ROWS_PER_READ: u64 = 65_536;

/// The column of the graph in the permutations used here.
const GRAPH: usize = 3;

/// The graph, or merge of graphs, that paths are walked in.
#[derive(Clone, Debug)]
pub(crate) enum ActiveGraph {
    /// There is only the default graph.
    Only,
    /// One of several.
    One(TermId),
    /// The merge of these (ascending).
    Merge(Arc<[TermId]>),
    /// The merge of all.
    MergeAll,
}

impl ActiveGraph {
    /// That of a pattern; none where a variable stands for it.
    pub(crate) fn of(scope: &GraphScope, view: &ReadView) -> Option<Self> {
        let has_named_graphs = view.has_named_graphs();
        Some(match scope {
            GraphScope::Default | GraphScope::AllUnion if !has_named_graphs => Self::Only,
            GraphScope::Default => Self::One(TermId::DEFAULT_GRAPH),
            GraphScope::AllUnion => Self::MergeAll,
            GraphScope::Named(graph) => Self::One(*graph),
            GraphScope::Union(graphs) => {
                let mut graphs = graphs.to_vec();
                graphs.sort_unstable();
                Self::Merge(graphs.into())
            }
            GraphScope::NamedVariable { .. } => return None,
        })
    }

    /// Whether the quads of a graph count.
    fn contains(&self, graph: u64) -> bool {
        match self {
            Self::Only | Self::MergeAll => true,
            Self::One(only) => graph == only.bits(),
            Self::Merge(list) => list.binary_search(&TermId::from_bits(graph)).is_ok(),
        }
    }
}

/// Rows in which nodes stand.
#[derive(Clone, Copy)]
pub(super) struct NodeRows {
    permutation: Permutation,
    pub(super) range: RowRange,
    column: usize,
    /// Whether the nodes stand in their order.
    pub(super) is_ascending: bool,
    /// Whether all rows are of the active graph, so that nobody has to look.
    is_of_graph: bool,
}

/// Two cursors for a permutation: one that seeks, one that reads.
struct Cursors {
    seeker: Cursor,
    reader: Cursor,
}

/// Looks up neighbours.
pub(crate) struct Edges {
    view: Arc<ReadView>,
    graph: ActiveGraph,
    cursors: PerPermutation<Cursors>,
    graphs: Vec<u64>,
    predicates: Vec<u64>,
    /// Look-ups, and rows that they found.
    touches: LocalTouches,
    /// Rows that count only if all of a level is looked up.
    held: Option<u64>,
}

impl Edges {
    pub(crate) fn new(view: Arc<ReadView>, graph: ActiveGraph, touches: &TouchCounter) -> Self {
        Self {
            view,
            graph,
            touches: touches.local(),
            held: None,
            cursors: PerPermutation::default(),
            graphs: Vec::new(),
            predicates: Vec::new(),
        }
    }

    fn cursors(&mut self, permutation: Permutation) -> Result<&mut Cursors> {
        let view = &self.view;
        self.cursors.get_or_try_insert(permutation, || {
            let index = view.index(permutation).ok_or_else(|| {
                DataFusionError::Internal(format!("the database has no permutation {permutation}"))
            })?;
            Ok(Cursors {
                seeker: index.cursor(),
                reader: index.cursor(),
            })
        })
    }

    /// Begins a level of so many look-ups, which may end before the last of them: they count at
    /// once, and what they find when the level [is whole](Self::end_level). So what a search costs
    /// does not go by which of its nodes comes first: by ids, in whose order terms have a part that
    /// an asker does not see.
    pub(super) fn begin_level(&mut self, look_ups: usize) {
        self.touches.add(look_ups as u64);
        self.held = Some(0);
    }

    /// Ends a level. What was found of one that is not whole counts nothing.
    pub(super) fn end_level(&mut self, is_whole: bool) {
        let found = self.held.take().unwrap_or(0);
        self.touches.add(if is_whole { found } else { 0 });
    }

    fn seek(&mut self, permutation: Permutation, prefix: &[TermId]) -> Result<RowRange> {
        if self.held.is_none() {
            self.touches.add(1);
        }
        let cursors = self.cursors(permutation)?;
        cursors.seeker.seek(prefix).map_err(storage_error)
    }

    fn read(
        &mut self,
        permutation: Permutation,
        range: RowRange,
        column: usize,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        match &mut self.held {
            None => self.touches.add(range.len()),
            Some(held) => *held += range.len(),
        }
        let cursors = self.cursors(permutation)?;
        cursors
            .reader
            .read(range, column, out)
            .map_err(storage_error)
    }

    /// The nodes on the other side of the triples that a node has with a predicate, one for each
    /// triple.
    pub(super) fn neighbours(
        &mut self,
        predicate: TermId,
        direction: Direction,
        node: TermId,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let range = self.rows_of(predicate, direction, node)?;
        self.read_neighbours(direction, range, out)
    }

    /// Where the triples stand that a node has with a predicate.
    pub(crate) fn rows_of(
        &mut self,
        predicate: TermId,
        direction: Direction,
        node: TermId,
    ) -> Result<RowRange> {
        self.seek(by_predicate(direction), &[predicate, node])
    }

    /// The nodes on the other side of such triples. A part of them may give a node once more that
    /// the part before it gave, where graphs are merged.
    pub(crate) fn read_neighbours(
        &mut self,
        direction: Direction,
        range: RowRange,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let permutation = by_predicate(direction);
        let first = out.len();
        self.read(permutation, range, 2, out)?;
        self.keep_active(permutation, range, None, first, out)
    }

    /// As [`Self::neighbours`], for all predicates but the excluded ones.
    pub(super) fn neighbours_except(
        &mut self,
        excluded: &[TermId],
        direction: Direction,
        node: TermId,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let (permutation, predicate, neighbour) = match direction {
            Direction::Forward => (Permutation::Spog, 1, 2),
            Direction::Backward => (Permutation::Ospg, 2, 1),
        };
        let range = self.seek(permutation, &[node])?;
        let mut predicates = std::mem::take(&mut self.predicates);
        predicates.clear();
        self.read(permutation, range, predicate, &mut predicates)?;
        let first = out.len();
        self.read(permutation, range, neighbour, out)?;
        let result = self.keep_active(
            permutation,
            range,
            Some((excluded, &predicates)),
            first,
            out,
        );
        self.predicates = predicates;
        result
    }

    /// Keeps those of the neighbours just read that stand in the active graph, each triple once,
    /// and whose predicates are not excluded.
    fn keep_active(
        &mut self,
        permutation: Permutation,
        range: RowRange,
        excluded: Option<(&[TermId], &[u64])>,
        first: usize,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        if matches!(self.graph, ActiveGraph::Only) && excluded.is_none() {
            return Ok(());
        }
        let mut graphs = std::mem::take(&mut self.graphs);
        graphs.clear();
        if matches!(self.graph, ActiveGraph::One(_) | ActiveGraph::Merge(_)) {
            self.read(permutation, range, GRAPH, &mut graphs)?;
        }
        let is_merge = matches!(self.graph, ActiveGraph::Merge(_) | ActiveGraph::MergeAll);
        let mut kept = first;
        let mut last = None;
        for row in 0..out.len() - first {
            let neighbour = out[first + row];
            let predicate = excluded.map(|(_, predicates)| predicates[row]);
            let is_excluded = excluded.is_some_and(|(excluded, predicates)| {
                excluded
                    .binary_search(&TermId::from_bits(predicates[row]))
                    .is_ok()
            });
            let graph = graphs.get(row).copied();
            let is_active = graph.is_none_or(|graph| self.graph.contains(graph));
            // The graph is the last column, so repetitions of a triple follow each other.
            if is_excluded || !is_active || (is_merge && last == Some((neighbour, predicate))) {
                continue;
            }
            last = Some((neighbour, predicate));
            out[kept] = neighbour;
            kept += 1;
        }
        out.truncate(kept);
        self.graphs = graphs;
        Ok(())
    }

    /// Whether a term is the subject or object of a triple of the active graph.
    pub(super) fn has_node(&mut self, node: TermId) -> Result<bool> {
        for permutation in [Permutation::Spog, Permutation::Ospg] {
            let range = self.seek(permutation, &[node])?;
            let mut start = range.start;
            while start < range.end {
                if matches!(self.graph, ActiveGraph::Only | ActiveGraph::MergeAll) {
                    return Ok(true);
                }
                let piece = RowRange::new(start, range.end.min(start + ROWS_PER_READ));
                let mut graphs = std::mem::take(&mut self.graphs);
                graphs.clear();
                self.read(permutation, piece, GRAPH, &mut graphs)?;
                let is_active = graphs.iter().any(|&graph| self.graph.contains(graph));
                self.graphs = graphs;
                if is_active {
                    return Ok(true);
                }
                start = piece.end;
            }
        }
        Ok(false)
    }

    /// Where the nodes stand that have a triple with this predicate on their near side.
    pub(super) fn rows_with(
        &mut self,
        predicate: TermId,
        direction: Direction,
    ) -> Result<NodeRows> {
        let permutation = by_predicate(direction);
        Ok(NodeRows {
            permutation,
            range: self.seek(permutation, &[predicate])?,
            column: 1,
            is_ascending: true,
            is_of_graph: false,
        })
    }

    /// Where the subjects (forward) or objects (backward) of all triples stand.
    pub(super) fn rows_of_all(&mut self, direction: Direction) -> Result<Vec<NodeRows>> {
        let graphs = match &self.graph {
            ActiveGraph::One(graph) => Some(vec![*graph]),
            ActiveGraph::Merge(graphs) => Some(graphs.to_vec()),
            ActiveGraph::Only | ActiveGraph::MergeAll => None,
        };
        let Some(graphs) = graphs.filter(|_| self.view.has_index(Permutation::Gspo)) else {
            let permutation = match direction {
                Direction::Forward => Permutation::Spog,
                Direction::Backward => Permutation::Ospg,
            };
            return Ok(vec![NodeRows {
                permutation,
                range: self.seek(permutation, &[])?,
                column: 0,
                is_ascending: true,
                is_of_graph: false,
            }]);
        };
        let rows = graphs.into_iter().map(|graph| {
            Ok(NodeRows {
                permutation: Permutation::Gspo,
                range: self.seek(Permutation::Gspo, &[graph])?,
                column: match direction {
                    Direction::Forward => 1,
                    Direction::Backward => 3,
                },
                is_ascending: direction == Direction::Forward,
                is_of_graph: true,
            })
        });
        rows.collect()
    }

    /// Reads the nodes of some of the rows, from one on, of which equal ones that follow each other
    /// come once. Gives the row after the last one.
    pub(super) fn read_nodes(
        &mut self,
        rows: NodeRows,
        first: u64,
        out: &mut Vec<u64>,
    ) -> Result<u64> {
        let piece = RowRange::new(first, rows.range.end.min(first + ROWS_PER_READ));
        out.clear();
        self.read(rows.permutation, piece, rows.column, out)?;
        if !rows.is_of_graph {
            self.keep_active_nodes(rows.permutation, piece, out)?;
        }
        out.dedup();
        Ok(piece.end)
    }

    fn keep_active_nodes(
        &mut self,
        permutation: Permutation,
        range: RowRange,
        values: &mut Vec<u64>,
    ) -> Result<()> {
        if matches!(self.graph, ActiveGraph::Only | ActiveGraph::MergeAll) {
            return Ok(());
        }
        let mut graphs = Vec::with_capacity(values.len());
        self.read(permutation, range, GRAPH, &mut graphs)?;
        let mut graphs = graphs.into_iter();
        values.retain(|_| {
            graphs
                .next()
                .is_some_and(|graph| self.graph.contains(graph))
        });
        Ok(())
    }
}

fn by_predicate(direction: Direction) -> Permutation {
    match direction {
        Direction::Forward => Permutation::Psog,
        Direction::Backward => Permutation::Posg,
    }
}
