//! Answers of statements: their outcome, tag and size limit.
//!
//! A statement ends in an `outcome`, with a `tag` in the protocol's words. `answer_max` and
//! `on_its_way` bound the rows of an answer while they leave.

pub(crate) mod answer_max;
pub(crate) mod on_its_way;
pub(crate) mod outcome;
pub(crate) mod tag;
