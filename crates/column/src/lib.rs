//! Vectors of 1,024 ids: how they are compressed, and how fast they come back.
