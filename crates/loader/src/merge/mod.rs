//! Stages two and three: from batches to the files of a segment.
//!
//! `terms` merges the sorted terms of all batches into the dictionary. `ordinals` numbers them.
//! `permutations` sorts the quads of ordinals and merges them with the rows of the database.

pub(crate) mod loser_tree;
pub(crate) mod ordinals;
pub(crate) mod permutations;
pub(crate) mod row_packing;
pub(crate) mod row_sort;
pub(crate) mod segment;
pub(crate) mod terms;
pub(crate) mod used_terms;
