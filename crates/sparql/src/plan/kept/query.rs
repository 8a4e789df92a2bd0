//! One cached plan: its premises, the check for another query, and its reuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion_physical_plan::ExecutionPlan;
use hashbrown::HashMap;
use orrery_operators::context::QueryContext;
use orrery_operators::kept::{Bindings, KeptPlan, Parameter};
use orrery_operators::pattern::ObjectRanges;
use orrery_storage::{ReadScope, ReadView, Snapshot};
use orrery_term::{Term, TermId};
use spargebra::algebra::Expression;

use crate::error::Result;
use crate::parse::{Constant, KnownShape};
use crate::plan::estimate::id_ranges::passing_ids;
use crate::plan::estimate::text_prefixes::TextPrefix;
use crate::plan::expected_rows::PlanEstimates;
use crate::results::literal_from_oxrdf;
use crate::statistics::{Counts, Estimator};

/// Counts are similar up to this factor.
const SIMILAR_MAX: f64 = 2.0;
/// A plan holds the list of the graphs that its asker sees. Rules by query may find a hundred
/// thousand; for so many and more no plan is kept, or a few askers would leave no room for the
/// plans of others.
pub(super) const NAMES_MAX: usize = 1_000;

/// A plan, for what it was made, and how its solutions become the answer.
#[derive(Debug)]
pub(crate) struct KeptQuery {
    state: ReadState,
    /// Whether it is a plan for no other commit than its own.
    is_of_commit: bool,
    /// The last other commit for which it was tested whether what the plan follows from beside the
    /// free constants holds, times two, and one more if it does.
    tested: AtomicU64,
    /// Which free constant of the query each is, and its term and id.
    parameters: Vec<Parameter>,
    counts: Counts,
    plan: KeptPlan,
    pub(crate) estimates: PlanEstimates,
    pub(crate) answer: KeptAnswer,
    pub(super) bytes: usize,
}

/// How solutions become the answer.
#[derive(Debug)]
pub(crate) struct KeptAnswer {
    pub(crate) variables: Arc<[String]>,
    /// The column of each variable of the answer.
    pub(crate) columns: Vec<Option<usize>>,
    /// The column of each variable of a template.
    pub(crate) template_columns: HashMap<String, Option<usize>>,
    /// The ids of the IRIs of a template that are the same in all queries, as far as the state has
    /// them.
    pub(crate) template_ids: HashMap<Box<str>, Option<TermId>>,
    pub(crate) gives_each_triple_once: bool,
    /// The graphs from which `DESCRIBE` describes.
    pub(crate) described: Option<Arc<[TermId]>>,
}

/// The state that a plan reads, and how much of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadState {
    /// The one that the plan was made for.
    commit: u64,
    base: Box<str>,
    scope: ReadScope,
    has_named_graphs: bool,
}

/// A plan as it was made.
pub(crate) struct MadePlan<'m> {
    pub(crate) plan: &'m Arc<dyn ExecutionPlan>,
    pub(crate) estimates: &'m PlanEstimates,
    pub(crate) counts: Counts,
}

/// What a query of a known shape brings.
#[derive(Debug)]
pub(crate) struct Constants<'c> {
    pub(crate) shape: &'c KnownShape,
    pub(crate) constants: &'c [Constant<'c>],
    /// Its free constants.
    parameters: Vec<Parameter>,
}

