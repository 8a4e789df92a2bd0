//! Entities of our own, in place of the reference data: persons who work for companies and were
//! born somewhere, companies, events at places, places in provinces (some of them in a district of
//! one) in countries. A tenth of the persons have a second name, as `owl:sameAs` says.

use std::fmt::Display;
use std::io;

use crate::spb::entities::{Category, Entities, Entity};
use crate::spb::vocabulary::{GEO_ONT, RDF_TYPE, SAME_AS, WGS};
use orrery_bsbm::Random;
use orrery_bsbm::distribution::Stream;
use orrery_bsbm::literals::string;
use orrery_bsbm::words::WordList;

/// So many works for each entity, and for each place.
const WORKS_PER_ENTITY: u64 = 6;
const WORKS_PER_PLACE: u64 = 30;
/// Between these numbers.
const ENTITIES: (u64, u64) = (60, 200_000);
const PLACES: (u64, u64) = (24, 40_000);
/// Places of a province.
const PLACES_PER_PROVINCE: u64 = 12;
/// Provinces of a country.
const PROVINCES_PER_COUNTRY: u64 = 8;
/// Thousandths of a degree of the official definitions' rectangle, with the latitudes and
/// longitudes at which it begins.
const LATITUDES: (f64, u32) = (36.5, 33_500);
const LONGITUDES: (f64, u32) = (-9.5, 40_500);

const RDFS_LABEL: &str = "<http://www.w3.org/2000/01/rdf-schema#label>";
const FOAF: &str = "http://xmlns.com/foaf/0.1/";
const DBO: &str = "http://dbpedia.org/ontology/";
const DBR: &str = "http://dbpedia.org/resource/";

type Sink<'s> = dyn FnMut(&str) -> io::Result<()> + 's;

struct StandIns<'s> {
    words: WordList,
    sink: &'s mut Sink<'s>,
}

impl StandIns<'_> {
    fn add(
        &mut self,
        subject: &str,
        predicate: impl Display,
        object: impl Display,
    ) -> io::Result<()> {
        (self.sink)(&format!("{subject} {predicate} {object}"))
    }

    /// Some words, the first letters large.
    fn name(&self, random: &mut Random, count: u32) -> String {
        let mut bytes = Vec::new();
        self.words.write(random, count, count, &mut bytes);
        let mut name = String::with_capacity(bytes.len());
        let mut starts = true;
        for letter in String::from_utf8_lossy(&bytes).chars() {
            match starts {
                true => name.extend(letter.to_uppercase()),
                false => name.push(letter),
            }
            starts = letter == ' ';
        }
        name
    }
}

/// Gives the triples to `sink`, and says what there is.
pub(super) fn write<'s>(works: u64, seed: u64, sink: &'s mut Sink<'s>) -> io::Result<Entities> {
    let mut random = Random::for_entity(seed, Stream::SpbWorld, 0);
    let mut all = StandIns {
        words: WordList::new(),
        sink,
    };
    let places = places(
        &mut all,
        (works / WORKS_PER_PLACE).clamp(PLACES.0, PLACES.1),
        &mut random,
    )?;
    let count = (works / WORKS_PER_ENTITY).clamp(ENTITIES.0, ENTITIES.1);
    let mut entities: Vec<Entity> = Vec::new();
    let mut companies: Vec<String> = Vec::new();
    for number in 0..count {
        // A quarter each of companies and events, the others persons: kinds alternate, so that each
        // has popular ones.
        let place = random.pick(&places).cloned().unwrap_or_default();
        let entity = match number % 4 {
            0 => {
                let entity = Entity {
                    iri: format!("<{DBR}C_{number}>"),
                    label: all.name(&mut random, 2),
                    category: Category::Company,
                };
                all.add(&entity.iri, RDF_TYPE, format_args!("<{DBO}Company>"))?;
                all.add(&entity.iri, RDFS_LABEL, english(&entity.label))?;
                all.add(&entity.iri, format_args!("<{DBO}headquarter>"), &place)?;
                companies.push(entity.iri.clone());
                entity
            }
            1 => {
                let entity = Entity {
                    iri: format!("<{DBR}E_{number}>"),
                    label: format!(
                        "{} {}",
                        random.between(1990, 2015),
                        all.name(&mut random, 2)
                    ),
                    category: Category::Event,
                };
                all.add(&entity.iri, RDF_TYPE, format_args!("<{DBO}Event>"))?;
                all.add(&entity.iri, RDFS_LABEL, english(&entity.label))?;
                all.add(&entity.iri, format_args!("<{DBO}location>"), &place)?;
                entity
            }
            _ => person(&mut all, number, &companies, &place, &mut random)?,
        };
        entities.push(entity);
    }
    Ok(Entities::new(entities, places))
}

