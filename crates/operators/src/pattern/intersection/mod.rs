//! Intersections of patterns that bind one variable: for each row the values that all patterns
//! have.
//!
//! ```text
//! row (a, b)      side 1: ?z with a :p ?z     side 2: ?z with ?z :p b        each a sorted range of a permutation
//!      |                  [3 5 8 9]                   [1 2 5 6 7 8 .. ]
//!      v
//! the smallest range gives the candidates, the others are galloped through: 5, 8
//! ```
//!
//! The keys of each side are looked up once for the whole chunk, in ascending order, so the lengths
//! of all ranges are known before one is read. Then rows are taken in *blocks* of about as many
//! candidates as are wanted. A range that many candidates of a block are to be found in is read
//! once and merged with them in memory ([`lists`]); what is too long for that is probed, all
//! candidates of the block in ascending order ([`probes`]). So no row costs more than its smallest
//! range times a look-up, and the whole step is that of a worst-case-optimal join (Ngo et al.,
//! "Skew strikes back", 2013), vectored. A row whose smallest range is longer than a block is done
//! piece by piece.
//!
//! Where all sides but one are the same for every row (`?product :producer ?p . ?p :country :US`),
//! their values become a [set](super::id_set) once, and if the rows of the one that is not lie
//! close together it is [scanned](super::steps::span) and what is not in the set dropped there.
//!
//! Memory: the lengths of the ranges of a chunk's keys, and the lists of one block.

mod compile;
mod in_memory;
mod in_permutations;
mod lists;
mod matches;
mod probes;
mod value_set;

pub(super) use compile::compile;
pub(super) use in_memory::{InMemoryIntersection, find_sides};
pub(super) use in_permutations::Intersection;
pub(super) use value_set::set_of_values;
