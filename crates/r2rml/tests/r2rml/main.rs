//! Mappings of tables to graphs, of ours and of another server. One program: each part would take as long to link as all of them.

mod copies;
mod foreign;
mod rdb2rdf;
mod support;
mod virtual_graphs;
