//! The cut of a plan into stages.
//!
//! ```text
//! SortPreservingMergeExec              the root: in the process that was asked
//! └ ExchangeExec: stage 1
//!     AggregateExec: FinalPartitioned  stage 1: its partitions are divided among the workers
//!     └ ExchangeExec: stage 0
//!         RepartitionExec: by hash     stage 0 gives its rows divided anew
//!         └ AggregateExec: Partial
//!           └ HashJoinExec             the probe side is divided; each worker has the whole build side
//!             ├ ExchangeExec: stage 2, read by all
//!             └ a scan, a share for each partition
//! ```
//!
//! The plan is one that is made for several partitions. Leaves whose partitions are shares of the
//! rows are divided among the workers, and so is what stands above them and works on each partition
//! by itself. Cuts are where DataFusion has its own exchanges: where partitions come together
//! (`CoalescePartitionsExec`, `SortPreservingMergeExec`) and where rows are divided anew
//! (`RepartitionExec`). A part of the plan that is not divided and stands beside a divided one (the
//! build side of a join) is run by each worker if it is small, else by one of them for all.
//!
//! **What must not be divided.** A join that gives rows of its build side that no row of the probe
//! side matched has to know all of the probe side: both sides are divided by the hash of their
//! keys, or, where that is not allowed, its probe side comes together. Nodes that are not known are
//! run in one place, with all partitions of what they read. How rows are spread below an exchange
//! or a choice of partitions is said to be unknown: a leaf that claims what does not hold would
//! lose rows without a word (`a_false_claim_of_a_leaf_gives_wrong_groups` in the tests).
//!
//! **What must not be relied on.** A join that is divided by its keys here has its rows in other
//! partitions, and in another order, than the plan says. Where a node above relies on either
//! (groups of what the partitions have apart, a merge of what comes sorted), the plan is cut once
//! more without dividing joins.
//!
//! The cut follows from the plan and the names of the workers alone: each process that has the same
//! plan makes the same one.

use std::cell::RefCell;
use std::sync::Arc;

use datafusion_common::{JoinType, NullEquality, Result};
use datafusion_physical_expr::{Distribution, Partitioning};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode,
};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use hashbrown::HashMap;

use crate::divided_here::DividedHereExec;
use crate::exchange::{ExchangeExec, Place};
use crate::language::Rules;
use crate::owners::{grouped, owners, together_at};
use crate::pick::{count, divided_children, over};
use crate::stages::{Stage, Stages, count_readers};

type Plan = Arc<dyn ExecutionPlan>;

/// A part that handles fewer rows is run by each worker that needs it.
const REPEATED_ROWS_MAX: f64 = 100_000.0;
/// A build side with fewer rows goes to each worker, whatever the probe side has.
const BROADCAST_ROWS_MIN: f64 = 100_000.0;
/// Partitions that a worker runs at once, at most, whatever it is told.
const STREAMS_MAX: usize = 1_024;

/// Who works on a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Among<'m> {
    /// Their names, in an order that is the same for all.
    pub(crate) members: &'m [String],
    /// Partitions that each runs at once.
    pub(crate) streams: usize,
}

impl Among<'_> {
    fn streams(&self) -> usize {
        self.streams.clamp(1, STREAMS_MAX)
    }

    /// Partitions into which rows are divided by hash: one for each that runs at once.
    fn hashed(&self) -> usize {
        self.members.len() * self.streams()
    }
}

/// Cuts a plan for these members; nothing if no part of it would be divided.
pub(crate) fn cut(plan: &Plan, rules: &Rules, among: Among<'_>) -> Result<Option<Stages>> {
    let stages = cut_so(plan, rules, among, rules.may_divide_by_hash)?;
    match stages {
        None if rules.may_divide_by_hash => cut_so(plan, rules, among, false),
        stages => Ok(stages),
    }
}

