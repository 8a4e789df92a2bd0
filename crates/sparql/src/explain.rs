//! Plans as text: what each node does, what was expected of it, what it did.
//!
//! ```text
//! SortExec: TopK(fetch=10), ...                    [~40 rows; 10 rows, 31.2 us]
//!   PatternExec ...                                [~40 rows; 38 rows, 112 us]
//! ```
//!
//! Figures after `~` are estimates; after the semicolon stands what an analyzed run has
//! counted. Times are a node's own computing, without its inputs, where the node measures it.

use std::fmt::Write;
use std::sync::Arc;

use datafusion_physical_plan::displayable;
use datafusion_physical_plan::{ExecutionPlan, metrics::MetricsSet};
use orrery_operators::pattern::PatternExec;

use crate::plan::{Estimates, address};

/// The tree of a plan.
pub(crate) fn tree(
    plan: &Arc<dyn ExecutionPlan>,
    estimates: &Estimates,
    is_analyzed: bool,
) -> String {
    let mut text = String::new();
    write_node(plan, estimates, is_analyzed, 0, &mut text);
    text
}

fn write_node(
    plan: &Arc<dyn ExecutionPlan>,
    estimates: &Estimates,
    is_analyzed: bool,
    depth: usize,
    text: &mut String,
) {
    let line = displayable(plan.as_ref()).one_line().to_string();
    let mut lines = line.trim_end().lines();
    let indent = "  ".repeat(depth);
    let _ = write!(text, "{indent}{}", lines.next().unwrap_or_default());
    let _ = write!(text, "{}", figures(plan, estimates, is_analyzed));
    text.push('\n');
    for line in lines {
        let _ = writeln!(text, "{indent}  {line}");
    }
    if let Some(pattern) = plan.downcast_ref::<PatternExec>() {
        write_steps(pattern, is_analyzed, &indent, text);
    }
    for child in plan.children() {
        write_node(child, estimates, is_analyzed, depth + 1, text);
    }
}

fn figures(plan: &Arc<dyn ExecutionPlan>, estimates: &Estimates, is_analyzed: bool) -> String {
    let expected = estimates
        .get(&address(plan))
        .map(|rows| format!("~{}", count(*rows)));
    let actual = plan
        .metrics()
        .filter(|_| is_analyzed)
        .map(|metrics| measured(&metrics));
    match (expected, actual) {
        (None, None) => String::new(),
        (Some(expected), None) => format!("  [{expected} rows]"),
        (None, Some(actual)) => format!("  [{actual}]"),
        (Some(expected), Some(actual)) => format!("  [{expected} rows; {actual}]"),
    }
}

fn measured(metrics: &MetricsSet) -> String {
    let rows = metrics.output_rows().unwrap_or(0);
    match metrics.elapsed_compute() {
        Some(nanoseconds) if nanoseconds > 1 => {
            #[expect(clippy::cast_precision_loss, reason = "shown to three digits")]
            let microseconds = nanoseconds as f64 / 1e3;
            format!("{rows} rows, {microseconds:.1} us")
        }
        _ => format!("{rows} rows"),
    }
}

fn write_steps(pattern: &PatternExec, is_analyzed: bool, indent: &str, text: &mut String) {
    for step in pattern.reports() {
        for (number, pattern) in step.patterns.iter().enumerate() {
            let joint = if number == 0 { "  ." } else { " &" };
            let indent = if number == 0 { indent } else { "" };
            let _ = write!(
                text,
                "{indent}{joint} {} via {:?}/{}",
                pattern.text, pattern.permutation, pattern.prefix_columns
            );
        }
        let expected = step
            .estimated_rows
            .map(|rows| format!("~{} rows", count(rows)));
        let actual = is_analyzed.then(|| format!("{} rows, {} look-ups", step.rows, step.seeks));
        let both: Vec<String> = expected.into_iter().chain(actual).collect();
        if !both.is_empty() {
            let _ = write!(text, "  [{}]", both.join("; "));
        }
        text.push('\n');
    }
}

/// A number of rows, to two digits where it is an estimate of many.
fn count(rows: f64) -> String {
    if rows < 10.0 {
        format!("{rows:.1}")
    } else {
        format!("{rows:.0}")
    }
}
