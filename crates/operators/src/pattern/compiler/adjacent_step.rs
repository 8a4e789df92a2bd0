//! The choice of steps that an adjacency can serve.
//!
//! Those whose predicate is constant and whose subject or object is known, and which read the other
//! of both, compare it or leave it alone, in the default graph.

use orrery_storage::{Permutation, ReadView};
use orrery_term::TermId;

use crate::pattern::program::{AdjacentStep, Check, Key, SideProgram, StepProgram, ThirdColumn};

/// Columns of PSOG and POSG.
const VALUE: usize = 2;
const GRAPH: usize = 3;

impl AdjacentStep {
    /// The same step, if it can be done so. `reads_values`: also if nothing after the step does.
    pub(crate) fn of(program: &StepProgram, view: &ReadView, reads_values: bool) -> Option<Self> {
        let is_plain =
            program.merge.is_none() && program.between.is_none() && program.intersection.is_none();
        let permutation = program.index.permutation();
        if !is_plain || !matches!(permutation, Permutation::Psog | Permutation::Posg) {
            return None;
        }
        let (&Key::Constant(predicate), known) = program.prefix.split_first()? else {
            return None;
        };
        let mut other = None;
        let (key, equals) = match *known {
            [key] => (key, None),
            // Of one constant object the subjects may be many; of each subject the objects are few.
            [Key::Constant(object), key @ Key::Column(_), ref graph @ ..]
                if permutation == Permutation::Posg && is_default(graph) =>
            {
                other = Some(view.index(Permutation::Psog)?);
                (key, Some(Key::Constant(object)))
            }
            [key, value, ref graph @ ..] if is_default(graph) => (key, Some(value)),
            _ => return None,
        };
        let mut ranges = None;
        for check in &program.checks {
            match check {
                Check::Constant { read, term }
                    if program.reads[*read] == GRAPH && *term == TermId::DEFAULT_GRAPH => {}
                Check::Ranges {
                    read,
                    ranges: found,
                } if program.reads[*read] == VALUE => {
                    ranges = Some(found.clone());
                }
                _ => return None,
            }
        }
        let gives_values = program
            .produced
            .iter()
            .all(|&read| program.reads[read] == VALUE);
        let reads_values = reads_values || ranges.is_some() || !program.produced.is_empty();
        let third = match equals {
            _ if !gives_values => return None,
            Some(_) if reads_values => return None,
            Some(value) => ThirdColumn::Equals(value),
            None if reads_values => ThirdColumn::Read(ranges),
            None => ThirdColumn::Any,
        };
        Some(Self {
            index: other.unwrap_or_else(|| program.index.clone()),
            predicate,
            key,
            third,
        })
    }

    /// One side of an intersection, if its values can be had so.
    pub(crate) fn of_side(side: &SideProgram) -> Option<Self> {
        let is_default = match side.graph {
            None => true,
            Some(graph) => graph == Key::Constant(TermId::DEFAULT_GRAPH),
        };
        let permutation = side.index.permutation();
        let is_plain = is_default && side.one_of.is_none() && !side.merges;
        let ([Key::Constant(predicate), key], true, Permutation::Psog | Permutation::Posg) =
            (side.prefix, is_plain, permutation)
        else {
            return None;
        };
        Some(Self {
            index: side.index.clone(),
            predicate,
            key,
            third: ThirdColumn::Read(None),
        })
    }
}

/// Whether the rest of a prefix is nothing or the default graph.
fn is_default(graph: &[Key]) -> bool {
    matches!(graph, [] | [Key::Constant(TermId::DEFAULT_GRAPH)])
}