impl<'c> Constants<'c> {
    /// The constants with their ids; nothing if the database does not know one that stands in a
    /// pattern, or if no plan is kept for the asker.
    pub(crate) fn of(
        shape: &'c KnownShape,
        constants: &'c [Constant<'c>],
        view: &ReadView,
    ) -> Result<Option<Self>> {
        if names_of(view.scope()).nth(NAMES_MAX - 1).is_some() {
            return Ok(None);
        }
        let mut parameters = Vec::with_capacity(constants.len());
        for (place, it) in shape.uses().iter().enumerate() {
            let Some(term) = shape.term(place, constants) else {
                continue;
            };
            let id = match it.is_in_patterns {
                true => match id_of(&term, view)? {
                    Some(id) => Some(id),
                    None => return Ok(None),
                },
                false => None,
            };
            parameters.push(Parameter {
                term,
                id,
                is_in_conditions: it.is_in_conditions,
                first_equal: 0,
            });
        }
        note_equal_ones(&mut parameters);
        Ok(Some(Self {
            shape,
            constants,
            parameters,
        }))
    }

    /// The id of a free constant that stands in patterns.
    pub(crate) fn id_of(&self, iri: &str) -> Option<TermId> {
        self.parameters.iter().find_map(|parameter| {
            let is_it =
                matches!(&parameter.term, Expression::NamedNode(node) if node.as_str() == iri);
            parameter.id.filter(|_| is_it)
        })
    }

    /// Whether no free constant is a term that stands elsewhere in the query, too.
    fn are_their_own(&self) -> bool {
        let fixed = self.constants.iter().zip(self.shape.uses());
        let fixed: Vec<&str> = fixed
            .filter(|(_, it)| !it.is_free())
            .map(|(constant, _)| constant.text())
            .collect();
        self.parameters.iter().all(|parameter| {
            let text = match &parameter.term {
                Expression::NamedNode(node) => node.as_str(),
                Expression::Literal(literal) => literal.value(),
                _ => return false,
            };
            !fixed.contains(&text) && !self.shape.others().contains(&parameter.term)
        })
    }
}

fn id_of(term: &Expression, view: &ReadView) -> Result<Option<TermId>> {
    Ok(match term {
        Expression::NamedNode(node) => view.id_in_quads(&Term::iri(node.as_str()))?,
        Expression::Literal(literal) => view.id_in_quads(&literal_from_oxrdf(literal))?,
        _ => None,
    })
}

/// The ids of a variable that can pass all of some conditions; nothing if none says.
fn passing(snapshot: &Snapshot) -> impl FnMut(&str, &[Expression]) -> Option<ObjectRanges> + '_ {
    move |variable, filters| {
        let mut texts = |prefix: &TextPrefix| prefix.passing_ids(snapshot);
        let mut ranges: Option<ObjectRanges> = None;
        for filter in filters {
            if let Some(ids) = passing_ids(filter, variable, &mut texts).ok()? {
                ranges = Some(match ranges {
                    Some(all) => all.intersection(&ids),
                    None => ids,
                });
            }
        }
        ranges
    }
}

impl ReadState {
    fn of(view: &ReadView) -> Self {
        let snapshot = view.snapshot();
        Self {
            commit: snapshot.commit(),
            base: snapshot.base_name().into(),
            scope: view.scope().clone(),
            has_named_graphs: view.has_named_graphs(),
        }
    }

    /// Whether terms have the same ids, the same of them is seen, and patterns read the same
    /// permutations.
    fn is_like(&self, view: &ReadView) -> bool {
        *self.base == *view.snapshot().base_name()
            && self.scope == *view.scope()
            && self.has_named_graphs == view.has_named_graphs()
    }

    /// The same of two plans.
    fn sees_like(&self, other: &Self) -> bool {
        self.base == other.base
            && self.scope == other.scope
            && self.has_named_graphs == other.has_named_graphs
    }
}

impl KeptQuery {
    /// Keeps a plan, if it may be kept.
    pub(crate) fn of(
        made: MadePlan<'_>,
        constants: Constants<'_>,
        context: &QueryContext,
        answer: KeptAnswer,
    ) -> Option<Self> {
        if context.depends_on_row_order()
            || context.has_plan_of_its_own()
            || !constants.are_their_own()
        {
            return None;
        }
        let snapshot = context.snapshot();
        let parameters = constants.parameters;
        // What had no rows is left out of the plan, and which condition it followed from is not
        // known any more.
        let has_empty_range = made.counts.ranged.iter().any(|(.., rows)| *rows == 0.0);
        if has_empty_range && parameters.iter().any(|it| it.is_in_conditions) {
            return None;
        }
        let plan = KeptPlan::of(made.plan, &parameters, &mut passing(snapshot))?;
        Some(Self {
            state: ReadState::of(context.view()),
            is_of_commit: made.counts.are_of_commit,
            tested: AtomicU64::default(),
            bytes: bytes_of(made.estimates.nodes(), &made.counts, context.view().scope()),
            parameters,
            counts: made.counts,
            plan,
            estimates: made.estimates.clone(),
            answer,
        })
    }

