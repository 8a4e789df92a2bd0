//! Producers: label, comment, home page, country.

use std::io;

use super::distribution::{Random, Stream};
use super::vocabulary::{
    CLASS_PRODUCER, COUNTRY, DC_DATE, DC_PUBLISHER, Entity, FOAF_HOMEPAGE, RDF_TYPE, country_at,
    write_number,
};
use super::words::WordList;
use super::writer::{Date, TripleWriter};

const PUBLISHED_FROM: Date = Date::new(2000, 7, 20);
const PUBLISHED_WITHIN_DAYS: u32 = 1_825;

pub(crate) fn write(
    seed: u64,
    number: u32,
    words: &WordList,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    let random = &mut Random::for_entity(seed, Stream::Producer, u64::from(number));
    writer.subject(Entity::Producer(number))?;
    writer.constant(RDF_TYPE, CLASS_PRODUCER);
    words.write_label_and_comment(random, writer);
    writer.triple(FOAF_HOMEPAGE, |out| {
        out.extend_from_slice(b"<http://www.Producer");
        write_number(out, number);
        out.extend_from_slice(b".com/>");
    });
    writer.constant(COUNTRY, country_at(random.below(100)).iri);
    writer.entity(DC_PUBLISHER, Entity::Producer(number));
    writer.date(
        DC_DATE,
        PUBLISHED_FROM.plus(random.below(PUBLISHED_WITHIN_DAYS)),
    );
    Ok(())
}
