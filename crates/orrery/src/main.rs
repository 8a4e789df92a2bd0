//! The `orrery` command line.

fn main() {}