fn cut_so(
    plan: &Plan,
    rules: &Rules,
    among: Among<'_>,
    may_divide_joins: bool,
) -> Result<Option<Stages>> {
    let mut cutting = Cutting {
        rules,
        among,
        may_divide_joins,
        relies_on_lost: false,
        stages: Vec::new(),
        place: Place::default(),
        done: HashMap::new(),
        rows: RefCell::default(),
        ones: HashMap::new(),
    };
    let root = cutting.node(plan)?;
    let root = cutting.in_one_place(root)?;
    if cutting.relies_on_lost || !cutting.stages.iter().any(|stage| stage.is_divided) {
        return Ok(None);
    }
    let mut stages = Stages {
        root: root.plan,
        stages: cutting.stages,
        place: cutting.place,
    };
    count_readers(&mut stages, among.members.len());
    Ok(Some(stages))
}

/// A part of the plan that is cut already.
#[derive(Clone, Debug)]
struct Piece {
    plan: Plan,
    /// Whether its partitions are divided among workers; else all of them are in one place.
    is_divided: bool,
    /// Whether something of it is read from other stages.
    reads_stages: bool,
    /// Rows that its nodes handle, those of its stages left out.
    work: f64,
    /// What the plan says of its rows, and is not so any more.
    lost: Lost,
    /// The partitions that the plan was made with. Nodes that belong to who reads it count on as
    /// many.
    planned: usize,
}

/// What dividing changed of how rows come.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// Which rows are in which partition.
    division: bool,
    /// The order within a partition.
    order: bool,
}

impl Piece {
    /// What reads a stage, in one place so far.
    fn reading(plan: Plan) -> Self {
        Self {
            planned: count(&plan),
            plan,
            is_divided: false,
            reads_stages: true,
            work: 0.0,
            lost: Lost::default(),
        }
    }
}

struct Cutting<'c> {
    rules: &'c Rules,
    among: Among<'c>,
    /// Whether joins may be divided by the hash of their keys that the plan does not divide so.
    may_divide_joins: bool,
    /// Whether a node relies on what dividing has changed.
    relies_on_lost: bool,
    stages: Vec<Stage>,
    place: Place,
    /// What nodes have become: one that several read stays one.
    done: HashMap<*const (), Piece>,
    /// The rows of its nodes, as far as they were asked for.
    rows: RefCell<HashMap<*const (), f64>>,
    /// The stages of parts that one worker runs for all.
    ones: HashMap<*const (), usize>,
}

