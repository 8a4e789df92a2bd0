//! What requests cost, and what is recorded of them.

pub(crate) mod metering;
pub(crate) mod metrics;
pub(crate) mod port_spending;
pub(crate) mod query_log;
pub(crate) mod spending;
pub(crate) mod traces;
