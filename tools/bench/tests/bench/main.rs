//! Tests of generators and drivers, with official data and stand-ins. One program, because each
//! part would take as long to link as all of them.

mod drivers;
mod official_data;
mod official_templates;
mod query_answers;
mod tpch;
mod tpch_divided;
