//! Tests of loads, compactions and what they leave after a crash. One program, because each part
//! would take as long to link as all of them.

mod bulk;
mod compact;
mod crash;
mod derived;
mod fixture;
mod large_literals;
mod load;
mod messages;
mod round_trip;
mod workers;