fn person(
    all: &mut StandIns<'_>,
    number: u64,
    companies: &[String],
    place: &str,
    random: &mut Random,
) -> io::Result<Entity> {
    let entity = Entity {
        iri: format!("<{DBR}P_{number}>"),
        label: all.name(random, 2),
        category: Category::Persons,
    };
    all.add(&entity.iri, RDF_TYPE, format_args!("<{FOAF}Person>"))?;
    let name = format!("<{FOAF}name>");
    all.add(&entity.iri, &name, english(&entity.label))?;
    all.add(&entity.iri, format_args!("<{DBO}birthPlace>"), place)?;
    if let Some(company) = random.pick(companies) {
        all.add(&entity.iri, format_args!("<{DBO}employer>"), company)?;
    }
    if random.chance(10) {
        let other = format!("<http://rdf.freebase.com/ns/m.{number}>");
        all.add(&entity.iri, SAME_AS, &other)?;
        all.add(&other, name, english(&entity.label))?;
    }
    Ok(entity)
}

fn english(label: &str) -> String {
    format!("{}@en", string(label))
}

/// Countries with provinces, some of which have districts, and places in them; the places.
fn places(all: &mut StandIns<'_>, count: u64, random: &mut Random) -> io::Result<Vec<String>> {
    let geo = |name: &str| format!("<{GEO_ONT}{name}>");
    let feature = |all: &mut StandIns<'_>,
                   number: u64,
                   code: &str,
                   parent: Option<&str>,
                   random: &mut Random| {
        let iri = format!("<http://sws.geonames.org/{number}/>");
        let name = all.name(random, 1);
        all.add(&iri, RDF_TYPE, geo("Feature"))?;
        all.add(&iri, geo("name"), string(&name))?;
        all.add(&iri, geo("featureCode"), geo(code))?;
        if let Some(parent) = parent {
            all.add(&iri, geo("parentFeature"), parent)?;
        }
        Ok::<_, io::Error>(iri)
    };
    let provinces = count.div_ceil(PLACES_PER_PROVINCE);
    // Numbers of each kind in a range of their own.
    let (mut country, mut found) = (String::new(), Vec::new());
    for province in 0..provinces {
        if province % PROVINCES_PER_COUNTRY == 0 {
            let number = 1_000_000 + province;
            country = feature(all, number, "A.PCLI", None, random)?;
        }
        let number = 2_000_000 + province;
        let own = feature(all, number, "A.ADM1", Some(&country), random)?;
        let district = feature(all, 3_000_000 + province, "A.ADM2", Some(&own), random)?;
        let middle = [LATITUDES, LONGITUDES]
            .map(|(from, length)| from + f64::from(random.below(length)) / 1e3);
        let first = province * PLACES_PER_PROVINCE;
        for place in first..(first + PLACES_PER_PROVINCE).min(count) {
            let parent = if random.chance(25) { &district } else { &own };
            let iri = feature(all, 4_000_000 + place, "P.PPL", Some(parent), random)?;
            for (name, middle) in ["lat", "long"].into_iter().zip(middle) {
                let near = middle + f64::from(random.below(500)) / 1e3 - 0.25;
                all.add(
                    &iri,
                    format_args!("<{WGS}{name}>"),
                    format_args!("\"{near:.5}\""),
                )?;
            }
            found.push(iri);
        }
    }
    Ok(found)
}
