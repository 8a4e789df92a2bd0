//! Parameter values of the explore queries, drawn deterministically from a pool of terms.
//!
//! The pool comes from the generator's knowledge ([`ParameterPool::from_catalog`]),
//! from a scan of N-Triples ([`ParameterPool::from_ntriples`]), or from an endpoint
//! by SPARQL (`orrery_bench::drivers::parameter_pool`); the latter two work with any BSBM
//! data, such as the official tool's.
//!
//! Product types are drawn from the leaves of their tree in half of the cases, from
//! the level above in the others (the specification wants the one for some queries
//! and the other for others). They come with features that belong to the type or
//! to one above it, so that the searches of queries 1, 3 and 4 find something.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

pub use super::leaf_type::LeafType;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::catalog::Catalog;
use super::distribution::{Random, Stream};
use super::scan::{Scan, Scanned};
use super::templates::{EXPLORE, explore_template, parameter_names};
use super::vocabulary::Entity;

/// More terms of one class than this make no benchmark better.
const POOL_TERMS_MAX: u32 = 20_000;
/// Query 4 wants three features of one type.
const FEATURES_MIN: usize = 3;
/// The numbers that queries 1, 3 and 4 compare with.
const NUMBER_MAX: u32 = 500;
/// The day of the queries about offers that are still valid.
const CURRENT_DATE: &str = "\"2008-06-20T00:00:00\"^^<http://www.w3.org/2001/XMLSchema#dateTime>";

/// Values for the parameters of one run of one query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterSet {
    /// The number of the explore query.
    pub query: u8,
    /// Values by parameter name, as SPARQL terms.
    pub values: BTreeMap<String, String>,
}

/// A product type and the features that belong to it or to a type above it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TypeFeatures {
    product_type: String,
    features: Vec<String>,
}

/// The terms that parameters are drawn from, all as IRIs in angle brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterPool {
    leaf_types: Vec<TypeFeatures>,
    /// The types above the leaves.
    parent_types: Vec<TypeFeatures>,
    products: Vec<String>,
    offers: Vec<String>,
    reviews: Vec<String>,
}

/// Why there are no parameters.
#[derive(Debug, Error)]
pub enum ParameterError {
    /// The data has none of what queries are about.
    #[error("no {what} in the data: is it a BSBM data set?")]
    NotBsbm {
        /// What is missing.
        what: &'static str,
    },
    /// The query has a parameter of which we know no values.
    #[error("query {query} has the unknown parameter %{name}%")]
    UnknownParameter {
        /// The query's number.
        query: u8,
        /// The parameter's name.
        name: String,
    },
    /// The data cannot be read.
    #[error("the data cannot be read: {0}")]
    Read(#[from] io::Error),
}

impl ParameterPool {
    /// A pool of these terms. They are sorted first, so that the order in which
    /// they were found does not matter.
    ///
    /// # Errors
    /// When a class of terms is missing.
    pub fn new(
        leaf_types: Vec<LeafType>,
        mut products: Vec<String>,
        mut offers: Vec<String>,
        mut reviews: Vec<String>,
    ) -> Result<Self, ParameterError> {
        let parent_types = parent_types(&leaf_types);
        let leaves = leaf_types
            .into_iter()
            .map(|leaf| (leaf.product_type, leaf.features));
        let leaf_types = sorted_types(leaves);
        for (what, terms) in [
            ("products", &mut products),
            ("offers", &mut offers),
            ("reviews", &mut reviews),
        ] {
            terms.sort_unstable();
            terms.dedup();
            if terms.is_empty() {
                return Err(ParameterError::NotBsbm { what });
            }
        }
        if leaf_types.is_empty() {
            return Err(ParameterError::NotBsbm {
                what: "product types with features",
            });
        }
        Ok(Self {
            leaf_types,
            parent_types,
            products,
            offers,
            reviews,
        })
    }

