//! The Berlin SPARQL Benchmark 3.1: data generator and explore queries.
//!
//! [`generate`] writes the data set of the specification: products with types,
//! features and producers, offers of vendors, reviews by people. A [`Catalog`]
//! of who owns what is drawn first; then entity after entity is computed from
//! its number and written, so memory stays small at any size and the same
//! options always give the same bytes. One core makes nine million triples
//! (2.3 GB) a second.
//!
//! Vocabulary, IRIs, distributions and the order of the triples are the official
//! tool's; words and names are our own. `tools/bench/tests/bench/official_data.rs` compares.

mod business;
mod catalog;
pub mod distribution;
mod leaf_type;
pub mod literals;
mod offer;
pub mod parameters;
mod person;
mod producer;
mod product;
mod product_type;
mod review;
mod scale;
mod scan;
mod stems;
pub mod templates;
pub mod update;
mod vendor;
mod vocabulary;
pub mod words;
mod writer;

use std::io::{self, Write};
use std::time::Instant;

use serde::Serialize;

pub use business::BusinessParameters;
pub use catalog::Catalog;
pub use distribution::Random;
pub use product_type::TypeTree;
pub use scale::GenerateOptions;
pub use vocabulary::{Entity, INSTANCES, VOCABULARY};

use words::WordList;
use writer::TripleWriter;

/// What was generated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GenerateReport {
    /// Triples written, all different.
    pub triples: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Nodes of the product type tree.
    pub product_types: u32,
    /// Product features.
    pub product_features: u32,
    /// Producers.
    pub producers: u32,
    /// Products.
    pub products: u32,
    /// Vendors.
    pub vendors: u32,
    /// Offers.
    pub offers: u32,
    /// Rating sites.
    pub rating_sites: u32,
    /// Reviewers.
    pub reviewers: u32,
    /// Reviews.
    pub reviews: u32,
    /// Time taken.
    pub seconds: f64,
}

/// Writes a data set as N-Triples.
///
/// # Errors
/// When `output` cannot take more.
pub fn generate(options: &GenerateOptions, output: &mut dyn Write) -> io::Result<GenerateReport> {
    let start = Instant::now();
    let catalog = Catalog::new(options);
    let words = WordList::new();
    let mut writer = TripleWriter::new(output);
    catalog.types.write(catalog.seed, &words, &mut writer)?;
    write_products(&catalog, &words, &mut writer)?;
    write_offers(&catalog, &words, &mut writer)?;
    write_reviews(&catalog, &words, &mut writer)?;
    let (triples, bytes) = writer.finish()?;
    Ok(GenerateReport {
        triples,
        bytes,
        product_types: catalog.types.types(),
        product_features: catalog.types.features(),
        producers: catalog.products.len(),
        products: catalog.product_count(),
        vendors: catalog.offers.len(),
        offers: catalog.offer_count(),
        rating_sites: catalog.site_count(),
        reviewers: catalog.reviews.len(),
        reviews: catalog.review_count(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn write_products(
    catalog: &Catalog,
    words: &WordList,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    for producer in 1..=catalog.products.len() {
        producer::write(catalog.seed, producer, words, writer)?;
        for number in catalog.products.members_of(producer) {
            product::write(catalog, number, words, writer)?;
        }
    }
    Ok(())
}

fn write_offers(
    catalog: &Catalog,
    words: &WordList,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    for vendor in 1..=catalog.offers.len() {
        vendor::write(catalog.seed, vendor, words, writer)?;
        for number in catalog.offers.members_of(vendor) {
            offer::write(catalog, vendor, number, writer)?;
        }
    }
    Ok(())
}

fn write_reviews(
    catalog: &Catalog,
    words: &WordList,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    for reviewer in 1..=catalog.reviews.len() {
        let country = person::write(catalog, reviewer, writer)?;
        for number in catalog.reviews.members_of(reviewer) {
            review::write(catalog, reviewer, country, number, words, writer)?;
        }
    }
    Ok(())
}
