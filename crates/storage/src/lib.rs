//! Dictionary, sorted permutations, manifest, snapshots: the only place that knows files.