    /// The pool of a data set that we generate, without generating it.
    ///
    /// # Errors
    /// Never for a catalog of at least one product.
    pub fn from_catalog(catalog: &Catalog) -> Result<Self, ParameterError> {
        let tree = catalog.types();
        let leaf_types = tree
            .leaves()
            .map(|leaf| LeafType {
                product_type: bracketed(Entity::ProductType(leaf)),
                parent: bracketed(Entity::ProductType(
                    tree.path_to_root(leaf).nth(1).unwrap_or(1),
                )),
                features: tree
                    .path_to_root(leaf)
                    .flat_map(|number| tree.features_of(number))
                    .map(|feature| bracketed(Entity::ProductFeature(feature)))
                    .collect(),
            })
            .collect();
        let sample = |count: u32, entity: &dyn Fn(u32) -> Entity| -> Vec<String> {
            let step = count.div_ceil(POOL_TERMS_MAX).max(1) as usize;
            (1..=count)
                .step_by(step)
                .map(|number| bracketed(entity(number)))
                .collect()
        };
        Self::new(
            leaf_types,
            sample(catalog.product_count(), &|number| catalog.product(number)),
            sample(catalog.offer_count(), &|number| catalog.offer(number)),
            sample(catalog.review_count(), &|number| catalog.review(number)),
        )
    }

    /// The pool of the data in N-Triples form, one triple a line, single blanks
    /// between the terms (as the generators write it).
    ///
    /// # Errors
    /// When the data cannot be read, or is not BSBM data.
    pub fn from_ntriples(mut input: impl BufRead) -> Result<Self, ParameterError> {
        let mut scan = Scan::default();
        let mut line = String::new();
        while input.read_line(&mut line)? > 0 {
            scan.line(&line);
            line.clear();
        }
        let Scanned {
            leaf_types,
            products,
            offers,
            reviews,
        } = scan.finish();
        Self::new(leaf_types, products, offers, reviews)
    }

    /// Draws the parameters of one run of an explore query.
    ///
    /// # Errors
    /// When there is no such query, or it has parameters of other kinds.
    pub fn draw(&self, query: u8, random: &mut Random) -> Result<ParameterSet, ParameterError> {
        let text = explore_template(query).map_or("", |template| template.text);
        self.draw_for(query, &parameter_names(text), random)
    }

    /// Draws values for the named parameters, for templates that are not ours.
    ///
    /// # Errors
    /// When a parameter is of an unknown kind.
    pub fn draw_for(
        &self,
        query: u8,
        names: &[&str],
        random: &mut Random,
    ) -> Result<ParameterSet, ParameterError> {
        let (product_type, mut features) = self.draw_type(random);
        let mut values = BTreeMap::new();
        // In the order of the names, for the template's order must not matter.
        for name in names.iter().copied().collect::<BTreeSet<_>>() {
            let value = match name {
                "ProductType" => product_type.to_owned(),
                "ProductFeature1" | "ProductFeature2" | "ProductFeature3" => {
                    let index = random.below(features.len() as u32) as usize;
                    features.swap_remove(index).to_owned()
                }
                "ProductXYZ" => one_of(&self.products, random),
                "OfferXYZ" => one_of(&self.offers, random),
                "ReviewXYZ" => one_of(&self.reviews, random),
                "x" | "y" => random.between(1, NUMBER_MAX).to_string(),
                "currentDate" => CURRENT_DATE.to_owned(),
                other => {
                    return Err(ParameterError::UnknownParameter {
                        query,
                        name: other.to_owned(),
                    });
                }
            };
            values.insert(name.to_owned(), value);
        }
        Ok(ParameterSet { query, values })
    }

    /// So many parameter sets for every explore query, in the order of the
    /// queries. The same seed and data give the same sets, and a longer list
    /// begins with the shorter one of each query.
    ///
    /// # Errors
    /// Never for our own templates.
    pub fn parameter_sets(
        &self,
        seed: u64,
        per_query: u32,
    ) -> Result<Vec<ParameterSet>, ParameterError> {
        let mut sets = Vec::with_capacity(EXPLORE.len() * per_query as usize);
        for template in EXPLORE {
            let stream = u64::from(template.number) << 32;
            for run in 0..u64::from(per_query) {
                let random = &mut Random::for_entity(seed, Stream::Parameters, stream | run);
                sets.push(self.draw(template.number, random)?);
            }
        }
        Ok(sets)
    }

