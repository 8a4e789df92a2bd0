//! Vendors: label, comment, home page, country.

use std::io;

use super::distribution::{Random, Stream};
use super::scale::TODAY;
use super::vocabulary::{
    CLASS_VENDOR, COUNTRY, DC_DATE, DC_PUBLISHER, Entity, FOAF_HOMEPAGE, RDF_TYPE, country_at,
    write_number,
};
use super::words::WordList;
use super::writer::TripleWriter;

const PUBLISHED_WITHIN_DAYS: u32 = 97;

pub(crate) fn write(
    seed: u64,
    number: u32,
    words: &WordList,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    let random = &mut Random::for_entity(seed, Stream::Vendor, u64::from(number));
    writer.subject(Entity::Vendor(number))?;
    writer.constant(RDF_TYPE, CLASS_VENDOR);
    words.write_label_and_comment(random, writer);
    writer.triple(FOAF_HOMEPAGE, |out| {
        out.extend_from_slice(b"<http://www.vendor");
        write_number(out, number);
        out.extend_from_slice(b".com/>");
    });
    writer.constant(COUNTRY, country_at(random.below(100)).iri);
    writer.entity(DC_PUBLISHER, Entity::Vendor(number));
    writer.date(
        DC_DATE,
        TODAY.minus(random.between(1, PUBLISHED_WITHIN_DAYS)),
    );
    Ok(())
}
