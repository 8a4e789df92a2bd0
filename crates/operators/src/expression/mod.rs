//! SPARQL expressions over columns of term ids, as physical expressions.
//!
//! ```text
//! spargebra Expression --compile--> tree of nodes --+-- into_filter()   Boolean, error = null
//!                                                   +-- into_value()    UInt64 term ids, error = null
//!                                                   +-- into_sort_key() Binary, memcmp order
//! ```
//!
//! Evaluation goes a record batch at a time, on ids as far as they tell (`compare_columns`), and on
//! values read once per distinct id beyond ([`column`]). A literal that is only passed on keeps its lexical form
//! (`STR("01"^^xsd:integer)` is `"01"`), all date and duration types of XML Schema are
//! compared and computed by value, integers and decimals are exact (`exact.rs`). `docs/values.md` has the choices.
//!
//! `EXISTS` is not evaluated here: the planner puts a variable in its place that a mark join fills.

mod arithmetic;
mod children;
pub(crate) mod column;
pub(crate) mod compare;
mod compare_alike;
mod compare_columns;
mod compile;
pub(crate) mod decimal;
mod display;
pub(crate) mod exact;
mod id_sort_keys;
mod inline_arithmetic;
mod lexical_numbers;
mod membership;
mod node;
mod of_terms;
mod operator;
mod physical;
mod plain_numbers;
pub(crate) mod sort_key;
mod term_expression;
mod triple;
pub(crate) mod value;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use self::children::for_each_child;
pub use self::display::Sparql;
pub(crate) use self::id_sort_keys::sort_keys_of_ids;
pub(crate) use self::operator::Arithmetic;
pub use self::term_expression::TermExpression;
pub use self::value::Value;
