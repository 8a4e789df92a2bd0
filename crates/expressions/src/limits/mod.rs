//! The limits of evaluating a batch: memory of values, and time.
//!
//! An `ExpressionContext` has one [`Limits`] for its query; columns and functions count with it
//! ([`Counted`]), and through that ask whether the time is over (`ends`).

mod counted;
mod ends;
mod of_query;

pub(crate) use self::counted::{Counted, Held};
pub(crate) use self::of_query::Limits;
