//! Vectored execution over sorted columns, as DataFusion physical plans.
