//! SPARQL's values, functions and expressions over columns of term ids.
//!
//! ```text
//! values -> columns -> functions -> expression      each takes from those before it
//! xpath_regex -> context /                 |        the query's terms, NOW(), compiled patterns
//!                                    codec          all of that as descriptions, for plans that travel
//! ```
//!
//! A column of term ids is one nullable `UInt64` array, null for unbound. Ids are exact (equal ids
//! are the same term, see [`ExpressionContext`]), so most is decided on ids, and terms are only
//! read where their values or texts matter.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`values`] | terms as values, exact arithmetic, comparisons, sort keys |
//! | `xpath_regex` | the regular expressions of XPath on the `regex` crate |
//! | `limits` | the memory and time limits of a batch |
//! | [`context`] | the context that the expressions of one query share |
//! | [`columns`] | operators over columns of ids |
//! | `functions` | SPARQL's functions |
//! | [`codec`] | the expression codec, for plans that travel |
//! | [`expression`] | compiled expressions as DataFusion's `PhysicalExpr`: filters, computed values, sort keys |

pub mod codec;
pub mod columns;
pub mod context;
mod error;
pub mod expression;
mod functions;
mod limits;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod testing;
pub mod values;
mod xpath_regex;

pub use context::{ExpressionContext, ExpressionOptions};
pub use error::{Error, Result};
pub use expression::{
    ComputedExpression, KeptExpression, Sparql, TermExpression, for_each_child, for_each_child_mut,
    for_each_constant_mut,
};
pub use values::{Arithmetic, Value};
pub use xpath_regex::beginnings::{Beginning, beginnings};
pub use xpath_regex::fault::{RegexFault, pattern_fault, replacement_fault};
pub use xpath_regex::grams::regex_grams;
