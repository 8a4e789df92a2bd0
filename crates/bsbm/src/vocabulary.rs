//! The IRIs of the benchmark: classes, predicates and datatypes as they are
//! written in N-Triples, countries, and the names of the entities.

use std::fmt;

/// Namespace of the classes and properties.
pub const VOCABULARY: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";
/// Namespace of the data.
pub const INSTANCES: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/";

/// Constants ready to be copied into a line: in angle brackets, a predicate with
/// the blank behind it, a datatype with the quote and carets before it.
macro_rules! bracketed {
    (predicate $($name:ident = $iri:literal;)*) => {
        $(pub(crate) const $name: &str = concat!("<", $iri, "> ");)*
    };
    (object $($name:ident = $iri:literal;)*) => {
        $(pub(crate) const $name: &str = concat!("<", $iri, ">");)*
    };
    (datatype $($name:ident = $iri:literal;)*) => {
        $(pub(crate) const $name: &str = concat!("\"^^<", $iri, ">");)*
    };
}

bracketed! { predicate
    RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label";
    RDFS_COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment";
    RDFS_SUBCLASS_OF = "http://www.w3.org/2000/01/rdf-schema#subClassOf";
    DC_PUBLISHER = "http://purl.org/dc/elements/1.1/publisher";
    DC_DATE = "http://purl.org/dc/elements/1.1/date";
    DC_TITLE = "http://purl.org/dc/elements/1.1/title";
    FOAF_NAME = "http://xmlns.com/foaf/0.1/name";
    FOAF_MBOX_SHA1SUM = "http://xmlns.com/foaf/0.1/mbox_sha1sum";
    FOAF_HOMEPAGE = "http://xmlns.com/foaf/0.1/homepage";
    REV_REVIEWER = "http://purl.org/stuff/rev#reviewer";
    REV_TEXT = "http://purl.org/stuff/rev#text";
    COUNTRY = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/country";
    PRODUCER = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/producer";
    PRODUCT = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/product";
    PRODUCT_FEATURE = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/productFeature";
    VENDOR = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/vendor";
    PRICE = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/price";
    VALID_FROM = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/validFrom";
    VALID_TO = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/validTo";
    DELIVERY_DAYS = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/deliveryDays";
    OFFER_WEBPAGE = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/offerWebpage";
    REVIEW_FOR = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/reviewFor";
    REVIEW_DATE = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/reviewDate";
}

bracketed! { object
    CLASS_PRODUCT_TYPE = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/ProductType";
    CLASS_PRODUCT_FEATURE = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/ProductFeature";
    CLASS_PRODUCER = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/Producer";
    CLASS_PRODUCT = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/Product";
    CLASS_VENDOR = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/Vendor";
    CLASS_OFFER = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/Offer";
    CLASS_PERSON = "http://xmlns.com/foaf/0.1/Person";
    CLASS_REVIEW = "http://purl.org/stuff/rev#Review";
}

bracketed! { datatype
    XSD_STRING = "http://www.w3.org/2001/XMLSchema#string";
    XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer";
    XSD_DATE = "http://www.w3.org/2001/XMLSchema#date";
    XSD_DATE_TIME = "http://www.w3.org/2001/XMLSchema#dateTime";
    USD = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/USD";
}

macro_rules! numbered {
    ($base:literal: $($number:literal)*) => {
        [$(concat!("<http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/", $base, $number, "> ")),*]
    };
}

pub(crate) const PROPERTY_NUMERIC: [&str; 6] = numbered!("productPropertyNumeric": 1 2 3 4 5 6);
pub(crate) const PROPERTY_TEXTUAL: [&str; 6] = numbered!("productPropertyTextual": 1 2 3 4 5 6);
pub(crate) const RATINGS: [&str; 4] = numbered!("rating": 1 2 3 4);

/// A country, with the language its people write reviews in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Country {
    pub(crate) iri: &'static str,
    pub(crate) language: &'static str,
    percent: u32,
}

macro_rules! countries {
    ($($code:literal $language:literal $percent:literal;)*) => {
        [$(Country {
            iri: concat!("<http://downlode.org/rdf/iso-3166/countries#", $code, ">"),
            language: $language,
            percent: $percent,
        }),*]
    };
}