impl Cutting<'_> {
    fn node(&mut self, plan: &Plan) -> Result<Piece> {
        let key = Arc::as_ptr(plan).cast();
        if let Some(done) = self.done.get(&key) {
            return Ok(done.clone());
        }
        let piece = Piece {
            planned: count(plan),
            ..self.made(plan)?
        };
        self.done.insert(key, piece.clone());
        Ok(piece)
    }

    fn made(&mut self, plan: &Plan) -> Result<Piece> {
        if plan.children().is_empty() || (self.rules.is_leaf)(plan) {
            return Ok(Piece {
                plan: Arc::clone(plan),
                is_divided: count(plan) > 1 && (self.rules.is_dealt)(plan),
                reads_stages: false,
                work: (self.rules.rows)(plan),
                lost: Lost::default(),
                planned: count(plan),
            });
        }
        let plan = &self.hashed_alike(plan)?;
        let children = plan.children().into_iter();
        let mut pieces = children
            .map(|child| self.node(child))
            .collect::<Result<Vec<_>>>()?;
        self.relies_on_lost |= relies_on_lost(plan, &pieces);
        if !pieces.iter().any(|piece| piece.is_divided) {
            return self.undivided(plan, pieces);
        }
        if plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>() {
            return self.together(plan, pieces.swap_remove(0));
        }
        if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
            let input = pieces.swap_remove(0);
            return match repartition.partitioning() {
                // They are spread already.
                Partitioning::RoundRobinBatch(wanted) if *wanted == count(&input.plan) => Ok(input),
                partitioning => {
                    let mut divided = self.anew(input, partitioning.clone())?;
                    divided.lost.order = repartition.preserve_order();
                    Ok(divided)
                }
            };
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>()
            && *join.partition_mode() == PartitionMode::CollectLeft
        {
            return self.hash_join(plan, join, pieces);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>()
            && pieces.iter().all(|piece| piece.is_divided)
            && pieces.iter().any(|piece| piece.reads_stages)
        {
            return without_hints(join, pieces);
        }
        let collects_left = plan
            .downcast_ref::<NestedLoopJoinExec>()
            .is_some_and(|join| gives_unmatched_left(*join.join_type()));
        let is_known = plan.is::<UnionExec>()
            || plan.is::<CrossJoinExec>()
            || (self.rules.is_by_partition)(plan);
        if !is_known || collects_left {
            return self.all_in_one_place(plan, pieces);
        }
        self.divided(plan, pieces)
    }

    /// A node that divides rows by hash, into as many partitions as all others here: joins rely on
    /// that of their sides.
    fn hashed_alike(&self, plan: &Plan) -> Result<Plan> {
        let repartition = plan.downcast_ref::<RepartitionExec>();
        let wanted = self.among.hashed();
        let Some((repartition, keys)) = repartition.and_then(|node| match node.partitioning() {
            Partitioning::Hash(keys, partitions) if *partitions != wanted => Some((node, keys)),
            _ => None,
        }) else {
            return Ok(Arc::clone(plan));
        };
        let division = Partitioning::Hash(keys.clone(), wanted);
        let made = RepartitionExec::try_new(Arc::clone(repartition.input()), division)?;
        Ok(match repartition.preserve_order() {
            true => Arc::new(made.with_preserve_order()),
            false => Arc::new(made),
        })
    }

    /// A node that reads nothing that is divided.
    fn undivided(&mut self, plan: &Plan, pieces: Vec<Piece>) -> Result<Piece> {
        let work = pieces.iter().map(|piece| piece.work).sum::<f64>() + (self.rules.rows)(plan);
        let reads_stages = pieces.iter().any(|piece| piece.reads_stages);
        let lost = lost_above(plan, &pieces);
        Ok(Piece {
            plan: self.over(plan, pieces)?,
            is_divided: false,
            reads_stages,
            work,
            lost,
            planned: count(plan),
        })
    }

    /// A node over these pieces; the same one if they are its own children.
    fn over(&self, plan: &Plan, pieces: Vec<Piece>) -> Result<Plan> {
        let mut old = plan.children().into_iter().zip(&pieces);
        if old.all(|(child, piece)| Arc::ptr_eq(child, &piece.plan)) {
            return Ok(Arc::clone(plan));
        }
        over(plan, pieces.into_iter().map(|piece| piece.plan).collect())
    }

    /// A node that works on each partition by itself.
    fn divided(&mut self, plan: &Plan, pieces: Vec<Piece>) -> Result<Piece> {
        let alike = divided_children(plan);
        // A part that is in one place, and would have to be divided as the others are.
        let fits = |(piece, alike): (&Piece, &bool)| piece.is_divided == *alike;
        let is_union = plan.is::<UnionExec>();
        if !is_union && !pieces.iter().zip(&alike).all(fits) {
            return self.all_in_one_place(plan, pieces);
        }
        let mut work = (self.rules.rows)(plan);
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let part = match (piece.is_divided, is_union) {
                (true, _) => piece,
                (false, false) => self.beside(piece)?,
                // A branch: it is no part of what each worker has, but one of what is divided.
                (false, true) => Piece {
                    is_divided: true,
                    ..self.by_one(piece)?
                },
            };
            work += part.work;
            parts.push(part);
        }
        let reads_stages = parts.iter().any(|part| part.reads_stages);
        let lost = lost_above(plan, &parts);
        Ok(Piece {
            plan: self.over(plan, parts)?,
            is_divided: true,
            reads_stages,
            work,
            lost,
            planned: count(plan),
        })
    }

    /// A node with all partitions of what it reads in one place.
    fn all_in_one_place(&mut self, plan: &Plan, pieces: Vec<Piece>) -> Result<Piece> {
        let pieces = pieces.into_iter().map(|piece| self.in_one_place(piece));
        let pieces = pieces.collect::<Result<Vec<_>>>()?;
        self.undivided(plan, pieces)
    }

    /// A piece that is wholly where its reader is.
    fn in_one_place(&mut self, piece: Piece) -> Result<Piece> {
        match piece.is_divided {
            true => {
                let lost = piece.lost;
                let made = self.behind(piece, None)?;
                Ok(Piece { lost, ..made })
            }
            false => Ok(piece),
        }
    }

    /// Where the partitions of a divided piece come together.
    fn together(&mut self, plan: &Plan, input: Piece) -> Result<Piece> {
        let input = self.below_readers(input)?;
        Ok(Piece::reading(over(plan, vec![input.plan])?))
    }

    /// A piece behind an exchange, under the nodes that belong to who reads it.
    fn below_readers(&mut self, piece: Piece) -> Result<Piece> {
        let mut above = Vec::new();
        let mut below = Arc::clone(&piece.plan);
        while (self.rules.is_with_reader)(&below) {
            let Some(child) = below.children().first().copied().cloned() else {
                break;
            };
            above.push(std::mem::replace(&mut below, child));
        }
        let wanted = match above.is_empty() {
            true => count(&below),
            false => piece.planned,
        };
        let below = Piece {
            plan: below,
            ..piece
        };
        let mut made = self.behind_with(below, None, wanted)?;
        while let Some(node) = above.pop() {
            made.plan = over(&node, vec![made.plan])?;
        }
        Ok(made)
    }

    /// Rows divided anew.
    fn anew(&mut self, input: Piece, partitioning: Partitioning) -> Result<Piece> {
        let made = self.behind(input, Some(partitioning))?;
        Ok(Piece {
            is_divided: true,
            ..made
        })
    }

    /// Makes a piece a stage, and gives the exchange that reads it: in one place so far.
    fn behind(&mut self, piece: Piece, division: Option<Partitioning>) -> Result<Piece> {
        let wanted = count(&piece.plan);
        self.behind_with(piece, division, wanted)
    }

    /// The same with an exchange of so many partitions, if the rows are not divided; those that the
    /// piece does not have are without rows.
    fn behind_with(
        &mut self,
        piece: Piece,
        division: Option<Partitioning>,
        wanted: usize,
    ) -> Result<Piece> {
        let number = self.stages.len();
        let exchange = match &division {
            None => ExchangeExec::of(number, &piece.plan, wanted, &self.place),
            Some(division) => ExchangeExec::repartitioned(
                number,
                piece.plan.schema(),
                division.partition_count(),
                &self.place,
            ),
        };
        let partitions = count(&piece.plan);
        let groups = match piece.is_divided {
            true => {
                let extent = self.extent_of(&piece.plan);
                let owners = owners(&extent, partitions, self.among.members);
                // Partitions of a union are those of its branches, which are run each by itself.
                let streams = match has_branches(&piece.plan) {
                    true => partitions,
                    false => self.among.streams(),
                };
                grouped(&owners, streams)
            }
            false => together_at(number % self.among.members.len(), partitions),
        };
        self.stages.push(Stage {
            plan: piece.plan,
            division,
            groups,
            is_divided: piece.is_divided,
            readers: 0,
        });
        Ok(Piece::reading(Arc::new(exchange)))
    }

    /// What tells the rows of a stage from others: its first divided leaf.
    fn extent_of(&self, plan: &Plan) -> String {
        let mut plan = plan;
        loop {
            let divided = divided_children(plan);
            let mut children = plan.children().into_iter().zip(divided);
            let first = children.find(|(_, is_divided)| *is_divided);
            match first {
                Some((child, _)) if !(self.rules.is_leaf)(plan) => plan = child,
                _ if plan.is::<ExchangeExec>() => return String::new(),
                _ => return (self.rules.extent)(plan),
            }
        }
    }

    /// What each worker has wholly, beside what is divided: run by each if it is small, else by one
    /// for all.
    fn beside(&mut self, piece: Piece) -> Result<Piece> {
        if self.is_gathered(&piece.plan) || (!piece.reads_stages && piece.work <= REPEATED_ROWS_MAX)
        {
            return Ok(piece);
        }
        self.by_one(piece)
    }

    /// Whether a plan does nothing but bring the partitions of a stage together, for whoever reads
    /// it. Where it takes the first rows alone, each worker could have others.
    fn is_gathered(&self, plan: &Plan) -> bool {
        let mut plan = plan;
        while !plan.is::<ExchangeExec>() {
            let gathers =
                plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>();
            match plan.children().as_slice() {
                _ if plan.fetch().is_some() => return false,
                [child] if gathers || (self.rules.is_with_reader)(plan) => plan = child,
                _ => return false,
            }
        }
        true
    }

    /// A part that is not divided, run by one worker. Whoever reads it reads the same stage.
    fn by_one(&mut self, piece: Piece) -> Result<Piece> {
        let key = Arc::as_ptr(&piece.plan).cast();
        if let Some(&number) = self.ones.get(&key) {
            let exchange = ExchangeExec::of(number, &piece.plan, count(&piece.plan), &self.place);
            return Ok(Piece::reading(Arc::new(exchange)));
        }
        let number = self.stages.len();
        if !(self.rules.is_with_reader)(&piece.plan) {
            self.ones.insert(key, number);
        }
        self.below_readers(piece)
    }

    /// A hash join whose build side is collected. Its probe side is divided, its build side goes to
    /// each worker; or both are divided by their keys.
    fn hash_join(&mut self, plan: &Plan, join: &HashJoinExec, pieces: Vec<Piece>) -> Result<Piece> {
        let is_probe_divided = pieces.get(1).is_some_and(|probe| probe.is_divided);
        if !is_probe_divided {
            return self.all_in_one_place(plan, pieces);
        }
        let needs_all = gives_unmatched_left(*join.join_type());
        let may_hash = self.may_divide_joins
            && !join.null_aware
            && join.null_equality() == NullEquality::NullEqualsNothing;
        let others = self.among.members.len().saturating_sub(1) as f64;
        let (build, probe) = (self.rows(join.left()), self.rows(join.right()));
        let first = pieces.first();
        let is_whole = first.is_some_and(|piece| self.is_read_whole(join, &piece.plan));
        // Built by each worker: `build * others` more rows in tables. Both divided: of each all but
        // the own part goes elsewhere; where scans are told the keys, of the probe side what has a
        // match.
        let moved = match is_whole {
            true => probe.min(self.rows(plan)),
            false => probe,
        };
        let is_less = build > BROADCAST_ROWS_MIN && build * others > moved;
        let pays = may_hash && is_less && first.is_some_and(|build| build.reads_stages);
        match (needs_all, may_hash) {
            (true, false) => self.all_in_one_place(plan, pieces),
            (true, true) => self.by_keys(join, pieces, is_whole),
            (false, _) if pays => self.by_keys(join, pieces, is_whole),
            (false, _) => self.divided(plan, pieces),
        }
    }

    /// A hash join both sides of which are divided by the hash of their keys; of the build side,
    /// which is whole with each worker before, if that is to be.
    fn by_keys(
        &mut self,
        join: &HashJoinExec,
        pieces: Vec<Piece>,
        is_whole: bool,
    ) -> Result<Piece> {
        let [build, probe]: [Piece; 2] = match pieces.try_into() {
            Ok(both) => both,
            Err(_) => return datafusion_common::internal_err!("a join of two sides"),
        };
        let partitions = self.among.hashed();
        let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
        let division = Partitioning::Hash(left_keys, partitions);
        let left = match is_whole {
            true => self.divided_here(build, division)?,
            false => {
                // The rows of the build side before they came together, if they did. The stage that
                // was made for that has no readers then.
                let gathered = ungathered(&build.plan).and_then(|stage| self.stages.get(stage));
                let build = match gathered {
                    Some(stage) => Piece {
                        is_divided: stage.is_divided,
                        ..Piece::reading(Arc::clone(&stage.plan))
                    },
                    None => build,
                };
                self.anew(build, division)?
            }
        };
        let right = self.anew(probe, Partitioning::Hash(right_keys, partitions))?;
        let mut made = without_hints(join, vec![left, right])?;
        made.lost = Lost {
            division: true,
            order: true,
        };
        Ok(made)
    }

    /// Whether each worker is to have all of the build side, although both sides are divided: it
    /// tells scans of the probe side which keys there are, and these save more than it costs to
    /// send it.
    fn is_read_whole(&self, join: &HashJoinExec, build: &Plan) -> bool {
        let others = self.among.members.len().saturating_sub(1) as f64;
        let top = match build.downcast_ref::<CoalescePartitionsExec>() {
            Some(gather) if gather.fetch().is_none() => gather.input(),
            _ => build,
        };
        let tells_keys = (self.rules.is_with_reader)(top);
        tells_keys && self.rows(join.left()) * others <= self.handled(join.right())
    }

    /// The rows that all nodes of a plan handle.
    fn handled(&self, plan: &Plan) -> f64 {
        let below = plan.children().into_iter().map(|child| self.handled(child));
        self.rows(plan) + below.sum::<f64>()
    }

    /// The rows of a node of the plan that is cut, which is asked for by each join above it.
    fn rows(&self, plan: &Plan) -> f64 {
        let key = Arc::as_ptr(plan).cast();
        let known = self.rows.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let rows = (self.rules.rows)(plan);
            self.rows.borrow_mut().insert(key, rows);
            rows
        })
    }

    /// What each worker has wholly, divided by each, which takes the partitions that are its own.
    fn divided_here(&mut self, piece: Piece, division: Partitioning) -> Result<Piece> {
        let whole = self.beside(piece)?.plan;
        let whole = match whole.downcast_ref::<CoalescePartitionsExec>() {
            Some(gather) if gather.fetch().is_none() => Arc::clone(gather.input()),
            _ => whole,
        };
        let divided = DividedHereExec::all(whole, division)?;
        Ok(Piece {
            is_divided: true,
            ..Piece::reading(Arc::new(divided))
        })
    }
}

