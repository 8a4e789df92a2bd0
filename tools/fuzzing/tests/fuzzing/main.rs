//! Tests of every fuzz target over its seeds. One program, because each part would take as long to
//! link as all of them.

mod plan_seeds;
mod seeds;
