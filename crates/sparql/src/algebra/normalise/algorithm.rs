//! The `SERVICE` of graph algorithms: its settings and edge pattern.
//!
//! ```text
//! SERVICE <https://orrery-db.org/algorithm#run> {
//!   [] algo:algorithm algo:pageRank ; algo:startNode ?s ; algo:endNode ?o ; algo:node ?n ; algo:value ?rank .
//!   SERVICE <urn:edges> { ?s foaf:knows ?o }
//! }
//! ```

use orrery_operators::algorithms::{Algorithm, AlgorithmColumn};
use spargebra::algebra::GraphPattern;
use spargebra::term::{TermPattern, Variable};

use super::search::{Parts, Served, Settings};
use super::{Normaliser, PatternPlace};
use crate::algebra::services::algorithm_name;
use crate::algebra::{GraphAlgorithm, Group, Item};
use crate::error::{QueryError, Result};

/// Rounds, if nothing is said.
const ITERATIONS: u64 = 20;
/// Rounds at most.
const ITERATIONS_MAX: u64 = 10_000;
/// The chance to follow an edge, if nothing is said.
const DAMPING: f64 = 0.85;

const ALGORITHM: Served = Served {
    what: "an algorithm over a graph",
    prefix: "algo",
    local_name: algorithm_name,
};

fn wrong(what: impl std::fmt::Display) -> QueryError {
    ALGORITHM.wrong(what)
}

impl Normaliser<'_> {
    /// A `SERVICE` that runs an algorithm.
    pub(super) fn algorithm(
        &mut self,
        pattern: &GraphPattern,
        place: &PatternPlace,
    ) -> Result<Group> {
        ALGORITHM.check_place(place)?;
        let parts = Parts::of(pattern, ALGORITHM)?;
        if parts.path.is_some() {
            return Err(wrong(
                "the pattern of the edges stands in a SERVICE <urn:edges> { .. } of its own",
            ));
        }
        let mut name = None;
        let (mut iterations, mut damping) = (None, DAMPING);
        let mut ends = Settings::default();
        let mut given: Vec<(&Variable, AlgorithmColumn)> = Vec::new();
        let mut seen = Vec::with_capacity(parts.settings.len());
        for &triple in &parts.settings {
            let setting = ALGORITHM.setting(triple)?;
            ALGORITHM.once(setting, &mut seen)?;
            let value = &triple.object;
            match setting {
                "algorithm" => name = Some(algorithm_of(value)?),
                "startNode" => ends.start = Some(ALGORITHM.variable(setting, value)?),
                "endNode" => ends.end = Some(ALGORITHM.variable(setting, value)?),
                "node" => given.push((ALGORITHM.variable(setting, value)?, AlgorithmColumn::Node)),
                "value" => {
                    given.push((ALGORITHM.variable(setting, value)?, AlgorithmColumn::Value))
                }
                "inDegree" => given.push((
                    ALGORITHM.variable(setting, value)?,
                    AlgorithmColumn::InDegree,
                )),
                "outDegree" => given.push((
                    ALGORITHM.variable(setting, value)?,
                    AlgorithmColumn::OutDegree,
                )),
                "iterations" => iterations = Some(ALGORITHM.number(setting, value)?),
                "damping" => damping = fraction(value)?,
                _ => {
                    return Err(wrong(format_args!(
                        "the setting algo:{setting} is not known"
                    )));
                }
            }
        }
        let rounds = iterations.unwrap_or(ITERATIONS);
        let rounds = u32::try_from(rounds.min(ITERATIONS_MAX + 1)).unwrap_or(u32::MAX);
        if u64::from(rounds) > ITERATIONS_MAX {
            return Err(wrong(format_args!(
                "algo:iterations is {ITERATIONS_MAX} at most"
            )));
        }
        let algorithm = match name {
            Some("pageRank") => Algorithm::PageRank {
                iterations: rounds,
                damping,
            },
            Some("connectedComponents") => Algorithm::Components,
            Some("degree") => Algorithm::Degree,
            Some("triangles") => Algorithm::Triangles,
            Some("communities") => Algorithm::Communities { iterations: rounds },
            Some(other) => {
                return Err(wrong(format_args!(
                    "algo:algorithm algo:{other} is not known"
                )));
            }
            None => return Err(wrong("algo:algorithm is missing, such as algo:pageRank")),
        };
        let edges = self.edges(ALGORITHM, &parts, &ends, place)?;
        let mut output = Vec::with_capacity(given.len());
        for (variable, column) in given {
            let is_degree = matches!(
                column,
                AlgorithmColumn::InDegree | AlgorithmColumn::OutDegree
            );
            if is_degree && algorithm != Algorithm::Degree {
                return Err(wrong(format_args!(
                    "{variable} is a degree: only algo:degree counts these"
                )));
            }
            let var = self.variable(variable);
            if output.iter().any(|(known, _)| *known == var) {
                return Err(wrong(format_args!("{variable} stands for two things")));
            }
            output.push((var, column));
        }
        Ok(Group::of(Item::Algorithm(Box::new(GraphAlgorithm {
            algorithm,
            edges: edges.group,
            ends: edges.ends,
            output,
        }))))
    }
}

fn algorithm_of(value: &TermPattern) -> Result<&str> {
    let name = match value {
        TermPattern::NamedNode(node) => algorithm_name(node.as_str()),
        _ => None,
    };
    name.ok_or_else(|| {
        wrong(format_args!(
            "algo:algorithm {value} is none of algo:pageRank, algo:connectedComponents, algo:degree, algo:triangles, algo:communities"
        ))
    })
}

fn fraction(value: &TermPattern) -> Result<f64> {
    let literal = ALGORITHM.literal("damping", "a number from 0 to 1", value)?;
    let number = literal.value().parse().ok();
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| {
        wrong(format_args!(
            "algo:damping is a number from 0 to 1, not {literal}"
        ))
    })
}
