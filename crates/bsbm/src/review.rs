//! Reviews: title, text in the reviewer's language, up to four ratings.

use std::io;

use super::catalog::Catalog;
use super::distribution::{MIDDLE_FIRST, Random, Stream};
use super::scale::TODAY;
use super::vocabulary::{
    CLASS_REVIEW, Country, DC_DATE, DC_PUBLISHER, DC_TITLE, Entity, RATINGS, RDF_TYPE,
    REV_REVIEWER, REV_TEXT, REVIEW_DATE, REVIEW_FOR,
};
use super::words::WordList;
use super::writer::TripleWriter;

const WRITTEN_WITHIN_DAYS: u32 = 365;
/// The share of reviews that give each of the four ratings.
const RATING_PERCENT: u32 = 70;

pub(crate) fn write(
    catalog: &Catalog,
    reviewer: u32,
    country: &Country,
    number: u32,
    words: &WordList,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    let random = &mut Random::for_entity(catalog.seed, Stream::Review, u64::from(number));
    let site = catalog.site_of(reviewer);
    let product = random.normal_rank(MIDDLE_FIRST, catalog.product_count());
    let age_days = random.between(1, WRITTEN_WITHIN_DAYS);
    writer.subject(Entity::Review { site, number })?;
    writer.constant(RDF_TYPE, CLASS_REVIEW);
    writer.entity(REVIEW_FOR, catalog.product(product));
    writer.entity(
        REV_REVIEWER,
        Entity::Reviewer {
            site,
            number: reviewer,
        },
    );
    writer.midnight(REVIEW_DATE, TODAY.minus(age_days));
    writer.literal(DC_TITLE, "\"", |out| words.write(random, 4, 15, out));
    writer.triple(REV_TEXT, |out| {
        out.push(b'"');
        words.write(random, 50, 200, out);
        out.extend_from_slice(b"\"@");
        out.extend_from_slice(country.language.as_bytes());
    });
    for predicate in RATINGS {
        if random.chance(RATING_PERCENT) {
            writer.integer(predicate, random.between(1, 10));
        }
    }
    writer.entity(DC_PUBLISHER, Entity::RatingSite(site));
    // Published at some time after it was written.
    writer.date(DC_DATE, TODAY.minus(random.between(1, age_days)));
    Ok(())
}
