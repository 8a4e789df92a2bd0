//! The solutions of a pattern that changed quads affect.
//!
//! A solution is new only if a quad that came matches one of its triple patterns, and gone only if
//! one did that went. So the pattern is asked once for each of its triple patterns, joined with
//! what the changed quads give to the variables of that one: in the later state for what came, in
//! the earlier one for what went. What is found is all that may have changed, and perhaps more.
//!
//! That holds for joins of triple patterns, of `UNION`s and inline data of them, with filters and
//! `BIND`: each of their solutions stands on quads that are there. It does not for `OPTIONAL`,
//! `MINUS`, `EXISTS` and subqueries, whose solutions may come where quads go; nor are repeated
//! property paths followed, the names of graphs, or anything that is no triple. Definitions with
//! such parts are computed as a whole for each state.

use orrery_term::TermId;

use crate::algebra::expression::is_volatile;
use crate::algebra::{Group, Item, Quad, Scope, Slot, Step, StepKind, Values, Var};

/// Rows that are joined at most: with more changes all is computed.
const ROWS_MAX: usize = 10_000;

/// Whether the steps of a group only compute with what its items give, and leave solutions out by
/// it.
pub(crate) fn has_followed_steps(group: &Group) -> bool {
    let follows_step = |step: &Step| match &step.kind {
        StepKind::Bind { expression, .. } | StepKind::Filter(expression) => {
            !is_volatile(expression)
        }
        StepKind::Optional { .. }
        | StepKind::OptionalIf { .. }
        | StepKind::Minus { .. }
        | StepKind::Exists { .. }
        | StepKind::Lateral { .. }
        | StepKind::Mark { .. } => false,
    };
    group.outer.is_empty()
        && group.steps.iter().all(follows_step)
        && !group.filters.iter().any(is_volatile)
}

/// Whether the solutions of a group are followed by its quads.
pub(crate) fn is_followed(group: &Group) -> bool {
    let follows_item = |item: &Item| match item {
        Item::Quad(_) | Item::Values(_) => true,
        Item::Union(branches) => branches.iter().all(is_followed),
        Item::Group(group) => is_followed(group),
        Item::Path(_)
        | Item::Graphs(_)
        | Item::Derived(_)
        | Item::Service(_)
        | Item::Mapped(_)
        | Item::Search(_)
        | Item::Algorithm(_)
        | Item::Weights(_)
        | Item::Seed(_) => false,
    };
    has_followed_steps(group) && group.items.iter().all(follows_item)
}

/// The group for the solutions that some quads take part in: a group for each of its triple
/// patterns that some match. `None` where these are too many.
pub(crate) fn taking_part(group: &Group, quads: &[[TermId; 4]]) -> Option<Vec<Group>> {
    let mut rows = 0;
    let found = restricted(group, quads, &mut rows);
    (rows <= ROWS_MAX).then_some(found)
}

fn restricted(group: &Group, quads: &[[TermId; 4]], rows: &mut usize) -> Vec<Group> {
    let mut found = Vec::new();
    for (place, item) in group.items.iter().enumerate() {
        let mut put = |inner: Group, of: fn(Group) -> Item| {
            let mut around = group.clone();
            around.items[place] = of(inner);
            found.push(around);
        };
        match item {
            Item::Quad(quad) => {
                let values = matching(quad, quads);
                *rows += values.rows.len();
                if !values.rows.is_empty() && *rows <= ROWS_MAX {
                    let mut beside = group.clone();
                    // A triple without variables restricts nothing.
                    if !values.variables.is_empty() {
                        beside.push(Item::Values(values));
                    }
                    found.push(beside);
                }
            }
            Item::Union(branches) => {
                for branch in branches {
                    for inner in restricted(branch, quads, rows) {
                        put(inner, |inner| Item::Union(vec![inner]));
                    }
                }
            }
            Item::Group(inner) => {
                for inner in restricted(inner, quads, rows) {
                    put(inner, |inner| Item::Group(Box::new(inner)));
                }
            }
            _ => {}
        }
    }
    found
}

/// What quads give to the variables of a pattern.
fn matching(pattern: &Quad, quads: &[[TermId; 4]]) -> Values {
    let slots = [pattern.subject, pattern.predicate, pattern.object];
    let mut variables: Vec<Var> = Vec::new();
    let graph = pattern.scope.variable();
    for var in slots.into_iter().filter_map(Slot::variable).chain(graph) {
        if !variables.contains(&var) {
            variables.push(var);
        }
    }
    let mut rows: Vec<Vec<Option<TermId>>> = Vec::new();
    for [subject, predicate, object, graph] in quads {
        if !is_in(*graph, &pattern.scope) {
            continue;
        }
        let mut row = vec![None; variables.len()];
        let mut bind = |var: Var, id: TermId| {
            let place = variables.iter().position(|known| *known == var);
            place.is_some_and(|place| *row[place].get_or_insert(id) == id)
        };
        let fits = slots
            .into_iter()
            .zip([*subject, *predicate, *object])
            .all(|(slot, id)| match slot {
                Slot::Constant(constant) => constant == id,
                Slot::Variable(var) => bind(var, id),
                Slot::Absent => false,
            });
        let is_of_graph = pattern.scope.variable().is_none_or(|var| bind(var, *graph));
        if fits && is_of_graph {
            rows.push(row);
        }
    }
    rows.sort_unstable();
    rows.dedup();
    Values { variables, rows }
}

fn is_in(graph: TermId, scope: &Scope) -> bool {
    match scope {
        Scope::Default => graph == TermId::DEFAULT_GRAPH,
        Scope::Named(name) => graph == *name,
        Scope::NamedVariable { .. } => graph != TermId::DEFAULT_GRAPH,
        // What another graph has as well is looked at in vain.
        Scope::AllUnion | Scope::Union(_) => true,
    }
}