/// Whether the divided part of a plan has a union.
fn has_branches(plan: &Plan) -> bool {
    let children = plan.children().into_iter().zip(divided_children(plan));
    let mut divided = children.filter(|(_, is_divided)| *is_divided);
    plan.is::<UnionExec>() || divided.any(|(child, _)| has_branches(child))
}

/// Whether a node needs of its inputs what they have lost.
fn relies_on_lost(plan: &Plan, pieces: &[Piece]) -> bool {
    let requirements = plan.input_distribution_requirements();
    let wanted = requirements.per_child_distributions();
    let orders = plan.required_input_ordering();
    let mut inputs = pieces.iter().zip(wanted).zip(orders);
    inputs.any(|((piece, wanted), order)| {
        let wants_division = !matches!(
            wanted,
            Distribution::UnspecifiedDistribution | Distribution::SinglePartition
        );
        (piece.lost.division && wants_division) || (piece.lost.order && order.is_some())
    })
}

/// What a node's rows have lost with those of its inputs.
fn lost_above(plan: &Plan, pieces: &[Piece]) -> Lost {
    Lost {
        division: pieces.iter().any(|piece| piece.lost.division),
        order: pieces.iter().any(|piece| piece.lost.order) && !plan.is::<SortExec>(),
    }
}

/// A join of sides that are divided alike, whose build side tells scans of the probe side nothing:
/// it would tell them of one worker's part, and what they read goes to all.
fn without_hints(join: &HashJoinExec, sides: Vec<Piece>) -> Result<Piece> {
    let made = join
        .builder()
        .reset_state()
        .with_partition_mode(PartitionMode::Partitioned)
        .with_new_children(sides.into_iter().map(|side| side.plan).collect())?
        .build_exec()?;
    Ok(Piece {
        is_divided: true,
        ..Piece::reading(made)
    })
}

/// The stage that a plan gathers, if it does nothing else.
fn ungathered(plan: &Plan) -> Option<usize> {
    let gather = plan.downcast_ref::<CoalescePartitionsExec>()?;
    gather.fetch().is_none().then_some(())?;
    let mut below = gather.input();
    loop {
        if let Some(exchange) = below.downcast_ref::<ExchangeExec>() {
            return Some(exchange.stage());
        }
        match below.children().as_slice() {
            [child] => below = child,
            _ => return None,
        }
    }
}

/// Whether a join gives rows of its left side that no row of the right side matched, or each of
/// them once.
pub fn gives_unmatched_left(join_type: JoinType) -> bool {
    match join_type {
        JoinType::Left
        | JoinType::Full
        | JoinType::LeftSemi
        | JoinType::LeftAnti
        | JoinType::LeftMark => true,
        JoinType::Inner
        | JoinType::Right
        | JoinType::RightSemi
        | JoinType::RightAnti
        | JoinType::RightMark => false,
    }
}
