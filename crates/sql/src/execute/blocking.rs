//! Blocking computations on a thread of a runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does what computes for long without a pause. Where all threads of a runtime compute, none is
/// left that sees that time is up: this one is none that other tasks wait for meanwhile.
pub(crate) fn while_others_run<R>(work: impl FnOnce() -> R) -> R {
    match Handle::try_current().map(|threads| threads.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
