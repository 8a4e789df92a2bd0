//! A pattern at run time: programs compiled on demand, and state shared by executions of a node.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, internal_err};
use parking_lot::Mutex;

use crate::context::QueryContext;
use crate::dealing::Spread;
use crate::pattern::compiler::compile::{Arrangement, arranged, compile};
use crate::pattern::program::Program;
use crate::pattern::run::morsel::{FurtherSteps, MorselReader, Morsels};
use crate::pattern::run::pipeline::StepCounters;
use crate::pattern::specification::PatternSpecification;

/// A compiled pattern and what its executions share.
#[derive(Debug)]
pub(crate) struct CompiledPattern {
    pub(crate) context: Arc<QueryContext>,
    pub(crate) specification: PatternSpecification,
    /// The variables of the input, none without one.
    pub(crate) input_variables: Vec<Arc<str>>,
    pub(crate) schema: SchemaRef,
    /// By the number of the step; shared with parts of the pattern.
    pub(crate) counters: Arc<[StepCounters]>,
    /// How it is arranged for input rows in which all variables are bound, once that was asked for,
    /// or if it is known from another query.
    pub(crate) arrangement: OnceLock<Arc<Arrangement>>,
    /// The program for input rows in which all variables are bound, once it was asked for.
    pub(crate) bound: OnceLock<Arc<Program>>,
    /// Programs for other input rows, by which input variables are unbound.
    pub(crate) others: Mutex<Vec<(Vec<bool>, Arc<Program>)>>,
}

impl CompiledPattern {
    /// The program for input rows in which all variables are bound; compiled here and now if it was
    /// not.
    pub(crate) fn bound_program(&self) -> Result<&Arc<Program>> {
        if let Some(program) = self.bound.get() {
            return Ok(program);
        }
        let unbound = vec![false; self.input_variables.len()];
        let arrangement = self
            .arrangement
            .get_or_init(|| Arc::new(self.arranged(&unbound)));
        let program = self.compile(&unbound, arrangement)?;
        Ok(self.bound.get_or_init(|| program))
    }

    fn arranged(&self, unbound: &[bool]) -> Arrangement {
        let (specification, input) = (&self.specification, &self.input_variables);
        arranged(&self.context, specification, input, unbound)
    }

    fn compile(&self, unbound: &[bool], arrangement: &Arrangement) -> Result<Arc<Program>> {
        let (specification, input) = (&self.specification, &self.input_variables);
        let program = compile(&self.context, specification, input, unbound, arrangement)?;
        Ok(Arc::new(program))
    }

    /// The program for input rows in which these variables are unbound.
    pub(crate) fn program(&self, unbound: &[bool]) -> Result<Arc<Program>> {
        if !unbound.contains(&true) {
            return self.bound_program().cloned();
        }
        let mut others = self.others.lock();
        if let Some((_, program)) = others.iter().find(|(mask, _)| mask == unbound) {
            return Ok(Arc::clone(program));
        }
        let program = self.compile(unbound, &self.arranged(unbound))?;
        others.push((unbound.to_vec(), Arc::clone(&program)));
        Ok(program)
    }

    /// The rows that are the share of one partition of so many.
    pub(crate) fn share(&self, place: (usize, usize)) -> Result<MorselReader> {
        let Some(step) = self.bound_program()?.steps.first() else {
            return internal_err!("a pattern without steps is in several partitions");
        };
        Morsels::share(step, place, Arc::clone(self.context.workers()))
    }

    /// The morsels of one execution.
    pub(crate) fn cut(&self, spread: Spread) -> Result<Morsels> {
        let Some((step, others)) = self.bound_program()?.steps.split_first() else {
            return internal_err!("a pattern without steps is in several partitions");
        };
        let workers = Arc::clone(self.context.workers());
        let mut further = match others {
            [] => FurtherSteps::None,
            _ => FurtherSteps::InMemory,
        };
        for other in others {
            if !other.is_in_memory()? {
                further = FurtherSteps::InPermutations;
            }
        }
        Morsels::cut(step, further, spread, workers)
    }
}
