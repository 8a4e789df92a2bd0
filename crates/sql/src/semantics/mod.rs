//! Semantics: analyzer rules that give SQL PostgreSQL's meaning where DataFusion's differs.
//!
//! `casts`, `distinct_on`, `lone_selects`, `rows` and `using` change a parsed statement before it
//! is planned. `rules` puts most other files into the analyzer, which changes the expressions of a
//! plan.

pub(crate) mod branches;
pub(crate) mod casts;
pub(crate) mod column_names;
pub(crate) mod distinct_on;
pub(crate) mod in_lists;
pub(crate) mod lone_selects;
pub(crate) mod no_row;
pub(crate) mod ordinality;
pub(crate) mod outer_types;
pub(crate) mod rows;
pub(crate) mod rules;
pub(crate) mod unknown_in;
pub(crate) mod using;
