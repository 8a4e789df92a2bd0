//! Plans as trees and text: each node with estimates and actual figures.
//!
//! ```text
//! SortExec: TopK(fetch=10), ...                    [~40 rows; 10 rows, 31.2 us]
//!   PatternExec: inner                             [~40 rows; 38 rows, 112 us]
//!     . ?s ex:p ?o via Psog/1                      [~40 rows; 38 rows, 0 look-ups]
//! ```
//!
//! `docs/explain.md` explains it to users. The [notation] keeps it short.
//!
//! Figures after `~` are estimates; after the semicolon stands what an analyzed run has counted.
//! How rows were found (look-ups in files and in memory) depends on all that is in the database, so
//! who does not see all of it is not told. Times are a node's own computing, without its inputs,
//! where the node measures it.
//!
//! A [`PlanNode`] has the same for programs. It also tells whether the run read a node to its end:
//! below a limit, or beside an empty side of a join, the rows counted say nothing about the
//! estimate.

mod notation;

use std::fmt::Write;
use std::sync::Arc;

use datafusion_physical_plan::displayable;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{ExecutionPlan, metrics::MetricsSet};
use orrery_operators::pattern::{PatternExec, PatternMode, PatternReport};
use orrery_term::Shortener;
use serde_json::{Value, json};

use crate::plan::{PlanEstimates, Positions};

pub(crate) use notation::prologue;

/// A node of a plan with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNode {
    /// The operator.
    pub name: String,
    /// What it does; the operator's own description, its first line with the name.
    pub text: String,
    /// Rows that the planner expected.
    pub estimated_rows: Option<f64>,
    /// What a run has counted.
    pub measured: Option<Measured>,
    /// Whether the run reads (or would read) all of its rows.
    pub is_read_whole: bool,
    /// Whether this node was shown before, with its inputs: several parts of the plan read it.
    pub is_repeated: bool,
    /// The patterns that it matches, in this order.
    pub steps: Vec<PlanStep>,
    /// What it reads.
    pub inputs: Vec<PlanNode>,
}

/// The measured figures of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Rows that came out.
    pub rows: usize,
    /// Time spent in the node itself, where it measures that.
    pub elapsed_ns: Option<usize>,
}

/// One step of a node: a pattern, or several that are intersected.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanStep {
    /// The patterns.
    pub patterns: Vec<PlanPattern>,
    /// Rows that the planner expected after it.
    pub estimated_rows: Option<f64>,
    /// What it did in a run.
    pub measured: Option<StepFigures>,
    /// Whether all matches are looked for, and not only the first of each row.
    pub is_read_whole: bool,
}

/// The measured figures of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFigures {
    /// Rows after it.
    pub rows: usize,
    /// How they were found; only for who sees all graphs.
    pub look_ups: Option<LookUps>,
}

/// Keys that were looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUps {
    /// In a permutation.
    pub in_files: usize,
    /// In an adjacency in memory.
    pub in_memory: usize,
}

/// One pattern of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanPattern {
    /// The pattern, as in SPARQL.
    pub text: String,
    /// The permutation that it walks, and how many of its columns are known: `Psog/2`.
    pub access: String,
}

impl PlanNode {
    /// The node with its steps and inputs, as `orrery explain --format json` prints it.
    pub fn to_json(&self) -> Value {
        let (rows, elapsed_ns) = match self.measured {
            Some(Measured { rows, elapsed_ns }) => (Some(rows), elapsed_ns),
            None => (None, None),
        };
        json!({
            "name": self.name,
            "text": self.text,
            "estimated_rows": self.estimated_rows,
            "rows": rows,
            "elapsed_ns": elapsed_ns,
            "is_read_whole": self.is_read_whole,
            "is_repeated": self.is_repeated,
            "steps": self.steps.iter().map(PlanStep::to_json).collect::<Vec<_>>(),
            "inputs": self.inputs.iter().map(Self::to_json).collect::<Vec<_>>(),
        })
    }
}

