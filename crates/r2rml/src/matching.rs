//! The translation of basic graph patterns over a mapped graph to leaves.
//!
//! ```text
//! patterns -> stars (patterns with the same subject) -> parts; the planner joins them
//! star   over maps whose subjects tell rows apart, and one map's subjects from another's: a leaf reads a row once for all patterns
//! else   each pattern by itself: a leaf for each rule that can match, together made distinct
//! ```
//!
//! A star over a row is right only if all triples of a subject come of that row: so it is taken
//! only where each map that can match one of its patterns has unique subjects, and no two of them
//! have a subject in common.

use std::sync::Arc;

use orrery_sparql::mapped::{MappedPart, MappedPattern, MappedRows, MappedTerm};

use crate::compiled::RuleAt;
use crate::leaf::{Leaf, Position};
use crate::mapped_query::MappedQuery;
use crate::rules::{Column, Maker, MapRules, Object, Rule, Rules};

/// Leaves that a star may become; beyond that its patterns are taken one by one.
const STAR_LEAVES_MAX: usize = 64;
/// Leaves of one pattern.
pub(crate) const PATTERN_LEAVES_MAX: usize = 2_000;

/// The parts of a pattern; nothing where there are too many leaves.
pub(crate) fn parts(
    query: &Arc<MappedQuery>,
    rules: &Arc<Rules>,
    graph: &[RuleAt],
    patterns: &[MappedPattern],
) -> Option<Vec<MappedPart>> {
    let mut stars: Vec<Vec<&MappedPattern>> = Vec::new();
    for pattern in patterns {
        let star = stars
            .iter_mut()
            .find(|star| star[0].subject == pattern.subject);
        match star {
            // The same pattern twice says nothing more.
            Some(star) if star.contains(&pattern) => {}
            Some(star) => star.push(pattern),
            None => stars.push(vec![pattern]),
        }
    }
    let matching = Matching {
        query,
        rules,
        graph,
    };
    let mut parts = Vec::with_capacity(stars.len());
    for star in stars {
        match matching.star(&star) {
            Some(part) => parts.push(part),
            None => {
                for pattern in star {
                    parts.push(matching.single(pattern)?);
                }
            }
        }
    }
    Some(parts)
}

struct Matching<'m> {
    query: &'m Arc<MappedQuery>,
    rules: &'m Arc<Rules>,
    graph: &'m [RuleAt],
}

