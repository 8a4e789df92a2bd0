//! Calls, and what outlives them: transactions, prepared statements, answers.
//!
//! A `call` holds who makes it while it lasts. `shared` holds by handle what later calls take up.

pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod kept_statement;
pub(crate) mod open_transaction;
pub(crate) mod parameters;
pub(crate) mod shared;
