//! The first bytes of the sort keys of terms that have no key in the dictionary, or none yet; the keys as a whole are drawn in
//! `interner`.

/// First byte of the sort key of the default graph.
pub(crate) const DEFAULT_GRAPH_KEY: u8 = b'@';

/// First byte of the sort keys of blank nodes that have their number already.
pub(crate) const NUMBERED_BLANK_NODE_KEY: u8 = b'A';

/// First byte of the sort keys of new blank nodes.
pub(crate) const BLANK_NODE_KEY: u8 = b'B';

/// First byte of the sort keys of terms inside ids.
pub(crate) const INLINE_KEY: u8 = b'~';
