//! `orrery explain`: the plan of a query, with estimates; run, with actual rows and times.

use super::output::Output;
use super::query_text::runtime;
use crate::arguments::ExplainArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: ExplainArguments) -> Result<(), Failure> {
    let text = arguments.text.read()?;
    let engine = arguments.text.engine(&arguments.database)?;
    let prepared = engine.prepare(&text, &arguments.text.options())?;
    let mut plan = if arguments.analyze {
        runtime()?.block_on(prepared.analyze())?
    } else {
        prepared.explain()
    };
    if !plan.ends_with('\n') {
        plan.push('\n');
    }
    let mut output = Output::open(None)?;
    output.drain(&mut plan.into_bytes())?;
    output.finish()
}
