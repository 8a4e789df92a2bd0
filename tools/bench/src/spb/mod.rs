//! LDBC Semantic Publishing Benchmark, 2.0: the basic interactive queries and the editorial
//! operations in SPARQL, over data as they are, without inference.
//!
//! [`templates`] has the texts and how often each kind comes. A [`creative_work::CreativeWork`] is
//! what editors write and the [`generator`] makes, both by [`maker`] from the [`entities`] that are
//! there. [`pool`] reads from an endpoint what is in it, and draws parameters of queries by that.
//! [`quads`] and [`naive`] answer the queries by themselves, for validation: they share nothing
//! with the engine but the parser of terms, and read every work for each question.

pub mod answer;
pub mod creative_work;
pub mod entities;
pub mod generator;
pub mod maker;
pub mod naive;
pub mod pool;
pub mod quads;
pub mod templates;
pub mod vocabulary;
