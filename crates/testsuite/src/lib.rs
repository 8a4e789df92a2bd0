//! Oracle, crash and model tests, against public interfaces.
