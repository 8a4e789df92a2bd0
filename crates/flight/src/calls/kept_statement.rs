//! A statement that outlives the call in which it was prepared.

use std::sync::{Arc, Weak};

use orrery_sql::Prepared;
use parking_lot::Mutex;

use crate::calls::open_transaction::OpenTransaction;
use crate::calls::parameters::Bound;

/// A statement that a client has prepared.
pub(crate) struct KeptStatement {
    pub(crate) prepared: Arc<Prepared>,
    /// The one that it was prepared in, with which it ends.
    pub(crate) transaction: Option<Weak<OpenTransaction>>,
    pub(crate) bound: Mutex<Arc<Bound>>,
}
