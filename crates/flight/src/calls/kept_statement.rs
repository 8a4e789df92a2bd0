//! A prepared statement, which outlives the call that prepared it.

use std::sync::{Arc, Weak};

use orrery_sql::Prepared;
use parking_lot::Mutex;

use crate::calls::open_transaction::OpenTransaction;
use crate::calls::parameters::Bound;

/// A statement that a client has prepared.
pub(crate) struct KeptStatement {
    pub(crate) prepared: Arc<Prepared>,
    /// The transaction in which it was prepared, and with which it ends.
    pub(crate) transaction: Option<Weak<OpenTransaction>>,
    pub(crate) bound: Mutex<Arc<Bound>>,
}
