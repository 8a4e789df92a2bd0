//! Generators and drivers against official data and stand-ins. One program: each part would take as long to link as all of them.

mod drivers;
mod official_data;
mod official_templates;
mod query_answers;
mod tpch;
mod tpch_divided;
