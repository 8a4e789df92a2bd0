//! Texts that are read, and those that are refused. One program: each part would take as long to link as all of them.

mod bounds;
mod grammar;
mod hostile;
mod messages;
mod mistakes;
mod tolerance;
