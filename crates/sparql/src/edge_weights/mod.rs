//! Edge weights: a weight per pair of nodes, defined by a stored query.
//!
//! ```text
//!   name --definition--> the query, as the asker's view of the state shows it
//!                            |
//!         a table of the state is there, or can be had at once (`kept`, `upkeep`) --> looked up in memory
//!         else                                                                    --> the query itself, as a subquery
//! ```
//!
//! Both give the same. A table is made when weights are asked for a second time in one state, for
//! who sees all graphs: of nothing else, so that no weight tells of a quad that is hidden. What
//! commits change is brought into it at the next question:
//!
//! ```text
//!   quads that came, and went --`affected`--> the solutions that they take part in, after and before --> their pairs
//!   the query for these pairs alone --> their weights, or none
//! ```
//!
//! A table belongs to one commit and to the ids of one base. It counts against the memory of
//! adjacencies, and goes as those do.

pub(crate) mod affected;
pub(crate) mod definition;
pub(crate) mod kept;
pub(crate) mod upkeep;
