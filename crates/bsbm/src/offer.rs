//! Offers: a vendor sells a product at a price, for a time.

use std::io;

use super::catalog::Catalog;
use super::distribution::{DELIVERY, MIDDLE_FIRST, Random, Stream};
use super::scale::TODAY;
use super::vocabulary::{
    CLASS_OFFER, DC_DATE, DC_PUBLISHER, DELIVERY_DAYS, Entity, OFFER_WEBPAGE, PRICE, PRODUCT,
    RDF_TYPE, USD, VALID_FROM, VALID_TO, VENDOR, write_number,
};
use super::writer::TripleWriter;

const PUBLISHED_WITHIN_DAYS: u32 = 97;
const VALID_DAYS_MAX: u32 = 90;
const DELIVERY_DAYS_MAX: u32 = 10;
const PRICE_CENTS_MIN: u32 = 500;
const PRICE_CENTS_MAX: u32 = 999_999;

pub(crate) fn write(
    catalog: &Catalog,
    vendor: u32,
    number: u32,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    let random = &mut Random::for_entity(catalog.seed, Stream::Offer, u64::from(number));
    let product = random.normal_rank(MIDDLE_FIRST, catalog.product_count());
    write_of(catalog.product(product), vendor, number, random, writer)
}

/// The offer of a given product.
pub(crate) fn write_of(
    product: Entity,
    vendor: u32,
    number: u32,
    random: &mut Random,
    writer: &mut TripleWriter<'_>,
) -> io::Result<()> {
    let offer = Entity::Offer { vendor, number };
    let published = TODAY.minus(random.between(1, PUBLISHED_WITHIN_DAYS));
    writer.subject(offer)?;
    writer.constant(RDF_TYPE, CLASS_OFFER);
    writer.entity(PRODUCT, product);
    writer.entity(VENDOR, Entity::Vendor(vendor));
    let cents = random.between(PRICE_CENTS_MIN, PRICE_CENTS_MAX);
    writer.literal(PRICE, USD, |out| write_dollars(cents, out));
    writer.midnight(
        VALID_FROM,
        published.minus(random.between(0, VALID_DAYS_MAX)),
    );
    writer.midnight(VALID_TO, published.plus(random.between(7, VALID_DAYS_MAX)));
    writer.integer(
        DELIVERY_DAYS,
        random.normal_rank(DELIVERY, DELIVERY_DAYS_MAX),
    );
    writer.triple(OFFER_WEBPAGE, |out| {
        out.push(b'<');
        offer.write(out);
        out.extend_from_slice(b"/>");
    });
    writer.entity(DC_PUBLISHER, Entity::Vendor(vendor));
    writer.date(DC_DATE, published);
    Ok(())
}

fn write_dollars(cents: u32, out: &mut Vec<u8>) {
    write_number(out, cents / 100);
    let rest = cents % 100;
    out.extend_from_slice(&[b'.', b'0' + (rest / 10) as u8, b'0' + (rest % 10) as u8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_two_decimals() {
        let shown = |cents| {
            let mut out = Vec::new();
            write_dollars(cents, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(500), "5.00");
        assert_eq!(shown(768_353), "7683.53");
        assert_eq!(shown(1_007), "10.07");
    }
}
