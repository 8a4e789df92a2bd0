//! Prepared queries that run in another process.
//!
//! ```text
//! PreparedQuery --encoded_plan--> bytes --with_encoded_plan, elsewhere--> PreparedQuery over another engine
//! ```
//!
//! What goes is the plan (`orrery_operators::codec`). What becomes of the solutions (the form of
//! the answer, templates) stays where the query was prepared; here it is taken along to compare
//! both answers. Nothing is encoded unless somebody asks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use orrery_operators::codec::{self, CodecError, DecodedPlan, Destination, EncodedPlan};
use orrery_runtime::Patience;

use crate::engine::Engine;
use crate::error::QueryError;
use crate::parse::on_large_stack;
use crate::plan::compile_patterns;
use crate::prepared::PreparedQuery;

/// A plan of so many bytes may hold an expression that takes a large stack to be compiled.
const LARGE_PLAN_BYTES: usize = 1 << 16;

impl From<CodecError> for QueryError {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Operators(error) => (*error).into(),
            other => Self::unsupported(other.to_string()),
        }
    }
}

impl PreparedQuery {
    /// The plan as bytes, for other processes. Before the query runs here: it gives shares of the
    /// numbers of blank nodes away.
    pub fn encoded_plan(&self, to: Destination) -> Result<Vec<u8>, QueryError> {
        Ok(codec::encode(&self.plan, &self.context, to)?)
    }

    /// The query with a plan decoded from bytes, as another process does it with its own engine.
    /// The engine's database must be the same one, with the commit that the query reads.
    pub fn with_encoded_plan(
        &self,
        engine: &Engine,
        bytes: &[u8],
        process: u32,
    ) -> Result<Self, QueryError> {
        let decode = || {
            let patience = Arc::new(Patience::default());
            let encoded = EncodedPlan::read(bytes)?;
            let snapshot = encoded.snapshot(engine.database())?;
            let options = engine.context_options(patience, None);
            let service = engine.options().service.as_ref();
            let decoded = encoded.build(snapshot, options, service, process)?;
            compile_patterns(decoded.plan.as_ref())?;
            Ok(decoded)
        };
        let DecodedPlan { plan, context } = match bytes.len() > LARGE_PLAN_BYTES {
            true => on_large_stack("decode-plan", decode)?,
            false => decode()?,
        };
        let batch_rows = self.task.session_config().batch_size();
        Ok(Self {
            kind: self.kind,
            variables: Arc::clone(&self.variables),
            columns: self.columns.clone(),
            template: self.template.clone(),
            gives_each_triple_once: self.gives_each_triple_once,
            described: self.described.clone(),
            estimates: self.estimates.clone(),
            planning_cost: context.view().cost(),
            plan,
            context,
            task: engine.runtime().task(Some(batch_rows)),
            runtime: Arc::clone(engine.runtime()),
            limits: self.limits,
            preparation: self.preparation,
            prologue: self.prologue.clone(),
            is_parallel: self.is_parallel,
            has_own_task: self.has_own_task,
            has_run: AtomicBool::new(false),
        })
    }
}
