//! SPARQL expressions over columns of term ids, as physical expressions.
//!
//! ```text
//! spargebra Expression --compile--> tree of nodes --+-- into_filter()   Boolean, error = null
//!                                                   +-- into_value()    UInt64 term ids, error = null
//!                                                   +-- into_sort_key() Binary, memcmp order
//! ```
//!
//! Evaluation goes a record batch at a time, on ids as far as they tell (`columns`), and on values
//! read once per distinct id beyond (`columns/column.rs`). A literal that is only passed on keeps
//! its lexical form (`STR("01"^^xsd:integer)` is `"01"`), all date and duration types of XML Schema
//! are compared and computed by value, integers and decimals are exact (`values/exact.rs`).
//! `docs/values.md` has the choices.
//!
//! `EXISTS` is not evaluated here: the planner puts a variable in its place that a mark join fills.

mod children;
mod compile;
mod constants;
mod display;
mod kept;
mod node;
pub(crate) mod physical;
mod term_expression;
#[cfg(test)]
mod tests;
mod text_search;

pub use children::{for_each_child, for_each_child_mut};
pub use constants::for_each_constant_mut;
pub use display::Sparql;
pub use kept::{ComputedExpression, KeptExpression};
pub use term_expression::TermExpression;
