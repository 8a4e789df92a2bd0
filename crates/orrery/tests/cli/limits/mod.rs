//! Memory, and what is too much.

pub(crate) mod extreme_arguments;
pub(crate) mod long_texts;
pub(crate) mod server_memory;
pub(crate) mod session_memory;
pub(crate) mod small_memory;
pub(crate) mod whole_graphs;
