//! SQL values and types: names, texts and sizes.
//!
//! `data_types` maps names of types to those of columns. `texts` writes values as PostgreSQL
//! does. `sizes` counts the bytes of rows.

pub(crate) mod data_types;
pub(crate) mod floats;
pub(crate) mod iri;
pub(crate) mod place;
pub(crate) mod sizes;
pub(crate) mod texts;
pub(crate) mod times;
pub(crate) mod value_row;