    /// What differs for a query, if the plan is one for it.
    pub(crate) fn fits(
        &self,
        constants: &Constants<'_>,
        estimator: &Estimator<'_>,
        view: &ReadView,
    ) -> Result<Option<Bindings>> {
        let now = &constants.parameters;
        if !self.state.is_like(view)
            || !are_alike(&self.parameters, now)
            || !self.holds(estimator, view)?
        {
            return Ok(None);
        }
        for (pattern, rows) in &self.counts.patterns {
            let mut differs = false;
            let pattern = pattern.map(|term| {
                let term = term?;
                let place = self.parameters.iter().position(|it| it.id == Some(term));
                differs |= place.is_some();
                place.map_or(Some(term), |place| now[place].id)
            });
            if differs && !is_similar(*rows, estimator.count_of(pattern)?) {
                return Ok(None);
            }
        }
        let passing = &mut passing(view.snapshot());
        let bindings = self.plan.bind(now.clone(), &self.parameters, passing);
        let Some(bindings) = bindings else {
            return Ok(None);
        };
        let ranges = self.plan.ranges(&bindings);
        for (predicate, counted, rows) in &self.counts.ranged {
            let pair = ranges.iter().find(|(old, _)| *old == counted);
            let Some((_, new)) = pair.filter(|(old, new)| old != new) else {
                continue;
            };
            let now = estimator.count_within(*predicate, new)?;
            if !now.is_some_and(|now| is_similar(*rows, now)) {
                return Ok(None);
            }
        }
        drop(ranges);
        Ok(Some(bindings))
    }

    /// Whether a newer plan makes this one useless: it is of an earlier commit, and of another
    /// base, or none for later commits, or for what its asker saw then and sees no more.
    pub(super) fn is_outlived_by(&self, newer: &Self) -> bool {
        let (old, new) = (&self.state, &newer.state);
        old.commit < new.commit
            && (self.is_of_commit
                || old.base != new.base
                || old.scope.asker() == new.scope.asker() && old.scope != new.scope)
    }

    /// Whether a plan that was kept later makes this one needless: it is for an earlier state, so
    /// that later ones can take it, too, and about as much was counted for it; or it was made for
    /// the same query at the same time. Where that is guessed wrongly, a plan is made again:
    /// whether one fits is asked for each query.
    pub(super) fn is_covered_by(&self, later: &Self) -> bool {
        let (ours, theirs) = (&self.state, &later.state);
        if !ours.sees_like(theirs) || !are_alike(&self.parameters, &later.parameters) {
            return false;
        }
        if ours.commit == theirs.commit {
            let terms = later.parameters.iter().map(|it| &it.term);
            return self.parameters.iter().map(|it| &it.term).eq(terms);
        }
        let takes_later_ones = !self.is_of_commit && !later.is_of_commit;
        ours.commit > theirs.commit && takes_later_ones && are_similar(&self.counts, &later.counts)
    }

    /// The base that the plan is over, and the commit that it was made for.
    pub(super) fn base(&self) -> (&str, u64) {
        (&self.state.base, self.state.commit)
    }

    /// Whether what the plan follows from beside the free constants is so for a commit; found out
    /// once for each.
    fn holds(&self, estimator: &Estimator<'_>, view: &ReadView) -> Result<bool> {
        let commit = view.snapshot().commit();
        if commit == self.state.commit {
            return Ok(true);
        }
        // Terms that the plan knows may be unknown to an older state.
        if self.is_of_commit || commit < self.state.commit {
            return Ok(false);
        }
        let tested = self.tested.load(Ordering::Relaxed);
        if tested >> 1 == commit {
            return Ok(tested & 1 == 1);
        }
        let holds = self.holds_now(estimator, view)?;
        let tested = commit << 1 | u64::from(holds);
        self.tested.store(tested, Ordering::Relaxed);
        Ok(holds)
    }

