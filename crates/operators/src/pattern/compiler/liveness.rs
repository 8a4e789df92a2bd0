//! The liveness analysis: which variables each chunk carries.

use std::sync::Arc;

use crate::pattern::filter::expression_variables;
use crate::pattern::program::ROW_NUMBER;
use crate::pattern::specification::{PatternSpecification, QuadPattern};

/// Which variables each chunk must carry, and after which step each filter can run. Of constants
/// nothing depends but that they are some.
#[derive(Debug)]
pub(crate) struct Liveness {
    live: Vec<Vec<Box<str>>>,
    pub(crate) filter_stages: Vec<usize>,
    /// The same for the ids that are given.
    pub(crate) given_stages: Vec<usize>,
}

impl Liveness {
    pub(crate) fn analyze<'a>(
        specification: &'a PatternSpecification,
        groups: &[Vec<usize>],
        bound_input: &[&'a Arc<str>],
        counts_rows: bool,
    ) -> Self {
        let steps = &specification.steps;
        // Where each variable is bound first, in the order of the names.
        let mut bound_at: Vec<(&str, usize)> =
            bound_input.iter().map(|name| (&***name, 0)).collect();
        let variables_of = |group: &[usize]| -> Vec<&'a Arc<str>> {
            let patterns = group.iter().map(|&step| &steps[step].pattern);
            patterns.flat_map(QuadPattern::variables).collect()
        };
        for (number, group) in groups.iter().enumerate() {
            let variables = variables_of(group).into_iter();
            bound_at.extend(variables.map(|variable| (&**variable, number + 1)));
        }
        bound_at.sort_unstable();
        bound_at.dedup_by_key(|(name, _)| *name);
        let stage_of = |variable: &str| {
            let found = bound_at.binary_search_by_key(&variable, |(name, _)| name);
            found.ok().map(|place| bound_at[place].1)
        };

        let filter_variables: Vec<Vec<&str>> = specification
            .filters
            .iter()
            .map(expression_variables)
            .collect();
        let filter_stages: Vec<usize> = filter_variables
            .iter()
            .map(|names| names.iter().filter_map(|name| stage_of(name)).max())
            .map(Option::unwrap_or_default)
            .collect();

        let given: Vec<&str> = specification
            .given
            .iter()
            .map(|ids| &**ids.variable())
            .collect();
        let given_stages: Vec<usize> = given
            .iter()
            .map(|name| stage_of(name).unwrap_or_default())
            .collect();

        // Backwards from the output: what chunk i carries is what its filters and everything later
        // reads.
        let mut live: Vec<Vec<Box<str>>> = vec![Vec::new(); groups.len() + 1];
        let mut wanted: Vec<&str> = Vec::new();
        if !specification.mode.is_existence() {
            // With numbered rows the input columns are fetched from the input at the end.
            wanted.extend(
                specification
                    .output
                    .iter()
                    .map(|name| &**name)
                    .filter(|name| !(counts_rows && stage_of(name) == Some(0))),
            );
        }
        for stage in (0..=groups.len()).rev() {
            for (names, filter_stage) in filter_variables.iter().zip(&filter_stages) {
                if *filter_stage == stage {
                    wanted.extend(names);
                }
            }
            let given = given.iter().zip(&given_stages);
            wanted.extend(given.filter_map(|(name, at)| (*at == stage).then_some(*name)));
            wanted.sort_unstable();
            wanted.dedup();
            // What is bound later is not wanted before either.
            wanted.retain(|name| stage_of(name).is_some_and(|bound| bound <= stage));
            live[stage] = wanted.iter().map(|name| Box::from(*name)).collect();
            if stage > 0 {
                let read = variables_of(&groups[stage - 1]);
                wanted.extend(read.into_iter().map(|name| &**name));
            }
        }
        Self {
            live,
            filter_stages,
            given_stages,
        }
    }

    pub(crate) fn is_live(&self, stage: usize, variable: &str) -> bool {
        // In ascending order.
        variable == ROW_NUMBER || self.is_wanted(stage, variable)
    }

    fn is_wanted(&self, stage: usize, variable: &str) -> bool {
        let wanted = &self.live[stage];
        wanted
            .binary_search_by(|name| (**name).cmp(variable))
            .is_ok()
    }
}
