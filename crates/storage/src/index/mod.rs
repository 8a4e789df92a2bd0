//! Sorted permutations of all quads.
