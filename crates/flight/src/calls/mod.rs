//! Calls, and what outlives them: transactions, prepared statements, answers.
//!
//! A `call` holds its caller while it lasts. `shared` holds by handle what later calls use.

pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod kept_statement;
pub(crate) mod open_transaction;
pub(crate) mod parameters;
pub(crate) mod shared;
