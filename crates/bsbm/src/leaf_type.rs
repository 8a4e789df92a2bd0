//! The leaves of the tree of product types.

/// A product type without subtypes, and the features its products may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafType {
    /// The type's IRI, in angle brackets, as all of these.
    pub product_type: String,
    /// The type above it.
    pub parent: String,
    /// The features of its products.
    pub features: Vec<String>,
}
