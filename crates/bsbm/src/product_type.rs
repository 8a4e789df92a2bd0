//! The tree of product types and the features that belong to its nodes.
//!
//! The specification derives the tree's shape from the number of products: with
//! `l = log10(products)`, the root has `2 * round(l)` children, there are
//! `round(l / 2) + 1` levels below it, inner nodes have eight children and the
//! nodes above the leaves two, four or eight. 2,785 products: 1 + 6 + 48 + 96
//! types; 28,482: 1 + 8 + 64 + 512. Types are numbered level by level, so the
//! children of a node follow each other, and so do the features of a type.

use super::distribution::{Random, SMALL_FIRST, Stream};
use super::vocabulary::{
    CLASS_PRODUCT_FEATURE, CLASS_PRODUCT_TYPE, DC_DATE, DC_PUBLISHER, Entity, RDF_TYPE,
    RDFS_COMMENT, RDFS_LABEL, RDFS_SUBCLASS_OF,
};
use super::words::WordList;
use super::writer::{Date, TripleWriter};
use std::io;
use std::ops::RangeInclusive;

/// Types and features were published in the month after this day.
const PUBLISHED_FROM: Date = Date::new(2000, 6, 20);
const PUBLISHED_WITHIN_DAYS: u32 = 32;

/// One type.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<u32>,
    features: RangeInclusive<u32>,
}

/// The tree of product types.
#[derive(Clone, Debug)]
pub struct TypeTree {
    /// Type number `n` stands at `n - 1`.
    nodes: Vec<Node>,
    first_leaf: u32,
    features: u32,
}

impl TypeTree {
    /// The tree of a data set of so many products.
    pub(crate) fn new(products: u32, seed: u64) -> Self {
        let branching = branching_factors(products);
        // Type 1 is the root, of which every product is: it has no features.
        #[allow(clippy::reversed_empty_ranges)]
        let mut nodes = vec![Node {
            parent: None,
            features: 1..=0,
        }];
        let mut random = Random::for_entity(seed, Stream::ProductTypes, 0);
        let mut features = 0;
        let mut level = 1..=1_u32;
        for (depth, children) in branching.iter().enumerate() {
            let (low, high) = feature_bounds(depth as u32 + 1, branching.len() as u32);
            let first = *level.end() + 1;
            for parent in level {
                for _ in 0..*children {
                    let count = random.between(low, high);
                    nodes.push(Node {
                        parent: Some(parent),
                        features: features + 1..=features + count,
                    });
                    features += count;
                }
            }
            level = first..=nodes.len() as u32;
        }
        Self {
            nodes,
            first_leaf: *level.start(),
            features,
        }
    }

    /// How many types there are.
    pub fn types(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// How many features there are.
    pub fn features(&self) -> u32 {
        self.features
    }

    /// The numbers of the types without subtypes.
    pub fn leaves(&self) -> RangeInclusive<u32> {
        self.first_leaf..=self.types()
    }

    /// The type, its parent and so on up to the root.
    pub fn path_to_root(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(number), |number| self.node(*number)?.parent)
    }

    /// The features that belong to this very type.
    pub fn features_of(&self, number: u32) -> RangeInclusive<u32> {
        #[allow(clippy::reversed_empty_ranges)]
        self.node(number)
            .map_or(1..=0, |node| node.features.clone())
    }

