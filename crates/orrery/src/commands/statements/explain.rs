//! `orrery explain`: prints the plan of a query, with estimates; with --analyze also actual rows
//! and times.

use orrery_sparql::QueryOptions;

use crate::arguments::{ExplainArguments, ReportFormat};
use crate::commands::output::Output;
use crate::commands::query_text::runtime_for;
use crate::failure::Failure;

pub(crate) fn run(arguments: ExplainArguments) -> Result<(), Failure> {
    let text = arguments.text.read()?;
    let engine = arguments.text.engine(&arguments.database)?;
    let options = QueryOptions {
        timeout: arguments.timeout.map(|timeout| timeout.0),
        ..arguments.text.options()
    };
    let prepared = engine
        .prepare(&text, &options)
        .map_err(|error| Failure::of_text(error, &text))?;
    let runtime = || runtime_for(&prepared, &engine);
    let mut plan = match (arguments.format, arguments.analyze) {
        (ReportFormat::Text, false) => prepared.explain(),
        (ReportFormat::Text, true) => runtime()?.block_on(prepared.analyze())?,
        (ReportFormat::Json, false) => prepared.plan().to_json().to_string(),
        (ReportFormat::Json, true) => {
            let plan = runtime()?.block_on(prepared.analyzed_plan())?;
            let mut plan = plan.to_json();
            plan["touches"] = prepared.touches().into();
            plan.to_string()
        }
    };
    if !plan.ends_with('\n') {
        plan.push('\n');
    }
    let mut output = Output::open(None)?;
    output.drain(&mut plan.into_bytes())?;
    output.finish()
}
