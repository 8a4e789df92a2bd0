//! The scan of N-Triples for parameter values: product types, features, products, offers, reviews.
//!
//! It reads the lines of generated data: single blanks between the terms, no
//! comments. All the terms found stay in memory, some hundred bytes a product.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::leaf_type::LeafType;
use super::vocabulary::{
    CLASS_OFFER, CLASS_PRODUCT, CLASS_REVIEW, PRODUCT_FEATURE, RDF_TYPE, RDFS_SUBCLASS_OF,
};

/// What a scan of the data has found so far.
#[derive(Default)]
pub(super) struct Scan {
    /// The type above each type.
    parents: BTreeMap<String, String>,
    /// Types and features of every product.
    descriptions: HashMap<String, Description>,
    products: Vec<String>,
    offers: Vec<String>,
    reviews: Vec<String>,
}

#[derive(Default)]
struct Description {
    types: Vec<String>,
    features: Vec<String>,
}

/// What a scan found.
pub(super) struct Scanned {
    pub(super) leaf_types: Vec<LeafType>,
    pub(super) products: Vec<String>,
    pub(super) offers: Vec<String>,
    pub(super) reviews: Vec<String>,
}

impl Scan {
    pub(super) fn line(&mut self, line: &str) {
        let mut terms = line.splitn(3, ' ');
        let (Some(subject), Some(predicate), Some(object)) =
            (terms.next(), terms.next(), terms.next())
        else {
            return;
        };
        let object = object.trim_end().trim_end_matches('.').trim_end();
        if predicate == RDF_TYPE.trim_end() {
            match object {
                CLASS_PRODUCT => self.products.push(subject.to_owned()),
                CLASS_OFFER => self.offers.push(subject.to_owned()),
                CLASS_REVIEW => self.reviews.push(subject.to_owned()),
                // The class of another entity, or the product type of a product.
                other if is_product_type(other) => {
                    self.description(subject).types.push(other.to_owned());
                }
                _ => {}
            }
        } else if predicate == PRODUCT_FEATURE.trim_end() {
            self.description(subject).features.push(object.to_owned());
        } else if predicate == RDFS_SUBCLASS_OF.trim_end() {
            self.parents.insert(subject.to_owned(), object.to_owned());
        }
    }

    fn description(&mut self, product: &str) -> &mut Description {
        self.descriptions.entry(product.to_owned()).or_default()
    }

    pub(super) fn finish(self) -> Scanned {
        let inner: BTreeSet<&String> = self.parents.values().collect();
        let mut features: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for description in self.descriptions.into_values() {
            let leaves = description
                .types
                .into_iter()
                .filter(|name| !inner.contains(name));
            for leaf in leaves {
                let seen = features.entry(leaf).or_default();
                seen.extend(description.features.iter().cloned());
            }
        }
        let leaf_types = features
            .into_iter()
            .map(|(product_type, features)| LeafType {
                parent: self.parents.get(&product_type).cloned().unwrap_or_default(),
                product_type,
                features: features.into_iter().collect(),
            })
            .collect();
        Scanned {
            leaf_types,
            products: self.products,
            offers: self.offers,
            reviews: self.reviews,
        }
    }
}

fn is_product_type(term: &str) -> bool {
    let name = term.rsplit('/').next().unwrap_or_default();
    name.strip_prefix("ProductType")
        .is_some_and(|number| number.starts_with(|digit: char| digit.is_ascii_digit()))
}
