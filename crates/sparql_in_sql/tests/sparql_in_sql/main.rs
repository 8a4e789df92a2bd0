//! Tables and graphs in one query. One program: each part would take as long to link as all of them.

mod classes;
mod common;
mod joint;
mod texts;
