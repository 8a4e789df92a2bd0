//! The steps of a pattern: matches of one chunk in one quad pattern.
//!
//! Keys are sorted (`sort`) and sought (`cursors`, `span`, or an adjacency in memory);
//! `expansion` gives the matches in bounded chunks.

pub(crate) mod adjacent;
pub(crate) mod cursors;
pub(crate) mod expansion;
pub(crate) mod sort;
pub(crate) mod span;
