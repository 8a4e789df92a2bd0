//! The compiler of basic graph patterns: from a specification to the program of steps.
//!
//! `arrange` groups the patterns into steps, and `step_compiler` compiles each pattern.
//! `liveness` says which variables go on.

pub(crate) mod access;
pub(crate) mod adjacent_step;
pub(crate) mod arrange;
pub(crate) mod compile;
pub(crate) mod liveness;
pub(crate) mod step_compiler;
