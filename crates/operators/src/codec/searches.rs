//! The encoding of path searches and graph algorithms, with checks before these are made.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

use super::error::{CodecError, Result};
use super::inputs::wrong_inputs;
use super::texts::{GraphText, Place, SlotText};
use crate::algorithms::{Algorithm, AlgorithmColumn, AlgorithmExec, AlgorithmSpecification};
use crate::search::{
    PathKind, PlainEdges, PlainStep, SearchColumn, SearchExec, SearchInputs, SearchSpecification,
};

type Plan = Arc<dyn ExecutionPlan>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SearchText {
    kind: KindText,
    is_cyclic: bool,
    is_weighted: bool,
    is_bidirectional: bool,
    allows_empty: bool,
    is_by_path: bool,
    source: SlotText,
    destination: SlotText,
    length_min: u32,
    length_max: Option<u32>,
    offset: u64,
    limit: Option<u64>,
    begins_whole: bool,
    /// Predicates whose triples are edges, and whether these are turned; the graph.
    plain: Option<(Vec<(u64, bool)>, GraphText)>,
    exported: usize,
    output: Vec<(String, ColumnText)>,
    /// Whether the first input binds ends.
    has_input: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum KindText {
    AllShortest,
    OneShortest,
    All,
    First(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum ColumnText {
    Input,
    Source,
    Destination,
    PathIndex,
    EdgeIndex,
    Length,
    Cost,
    Start,
    End,
    Exported(usize),
    Triple(usize),
}

impl From<SearchColumn> for ColumnText {
    fn from(column: SearchColumn) -> Self {
        match column {
            SearchColumn::Input => Self::Input,
            SearchColumn::Source => Self::Source,
            SearchColumn::Destination => Self::Destination,
            SearchColumn::PathIndex => Self::PathIndex,
            SearchColumn::EdgeIndex => Self::EdgeIndex,
            SearchColumn::Length => Self::Length,
            SearchColumn::Cost => Self::Cost,
            SearchColumn::Start => Self::Start,
            SearchColumn::End => Self::End,
            SearchColumn::Exported(variable) => Self::Exported(variable),
            SearchColumn::Triple(variable) => Self::Triple(variable),
        }
    }
}

impl ColumnText {
    fn build(self, exported: usize) -> Result<SearchColumn> {
        let known = |variable| match variable < exported {
            true => Ok(variable),
            false => Err(CodecError::damaged("a variable that no edge has")),
        };
        Ok(match self {
            Self::Input => SearchColumn::Input,
            Self::Source => SearchColumn::Source,
            Self::Destination => SearchColumn::Destination,
            Self::PathIndex => SearchColumn::PathIndex,
            Self::EdgeIndex => SearchColumn::EdgeIndex,
            Self::Length => SearchColumn::Length,
            Self::Cost => SearchColumn::Cost,
            Self::Start => SearchColumn::Start,
            Self::End => SearchColumn::End,
            Self::Exported(variable) => SearchColumn::Exported(known(variable)?),
            Self::Triple(variable) => SearchColumn::Triple(known(variable)?),
        })
    }
}

impl SearchText {
    pub(super) fn of(search: &SearchExec) -> Self {
        let specification = search.specification();
        let output = specification.output.iter();
        Self {
            kind: match specification.kind {
                PathKind::Shortest { is_all: true } => KindText::AllShortest,
                PathKind::Shortest { is_all: false } => KindText::OneShortest,
                PathKind::All => KindText::All,
                PathKind::First(count) => KindText::First(count),
            },
            is_cyclic: specification.is_cyclic,
            is_weighted: specification.is_weighted,
            is_bidirectional: specification.is_bidirectional,
            allows_empty: specification.allows_empty,
            is_by_path: specification.is_by_path,
            source: (&specification.source).into(),
            destination: (&specification.destination).into(),
            length_min: specification.length_min,
            length_max: specification.length_max,
            offset: specification.offset,
            limit: specification.limit,
            begins_whole: specification.begins_whole,
            plain: specification.plain.as_ref().map(|plain| {
                let steps = plain.steps.iter();
                let steps = steps.map(|step| (step.predicate.bits(), step.is_turned));
                (steps.collect(), (&plain.graph).into())
            }),
            exported: specification.exported,
            output: output
                .map(|(name, column)| (name.to_string(), (*column).into()))
                .collect(),
            has_input: search.has_input(),
        }
    }

    pub(super) fn build(&self, inputs: Vec<Plan>, place: &Place<'_>) -> Result<Plan> {
        let output = self.output.iter();
        let output = output.map(|(name, column)| {
            let column = column.build(self.exported)?;
            Ok((Arc::from(name.as_str()), column))
        });
        let specification = SearchSpecification {
            kind: match self.kind {
                KindText::AllShortest => PathKind::Shortest { is_all: true },
                KindText::OneShortest => PathKind::Shortest { is_all: false },
                KindText::All => PathKind::All,
                KindText::First(count) => PathKind::First(count),
            },
            is_cyclic: self.is_cyclic,
            is_weighted: self.is_weighted,
            is_bidirectional: self.is_bidirectional,
            allows_empty: self.allows_empty,
            is_by_path: self.is_by_path,
            source: self.source.build(place.check)?,
            destination: self.destination.build(place.check)?,
            length_min: self.length_min,
            length_max: self.length_max,
            offset: self.offset,
            limit: self.limit,
            begins_whole: self.begins_whole,
            plain: self
                .plain
                .as_ref()
                .map(|plain| plain_edges(plain, place))
                .transpose()?,
            exported: self.exported,
            output: output.collect::<Result<_>>()?,
        };
        let inputs = SearchInputs::of(self.has_input, inputs).ok_or_else(wrong_inputs)?;
        // What is looked up has no further variables.
        let is_wrong = specification.plain.is_some()
            && (specification.exported > 0 || specification.is_weighted);
        if is_wrong || !inputs.are_edges_of(&specification) {
            return Err(CodecError::damaged(
                "edges with too few or too many columns",
            ));
        }
        let context = Arc::clone(place.context);
        Ok(SearchExec::try_new(context, inputs, specification)?)
    }
}

fn plain_edges(
    (steps, graph): &(Vec<(u64, bool)>, GraphText),
    place: &Place<'_>,
) -> Result<PlainEdges> {
    let step = |&(predicate, is_turned): &(u64, bool)| {
        let predicate = place.check.id(predicate)?;
        Ok(PlainStep {
            predicate,
            is_turned,
        })
    };
    Ok(PlainEdges {
        steps: steps.iter().map(step).collect::<Result<_>>()?,
        graph: graph.build(place.check)?,
    })
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AlgorithmText {
    algorithm: KindOfAlgorithm,
    output: Vec<(String, AlgorithmColumnText)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum KindOfAlgorithm {
    PageRank {
        iterations: u32,
        /// The bits of the number.
        damping: u64,
    },
    Components,
    Degree,
    Triangles,
    Communities {
        iterations: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum AlgorithmColumnText {
    Node,
    Value,
    InDegree,
    OutDegree,
}

impl AlgorithmText {
    pub(super) fn of(algorithm: &AlgorithmExec) -> Self {
        let specification = algorithm.specification();
        let column = |column| match column {
            AlgorithmColumn::Node => AlgorithmColumnText::Node,
            AlgorithmColumn::Value => AlgorithmColumnText::Value,
            AlgorithmColumn::InDegree => AlgorithmColumnText::InDegree,
            AlgorithmColumn::OutDegree => AlgorithmColumnText::OutDegree,
        };
        let output = specification.output.iter();
        Self {
            algorithm: match specification.algorithm {
                Algorithm::PageRank {
                    iterations,
                    damping,
                } => KindOfAlgorithm::PageRank {
                    iterations,
                    damping: damping.to_bits(),
                },
                Algorithm::Components => KindOfAlgorithm::Components,
                Algorithm::Degree => KindOfAlgorithm::Degree,
                Algorithm::Triangles => KindOfAlgorithm::Triangles,
                Algorithm::Communities { iterations } => {
                    KindOfAlgorithm::Communities { iterations }
                }
            },
            output: output
                .map(|(name, it)| (name.to_string(), column(*it)))
                .collect(),
        }
    }

    pub(super) fn build(&self, edges: Plan, place: &Place<'_>) -> Result<Plan> {
        if edges.schema().fields().len() != 2 {
            return Err(CodecError::damaged(
                "edges with too few or too many columns",
            ));
        }
        let is_degree = |column| {
            matches!(
                column,
                AlgorithmColumnText::InDegree | AlgorithmColumnText::OutDegree
            )
        };
        let counts_degrees = self.algorithm == KindOfAlgorithm::Degree;
        if !counts_degrees && self.output.iter().any(|(_, it)| is_degree(*it)) {
            return Err(CodecError::damaged("a degree that is not counted"));
        }
        let column = |column| match column {
            AlgorithmColumnText::Node => AlgorithmColumn::Node,
            AlgorithmColumnText::Value => AlgorithmColumn::Value,
            AlgorithmColumnText::InDegree => AlgorithmColumn::InDegree,
            AlgorithmColumnText::OutDegree => AlgorithmColumn::OutDegree,
        };
        let output = self.output.iter();
        let specification = AlgorithmSpecification {
            algorithm: match self.algorithm {
                KindOfAlgorithm::PageRank {
                    iterations,
                    damping,
                } => Algorithm::PageRank {
                    iterations,
                    damping: f64::from_bits(damping),
                },
                KindOfAlgorithm::Components => Algorithm::Components,
                KindOfAlgorithm::Degree => Algorithm::Degree,
                KindOfAlgorithm::Triangles => Algorithm::Triangles,
                KindOfAlgorithm::Communities { iterations } => {
                    Algorithm::Communities { iterations }
                }
            },
            output: output
                .map(|(name, it)| (Arc::from(name.as_str()), column(*it)))
                .collect(),
        };
        let context = Arc::clone(place.context);
        Ok(AlgorithmExec::over(context, edges, specification))
    }
}
