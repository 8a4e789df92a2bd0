//! The generator's catalog: types, and who made, sells and reviews which products.
//!
//! It needs a few bytes per producer, vendor and reviewer; products, offers and
//! reviews are computed from their numbers when they are wanted.

use super::distribution::{Random, Stream};
use super::product_type::TypeTree;
use super::scale::{GenerateOptions, OFFERS_PER_PRODUCT, REVIEWS_PER_PRODUCT};
use super::vocabulary::Entity;

const PRODUCTS_PER_PRODUCER: u32 = 50;
const OFFERS_PER_VENDOR: u32 = 2_000;
const REVIEWS_PER_REVIEWER: u32 = 20;
const REVIEWS_PER_RATING_SITE: u32 = 10_000;

/// The knowledge from which a data set is written and parameters are drawn.
#[derive(Clone, Debug)]
pub struct Catalog {
    pub(crate) seed: u64,
    pub(crate) types: TypeTree,
    pub(crate) products: Groups,
    pub(crate) offers: Groups,
    pub(crate) reviews: Groups,
    /// The rating site of every reviewer.
    sites: Vec<u32>,
}

impl Catalog {
    /// The catalog of the data set that [`super::generate`] writes.
    pub fn new(options: &GenerateOptions) -> Self {
        let GenerateOptions { products, seed } = *options;
        let products = products.clamp(1, super::scale::PRODUCTS_MAX);
        let groups = |stream, total, mean| Groups::draw(seed, stream, total, mean);
        let reviews = groups(
            Stream::ReviewerSizes,
            products * REVIEWS_PER_PRODUCT,
            REVIEWS_PER_REVIEWER,
        );
        Self {
            seed,
            types: TypeTree::new(products, seed),
            products: groups(Stream::ProducerSizes, products, PRODUCTS_PER_PRODUCER),
            offers: groups(
                Stream::VendorSizes,
                products * OFFERS_PER_PRODUCT,
                OFFERS_PER_VENDOR,
            ),
            sites: rating_sites(seed, &reviews),
            reviews,
        }
    }

    /// The tree of product types.
    pub fn types(&self) -> &TypeTree {
        &self.types
    }

    /// How many products there are.
    pub fn product_count(&self) -> u32 {
        self.products.members()
    }

    /// How many offers there are.
    pub fn offer_count(&self) -> u32 {
        self.offers.members()
    }

    /// How many reviews there are.
    pub fn review_count(&self) -> u32 {
        self.reviews.members()
    }

    /// The product of this number, from 1 on.
    pub fn product(&self, number: u32) -> Entity {
        Entity::Product {
            producer: self.products.group_of(number),
            number,
        }
    }

    /// The offer of this number, from 1 on.
    pub fn offer(&self, number: u32) -> Entity {
        Entity::Offer {
            vendor: self.offers.group_of(number),
            number,
        }
    }

    /// The review of this number, from 1 on.
    pub fn review(&self, number: u32) -> Entity {
        Entity::Review {
            site: self.site_of(self.reviews.group_of(number)),
            number,
        }
    }

    pub(crate) fn site_of(&self, reviewer: u32) -> u32 {
        self.sites.get(reviewer as usize - 1).copied().unwrap_or(1)
    }

    pub(crate) fn site_count(&self) -> u32 {
        self.sites.last().copied().unwrap_or(0)
    }
}

/// Reviewers join a rating site until it has its share of reviews.
fn rating_sites(seed: u64, reviews: &Groups) -> Vec<u32> {
    let mut random = Random::for_entity(seed, Stream::RatingSiteSizes, 0);
    let mut site = 1;
    let mut full_at = random.group_size(REVIEWS_PER_RATING_SITE);
    let mut sites = Vec::with_capacity(reviews.len() as usize);
    for reviewer in 1..=reviews.len() {
        let members = reviews.members_of(reviewer);
        if *members.start() > full_at {
            site += 1;
            full_at = members.start() + random.group_size(REVIEWS_PER_RATING_SITE);
        }
        sites.push(site);
    }
    sites
}

/// Members `1..=n`, cut into consecutive groups `1..=m`.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// The last member of each group.
    ends: Vec<u32>,
}

impl Groups {
    fn draw(seed: u64, stream: Stream, members: u32, mean_size: u32) -> Self {
        let mut random = Random::for_entity(seed, stream, 0);
        let mut ends = Vec::with_capacity((members / mean_size) as usize + 1);
        let mut end = 0;
        while end < members {
            end = members.min(end + random.group_size(mean_size));
            ends.push(end);
        }
        Self { ends }
    }

    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    fn members(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The members of a group.
    pub(crate) fn members_of(&self, group: u32) -> std::ops::RangeInclusive<u32> {
        let index = group as usize - 1;
        let before = index
            .checked_sub(1)
            .map_or(0, |previous| self.ends[previous]);
        before + 1..=self.ends[index]
    }

    pub(crate) fn group_of(&self, member: u32) -> u32 {
        self.ends.partition_point(|end| *end < member) as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_one_group() {
        let groups = Groups::draw(1, Stream::VendorSizes, 10_000, 500);
        let mut next = 1;
        for group in 1..=groups.len() {
            for member in groups.members_of(group) {
                assert_eq!(member, next);
                assert_eq!(groups.group_of(member), group);
                next += 1;
            }
        }
        assert_eq!(next, 10_001);
    }

    #[test]
    fn rating_sites_fill_one_after_the_other() {
        let catalog = Catalog::new(&GenerateOptions {
            products: 5_000,
            seed: 3,
        });
        assert!(catalog.site_count() >= 3);
        assert!(catalog.sites.is_sorted());
        assert_eq!(catalog.sites.len(), catalog.reviews.len() as usize);
    }
}
