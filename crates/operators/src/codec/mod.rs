//! The plan codec: plans as bytes, to run in another process.
//!
//! ```text
//! "ORPL"  version  CRC-32C of what follows   JSON
//!  4 bytes   1      4 bytes, little-endian    { "head": database, commit, scope, the query's own; "nodes": [...] }
//! ```
//!
//! **Nodes** are a list in which each names its inputs by their numbers, all of which stand before
//! it; the last one is the root. So a node that several read
//! ([`SharedExec`](crate::nodes::SharedExec)) is written once and is one node again, and neither
//! writing nor reading needs recursion. A node is described by what it is to do: specifications,
//! variables, ids. What was compiled of that is compiled again where the plan runs. The
//! descriptions are closed enums: a node that has none is refused when the plan is written.
//!
//! **The head** says what the ids mean and what else the plan takes from its process: which
//! database in which state, who asks and which graphs they see, the query's own terms in the order
//! of their numbers, `NOW()`, the base IRI, and from which numbers each process takes its blank
//! nodes. A plan for another database, another commit, or other ids of the same commit (a
//! compaction renumbers them) is refused. Memory, threads, adjacencies and how other endpoints are
//! asked are those of the process that runs it.
//!
//! **Trust.** Damage is told by the checksum; whatever else is wrong in the bytes ends in an error
//! too, never in a panic. But a plan says itself who asks: who may send one is for the transport to
//! check.
//!
//! **Not here.** Rows that go from one process to another: ids of the query's own terms that are
//! computed while a plan runs mean nothing elsewhere. Estimates, which are a list by position
//! beside the plan.

mod aggregates;
mod engine_nodes;
mod error;
mod head;
mod inputs;
mod nodes;
mod searches;
mod specifications;
#[cfg(test)]
mod tests;
mod texts;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion_physical_expr::Distribution;
use datafusion_physical_plan::ExecutionPlan;
use orrery_storage::{Database, Snapshot};
use serde::{Deserialize, Serialize};

use self::engine_nodes::EngineNode;
pub use self::error::CodecError;
use self::error::Result;
use self::head::PlanHead;
use self::nodes::OwnNode;
use self::texts::{IdCheck, Place};
use crate::context::{ContextOptions, QueryContext};
use crate::service::ServiceOptions;

/// What the bytes of a plan begin with.
const MAGIC: &[u8; 4] = b"ORPL";
/// The format's version: another one is refused.
const VERSION: u8 = 3;
/// Bytes before the JSON: magic number, version and checksum.
pub const PREAMBLE_BYTES: usize = MAGIC.len() + 1 + size_of::<u32>();
/// Bytes of a plan at most; `VALUES` of a million ids take a third.
const PLAN_BYTES_MAX: usize = 64 << 20;
/// Nodes of a plan; the planner makes no more than 20,000.
const NODES_MAX: usize = 100_000;
/// Nodes that stand above each other; the planner lets 2,000 through.
const DEPTH_MAX: usize = 4_000;

type Plan = Arc<dyn ExecutionPlan>;

/// The destination of an encoded plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Destination {
    /// How many other processes run it, or parts of it; they are counted from 1.
    pub processes: u32,
    /// Whether partitions of one pattern may run in several of them: then each has a fixed share of
    /// the rows, for there is no queue in common.
    pub has_shares: bool,
}

/// A plan that was read from bytes and not yet made here.
#[derive(Debug, Serialize, Deserialize)]
pub struct EncodedPlan {
    head: PlanHead,
    nodes: Vec<EncodedNode>,
}

