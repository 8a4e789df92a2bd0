//! The prefixes of sort keys, for terms without a key in the dictionary.

/// First byte of the sort key of the default graph.
pub(crate) const DEFAULT_GRAPH_KEY: u8 = b'@';

/// First byte of the sort keys of blank nodes that have their number already.
pub(crate) const NUMBERED_BLANK_NODE_KEY: u8 = b'A';

/// First byte of the sort keys of new blank nodes.
pub(crate) const BLANK_NODE_KEY: u8 = b'B';

/// First byte of the sort keys of terms inside ids.
pub(crate) const INLINE_KEY: u8 = b'~';