    /// Draws the leaf type of a product: the first leaves have most products.
    pub(crate) fn draw_leaf(&self, random: &mut Random) -> u32 {
        let leaves = self.types() - self.first_leaf + 1;
        self.first_leaf + random.normal_rank(SMALL_FIRST, leaves) - 1
    }

    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number.checked_sub(1)? as usize)
    }

    /// Writes all types, then all features.
    pub(crate) fn write(
        &self,
        seed: u64,
        words: &WordList,
        writer: &mut TripleWriter<'_>,
    ) -> io::Result<()> {
        for number in 1..=self.types() {
            let random = &mut Random::for_entity(seed, Stream::ProductTypes, u64::from(number));
            writer.subject(Entity::ProductType(number))?;
            writer.constant(RDF_TYPE, CLASS_PRODUCT_TYPE);
            match self.node(number).and_then(|node| node.parent) {
                None => {
                    writer.constant(RDFS_LABEL, "\"Thing\"");
                    writer.constant(RDFS_COMMENT, "\"The Product Type of all Products\"");
                }
                Some(parent) => {
                    words.write_label_and_comment(random, writer);
                    writer.entity(RDFS_SUBCLASS_OF, Entity::ProductType(parent));
                }
            }
            write_publisher(random, writer);
        }
        for number in 1..=self.features {
            let random = &mut Random::for_entity(seed, Stream::ProductFeatures, u64::from(number));
            writer.subject(Entity::ProductFeature(number))?;
            writer.constant(RDF_TYPE, CLASS_PRODUCT_FEATURE);
            words.write_label_and_comment(random, writer);
            write_publisher(random, writer);
        }
        Ok(())
    }
}

fn write_publisher(random: &mut Random, writer: &mut TripleWriter<'_>) {
    writer.entity(DC_PUBLISHER, Entity::StandardizationInstitution);
    writer.date(
        DC_DATE,
        PUBLISHED_FROM.plus(random.between(0, PUBLISHED_WITHIN_DAYS)),
    );
}

/// Children per node, from the root down to the level above the leaves.
fn branching_factors(products: u32) -> Vec<u32> {
    let logarithm = f64::from(products.max(2)).log10();
    let levels = (logarithm / 2.0).round() as usize + 1;
    let mut factors = vec![8; levels];
    factors[levels - 1] = [2, 4, 8][(logarithm * 1.5 + 1.0).round() as usize % 3];
    factors[0] = (2 * logarithm.round() as u32).max(2);
    factors
}

/// Least and greatest number of features of a type at this depth (1 below the
/// root) of a tree with so many levels: the deeper, the more, so that a product
/// has about 20 features in trees of any height.
fn feature_bounds(depth: u32, levels: u32) -> (u32, u32) {
    let weight = (depth + 1).min(levels.max(2));
    let weights = levels.max(2) * (levels.max(2) + 1) / 2 - 1;
    (35 * weight / weights, 75 * weight / weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_types_is_the_specifications() {
        // Products and types of the specification's table of data set sizes.
        for (products, types) in [(666, 55), (2_785, 151), (70_812, 731), (284_826, 2_011)] {
            assert_eq!(
                TypeTree::new(products, 1).types(),
                types,
                "{products} products"
            );
        }
        assert_eq!(TypeTree::new(28_482, 1).types(), 585);
    }

    #[test]
    fn the_number_of_features_is_near_the_specifications() {
        for (products, features) in [
            (666, 2_860),
            (2_785, 4_745),
            (70_812, 23_833),
            (284_826, 47_884),
        ] {
            let ours = TypeTree::new(products, 1).features();
            let ratio = f64::from(ours) / f64::from(features);
            assert!(
                (0.92..1.08).contains(&ratio),
                "{products} products: {ours}, {features}"
            );
        }
    }

    #[test]
    fn small_data_sets_have_a_tree_too() {
        for products in 1..50 {
            let tree = TypeTree::new(products, 3);
            assert!(tree.leaves().count() >= 2);
            assert!(tree.features() > 20);
            let leaf = *tree.leaves().start();
            assert_eq!(tree.path_to_root(leaf).last(), Some(1));
        }
    }

    #[test]
    fn every_feature_belongs_to_one_type() {
        let tree = TypeTree::new(2_785, 1);
        let owned: usize = (1..=tree.types())
            .map(|number| tree.features_of(number).count())
            .sum();
        assert_eq!(owned, tree.features() as usize);
        assert_eq!(tree.features_of(1).count(), 0);
    }
}
