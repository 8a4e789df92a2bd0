//! The oracle of updates under rules: an asker changes what they would change if hidden graphs did
//! not exist.
//!
//! Both end alike, refused by the same words or with the same quads in what is seen; and what its
//! author does not see, or may not change, is what it was.

use oxrdf::Quad;

use orrery_sparql::{QueryOptions, UpdateOptions};

use super::super::case::Difference;
use super::super::data::DataSet;
use super::super::grammar::PREFIXES;
use super::super::random::Random;
use super::super::rules::{Rules, Scopes, Secrets, quad_of};
use super::super::store::{small_quad, wrong_quads};
use super::super::weights;
use super::requests;
use super::store::ChangingStore;
use crate::Error;

/// Requests of one case.
const REQUESTS: usize = 4;
/// What has another seed than the rules have.
const SEED_OF_UPDATES: u64 = 0x7275_6c65;

/// What became of updates under rules.
#[derive(Clone, Debug, Default)]
pub struct UpdatesUnderRules {
    /// Requests that were compared.
    pub requests: u64,
    /// Those that changed something.
    pub changed: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that ended otherwise.
    pub(in crate::oracle) differences: Vec<DifferentUpdate>,
}

/// A request that ended otherwise than over what its author sees.
#[derive(Clone, Debug)]
pub(in crate::oracle) struct DifferentUpdate {
    pub(in crate::oracle) request: String,
    pub(in crate::oracle) difference: Difference,
}

impl UpdatesUnderRules {
    pub(in crate::oracle) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.changed += other.changed;
        self.refused += other.refused;
    }
}

/// Some requests under the rules of a seed, over the data that they permit.
pub(in crate::oracle) fn updates_under_rules(
    seed: u64,
    data: &DataSet,
) -> Result<UpdatesUnderRules, Error> {
    let rules = Rules::of(seed)?;
    let mut random = Random::new(seed ^ SEED_OF_UPDATES, 0);
    let seen = data
        .quads
        .iter()
        .map(small_quad)
        .collect::<Result<Vec<_>, _>>()?;
    let hidden = rules.hidden_quads((&seen, &wrong_quads(&seen)), Secrets::Like);
    let all: Vec<Quad> = data
        .quads
        .iter()
        .cloned()
        .chain(hidden.iter().map(quad_of))
        .collect();
    let endpoints = requests::endpoint_data(&mut random);
    let whole = ChangingStore::new(&all, endpoints.clone())?;
    let alone = ChangingStore::new(&data.quads, endpoints)?;
    let scopes = || rules.scopes(|text| whole.found(text));
    let begun = scopes()?;
    let mut report = UpdatesUnderRules::default();
    for _ in 0..REQUESTS {
        let request = match random.below(6) {
            0 => weights::statement(&mut random),
            _ => requests::request(&mut random, data),
        };
        let text = format!("{PREFIXES}{request}");
        let Scopes { reads, writes } = scopes()?;
        if reads != begun.reads {
            // A request has changed the lists; what is alone is not what is seen any more.
            break;
        }
        let before = whole.by_graph()?;
        let options = UpdateOptions {
            writes: writes.clone(),
            ..UpdateOptions::of(reads.clone())
        };
        let of_alone = UpdateOptions {
            query: QueryOptions::of_process(),
            ..options.clone()
        };
        let ended = whole
            .update_as(&text, &options, true)
            .map_err(|it| it.to_string());
        let expected = alone
            .update_as(&text, &of_alone, true)
            .map_err(|it| it.to_string());
        let after = whole.by_graph()?;
        report.requests += 1;
        report.refused += u64::from(ended.is_err());
        report.changed += u64::from(before != after);
        let mut differs = |what: &str, expected: String, actual: String| {
            report.differences.push(DifferentUpdate {
                request: request.clone(),
                difference: Difference {
                    what: what.to_owned(),
                    expected,
                    actual,
                },
            });
        };
        // Who may change nothing is told so in other words where all graphs are seen.
        let is_same = match writes.is_none() {
            true => ended.is_err() && expected.is_err(),
            false => ended == expected,
        };
        if !is_same {
            differs(
                "an update ends otherwise",
                format!("{expected:?}"),
                format!("{ended:?}"),
            );
            break;
        }
        let kept = |graph: &Option<orrery_term::Term<'static>>| {
            !reads.sees(graph.as_ref()) || !writes.allows(graph.as_ref())
        };
        let (was, is) = [&before, &after]
            .map(|quads| {
                let quads = quads.iter().filter(|(graph, _)| kept(graph));
                quads.map(|quad| format!("{quad:?}")).collect::<Vec<_>>()
            })
            .into();
        if was != is {
            differs(
                "an update changed what its author may not change",
                was.join("\n"),
                is.join("\n"),
            );
            break;
        }
        let seen_now = after.iter().filter(|(graph, _)| reads.sees(graph.as_ref()));
        let seen_now: Vec<String> = seen_now.map(|quad| format!("{quad:?}")).collect();
        let expected: Vec<String> = alone
            .by_graph()?
            .iter()
            .map(|quad| format!("{quad:?}"))
            .collect();
        if expected != seen_now && !writes.is_none() {
            differs(
                "an update leaves other quads",
                expected.join("\n"),
                seen_now.join("\n"),
            );
            break;
        }
    }
    Ok(report)
}
