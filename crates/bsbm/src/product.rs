//! Products: type and all its supertypes, properties, features.
//!
//! 40 % of the products have the numeric and textual properties 1 to 5; 20 % have
//! 1 to 3, perhaps 4 and perhaps 5; the others 1 to 3, perhaps 5 and perhaps 6.

use std::io;

use super::catalog::Catalog;
use super::distribution::{Random, SMALL_FIRST, Stream};
use super::vocabulary::{
    CLASS_PRODUCT, DC_DATE, DC_PUBLISHER, Entity, PRODUCER, PRODUCT_FEATURE, PROPERTY_NUMERIC,
    PROPERTY_TEXTUAL, RDF_TYPE, RDFS_COMMENT, RDFS_LABEL, XSD_STRING,
};
use super::words::WordList;
use super::writer::{Date, TripleWriter};

const PUBLISHED_FROM: Date = Date::new(2000, 9, 20);
const PUBLISHED_WITHIN_DAYS: u32 = 2_315;
const NUMERIC_MAX: u32 = 2_000;
/// The share of a type's features that a product of the type has.
const FEATURE_PERCENT: u32 = 25;
/// The shares of the properties 1 to 6 in the three kinds of products.
const PROPERTY_PERCENT: [[u32; 6]; 3] = [
    [100, 100, 100, 100, 100, 0],
    [100, 100, 100, 50, 25, 0],
    [100, 100, 100, 0, 25, 50],
];

/// What queries ask about a product.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    entity: Entity,
    producer: u32,
    leaf_type: u32,
    features: Vec<u32>,
}

impl Product {
    pub(crate) fn draw(catalog: &Catalog, number: u32, random: &mut Random) -> Self {
        let producer = catalog.products.group_of(number);
        let leaf_type = catalog.types.draw_leaf(random);
        let features = catalog
            .types
            .path_to_root(leaf_type)
            .flat_map(|ancestor| catalog.types.features_of(ancestor))
            .filter(|_| random.chance(FEATURE_PERCENT))
            .collect();
        Self {
            entity: Entity::Product { producer, number },
            producer,
            leaf_type,
            features,
        }
    }
}

pub(crate) fn write(
    catalog: &Catalog,
    number: u32,
    words: &WordList,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    let random = &mut Random::for_entity(catalog.seed, Stream::Product, u64::from(number));
    let product = Product::draw(catalog, number, random);
    writer.subject(product.entity)?;
    writer.constant(RDF_TYPE, CLASS_PRODUCT);
    writer.literal(RDFS_LABEL, "\"", |out| words.write(random, 1, 3, out));
    writer.literal(RDFS_COMMENT, "\"", |out| words.write(random, 50, 150, out));
    for ancestor in catalog.types.path_to_root(product.leaf_type) {
        writer.entity(RDF_TYPE, Entity::ProductType(ancestor));
    }
    writer.entity(PRODUCER, Entity::Producer(product.producer));
    write_properties(random, words, writer);
    for feature in &product.features {
        writer.entity(PRODUCT_FEATURE, Entity::ProductFeature(*feature));
    }
    writer.entity(DC_PUBLISHER, Entity::Producer(product.producer));
    writer.date(
        DC_DATE,
        PUBLISHED_FROM.plus(random.below(PUBLISHED_WITHIN_DAYS)),
    );
    Ok(())
}

fn write_properties(random: &mut Random, words: &WordList, writer: &mut TripleWriter<'_>) {
    let kind = match random.below(10) {
        0..4 => 0,
        4..6 => 1,
        _ => 2,
    };
    let percents = PROPERTY_PERCENT[kind];
    for (predicate, percent) in PROPERTY_NUMERIC.into_iter().zip(percents) {
        if random.chance(percent) {
            writer.integer(predicate, random.normal_rank(SMALL_FIRST, NUMERIC_MAX));
        }
    }
    for (predicate, percent) in PROPERTY_TEXTUAL.into_iter().zip(percents) {
        if random.chance(percent) {
            writer.literal(predicate, XSD_STRING, |out| words.write(random, 3, 15, out));
        }
    }
}