impl PlanStep {
    fn to_json(&self) -> Value {
        let patterns = || self.patterns.iter();
        let texts: Vec<&str> = patterns().map(|pattern| pattern.text.as_str()).collect();
        let access: Vec<&str> = patterns().map(|pattern| pattern.access.as_str()).collect();
        let look_ups = self.measured.and_then(|figures| figures.look_ups);
        json!({
            "text": texts.join(" & "),
            "access": access,
            "estimated_rows": self.estimated_rows,
            "rows": self.measured.map(|figures| figures.rows),
            "look_ups": look_ups.map(|it| it.in_files),
            "look_ups_in_memory": look_ups.map(|it| it.in_memory),
            "is_read_whole": self.is_read_whole,
        })
    }
}

/// What is told of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// What is expected.
    Estimates,
    /// Also what a run has counted.
    Run,
    /// And how it found it.
    RunAndLookUps,
}

/// The tree of a plan.
pub(crate) fn nodes(
    plan: &Arc<dyn ExecutionPlan>,
    estimates: &PlanEstimates,
    told: Told,
) -> PlanNode {
    let mut reader = Reader {
        positions: estimates.positions(),
        told,
    };
    reader.node(plan, true)
}

/// The tree of a plan as text; IRIs are written by the prefixes of the query's `prologue`, and
/// those that need no declaration.
pub(crate) fn tree(
    plan: &Arc<dyn ExecutionPlan>,
    estimates: &PlanEstimates,
    told: Told,
    prologue: &str,
    shortener: &Shortener,
) -> String {
    let mut text = String::new();
    write_node(&nodes(plan, estimates, told), 0, &mut text);
    notation::readable(&text, prologue, shortener)
}

/// Reads nodes off a plan.
struct Reader<'e> {
    positions: Positions<'e>,
    told: Told,
}

impl Reader<'_> {
    fn node(&mut self, plan: &Arc<dyn ExecutionPlan>, is_read_whole: bool) -> PlanNode {
        let (estimated_rows, is_entered) = self.positions.visit(plan);
        let text = own_words(plan);
        let measured = plan
            .metrics()
            .filter(|_| self.told != Told::Estimates)
            .map(|metrics| measured(&metrics));
        let steps = plan.downcast_ref::<PatternExec>();
        let steps = steps.map(|pattern| self.steps(pattern, is_read_whole));
        let children = plan.children();
        let mut inputs: Vec<PlanNode> = Vec::with_capacity(children.len());
        if is_entered {
            for child in children {
                let is_read_whole = match plan.name() {
                    "GlobalLimitExec" => false,
                    "SortExec" | "AggregateExec" | "GroupExec" | "SharedExec" => true,
                    // What an empty side finds no partner for is not read.
                    "HashJoinExec" => {
                        is_read_whole && inputs.first().is_none_or(|first| !first.has_no_rows())
                    }
                    _ => is_read_whole,
                };
                inputs.push(self.node(child, is_read_whole));
            }
        }
        PlanNode {
            name: plan.name().to_owned(),
            text: text.trim_end().to_owned(),
            estimated_rows,
            measured,
            is_read_whole,
            is_repeated: !is_entered,
            steps: steps.unwrap_or_default(),
            inputs,
        }
    }

    /// The way to the rows of a pattern, such as `Posg/2, as a set of 273 ids`.
    ///
    /// Whether a set is made depends on how many rows lie there, hidden ones among them, so the
    /// report names the set only for askers who see all.
    fn access(&self, pattern: &PatternReport) -> String {
        let way = format!("{:?}/{}", pattern.permutation, pattern.prefix_columns);
        let set_ids = pattern.set_ids;
        match set_ids.filter(|_| self.told == Told::RunAndLookUps) {
            Some(ids) => format!("{way}, as a set of {ids} ids"),
            None => way,
        }
    }

    fn steps(&self, pattern: &PatternExec, is_read_whole: bool) -> Vec<PlanStep> {
        let specification = pattern.specification();
        let finds_all = match specification.mode {
            PatternMode::Inner | PatternMode::Optional => specification.fetch.is_none(),
            PatternMode::Semi | PatternMode::Anti | PatternMode::Mark(_) => false,
        };
        let reports = pattern.reports().into_iter();
        reports
            .map(|step| PlanStep {
                patterns: step
                    .patterns
                    .iter()
                    .map(|pattern| PlanPattern {
                        text: pattern.text.clone(),
                        access: self.access(pattern),
                    })
                    .collect(),
                estimated_rows: step.estimated_rows,
                measured: (self.told != Told::Estimates).then_some(StepFigures {
                    rows: step.rows,
                    look_ups: (self.told == Told::RunAndLookUps).then_some(LookUps {
                        in_files: step.seeks,
                        in_memory: step.in_memory,
                    }),
                }),
                is_read_whole: is_read_whole && finds_all,
            })
            .collect()
    }
}

