//! The source of a view's statistics: exact counts of all quads, or a sample of the readable ones.

use super::{Sampled, Statistics};

/// The statistics of a view.
#[derive(Debug, Clone, Copy)]
pub enum Figures<'v> {
    /// All quads are shown: what was counted when the base was written. What changed since is not
    /// in it.
    Counted(&'v Statistics),
    /// Some graphs are shown: what some of their rows tell.
    Sampled(Sampled<'v>),
}
