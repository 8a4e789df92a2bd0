//! Parsing of texts to statements, within limits.
//!
//! `split` finds where a statement ends. `statement` checks its size and nesting, and parses it in
//! PostgreSQL's dialect. The other files read or change the tree: names, numbers, depth. All walks
//! over a tree go through `visit`.

mod comments;
pub(crate) mod identifiers;
pub(crate) mod looks;
pub(crate) mod number_texts;
pub(crate) mod plan_size;
pub(crate) mod query_depth;
pub(crate) mod split;
pub(crate) mod statement;
pub(crate) mod visit;
pub(crate) mod words;