    /// Whether patterns and ranges without free constants have about as many rows as they had, none
    /// where there were none, and what the template found unknown still is.
    fn holds_now(&self, estimator: &Estimator<'_>, view: &ReadView) -> Result<bool> {
        let is_free = |term: &TermId| self.parameters.iter().any(|it| it.id == Some(*term));
        for (pattern, rows) in &self.counts.patterns {
            let has_free = pattern.iter().flatten().any(is_free);
            if !has_free && !is_similar(*rows, estimator.count_of(*pattern)?) {
                return Ok(false);
            }
        }
        for (predicate, ranges, rows) in &self.counts.ranged {
            let now = estimator.count_within(*predicate, ranges)?;
            if !now.is_some_and(|now| is_similar(*rows, now)) {
                return Ok(false);
            }
        }
        let unknown = self.answer.template_ids.iter();
        for (iri, _) in unknown.filter(|(_, id)| id.is_none()) {
            if view.snapshot().term_id(&Term::iri(&**iri))?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The plan for a query.
    pub(crate) fn build(
        &self,
        mut bindings: Bindings,
        context: &Arc<QueryContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.plan.build(&mut bindings, &self.parameters, context)?)
    }
}

/// Whether the free constants of two queries of a shape are of the same kinds, and the same ones of
/// them are equal.
fn are_alike(kept: &[Parameter], now: &[Parameter]) -> bool {
    let what = |it: &Parameter| (it.id.map(TermId::kind), it.first_equal);
    kept.iter().map(what).eq(now.iter().map(what))
}

/// Notes of each constant which is the first one that is equal to it.
fn note_equal_ones(parameters: &mut [Parameter]) {
    /// A table costs more than to look at so few.
    const FEW: usize = 16;
    if parameters.len() <= FEW {
        for at in 0..parameters.len() {
            let (before, rest) = parameters.split_at_mut(at);
            if let Some(it) = rest.first_mut() {
                let first = before.iter().position(|other| other.term == it.term);
                it.first_equal = first.unwrap_or(at);
            }
        }
        return;
    }
    let firsts: Vec<usize> = {
        let mut first_of: HashMap<&Expression, usize> = HashMap::with_capacity(parameters.len());
        let each = parameters.iter().enumerate();
        each.map(|(at, it)| *first_of.entry(&it.term).or_insert(at))
            .collect()
    };
    for (it, first) in parameters.iter_mut().zip(firsts) {
        it.first_equal = first;
    }
}

fn is_similar(kept: f64, now: f64) -> bool {
    kept <= SIMILAR_MAX * now && now <= SIMILAR_MAX * kept
}

/// Whether as many things were counted for two plans, with similar rows, whichever had them.
fn are_similar(counts: &Counts, others: &Counts) -> bool {
    let rows = |counts: &Counts| {
        let of_patterns = counts.patterns.iter().map(|(_, rows)| *rows);
        let of_ranges = counts.ranged.iter().map(|(.., rows)| *rows);
        let mut rows: Vec<f64> = of_patterns.chain(of_ranges).collect();
        rows.sort_by(f64::total_cmp);
        rows
    };
    let (rows, of_others) = (rows(counts), rows(others));
    let mut pairs = rows.iter().zip(&of_others);
    rows.len() == of_others.len() && pairs.all(|(rows, other)| is_similar(*rows, *other))
}

/// About so many bytes are held: most of them are properties and descriptions of nodes. The list of
/// graphs is counted with each plan, for it may be the last one that holds it.
fn bytes_of(nodes: usize, counts: &Counts, scope: &ReadScope) -> usize {
    const NODE_BYTES: usize = 4 << 10;
    const COUNT_BYTES: usize = 256;
    const NAME_BYTES: usize = 64;
    let names = names_of(scope).map(|text| NAME_BYTES + text.len());
    NODE_BYTES * (nodes + 1)
        + COUNT_BYTES * (counts.patterns.len() + counts.ranged.len())
        + names.sum::<usize>()
}

/// The names of the graphs that may be seen, or how they begin; none where all may be.
fn names_of(scope: &ReadScope) -> impl Iterator<Item = &str> {
    let listed = scope.graphs().into_iter();
    listed.flat_map(|graphs| {
        let named = graphs.named.iter().map(|name| match name {
            Term::Iri(iri) => &**iri,
            _ => "",
        });
        named.chain(graphs.below.iter())
    })
}