/// What a node says of itself, without what it learns as it runs: the condition by which a top-k
/// drops rows names terms by their numbers, which are of no use to anybody and tell how many terms
/// the dictionary has, also those that somebody may not see.
fn own_words(plan: &Arc<dyn ExecutionPlan>) -> String {
    let words = |plan: &dyn ExecutionPlan| displayable(plan).one_line().to_string();
    if !plan.is::<SortExec>() {
        return words(plan.as_ref());
    }
    match Arc::clone(plan).reset_state() {
        Ok(before_its_run) => words(before_its_run.as_ref()),
        Err(_) => plan.name().to_owned(),
    }
}

fn measured(metrics: &MetricsSet) -> Measured {
    Measured {
        rows: metrics.output_rows().unwrap_or(0),
        elapsed_ns: metrics.elapsed_compute().filter(|elapsed| *elapsed > 1),
    }
}

impl PlanNode {
    fn has_no_rows(&self) -> bool {
        self.measured.is_some_and(|measured| measured.rows == 0)
    }
}

fn write_node(node: &PlanNode, depth: usize, text: &mut String) {
    let mut lines = node.text.lines();
    let indent = "  ".repeat(depth);
    let _ = write!(text, "{indent}{}", lines.next().unwrap_or_default());
    if node.is_repeated {
        text.push_str(", as above\n");
        return;
    }
    text.push_str(&figures(node));
    text.push('\n');
    for line in lines {
        let _ = writeln!(text, "{indent}  {line}");
    }
    for step in &node.steps {
        write_step(step, &indent, text);
    }
    for input in &node.inputs {
        write_node(input, depth + 1, text);
    }
}

fn figures(node: &PlanNode) -> String {
    let expected = node.estimated_rows.map(|rows| format!("~{}", count(rows)));
    let actual = node.measured.map(|measured| shown(&measured));
    match (expected, actual) {
        (None, None) => String::new(),
        (Some(expected), None) => format!("  [{expected} rows]"),
        (None, Some(actual)) => format!("  [{actual}]"),
        (Some(expected), Some(actual)) => format!("  [{expected} rows; {actual}]"),
    }
}

fn shown(measured: &Measured) -> String {
    let rows = measured.rows;
    match measured.elapsed_ns {
        Some(nanoseconds) => {
            #[expect(clippy::cast_precision_loss, reason = "shown to three digits")]
            let microseconds = nanoseconds as f64 / 1e3;
            format!("{rows} rows, {microseconds:.1} us")
        }
        None => format!("{rows} rows"),
    }
}

fn write_step(step: &PlanStep, indent: &str, text: &mut String) {
    for (number, pattern) in step.patterns.iter().enumerate() {
        let joint = if number == 0 { "  ." } else { " &" };
        let indent = if number == 0 { indent } else { "" };
        let _ = write!(
            text,
            "{indent}{joint} {} via {}",
            pattern.text, pattern.access
        );
    }
    let expected = step
        .estimated_rows
        .map(|rows| format!("~{} rows", count(rows)));
    let actual = step.measured.map(|figures| figures_of_step(&figures));
    let both: Vec<String> = expected.into_iter().chain(actual).collect();
    if !both.is_empty() {
        let _ = write!(text, "  [{}]", both.join("; "));
    }
    text.push('\n');
}

fn figures_of_step(figures: &StepFigures) -> String {
    let rows = figures.rows;
    match figures.look_ups {
        None => format!("{rows} rows"),
        Some(LookUps {
            in_files,
            in_memory: 0,
        }) => format!("{rows} rows, {in_files} look-ups"),
        Some(LookUps {
            in_files,
            in_memory,
        }) => format!("{rows} rows, {in_files} look-ups, {in_memory} in memory"),
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
