//! Parsers: from the text of one source to its statements.
//!
//! N-Triples and N-Quads go through `ntriples`; RDF/XML through `rdf_xml`. Turtle, TriG and
//! JSON-LD go through parsers of the ox* crates. `mends` words what is wrong and what likely was
//! meant.

pub(crate) mod held;
pub(crate) mod iris;
pub(crate) mod json_contexts;
pub(crate) mod json_ld;
pub(crate) mod json_numbers;
pub(crate) mod json_reader;
pub(crate) mod mends;
pub(crate) mod ntriples;
pub(crate) mod rdf_xml;
pub(crate) mod statement_reader;
pub(crate) mod statements;
pub(crate) mod turtle;
pub(crate) mod window;
pub(crate) mod xml_entities;
