//! LDBC Social Network Benchmark, Interactive v1: its operations in SPARQL over the Turtle form of
//! the data set.
//!
//! An [`operation::Operation`] comes from a line of a validation file ([`validation`]), of an
//! update stream ([`update_stream`]) or of the substitution parameters ([`parameters`]);
//! [`session::Session`] runs it against an endpoint, with the texts of [`templates`], and gives its
//! result in the form of the official driver's, which [`answer`] compares. Posts and comments are
//! told apart by their addresses ([`terms`]); tags, places and organizations by a catalog that is
//! read once ([`catalog`]), for they never change. [`generator`] makes data sets of the same
//! schema.

pub mod answer;
pub mod catalog;
pub mod generator;
pub mod insertions;
pub mod operation;
pub mod parameters;
pub mod session;
pub mod templates;
pub mod terms;
pub mod update_stream;
pub mod validation;