const COUNTRIES: [Country; 10] = countries! {
    "US" "en" 40; "GB" "en" 10; "JP" "ja" 10; "CN" "zh" 10; "DE" "de" 5;
    "FR" "fr" 5; "ES" "es" 5; "RU" "ru" 5; "KR" "ko" 5; "AT" "de" 5;
};

/// The country that stands at this percentage, 0 to 99, of the distribution.
pub(crate) fn country_at(mut percent: u32) -> &'static Country {
    for country in &COUNTRIES {
        if percent < country.percent {
            return country;
        }
        percent -= country.percent;
    }
    &COUNTRIES[0]
}

/// A thing of the data set; shown as its IRI without angle brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entity {
    /// The publisher of types and features.
    StandardizationInstitution,
    /// A node of the product type tree.
    ProductType(u32),
    /// A feature that products of a type may have.
    ProductFeature(u32),
    /// A maker of products.
    Producer(u32),
    /// A product, published by its producer.
    Product {
        /// The producer's number.
        producer: u32,
        /// The product's number, counted over all producers.
        number: u32,
    },
    /// A seller.
    Vendor(u32),
    /// An offer, published by its vendor.
    Offer {
        /// The vendor's number.
        vendor: u32,
        /// The offer's number, counted over all vendors.
        number: u32,
    },
    /// A site that publishes reviewers and reviews.
    RatingSite(u32),
    /// A person who writes reviews.
    Reviewer {
        /// The rating site's number.
        site: u32,
        /// The reviewer's number, counted over all sites.
        number: u32,
    },
    /// A review of a product.
    Review {
        /// The rating site's number.
        site: u32,
        /// The review's number, counted over all sites.
        number: u32,
    },
}

impl Entity {
    /// Appends the IRI, without angle brackets.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(INSTANCES.as_bytes());
        let numbered = |out: &mut Vec<u8>, name: &str, number: u32| {
            out.extend_from_slice(name.as_bytes());
            write_number(out, number);
        };
        match self {
            Self::StandardizationInstitution => numbered(out, "StandardizationInstitution", 1),
            Self::ProductType(number) => numbered(out, "ProductType", number),
            Self::ProductFeature(number) => numbered(out, "ProductFeature", number),
            Self::Producer(number) => {
                numbered(out, "dataFromProducer", number);
                numbered(out, "/Producer", number);
            }
            Self::Product { producer, number } => {
                numbered(out, "dataFromProducer", producer);
                numbered(out, "/Product", number);
            }
            Self::Vendor(number) => {
                numbered(out, "dataFromVendor", number);
                numbered(out, "/Vendor", number);
            }
            Self::Offer { vendor, number } => {
                numbered(out, "dataFromVendor", vendor);
                numbered(out, "/Offer", number);
            }
            Self::RatingSite(number) => {
                numbered(out, "dataFromRatingSite", number);
                numbered(out, "/RatingSite", number);
            }
            Self::Reviewer { site, number } => {
                numbered(out, "dataFromRatingSite", site);
                numbered(out, "/Reviewer", number);
            }
            Self::Review { site, number } => {
                numbered(out, "dataFromRatingSite", site);
                numbered(out, "/Review", number);
            }
        }
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut iri = Vec::with_capacity(96);
        self.write(&mut iri);
        formatter.write_str(&String::from_utf8_lossy(&iri))
    }
}

/// Appends a decimal number. `write!` costs some 30 ns a number, a third of the
/// generator's time on offers.
#[inline]
pub(crate) fn write_number(out: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0_u8; 10];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_the_countries_make_a_hundred() {
        assert_eq!(COUNTRIES.iter().map(|c| c.percent).sum::<u32>(), 100);
        assert!(country_at(0).iri.ends_with("#US>"));
        assert!(country_at(99).iri.ends_with("#AT>"));
    }

    #[test]
    fn entities_are_shown_as_iris() {
        let product = Entity::Product {
            producer: 45,
            number: 2_113,
        };
        assert_eq!(
            product.to_string(),
            format!("{INSTANCES}dataFromProducer45/Product2113")
        );
        assert_eq!(
            Entity::ProductType(1).to_string(),
            format!("{INSTANCES}ProductType1")
        );
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 9, 10, 4_294_967_295] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }
}
