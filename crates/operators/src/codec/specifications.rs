//! The encoding of specifications of patterns, joins and `SERVICE` requests.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_expressions::codec::AlgebraText;
use orrery_geo::Relation;
use serde::{Deserialize, Serialize};
use spargebra::term::Variable;

use super::error::{CodecError, Result};
use super::texts::{Names, Place, QuadText, conditions, expressions, names, variables};
use crate::dealing::{Dealing, Spread};
use crate::join::{JoinMode, Uncounted};
use crate::pattern::{
    FoundIds, GivenIds, ObjectRanges, PatternExec, PatternMode, PatternSpecification, PatternStep,
};
use crate::places::{Nearness, PlacesCondition};
use crate::service::{Endpoint, ServiceExec, ServiceSpecification, ServiceVariable};

type Plan = Arc<dyn ExecutionPlan>;

/// Partitions of a node.
const PARTITIONS_MAX: usize = 4_096;
/// Rows of a chunk, where they are given.
const VECTOR_ROWS_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PatternText {
    mode: PatternModeText,
    steps: Vec<StepText>,
    filters: Vec<AlgebraText>,
    /// Variables, and the ids that each may have.
    given: Vec<(String, Vec<u64>)>,
    /// Variables, and the places where others publish ids of them.
    found: Vec<(String, u32)>,
    output: Names,
    fetch: Option<usize>,
    vector_rows: Option<usize>,
    intersects: bool,
    spread: Option<SpreadText>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum PatternModeText {
    Inner,
    Optional,
    Semi,
    Anti,
    Mark(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StepText {
    pattern: QuadText,
    object_ranges: Option<Vec<(u64, u64)>>,
    /// The bits of the estimate.
    estimated_rows: Option<u64>,
}

/// Partitions, and what each takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SpreadText(usize, DealingText);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum DealingText {
    Queue,
    Turns(u64),
    Shares,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum JoinModeText {
    Inner,
    Left,
    Anti,
    Semi,
    /// The variables that do not count, each with its witness.
    Minus(Vec<(String, Option<String>)>),
    Mark(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PlacesText {
    left: String,
    right: String,
    nearness: NearnessText,
    is_turned: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum NearnessText {
    Relation(String),
    /// The bits of the numbers.
    Within {
        distance: u64,
        unit_m: u64,
        is_strict: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ServiceText {
    endpoint: EndpointText,
    pattern: AlgebraText,
    is_silent: bool,
    sends_keys: bool,
    /// The name in the pattern, the column here, whether it is always bound.
    variables: Vec<(String, String, bool)>,
    output: Names,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum EndpointText {
    Iri(String),
    Variable(String),
}

impl PlacesText {
    pub(super) fn of(condition: &PlacesCondition) -> Self {
        Self {
            left: condition.left.to_string(),
            right: condition.right.to_string(),
            nearness: match condition.nearness {
                Nearness::Relation(relation) => NearnessText::Relation(relation.name().to_owned()),
                Nearness::Within {
                    distance,
                    unit_m,
                    is_strict,
                } => NearnessText::Within {
                    distance: distance.to_bits(),
                    unit_m: unit_m.to_bits(),
                    is_strict,
                },
            },
            is_turned: condition.is_turned,
        }
    }

    pub(super) fn build(&self) -> Result<PlacesCondition> {
        Ok(PlacesCondition {
            left: Arc::from(self.left.as_str()),
            right: Arc::from(self.right.as_str()),
            nearness: match &self.nearness {
                NearnessText::Relation(name) => {
                    let relation = Relation::of_name(name).filter(|it| it.is_close());
                    let relation = relation.ok_or_else(|| {
                        CodecError::damaged("a relation by which nothing is near")
                    })?;
                    Nearness::Relation(relation)
                }
                NearnessText::Within {
                    distance,
                    unit_m,
                    is_strict,
                } => Nearness::Within {
                    distance: f64::from_bits(*distance),
                    unit_m: f64::from_bits(*unit_m),
                    is_strict: *is_strict,
                },
            },
            is_turned: self.is_turned,
        })
    }
}

impl PatternText {
    pub(super) fn of(pattern: &PatternExec, has_shares: bool) -> Result<Self> {
        let specification = pattern.specification();
        let ranges = |ranges: &ObjectRanges| {
            let intervals = ranges.intervals().iter();
            intervals
                .map(|(low, high)| (low.bits(), high.bits()))
                .collect()
        };
        let given = |given: &GivenIds| {
            let ids = given.ids().iter().map(|id| id.bits());
            (given.variable().to_string(), ids.collect())
        };
        let found = |found: &FoundIds| (found.variable().to_string(), found.number());
        let steps = specification.steps.iter().map(|step| StepText {
            pattern: (&step.pattern).into(),
            object_ranges: step.object_ranges.as_ref().map(ranges),
            estimated_rows: step.estimated_rows.map(f64::to_bits),
        });
        Ok(Self {
            mode: match &specification.mode {
                PatternMode::Inner => PatternModeText::Inner,
                PatternMode::Optional => PatternModeText::Optional,
                PatternMode::Semi => PatternModeText::Semi,
                PatternMode::Anti => PatternModeText::Anti,
                PatternMode::Mark(name) => PatternModeText::Mark(name.to_string()),
            },
            steps: steps.collect(),
            filters: conditions(&specification.filters)?,
            given: specification.given.iter().map(given).collect(),
            found: specification.found.iter().map(found).collect(),
            output: names(&specification.output),
            fetch: specification.fetch,
            vector_rows: specification.vector_rows,
            intersects: specification.intersects,
            spread: pattern
                .spread_over()
                .map(|spread| SpreadText::of(spread, has_shares)),
        })
    }

    pub(super) fn build(&self, input: Option<Plan>, place: &Place<'_>) -> Result<Plan> {
        if self
            .vector_rows
            .is_some_and(|rows| !(1..=VECTOR_ROWS_MAX).contains(&rows))
        {
            return Err(CodecError::damaged("chunks of so many rows"));
        }
        let steps = self.steps.iter().map(|step| {
            let id = orrery_term::TermId::from_bits;
            let intervals = |ranges: &Vec<(u64, u64)>| {
                let intervals = ranges.iter().map(|(low, high)| (id(*low), id(*high)));
                ObjectRanges::new(intervals.collect())
            };
            Ok(PatternStep {
                pattern: step.pattern.build(place.check)?,
                object_ranges: step.object_ranges.as_ref().map(intervals),
                estimated_rows: step.estimated_rows.map(f64::from_bits),
            })
        });
        let given = self.given.iter().map(|(variable, ids)| {
            let ids = ids.iter().map(|bits| place.check.id(*bits));
            let ids = ids.collect::<Result<Vec<_>>>()?;
            Ok(GivenIds::new(Arc::from(variable.as_str()), ids))
        });
        let found = self.found.iter();
        let found = found.map(|(variable, number)| place.found_ids(variable, *number));
        let specification = PatternSpecification {
            mode: match &self.mode {
                PatternModeText::Inner => PatternMode::Inner,
                PatternModeText::Optional => PatternMode::Optional,
                PatternModeText::Semi => PatternMode::Semi,
                PatternModeText::Anti => PatternMode::Anti,
                PatternModeText::Mark(name) => PatternMode::Mark(Arc::from(name.as_str())),
            },
            steps: steps.collect::<Result<_>>()?,
            filters: expressions(&self.filters)?,
            given: given.collect::<Result<_>>()?,
            found: found.collect::<Result<_>>()?,
            output: variables(&self.output),
            fetch: self.fetch,
            vector_rows: self.vector_rows,
            intersects: self.intersects,
        };
        let is_inner = specification.mode == PatternMode::Inner && specification.fetch.is_none();
        if !(specification.found.is_empty() || is_inner) {
            return Err(CodecError::damaged(
                "ids from a join for a pattern that is no plain match",
            ));
        }
        let node = PatternExec::try_new(Arc::clone(place.context), input, specification)?;
        match (self.spread, node.downcast_ref::<PatternExec>()) {
            (Some(spread), Some(pattern)) => Ok(pattern.spread(spread.build()?)?),
            _ => Ok(node),
        }
    }
}

impl SpreadText {
    pub(super) fn of(spread: Spread, has_shares: bool) -> Self {
        let dealing = match spread.dealing {
            Dealing::Queue | Dealing::Turns(_) if has_shares => DealingText::Shares,
            Dealing::Queue => DealingText::Queue,
            Dealing::Turns(rows) => DealingText::Turns(rows),
            Dealing::Shares => DealingText::Shares,
        };
        Self(spread.partitions, dealing)
    }

    pub(super) fn build(self) -> Result<Spread> {
        let Self(partitions, dealing) = self;
        if !(1..=PARTITIONS_MAX).contains(&partitions) {
            return Err(CodecError::damaged(format!(
                "a node in {partitions} partitions"
            )));
        }
        Ok(Spread {
            partitions,
            dealing: match dealing {
                DealingText::Queue => Dealing::Queue,
                DealingText::Turns(rows) => Dealing::Turns(rows),
                DealingText::Shares => Dealing::Shares,
            },
        })
    }
}

impl JoinModeText {
    pub(super) fn of(mode: &JoinMode) -> Self {
        let uncounted = |it: &Uncounted| {
            let witness = it.witness.as_ref().map(ToString::to_string);
            (it.variable.to_string(), witness)
        };
        match mode {
            JoinMode::Inner => Self::Inner,
            JoinMode::Left => Self::Left,
            JoinMode::Anti => Self::Anti,
            JoinMode::Semi => Self::Semi,
            JoinMode::Minus(all) => Self::Minus(all.iter().map(uncounted).collect()),
            JoinMode::Mark(name) => Self::Mark(name.to_string()),
        }
    }

    pub(super) fn build(&self) -> JoinMode {
        match self {
            Self::Inner => JoinMode::Inner,
            Self::Left => JoinMode::Left,
            Self::Anti => JoinMode::Anti,
            Self::Semi => JoinMode::Semi,
            Self::Minus(all) => {
                let uncounted = all.iter().map(|(variable, witness)| Uncounted {
                    variable: Arc::from(variable.as_str()),
                    witness: witness.as_deref().map(Arc::from),
                });
                JoinMode::Minus(uncounted.collect())
            }
            Self::Mark(name) => JoinMode::Mark(Arc::from(name.as_str())),
        }
    }
}

impl ServiceText {
    pub(super) fn of(specification: &ServiceSpecification) -> Result<Self> {
        let variable = |it: &ServiceVariable| {
            let name = it.name.as_str().to_owned();
            (name, it.column.to_string(), it.is_certain)
        };
        Ok(Self {
            endpoint: match &specification.endpoint {
                Endpoint::Iri(iri) => EndpointText::Iri(iri.to_string()),
                Endpoint::Variable(name) => EndpointText::Variable(name.to_string()),
            },
            pattern: AlgebraText::of_pattern(&specification.pattern)?,
            is_silent: specification.is_silent,
            sends_keys: specification.sends_keys,
            variables: specification.variables.iter().map(variable).collect(),
            output: names(&specification.output),
        })
    }

    pub(super) fn build(&self, input: Option<Plan>, place: &Place<'_>) -> Result<Plan> {
        let service = place.service.ok_or(CodecError::NoEndpoints)?;
        let variable = |(name, column, is_certain): &(String, String, bool)| ServiceVariable {
            name: Variable::new_unchecked(name.clone()),
            column: Arc::from(column.as_str()),
            is_certain: *is_certain,
        };
        let specification = ServiceSpecification {
            endpoint: match &self.endpoint {
                EndpointText::Iri(iri) => Endpoint::Iri(Arc::from(iri.as_str())),
                EndpointText::Variable(name) => Endpoint::Variable(Arc::from(name.as_str())),
            },
            pattern: self.pattern.to_pattern()?,
            is_silent: self.is_silent,
            sends_keys: self.sends_keys,
            variables: self.variables.iter().map(variable).collect(),
            output: variables(&self.output),
        };
        let context = Arc::clone(place.context);
        Ok(ServiceExec::try_new(
            context,
            service.clone(),
            input,
            specification,
        )?)
    }
}
