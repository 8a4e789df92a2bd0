//! Tests of mappings of tables to graphs, of our tables and another server's. One program, because
//! each part would take as long to link as all of them.

mod copies;
mod foreign;
mod rdb2rdf;
mod support;
mod virtual_graphs;