/// A plan that was made here, and the context that its nodes share.
#[derive(Debug)]
pub struct DecodedPlan {
    /// The root.
    pub plan: Plan,
    /// What its nodes share.
    pub context: Arc<QueryContext>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EncodedNode {
    node: NodeText,
    inputs: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum NodeText {
    Own(OwnNode),
    Engine(EngineNode),
}

/// The bytes of a plan whose nodes share this context. It must not run yet where it has been made:
/// the context gives shares of its numbers of blank nodes away.
pub fn encode(plan: &Plan, context: &QueryContext, to: Destination) -> Result<Vec<u8>> {
    let encoded = EncodedPlan {
        head: PlanHead::of(context, to.processes)?,
        nodes: described(plan, to)?,
    };
    encoded.bytes()
}

/// The nodes of a plan, each once, behind those that it reads.
fn described(root: &Plan, to: Destination) -> Result<Vec<EncodedNode>> {
    let identity = |plan: &Plan| Arc::as_ptr(plan).cast::<()>();
    let mut nodes: Vec<EncodedNode> = Vec::new();
    let mut numbers = HashMap::new();
    let mut open = vec![root];
    while let Some(plan) = open.last().copied() {
        if numbers.contains_key(&identity(plan)) {
            open.pop();
            continue;
        }
        let children = plan.children();
        let known = children.iter().map(|child| numbers.get(&identity(child)));
        let Some(inputs) = known.map(Option::<&usize>::copied).collect() else {
            let unknown = children.into_iter().rev();
            open.extend(unknown.filter(|child| !numbers.contains_key(&identity(child))));
            continue;
        };
        let node = match OwnNode::of(plan.as_ref(), to.has_shares)? {
            Some(own) => NodeText::Own(own),
            None => NodeText::Engine(EngineNode::of(plan.as_ref())?),
        };
        numbers.insert(identity(plan), nodes.len());
        nodes.push(EncodedNode { node, inputs });
        open.pop();
        check_count(nodes.len(), "nodes", NODES_MAX)?;
    }
    Ok(nodes)
}

fn check_count(count: usize, unit: &'static str, max: usize) -> Result<()> {
    match count > max {
        true => Err(CodecError::TooLarge { count, unit, max }),
        false => Ok(()),
    }
}

impl EncodedPlan {
    fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = [MAGIC, &[VERSION][..], &[0; size_of::<u32>()]].concat();
        serde_json::to_writer(&mut bytes, self)
            .map_err(|error| CodecError::CannotTravel(format!("a plan ({error})")))?;
        check_count(bytes.len(), "bytes", PLAN_BYTES_MAX)?;
        let checksum = crc32c::crc32c(&bytes[PREAMBLE_BYTES..]);
        bytes[MAGIC.len() + 1..PREAMBLE_BYTES].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    /// Reads the bytes of a plan; nothing is made yet.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        check_count(bytes.len(), "bytes", PLAN_BYTES_MAX)?;
        let rest = bytes.strip_prefix(MAGIC).ok_or(CodecError::NotAPlan)?;
        let (&version, rest) = rest.split_first().ok_or(CodecError::NotAPlan)?;
        if version != VERSION {
            return Err(CodecError::OtherVersion {
                found: version,
                known: VERSION,
            });
        }
        let Some((checksum, body)) = rest.split_first_chunk() else {
            return Err(CodecError::damaged("it ends before its checksum"));
        };
        if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(CodecError::damaged("its checksum is another one"));
        }
        let plan: Self =
            serde_json::from_slice(body).map_err(|error| CodecError::damaged(error.to_string()))?;
        check_count(plan.nodes.len(), "nodes", NODES_MAX)?;
        Ok(plan)
    }

    /// The commit that the plan reads.
    pub fn commit(&self) -> u64 {
        self.head.commit()
    }

    /// The number of the query's own terms.
    pub fn own_terms(&self) -> u64 {
        self.head.own_terms()
    }

    /// The state that the plan reads, present or past.
    pub fn snapshot(&self, database: &Database) -> Result<Arc<Snapshot>> {
        self.head.snapshot(database)
    }

    /// Decodes the plan over the state that it reads, as one of the processes that it was sent to.
    /// Of the options those of the process count; `NOW()` and the base IRI are the query's.
    pub fn build(
        &self,
        snapshot: Arc<Snapshot>,
        options: ContextOptions,
        service: Option<&ServiceOptions>,
        process: u32,
    ) -> Result<DecodedPlan> {
        let context = self.head.context(snapshot, options, process)?;
        let place = Place {
            context: &context,
            service,
            check: IdCheck {
                own_terms: self.head.own_terms(),
            },
            found: RefCell::default(),
        };
        let mut made: Vec<(Plan, usize)> = Vec::with_capacity(self.nodes.len());
        for (number, encoded) in self.nodes.iter().enumerate() {
            let node = encoded.build(&made, &place);
            made.push(node.map_err(|error| error.of_node(number))?);
        }
        let root = made.pop();
        let (plan, _) = root.ok_or_else(|| CodecError::damaged("it has no nodes"))?;
        Ok(DecodedPlan { plan, context })
    }
}

impl CodecError {
    /// Says which node is damaged.
    fn of_node(self, number: usize) -> Self {
        match self {
            Self::Damaged(what) => Self::Damaged(format!("node {number}: {what}")),
            other => other,
        }
    }
}

impl EncodedNode {
    /// The node over those that were made before it, and its depth.
    fn build(&self, made: &[(Plan, usize)], place: &Place<'_>) -> Result<(Plan, usize)> {
        let (mut inputs, mut depth) = (Vec::with_capacity(self.inputs.len().min(made.len())), 0);
        for number in &self.inputs {
            let input = made.get(*number);
            let (plan, below) =
                input.ok_or_else(|| CodecError::damaged(format!("it reads node {number}")))?;
            inputs.push(Arc::clone(plan));
            depth = depth.max(*below);
        }
        if depth >= DEPTH_MAX {
            return Err(CodecError::damaged(format!(
                "more than {DEPTH_MAX} nodes stand above each other"
            )));
        }
        let plan = match &self.node {
            NodeText::Own(own) => own.build(inputs, place)?,
            NodeText::Engine(engine) => engine.build(inputs, place.context)?,
        };
        check_partitions(&plan)?;
        Ok((plan, depth + 1))
    }
}

/// Refuses a node that reads one partition over an input that has several.
fn check_partitions(plan: &Plan) -> Result<()> {
    let requirements = plan.input_distribution_requirements();
    let wanted = requirements.per_child_distributions();
    for (child, wanted) in plan.children().into_iter().zip(wanted) {
        let partitions = child.properties().partitioning.partition_count();
        if partitions != 1 && matches!(wanted, Distribution::SinglePartition) {
            return Err(CodecError::damaged(format!(
                "{} reads one partition, and there are {partitions}",
                plan.name()
            )));
        }
    }
    Ok(())
}
