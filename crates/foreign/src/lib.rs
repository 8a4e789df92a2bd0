//! Tables of other databases, read where they are.
