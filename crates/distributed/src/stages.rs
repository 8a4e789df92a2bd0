//! The stages of a plan: the work of each worker, and the readers of its output.
//!
//! ```text
//! partitions of the plan    0  1  2  3  4  5  6  7     as the plan was made: rows stay in their partition
//!                                                      when workers come and go
//! workers                   b  a  a  c  b  c  a  b     by rendezvous (`owners`)
//! groups, one for a thread  (1 2 6) a  (0 4 7) b  (3 5) c     run one after another: a partition of the stage
//! ```

use std::sync::Arc;

use datafusion_physical_expr::Partitioning;
use datafusion_physical_plan::ExecutionPlan;

use crate::divided_here::DividedHereExec;
use crate::exchange::{ExchangeExec, Place};
use crate::language::Rules;
use crate::links::Shape;
use crate::owners::Group;
use crate::pick::{count, divided_children};

type Plan = Arc<dyn ExecutionPlan>;

/// A stage: a plan of which each worker has some partitions.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Without the division of its rows.
    pub(crate) plan: Plan,
    /// How its rows are divided for who reads them; as they are, if they are not.
    pub(crate) division: Option<Partitioning>,
    /// What each partition of the stage is, before its rows are divided: partitions of the plan,
    /// and who has them. One member has all if the stage is not divided.
    pub(crate) groups: Vec<Group>,
    /// Whether partitions belong to several.
    pub(crate) is_divided: bool,
    /// How often each partition that it gives is read.
    pub(crate) readers: usize,
}

/// A plan in stages.
#[derive(Debug)]
pub(crate) struct Stages {
    pub(crate) root: Plan,
    pub(crate) stages: Vec<Stage>,
    /// Where exchanges find the workers.
    pub(crate) place: Place,
}

impl Stages {
    /// What each stage gives, and who has it.
    pub(crate) fn shapes(&self) -> Vec<Shape> {
        let shapes = self.stages.iter().map(|stage| Shape {
            owners: stage.groups.iter().map(|group| group.owner).collect(),
            is_repartitioned: stage.division.is_some(),
        });
        shapes.collect()
    }

    /// What all processes that work on the plan must have alike.
    pub(crate) fn fingerprint(&self, rules: &Rules) -> u64 {
        let mut seen = Seen::new();
        let mut text = String::new();
        labels(&self.root, rules, &mut seen, &mut text);
        for stage in &self.stages {
            labels(&stage.plan, rules, &mut seen, &mut text);
            let division = stage.division.as_ref().map(ToString::to_string);
            text.push_str(&format!("{division:?}{:?}{}", stage.groups, stage.readers));
        }
        tracing::trace!("stages:\n{text}");
        let hasher = foldhash::fast::FixedState::default();
        std::hash::BuildHasher::hash_one(&hasher, text)
    }
}

/// Counts who reads the stages.
pub(crate) fn count_readers(stages: &mut Stages, members: usize) {
    let mut readers = vec![0; stages.stages.len()];
    let mut seen = hashbrown::HashSet::new();
    exchanges(&stages.root, &mut seen, &mut |stage| readers[stage] += 1);
    for stage in &stages.stages {
        let mut seen = hashbrown::HashSet::new();
        match stage.is_divided {
            true => divided_exchanges(&stage.plan, members, &mut seen, &mut readers),
            false => exchanges(&stage.plan, &mut seen, &mut |stage| readers[stage] += 1),
        }
    }
    for (stage, readers) in stages.stages.iter_mut().zip(readers) {
        stage.readers = readers;
    }
}

/// Writes what the nodes of a plan are, each once.
fn labels(plan: &Plan, rules: &Rules, seen: &mut Seen, text: &mut String) {
    if !seen.insert(Arc::as_ptr(plan).cast()) {
        text.push('^');
        return;
    }
    let label = match plan.downcast_ref::<ExchangeExec>() {
        Some(exchange) => format!("stage {}", exchange.stage()),
        None => (rules.label)(plan),
    };
    text.push_str(&format!("{label} ({} partitions) [\n", count(plan)));
    for child in plan.children() {
        labels(child, rules, seen, text);
    }
    text.push_str("]\n");
}

type Seen = hashbrown::HashSet<*const ()>;

/// Calls `f` for each stage that a plan in one place reads.
fn exchanges(plan: &Plan, seen: &mut Seen, f: &mut dyn FnMut(usize)) {
    if !seen.insert(Arc::as_ptr(plan).cast()) {
        return;
    }
    if let Some(exchange) = plan.downcast_ref::<ExchangeExec>() {
        f(exchange.stage());
    }
    for child in plan.children() {
        exchanges(child, seen, f);
    }
}

fn divided_exchanges(plan: &Plan, members: usize, seen: &mut Seen, readers: &mut [usize]) {
    if !seen.insert(Arc::as_ptr(plan).cast()) {
        return;
    }
    if let Some(exchange) = plan.downcast_ref::<ExchangeExec>() {
        readers[exchange.stage()] += 1;
        return;
    }
    if plan.is::<DividedHereExec>() {
        for child in plan.children() {
            exchanges(child, seen, &mut |stage| readers[stage] += members);
        }
        return;
    }
    let divided = divided_children(plan);
    for (child, is_divided) in plan.children().into_iter().zip(divided) {
        match is_divided {
            true => divided_exchanges(child, members, seen, readers),
            false => exchanges(child, seen, &mut |stage| readers[stage] += members),
        }
    }
}
