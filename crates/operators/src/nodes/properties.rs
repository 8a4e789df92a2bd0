//! The properties of nodes that promise nothing of the order of their rows.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::{Partitioning, PlanProperties};

/// The properties of a node with one partition and no promises.
pub(super) fn one_partition(schema: &SchemaRef) -> Arc<PlanProperties> {
    partitioned(schema, 1)
}

/// The properties of a node with some partitions and no promises.
pub(super) fn partitioned(schema: &SchemaRef, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(Arc::clone(schema)),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}
