//! The estimated work of a plan, in rows that pass its nodes.
//!
//! A server asks this to tell queries that are over before another thread would have woken up from
//! those that may compute for long. It is as good as the planner's estimates: whoever relies on it
//! must bear a plan that turns out larger.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::algorithms::AlgorithmExec;
use orrery_operators::path::PathExec;
use orrery_operators::pattern::PatternExec;
use orrery_operators::search::SearchExec;
use orrery_operators::service::ServiceExec;
use orrery_operators::source::SourceExec;

use crate::plan::{PlanEstimates, Positions};

/// Plans with more nodes than this are not looked at.
const NODES_MAX: usize = 64;

/// The rows of all nodes, and of all steps within them. Infinite where the planner cannot know:
/// paths, other endpoints, leaves without an estimate.
pub(crate) fn expected_rows(plan: &Arc<dyn ExecutionPlan>, estimates: &PlanEstimates) -> f64 {
    if estimates.nodes() > NODES_MAX {
        return f64::INFINITY;
    }
    rows_below(plan, &mut estimates.positions())
}

fn rows_below(plan: &Arc<dyn ExecutionPlan>, positions: &mut Positions<'_>) -> f64 {
    if plan.is::<PathExec>()
        || plan.is::<ServiceExec>()
        || plan.is::<SourceExec>()
        || plan.is::<SearchExec>()
        || plan.is::<AlgorithmExec>()
    {
        return f64::INFINITY;
    }
    let children = plan.children();
    let (expected, is_entered) = positions.visit(plan);
    let own = match expected {
        Some(rows) => rows,
        None if children.is_empty() => return f64::INFINITY,
        None => 0.0,
    };
    if !is_entered {
        return own;
    }
    let steps = match plan.downcast_ref::<PatternExec>() {
        Some(pattern) => rows_of_steps(pattern),
        None => 0.0,
    };
    let inputs = children.into_iter();
    let inputs: f64 = inputs.map(|input| rows_below(input, positions)).sum();
    own + steps + inputs
}

fn rows_of_steps(pattern: &PatternExec) -> f64 {
    let steps = pattern.specification().steps.iter();
    steps.filter_map(|step| step.estimated_rows).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use orrery_storage::build_small;
    use orrery_term::Term;

    use crate::{Engine, EngineOptions, QueryOptions};

    #[test]
    fn plans_over_many_rows_and_paths_are_told_from_look_ups() {
        let directory = tempfile::tempdir().unwrap();
        let node = |number: usize| Term::iri(format!("http://example.com/{number}"));
        let quads: Vec<_> = (0..1000)
            .map(|number| (node(number), node(0), node(number + 1), None))
            .collect();
        let database = build_small(directory.path(), &quads).unwrap();
        let engine = Engine::new(Arc::new(database), EngineOptions::default()).unwrap();
        let rows = |text: &str| {
            let prepared = engine.prepare(text, &QueryOptions::of_process()).unwrap();
            prepared.expected_rows()
        };
        assert!(rows("SELECT ?o { <http://example.com/7> ?p ?o }") < 10.0);
        // The first step counts, also where few rows are left in the end.
        assert!(rows("SELECT ?s { ?s <http://example.com/0> ?o } LIMIT 1") >= 1.0);
        assert!(rows("SELECT ?s { ?s <http://example.com/0> ?o }") >= 1000.0);
        assert!(rows("SELECT (COUNT(?o) AS ?c) { ?s ?p ?o FILTER(STRLEN(STR(?o)) > 3) }") >= 100.0);
        assert!(
            rows("SELECT ?o { <http://example.com/7> <http://example.com/0>+ ?o }").is_infinite()
        );
    }
}
