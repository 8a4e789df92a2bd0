//! The optimizer rule that gives scans the keys of joins above them (`key_bits`).
//!
//! A hash join says while it runs which keys it has, by a filter that was pushed down to scans of
//! its other side. Where such a filter is about a column of integers whose bounds the scan's file
//! knows, the rows of the join's first side also set bits, and the scan asks these.
//!
//! A filter about several keys stays above a node that does not give all of them, such as one that
//! groups by one of the keys and computes another. Then each key is followed down by itself
//! (`traced`).

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use orrery_storage::table::{ColumnId, Projection};

use super::compared::number_of;
use super::key_bits::{KeyBits, SharedKeys};
use super::keys::{Key, KeysExec};
use super::node::ScanExec;
use super::told;
use super::traced::scan_of;

/// Bits for each row of the file, at most.
const BITS_PER_ROW_MAX: u64 = 32;

/// The optimizer rule that shares join keys with scans.
#[derive(Debug)]
pub struct ShareKeys;

/// What a scan is told by a filter: of each key of the join the column, if it is one that bits can
/// be had of, with its bounds.
type Told = Vec<Option<(ColumnId, i64, i64)>>;

impl PhysicalOptimizerRule for ShareKeys {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut told: BTreeMap<u64, Option<Told>> = BTreeMap::new();
        // What runs again and again has other keys each time, and what stands twice in a plan two
        // lists of them.
        let mut is_again = false;
        let mut scans: Vec<*const ()> = Vec::new();
        plan.apply(|node| {
            is_again |= node.is::<RecursiveQueryExec>();
            if node.is::<ScanExec>() {
                let place = Arc::as_ptr(node).cast::<()>();
                is_again |= scans.contains(&place);
                scans.push(place);
            }
            if let Some(scan) = node.downcast_ref::<ScanExec>() {
                for (filter, columns) in filters_of(scan) {
                    // One that several scans have is left alone: their bounds differ.
                    let other = told.insert(filter, Some(columns));
                    if other.is_some() {
                        told.insert(filter, None);
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if is_again {
            return Ok(plan);
        }
        let mut shared: Vec<SharedKeys> = Vec::new();
        let mut traced: Vec<Traced> = Vec::new();
        let noted = plan.transform_up(|node| match node.downcast_ref::<HashJoinExec>() {
            Some(join) => {
                let keys = keys_of(join, &told, &mut shared);
                let keys = keys.or_else(|| keys_by_themselves(join, &mut traced));
                let Some(keys) = keys else {
                    return Ok(Transformed::no(node));
                };
                with_keys(node, keys).map(Transformed::yes)
            }
            None => Ok(Transformed::no(node)),
        })?;
        if shared.is_empty() && traced.is_empty() {
            return Ok(noted.data);
        }
        let asked = noted.data.transform_up(|node| {
            let Some(scan) = node.downcast_ref::<ScanExec>() else {
                return Ok(Transformed::no(node));
            };
            let of_scan = filters_of(scan).map(|(filter, _)| filter);
            let of_scan: Vec<u64> = of_scan.collect();
            let keys = shared
                .iter()
                .filter(|keys| keys.filter.is_some_and(|filter| of_scan.contains(&filter)));
            let alone = traced
                .iter()
                .filter(|traced| Arc::ptr_eq(&traced.scan, &node));
            let keys = keys.chain(alone.map(|traced| &traced.keys));
            let keys: Vec<SharedKeys> = keys.cloned().collect();
            match keys.is_empty() {
                true => Ok(Transformed::no(node)),
                false => Ok(Transformed::yes(Arc::new(scan.with_keys(keys)) as _)),
            }
        })?;
        Ok(asked.data)
    }

    fn name(&self) -> &str {
        "share_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The filters of joins that a scan has, and what each says of its columns.
fn filters_of(scan: &ScanExec) -> impl Iterator<Item = (u64, Told)> {
    scan.hints().filter_map(|hint| {
        let told = hint.children().into_iter().map(|key| {
            let column = key.downcast_ref::<Column>()?;
            let id = *scan.ids().get(column.index())?;
            let (least, greatest) = bounds(scan.projection(), id)?;
            Some((id, least, greatest))
        });
        Some((hint.expression_id()?, told.collect()))
    })
}

/// The bounds of a column of integers or dates of a file, if bits for all values between them are
/// not too many.
fn bounds(projection: &Projection, column: ColumnId) -> Option<(i64, i64)> {
    let file = projection.file()?;
    let place = projection.layout().position(column)?;
    file.has_numbers(place).then_some(())?;
    let (least, greatest) = told::bounds(projection, column)?;
    let (least, greatest) = (integer(&least)?, integer(&greatest)?);
    let range = greatest.abs_diff(least);
    (least <= greatest && range / BITS_PER_ROW_MAX <= file.rows()).then_some((least, greatest))
}

fn integer(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Decimal128(..) => None,
        value => number_of(value),
    }
}

/// The keys of a join that scans of its other side ask for.
fn keys_of(
    join: &HashJoinExec,
    told: &BTreeMap<u64, Option<Told>>,
    shared: &mut Vec<SharedKeys>,
) -> Option<Vec<Key>> {
    let filters = join.dynamic_expressions_produced();
    let filter = filters.first()?.expression_id()?;
    let columns = told.get(&filter)?.as_ref()?;
    let is_plain = join.null_equality() == NullEquality::NullEqualsNothing && !join.null_aware;
    if !is_plain || columns.len() != join.on().len() {
        return None;
    }
    let partitions = noted_input(join.left())
        .output_partitioning()
        .partition_count();
    let mut keys = Vec::new();
    for ((left, _), column) in join.on().iter().zip(columns) {
        let Some((column, least, greatest)) = *column else {
            continue;
        };
        let bits = Arc::new(KeyBits::new(least, greatest, partitions)?);
        keys.push(Key {
            expression: Arc::clone(left),
            bits: Arc::clone(&bits),
        });
        shared.push(SharedKeys {
            filter: Some(filter),
            column,
            bits,
        });
    }
    (!keys.is_empty()).then_some(keys)
}

/// Keys that a scan asks for without a filter.
struct Traced {
    scan: Arc<dyn ExecutionPlan>,
    keys: SharedKeys,
}

/// The keys of a join, where no scan was told all of them.
fn keys_by_themselves(join: &HashJoinExec, traced: &mut Vec<Traced>) -> Option<Vec<Key>> {
    let (_, drops_others) = join.join_type().on_lr_is_preserved();
    let is_plain = join.null_equality() == NullEquality::NullEqualsNothing && !join.null_aware;
    if !drops_others || !is_plain || join.on().len() < 2 {
        return None;
    }
    let partitions = noted_input(join.left())
        .output_partitioning()
        .partition_count();
    let mut keys = Vec::new();
    for (left, right) in join.on() {
        let found = right
            .downcast_ref::<Column>()
            .and_then(|column| scan_of(join.right(), column.index()));
        let Some((node, column)) = found else {
            continue;
        };
        let scan = node.downcast_ref::<ScanExec>()?;
        let Some((least, greatest)) = bounds(scan.projection(), column) else {
            continue;
        };
        let bits = Arc::new(KeyBits::new(least, greatest, partitions)?);
        keys.push(Key {
            expression: Arc::clone(left),
            bits: Arc::clone(&bits),
        });
        traced.push(Traced {
            scan: Arc::clone(node),
            keys: SharedKeys {
                filter: None,
                column,
                bits,
            },
        });
    }
    (!keys.is_empty()).then_some(keys)
}

/// What gives the rows of the first side, in several partitions if there are.
fn noted_input(left: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    match left.downcast_ref::<CoalescePartitionsExec>() {
        Some(coalesced) => coalesced.input(),
        None => left,
    }
}

/// The join over a first side that notes its keys.
fn with_keys(join: Arc<dyn ExecutionPlan>, keys: Vec<Key>) -> Result<Arc<dyn ExecutionPlan>> {
    let keep = || ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let children: Vec<_> = join.children().into_iter().map(Arc::clone).collect();
    let [left, right] = <[_; 2]>::try_from(children).map_err(|_| {
        datafusion::common::DataFusionError::Internal("a join has two inputs".to_owned())
    })?;
    let input = Arc::clone(noted_input(&left));
    let is_below = !Arc::ptr_eq(&input, &left);
    let noted: Arc<dyn ExecutionPlan> = Arc::new(KeysExec::new(input, keys));
    let left = match is_below {
        true => left.replace_children(vec![noted], keep())?,
        false => noted,
    };
    join.replace_children(vec![left, right], keep())
}
