//! `orrery explain`: the plan of a query, with estimates; run, with actual rows and times.

use orrery_sparql::{Measured, PlanNode, PlanStep, QueryOptions};
use serde_json::{Value, json};

use super::output::Output;
use super::query_text::runtime_for;
use crate::arguments::{ExplainArguments, ReportFormat};
use crate::failure::Failure;

pub(crate) fn run(arguments: ExplainArguments) -> Result<(), Failure> {
    let text = arguments.text.read()?;
    let engine = arguments.text.engine(&arguments.database)?;
    let options = QueryOptions {
        timeout: arguments.timeout.map(|timeout| timeout.0),
        ..arguments.text.options()
    };
    let prepared = engine.prepare(&text, &options)?;
    let runtime = || runtime_for(&prepared, &engine);
    let mut plan = match (arguments.format, arguments.analyze) {
        (ReportFormat::Text, false) => prepared.explain(),
        (ReportFormat::Text, true) => runtime()?.block_on(prepared.analyze())?,
        (ReportFormat::Json, false) => node(&prepared.plan()).to_string(),
        (ReportFormat::Json, true) => {
            node(&runtime()?.block_on(prepared.analyzed_plan())?).to_string()
        }
    };
    if !plan.ends_with('\n') {
        plan.push('\n');
    }
    let mut output = Output::open(None)?;
    output.drain(&mut plan.into_bytes())?;
    output.finish()
}

fn node(plan: &PlanNode) -> Value {
    let (rows, elapsed_ns) = match plan.measured {
        Some(Measured { rows, elapsed_ns }) => (Some(rows), elapsed_ns),
        None => (None, None),
    };
    json!({
        "name": plan.name,
        "text": plan.text,
        "estimated_rows": plan.estimated_rows,
        "rows": rows,
        "elapsed_ns": elapsed_ns,
        "is_read_whole": plan.is_read_whole,
        "is_repeated": plan.is_repeated,
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "inputs": plan.inputs.iter().map(node).collect::<Vec<_>>(),
    })
}

fn step(step: &PlanStep) -> Value {
    let texts: Vec<&str> = step
        .patterns
        .iter()
        .map(|pattern| pattern.text.as_str())
        .collect();
    let access: Vec<&str> = step
        .patterns
        .iter()
        .map(|pattern| pattern.access.as_str())
        .collect();
    json!({
        "text": texts.join(" & "),
        "access": access,
        "estimated_rows": step.estimated_rows,
        "rows": step.measured.map(|(rows, _)| rows),
        "look_ups": step.measured.map(|(_, look_ups)| look_ups),
        "is_read_whole": step.is_read_whole,
    })
}
