//! Reviewers: name, mail address (its hash), country.

use std::io;

use super::catalog::Catalog;
use super::distribution::{Random, Stream};
use super::scale::TODAY;
use super::vocabulary::{
    CLASS_PERSON, COUNTRY, Country, DC_DATE, DC_PUBLISHER, Entity, FOAF_MBOX_SHA1SUM, FOAF_NAME,
    RDF_TYPE, country_at,
};
use super::words::write_name;
use super::writer::TripleWriter;

const PUBLISHED_WITHIN_DAYS: u32 = 94;

/// Writes a reviewer and returns the country, whose language the reviews have.
pub(crate) fn write(
    catalog: &Catalog,
    number: u32,
    writer: &mut TripleWriter<'_>,
) -> io::Result<&'static Country> {
    let random = &mut Random::for_entity(catalog.seed, Stream::Reviewer, u64::from(number));
    let country = country_at(random.below(100));
    let site = catalog.site_of(number);
    writer.subject(Entity::Reviewer { site, number })?;
    writer.constant(RDF_TYPE, CLASS_PERSON);
    writer.literal(FOAF_NAME, "\"", |out| write_name(random, out));
    writer.literal(FOAF_MBOX_SHA1SUM, "\"", |out| write_hash(random, out));
    writer.constant(COUNTRY, country.iri);
    writer.entity(DC_PUBLISHER, Entity::RatingSite(site));
    writer.date(
        DC_DATE,
        TODAY.plus(random.between(0, PUBLISHED_WITHIN_DAYS)),
    );
    Ok(country)
}

/// 160 random bits in place of the hash of an address that nobody has.
fn write_hash(random: &mut Random, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for _ in 0..5 {
        let bits = random.next_u64();
        out.extend((0..8).map(|digit| DIGITS[(bits >> (4 * digit)) as usize & 15]));
    }
}
