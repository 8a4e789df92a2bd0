//! The compilation of a plan's patterns, the last step before it runs in this process.
//!
//! A `PatternExec` is a specification that is compiled where it runs. A caller that prepares a
//! query wants an error at once for what cannot be run, and has the stack for deep expressions. So
//! the patterns of the finished plan, and no others, are compiled here.

use datafusion_physical_plan::ExecutionPlan;
use hashbrown::HashSet;
use orrery_operators::join::KeysExec;
use orrery_operators::nodes::SharedExec;
use orrery_operators::pattern::PatternExec;

use crate::error::Result;

/// Compiles the patterns of a plan; tells whether it has nodes that find each other in an
/// execution: relations that are computed once in each ([`SharedExec`]), or keys of a join
/// ([`KeysExec`]).
pub(crate) fn compile_patterns(plan: &dyn ExecutionPlan) -> Result<bool> {
    let (mut shared, mut has_keys) = (HashSet::new(), false);
    compile_below(plan, &mut shared, &mut has_keys)?;
    Ok(has_keys || !shared.is_empty())
}

/// What several nodes read is entered once.
fn compile_below(
    plan: &dyn ExecutionPlan,
    shared: &mut HashSet<*const SharedExec>,
    has_keys: &mut bool,
) -> Result<()> {
    *has_keys |= plan.is::<KeysExec>();
    if let Some(pattern) = plan.downcast_ref::<PatternExec>() {
        pattern.compile()?;
    }
    if let Some(node) = plan.downcast_ref::<SharedExec>()
        && !shared.insert(std::ptr::from_ref(node))
    {
        return Ok(());
    }
    for child in plan.children() {
        compile_below(child.as_ref(), shared, has_keys)?;
    }
    Ok(())
}
