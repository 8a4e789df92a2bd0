//! Tests of tables and graphs in one query. One program, because each part would take as long to
//! link as all of them.

mod classes;
mod common;
mod joint;
mod texts;