    fn draw_type(&self, random: &mut Random) -> (&str, Vec<&str>) {
        let is_parent = random.below(2) == 0 && !self.parent_types.is_empty();
        let types = if is_parent {
            &self.parent_types
        } else {
            &self.leaf_types
        };
        random.pick(types).map_or_else(Default::default, |entry| {
            (
                entry.product_type.as_str(),
                entry.features.iter().map(String::as_str).collect(),
            )
        })
    }
}

/// The types above the leaves. A feature that products of two leaves have belongs
/// to a type above both.
fn parent_types(leaf_types: &[LeafType]) -> Vec<TypeFeatures> {
    let mut leaves_with: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    for leaf in leaf_types {
        let counts = leaves_with.entry(&leaf.parent).or_default();
        for feature in leaf.features.iter().collect::<BTreeSet<_>>() {
            *counts.entry(feature).or_default() += 1;
        }
    }
    sorted_types(leaves_with.into_iter().map(|(parent, counts)| {
        let shared = counts.into_iter().filter(|(_, leaves)| *leaves > 1);
        (
            parent.to_owned(),
            shared.map(|(feature, _)| feature.to_owned()).collect(),
        )
    }))
}

/// The types that have features enough, in order.
fn sorted_types(types: impl Iterator<Item = (String, Vec<String>)>) -> Vec<TypeFeatures> {
    let mut types: Vec<TypeFeatures> = types
        .map(|(product_type, mut features)| {
            features.sort_unstable();
            features.dedup();
            TypeFeatures {
                product_type,
                features,
            }
        })
        .filter(|entry| entry.features.len() >= FEATURES_MIN)
        .collect();
    types.sort_unstable_by(|left, right| left.product_type.cmp(&right.product_type));
    types
}

/// `new` refuses empty pools, so there is always one.
fn one_of(terms: &[String], random: &mut Random) -> String {
    random.pick(terms).cloned().unwrap_or_default()
}

fn bracketed(entity: Entity) -> String {
    format!("<{entity}>")
}

#[cfg(test)]
mod tests {
    use super::super::{generate, templates::instantiate};
    use super::*;
    use crate::scale::GenerateOptions;

    const OPTIONS: GenerateOptions = GenerateOptions {
        products: 120,
        seed: 4,
    };

    #[test]
    fn every_query_gets_all_its_parameters() {
        let pool = ParameterPool::from_catalog(&Catalog::new(&OPTIONS)).unwrap();
        let sets = pool.parameter_sets(1, 20).unwrap();
        assert_eq!(sets.len(), EXPLORE.len() * 20);
        for set in sets {
            let template = explore_template(set.query).unwrap();
            let text = instantiate(template.text, &set.values).unwrap();
            assert!(!text.contains('%'), "{text}");
        }
    }

    #[test]
    fn features_of_one_set_differ() {
        let pool = ParameterPool::from_catalog(&Catalog::new(&OPTIONS)).unwrap();
        for run in 0..200 {
            let set = pool.draw(4, &mut Random::new(run)).unwrap();
            let features: BTreeSet<_> = (1..=3)
                .map(|n| &set.values[&format!("ProductFeature{n}")])
                .collect();
            assert_eq!(features.len(), 3);
        }
    }

    #[test]
    fn a_scan_finds_the_terms_that_the_catalog_knows() {
        let mut data = Vec::new();
        generate(&OPTIONS, &mut data).unwrap();
        let scanned = ParameterPool::from_ntriples(data.as_slice()).unwrap();
        let known = ParameterPool::from_catalog(&Catalog::new(&OPTIONS)).unwrap();
        assert_eq!(scanned.products, known.products);
        assert_eq!(scanned.offers, known.offers);
        assert_eq!(scanned.reviews, known.reviews);
        for entry in scanned.leaf_types.iter().chain(&scanned.parent_types) {
            let mut known_types = known.leaf_types.iter().chain(&known.parent_types);
            let known = known_types
                .find(|known| known.product_type == entry.product_type)
                .unwrap();
            assert!(
                entry
                    .features
                    .iter()
                    .all(|feature| known.features.contains(feature))
            );
        }
    }

    #[test]
    fn parameter_sets_come_back_from_json() {
        let pool = ParameterPool::from_catalog(&Catalog::new(&OPTIONS)).unwrap();
        let sets = pool.parameter_sets(1, 2).unwrap();
        let json = serde_json::to_string(&sets).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<ParameterSet>>(&json).unwrap(),
            sets
        );
    }

    #[test]
    fn other_data_is_refused() {
        let error = ParameterPool::from_ntriples(&b"<a> <b> <c> .\n"[..]).unwrap_err();
        assert!(error.to_string().contains("BSBM"), "{error}");
    }
}
