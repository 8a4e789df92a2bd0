//! The update transactions of BSBM: new products with their offers, and offers that end.
//!
//! A transaction inserts one product as the generator would write it, with the usual number of
//! offers, by one `INSERT DATA`; another deletes all that is said of an offer by `DELETE WHERE`.
//! New products come from a catalog with more products than the data set has; its numbers go on
//! where those of the data set end, so nothing that is inserted is there already. Reviews are left
//! to the data set.

use std::io;

use super::catalog::Catalog;
use super::distribution::{Random, Stream};
use super::scale::{GenerateOptions, OFFERS_PER_PRODUCT};
use super::words::WordList;
use super::writer::TripleWriter;
use super::{offer, product};

/// Draws update transactions for a data set.
pub struct Updates {
    catalog: Catalog,
    words: WordList,
    /// The last product and offer of the data set, or inserted since.
    product: u32,
    offer: u32,
    /// The next offer to be deleted.
    deleted: u32,
    /// The graph to be changed, as `GRAPH <..> { .. }` takes it.
    graph: Option<String>,
}

impl Updates {
    /// Transactions for a data set of ours; up to `products` new products.
    pub fn new(data: &GenerateOptions, products: u32) -> Self {
        let before = Catalog::new(data);
        Self {
            catalog: Catalog::new(&GenerateOptions {
                products: data.products + products,
                ..*data
            }),
            words: WordList::new(),
            product: before.product_count(),
            offer: before.offer_count(),
            deleted: 0,
            graph: None,
        }
    }

    /// The same transactions, on a named graph instead of the default graph.
    #[must_use]
    pub fn within(mut self, graph: Option<&str>) -> Self {
        self.graph = graph.map(str::to_owned);
        self
    }

    /// A new product and its offers.
    ///
    /// # Errors
    /// Never: what is written to is memory.
    pub fn insert(&mut self) -> io::Result<String> {
        self.product += 1;
        let number = self.product.min(self.catalog.product_count());
        let mut triples = Vec::new();
        let mut writer = TripleWriter::new(&mut triples);
        product::write(&self.catalog, number, &self.words, &mut writer)?;
        for _ in 0..OFFERS_PER_PRODUCT {
            self.offer += 1;
            let random =
                &mut Random::for_entity(self.catalog.seed, Stream::Offer, u64::from(self.offer));
            let last = self.catalog.offer_count();
            let vendor = self.catalog.offers.group_of(self.offer.min(last));
            let product = self.catalog.product(number);
            offer::write_of(product, vendor, self.offer, random, &mut writer)?;
        }
        writer.finish()?;
        let triples = String::from_utf8(triples).map_err(io::Error::other)?;
        Ok(format!("INSERT DATA {{\n{}}}", self.in_graph(&triples)))
    }

    /// The end of an offer.
    pub fn delete(&mut self) -> String {
        self.deleted += 1;
        let offer = self.catalog.offer(self.deleted);
        let pattern = format!("<{offer}> ?p ?o");
        format!("DELETE WHERE {{ {} }}", self.in_graph(&pattern))
    }

    fn in_graph(&self, quads: &str) -> String {
        match &self.graph {
            Some(graph) => format!("GRAPH <{graph}> {{ {quads} }}"),
            None => quads.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_about_what_is_new_or_old() {
        let data = GenerateOptions {
            products: 20,
            seed: 1,
        };
        let mut updates = Updates::new(&data, 5);
        let (first, second) = (updates.insert().unwrap(), updates.insert().unwrap());
        assert!(first.contains("Product21> ") && second.contains("Product22> "));
        assert!(first.contains("Offer401> ") && second.contains("Offer421> "));
        assert!(updates.delete().contains("Offer1> "));
        assert!(updates.delete().contains("Offer2> "));
        let mut updates = updates.within(Some("http://example.org/g"));
        assert!(
            updates
                .delete()
                .contains("{ GRAPH <http://example.org/g> { <")
        );
    }
}
