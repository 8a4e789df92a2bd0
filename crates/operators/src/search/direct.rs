//! Edges that are triples of given predicates, read directly from permutations.
//!
//! A plan of edges costs what it costs to start it, for each level. Here a node is a look-up for
//! each predicate and side, in the permutation that has it first; through the same view of the data
//! as patterns have, so that what an asker does not see is not there. Look-ups and rows found are
//! touches. A node with very many edges is read in pieces.

use std::sync::Arc;

use datafusion_common::Result;
use orrery_storage::RowRange;
use orrery_term::TermId;

use super::compiled::CompiledSearch;
use super::graph::{Direction, Graph};
use super::specification::PlainEdges;
use crate::path::{self, ActiveGraph, Edges};

/// Rows read at a time.
const ROWS_PER_PIECE: u64 = 8_192;

/// What a look-up has left to read.
pub(super) struct Found {
    node: u64,
    /// Which side of an edge the node is on.
    direction: Direction,
    walked: path::Direction,
    range: RowRange,
}

/// Reads the edges of nodes.
pub(super) struct DirectEdges {
    edges: Edges,
    plain: PlainEdges,
    is_bidirectional: bool,
    neighbours: Vec<u64>,
}

impl DirectEdges {
    /// Nothing where the edges are no plain triples.
    pub(super) fn of(plan: &CompiledSearch) -> Option<Self> {
        let plain = plan.specification.plain.clone()?;
        let view = plan.context.view();
        let graph = ActiveGraph::of(&plain.graph, view)?;
        Some(Self {
            edges: Edges::new(Arc::clone(view), graph, &plan.touches),
            plain,
            is_bidirectional: plan.specification.is_bidirectional,
            neighbours: Vec::new(),
        })
    }

    /// Looks up where the edges of a node stand that leave it, or reach it; both where edges go
    /// both ways.
    pub(super) fn look_up(
        &mut self,
        direction: Direction,
        node: u64,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let sides = [direction, direction.opposite()];
        let sides = &sides[..1 + usize::from(self.is_bidirectional)];
        for at in 0..self.plain.steps.len() {
            let step = self.plain.steps[at];
            for &direction in sides {
                let is_forward = (direction == Direction::Out) != step.is_turned;
                let walked = match is_forward {
                    true => path::Direction::Forward,
                    false => path::Direction::Backward,
                };
                let term = TermId::from_bits(node);
                let range = self.edges.rows_of(step.predicate, walked, term)?;
                if !range.is_empty() {
                    found.push(Found {
                        node,
                        direction,
                        walked,
                        range,
                    });
                }
            }
        }
        Ok(())
    }

    /// Adds the next edges of a look-up to the graph; whether there are more.
    pub(super) fn read(&mut self, found: &mut Found, graph: &mut Graph) -> Result<bool> {
        let end = found.range.end.min(found.range.start + ROWS_PER_PIECE);
        let piece = RowRange::new(found.range.start, end);
        found.range = RowRange::new(end, found.range.end);
        self.neighbours.clear();
        self.edges
            .read_neighbours(found.walked, piece, &mut self.neighbours)?;
        let ways = 1 + usize::from(self.is_bidirectional);
        graph.reserve(self.neighbours.len(), ways * self.neighbours.len())?;
        for &neighbour in &self.neighbours {
            let (start, end) = match found.direction {
                Direction::Out => (found.node, neighbour),
                Direction::In => (neighbour, found.node),
            };
            graph.add(start, end, &[], 1.0);
            if self.is_bidirectional {
                graph.add(end, start, &[], 1.0);
            }
        }
        Ok(!found.range.is_empty())
    }
}
