//! Tests of texts that are parsed, and of texts that are refused. One program, because each part
//! would take as long to link as all of them.

mod bounds;
mod grammar;
mod hostile;
mod messages;
mod mistakes;
mod tolerance;
