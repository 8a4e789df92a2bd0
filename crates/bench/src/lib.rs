//! Generators, drivers, reports.
