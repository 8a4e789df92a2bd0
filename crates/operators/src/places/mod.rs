//! Spatial joins: two inputs joined by a GeoSPARQL relation or distance alone.
//!
//! ```text
//! right --collected--> shapes, each once, by their rectangles in a tree
//! left  --batch by batch--> the shapes whose rectangles meet --the condition itself--> pairs of rows
//! ```
//!
//! Without it the filter would be asked of each pair. With `n` and `m` shapes it takes about
//! `(n + m) log m` steps, and a look at each pair whose rectangles meet. The right side is kept in
//! memory, counted; where it does not fit, the query ends with the memory's refusal.
//!
//! What comes out is what the filter would let through: the tree says only what cannot be.
//!
//! Where one of the places is given, there is nothing to join: [`PlacesIndex`] tells which literals
//! can pass the filter, and the planner joins these (`index`).

mod compiled;
mod condition;
mod index;
mod kept;
mod plan;
mod stream;
#[cfg(test)]
mod tests;

pub use condition::{Nearness, PlacesCondition};
pub use index::{NearestPlaces, PlaceSearch, PlacesIndex};
pub use plan::PlacesJoinExec;
