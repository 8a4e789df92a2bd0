//! Tests of derived indexes: answers with and without them are the same.

pub(crate) mod derived;
pub(crate) mod grams;
pub(crate) mod places_index;
pub(crate) mod places_related;
pub(crate) mod texts;