impl Matching<'_> {
    fn map(&self, at: RuleAt) -> &MapRules {
        &self.rules.maps[at.map]
    }

    fn rule(&self, at: RuleAt) -> &Rule {
        &self.map(at).rules[at.rule]
    }

    /// The rules whose triples may match.
    fn candidates(&self, pattern: &MappedPattern) -> Vec<RuleAt> {
        let may_be = |maker: &Maker<Column>, term: &MappedTerm| match term {
            MappedTerm::Variable(_) => true,
            MappedTerm::Constant(term) => maker.can_be(term),
        };
        let candidates = self.graph.iter().copied().filter(|at| {
            let rule = self.rule(*at);
            may_be(&self.map(*at).subject, &pattern.subject)
                && may_be(&rule.predicate, &pattern.predicate)
                && may_be(rule.object.maker(), &pattern.object)
        });
        candidates.collect()
    }

    /// Whether a rule gives no triple twice.
    fn is_unique(&self, at: RuleAt) -> bool {
        let is_unique = self.map(at).is_unique;
        is_unique
            && match &self.rule(at).object {
                Object::Own(_) => true,
                Object::Joined { map, .. } => self.rules.maps[*map].is_unique,
            }
    }

    /// Whether no triple comes of both rules.
    fn are_disjoint(&self, one: RuleAt, two: RuleAt) -> bool {
        let (first, second) = (self.rule(one), self.rule(two));
        self.map(one).subject.is_disjoint(&self.map(two).subject)
            || first.predicate.is_disjoint(&second.predicate)
            || first.object.maker().is_disjoint(second.object.maker())
    }

    fn is_distinct(&self, candidates: &[RuleAt]) -> bool {
        let all_unique = candidates.iter().all(|at| self.is_unique(*at));
        let pairs = candidates.iter().enumerate();
        all_unique
            && candidates.len() <= STAR_LEAVES_MAX
            && pairs
                .flat_map(|(place, one)| candidates[..place].iter().map(move |two| (one, two)))
                .all(|(one, two)| self.are_disjoint(*one, *two))
    }

    fn single(&self, pattern: &MappedPattern) -> Option<MappedPart> {
        let candidates = self.candidates(pattern);
        if candidates.len() > PATTERN_LEAVES_MAX {
            return None;
        }
        let branches = candidates.iter();
        let branches = branches.map(|at| self.leaf(at.map, &[(pattern, *at)]));
        Some(MappedPart {
            variables: variables(&[pattern]),
            is_distinct: self.is_distinct(&candidates),
            branches: branches.collect(),
        })
    }

    /// The patterns of a subject together; nothing where they are to be taken one by one.
    fn star(&self, patterns: &[&MappedPattern]) -> Option<MappedPart> {
        if patterns.len() == 1 {
            return None;
        }
        let candidates: Vec<Vec<RuleAt>> = patterns
            .iter()
            .map(|pattern| self.candidates(pattern))
            .collect();
        let mut maps: Vec<usize> = candidates.iter().flatten().map(|at| at.map).collect();
        maps.sort_unstable();
        maps.dedup();
        let subject = |map: usize| &self.rules.maps[map].subject;
        if maps.len() > STAR_LEAVES_MAX || maps.iter().any(|map| !self.rules.maps[*map].is_unique) {
            return None;
        }
        for (place, one) in maps.iter().enumerate() {
            if maps[..place]
                .iter()
                .any(|two| !subject(*one).is_disjoint(subject(*two)))
            {
                return None;
            }
        }
        let mut branches = Vec::new();
        let mut is_distinct = true;
        for map in maps {
            let of_map = candidates.iter().map(|all| {
                let own = all.iter().copied().filter(|at| at.map == map);
                own.collect::<Vec<RuleAt>>()
            });
            let of_map: Vec<Vec<RuleAt>> = of_map.collect();
            is_distinct &= of_map.iter().all(|rules| self.is_distinct(rules));
            let combinations = of_map.iter().try_fold(1_usize, |all, rules| {
                all.checked_mul(rules.len())
                    .filter(|all| *all <= STAR_LEAVES_MAX)
            })?;
            if branches.len() + combinations > STAR_LEAVES_MAX {
                return None;
            }
            for number in 0..combinations {
                let mut rest = number;
                let mut chosen = Vec::with_capacity(patterns.len());
                for (pattern, rules) in patterns.iter().zip(&of_map) {
                    chosen.push((*pattern, rules[rest % rules.len()]));
                    rest /= rules.len();
                }
                branches.push(self.leaf(map, &chosen));
            }
        }
        Some(MappedPart {
            variables: variables(patterns),
            branches,
            is_distinct,
        })
    }

    /// The leaf that reads a row for some patterns, each by a rule.
    fn leaf(&self, map: usize, chosen: &[(&MappedPattern, RuleAt)]) -> Arc<dyn MappedRows> {
        let mut positions = Vec::new();
        let mut joins = Vec::new();
        let mut push = |side: usize, maker: &Maker<Column>, term: &MappedTerm| {
            let position = Position {
                side,
                maker: maker.clone(),
                term: term.clone(),
            };
            if !positions.contains(&position) {
                positions.push(position);
            }
        };
        for (pattern, at) in chosen {
            let rule = self.rule(*at);
            push(0, &self.map(*at).subject, &pattern.subject);
            push(0, &rule.predicate, &pattern.predicate);
            match &rule.object {
                Object::Own(maker) => push(0, maker, &pattern.object),
                Object::Joined {
                    map,
                    maker,
                    joins: on,
                } => {
                    joins.push((*map, on.clone()));
                    push(joins.len(), maker, &pattern.object);
                }
            }
        }
        Arc::new(Leaf {
            query: Arc::clone(self.query),
            rules: Arc::clone(self.rules),
            map,
            joins,
            positions,
        })
    }
}

/// The variables of some patterns, each once.
fn variables(patterns: &[&MappedPattern]) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for pattern in patterns {
        for term in [&pattern.subject, &pattern.predicate, &pattern.object] {
            if let MappedTerm::Variable(name) = term
                && !names.contains(name)
            {
                names.push(Arc::clone(name));
            }
        }
    }
    names
}
