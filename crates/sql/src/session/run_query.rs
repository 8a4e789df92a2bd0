//! The execution of a prepared query.
//!
//! ```text
//! ready (`ready`)      values in the place of parameters -> nodes
//! run the first time   the cached plan, with values -> optimized -> nodes
//! the second time      the plan without values -> optimized: is it ready from now on?
//! ```

use std::sync::Arc;

use datafusion::common::ScalarValue;
use futures::future::BoxFuture;

use crate::answers::outcome::Outcome;
use crate::distributed::asked::Asked;
use crate::functions::offered::{LARGE_BYTES, may_take_long};
use crate::plan::counted::counted_stream;
use crate::plan::planner::changed;
use crate::plan::prepared::{Prepared, Readiness};
use crate::plan::ready::{ReadyQuery, task_without_functions};
use crate::semantics::column_names::shown_rows;
use crate::session::client::Session;
use crate::{Error, Result};

impl Session {
    /// Runs it with values of its parameters.
    pub(crate) fn run_query<'a>(
        &'a self,
        prepared: &'a Prepared,
        values: &'a [ScalarValue],
    ) -> BoxFuture<'a, Result<Outcome>> {
        Box::pin(async move {
            self.block().lock().note_statement()?;
            let values = prepared.typed(values)?;
            let snapshot = self.seen()?;
            let text = &prepared.statement.text;
            let tables = &self.tables_in(&snapshot);
            let readiness = prepared.readiness(tables);
            // Large ones become columns within bounds alone, which a plan says.
            let are_small = values
                .iter()
                .all(|value| value.size() as u64 <= LARGE_BYTES);
            if let Readiness::Yes(ready) = &readiness
                && are_small
            {
                return self.run_ready(ready, &values, text).await;
            }
            let planner = self.planner(&snapshot);
            let plan = match prepared.plan_over(tables) {
                Some(plan) => plan,
                None => {
                    let parsed = prepared.statement.parsed.clone();
                    let plan = prepared.told(planner.logical(parsed, text).await?)?;
                    prepared.require_columns(&plan)?;
                    if !planner.reads_graphs() {
                        prepared.keep(tables, plan.clone());
                    }
                    plan
                }
            };
            if let Readiness::Unknown = readiness {
                // What may take long is planned each time, so that it can be stopped.
                let ready = match may_take_long(&plan) {
                    true => None,
                    false => {
                        let optimized =
                            changed(&plan, &self.state, |plan, state| state.optimize(plan));
                        optimized.await?.ok()
                    }
                };
                let ready = ready.and_then(|plan| ReadyQuery::new(plan, tables));
                let ready = ready.map(Arc::new);
                prepared.keep_ready(ready.as_ref());
                if let Some(ready) = ready
                    && are_small
                {
                    return self.run_ready(&ready, &values, text).await;
                }
            }
            let plan = plan
                .with_param_values(values.clone())
                .map_err(|error| Error::of_engine(&error, text))?;
            let asked = Asked {
                values: &values,
                told: prepared.told_types(),
                ..Asked::new(text, snapshot.commit())
            };
            let stream = self.started(&planner, &plan, asked).await?;
            Ok(Outcome::Query(self.answer(stream)))
        })
    }

    /// Runs a query that is not planned any more.
    async fn run_ready(
        &self,
        ready: &ReadyQuery,
        values: &[ScalarValue],
        text: &str,
    ) -> Result<Outcome> {
        let plan = ready.plan(&self.state, values).await;
        let plan = plan.map_err(|error| Error::of_engine(&error, text))?;
        let rows = counted_stream(plan, task_without_functions(&self.state));
        let rows = rows.map_err(|error| Error::of_run(&error))?;
        Ok(Outcome::Query(self.answer(shown_rows(rows))))
    }
}
