//! Tests of the whole against independent evaluators, the W3C suites, and the promises. One
//! program, because each part would take as long to link as all of them. (`allocations` is a
//! program of its own, with an allocator that counts.)

mod divided;
mod explore;
mod oracle;
mod oracle_sql;
mod promises;
mod quads;
mod syntax;
mod w3c;
