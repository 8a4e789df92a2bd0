//! R2RML and the Direct Mapping: RDF graphs over the tables of a database.
//!
//! ```text
//!   Turtle -> r2rml  \                                               -> quads -> materialize: a copy in the store
//!                      Mapping -> rules (tables, columns, types) {
//!   catalog -> direct /                                               -> matching -> leaves of SPARQL's plans
//! ```
//!
//! A mapping comes from a text, or from the keys of tables. `rules` check it against the existing
//! tables. Terms are made from the rows of SQL plans (`selection`, `terms`). A virtual graph is
//! read by such plans as leaves of SPARQL plans (`matching`, `leaf`), which read no more of a table
//! than a pattern needs.

mod candidates;
mod compiled;
mod definitions;
mod direct;
mod error;
mod identifiers;
mod leaf;
mod lexical;
mod mapped_query;
mod matching;
mod materialize;
mod model;
mod quads;
mod r2rml;
mod rules;
mod selection;
mod sql_tests;
mod statements;
mod table_mappings;
mod template;
mod terms;
mod virtual_graphs;

pub use error::{Error, Result};
pub use r2rml::has_relative_names;
pub use table_mappings::TableMappings;
pub use virtual_graphs::mapped;
