//! The expression codec: expressions as descriptions that travel between processes.
//!
//! ```text
//! Expression, GraphPattern, path  <->  AlgebraText    operators after their operands, terms as text
//! PhysicalExpr                    <->  PhysicalText   a column, a number, or an expression over columns
//! ExpressionContext               <->  ContextText    base IRI, NOW(), the query's own terms, numbers of blank nodes
//! ```
//!
//! The texts have no levels: an expression is a list, so that a long chain of operations needs no
//! recursion to be written or read. What is compiled is not written, but compiled again. Who wraps
//! the texts in bytes, and how: `orrery-operators`.

mod algebra;
mod context;
mod error;
mod physical;
mod terms;
#[cfg(test)]
mod tests;

pub use self::algebra::AlgebraText;
pub use self::context::{ContextText, TermKeyText};
pub use self::error::CodecError;
pub use self::physical::{PhysicalText, ResultForm};
