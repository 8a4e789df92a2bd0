//! The static world: places, universities, companies, tags and names. The same at every scale.
//!
//! Countries have sizes of a power law; what a person is called, reads and speaks depends on the
//! country.

use std::io::{self, Write};

use super::draw;
use crate::snb::catalog::Catalog;
use crate::snb::terms::{DATA, TAG, VOCABULARY};
use orrery_bsbm::Random;
use orrery_bsbm::distribution::Stream;
use orrery_bsbm::words::given_name;

const CONTINENTS: [&str; 6] = [
    "Africa",
    "Asia",
    "Europe",
    "North_America",
    "Oceania",
    "South_America",
];
const COUNTRIES: u64 = 100;
const CITIES_EACH: u64 = 12;
const COMPANIES_EACH: u64 = 15;
const CLASSES: u64 = 70;
pub(super) const TAGS: usize = 12_000;
const FIRST_NAMES: usize = 3_000;
const LAST_NAMES: usize = 6_000;
/// Names that one country has.
const NAMES_EACH: usize = 120;

const RESOURCE: &str = "http://dbpedia.org/resource/";
const ONTOLOGY: &str = "http://dbpedia.org/ontology/";
const FOAF_NAME: &str = "http://xmlns.com/foaf/0.1/name";
const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
const XSD_INT: &str = "http://www.w3.org/2001/XMLSchema#int";

/// Places by number: countries first, then cities, then continents.
#[derive(Debug)]
pub(super) struct World {
    pub(super) catalog: Catalog,
    pub(super) places: Vec<String>,
    pub(super) tags: Vec<String>,
    /// Names of the tag classes.
    pub(super) classes: Vec<String>,
    tag_classes: Vec<u64>,
    first_names: Vec<String>,
    last_names: Vec<String>,
    organizations: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::for_entity(seed, Stream::SnbWorld, 0);
        let mut name = |number: usize, parts: u32| {
            let mut text = Vec::new();
            for part in 0..parts {
                if part > 0 {
                    text.push(b'_');
                }
                given_name(&mut random, &mut text);
            }
            // The number keeps names apart.
            format!("{}{number}", String::from_utf8_lossy(&text))
        };
        let countries = (0..COUNTRIES as usize).map(|number| name(number, 1));
        let mut places: Vec<String> = countries.collect();
        let cities = COUNTRIES..COUNTRIES * (1 + CITIES_EACH);
        places.extend(cities.map(|number| name(number as usize, 1)));
        places.extend(CONTINENTS.map(str::to_owned));
        let tags: Vec<String> = (0..TAGS).map(|number| name(number, 2)).collect();
        let classes = (0..CLASSES as usize)
            .map(|number| name(number, 1))
            .collect();
        let first_names = (0..FIRST_NAMES).map(|number| name(number % 7, 1)).collect();
        let last_names = (0..LAST_NAMES).map(|number| name(number % 7, 1)).collect();
        let organizations = (0..(COUNTRIES * (CITIES_EACH + COMPANIES_EACH)) as usize)
            .map(|number| name(number, 2))
            .collect();
        let tag_classes = (0..TAGS)
            .map(|_| draw::skewed(&mut random, CLASSES as usize) as u64)
            .collect();
        let mut world = Self {
            catalog: Catalog::default(),
            places,
            tags,
            classes,
            tag_classes,
            first_names,
            last_names,
            organizations,
        };
        world.catalog = Catalog::of(
            world.tags.iter().map(|tag| format!("<{TAG}{tag}>")),
            world
                .places
                .iter()
                .map(|place| format!("<{RESOURCE}{place}>")),
            (0..world.organizations.len() as u64).map(organization),
        );
        world
    }

    /// A country, large ones more often.
    pub(super) fn country(random: &mut Random) -> u64 {
        draw::skewed(random, COUNTRIES as usize) as u64
    }

    pub(super) fn city(country: u64, random: &mut Random) -> u64 {
        COUNTRIES + country * CITIES_EACH + draw::skewed(random, CITIES_EACH as usize) as u64
    }

    /// The university of a city.
    pub(super) fn university(city: u64) -> u64 {
        city - COUNTRIES
    }

    /// A company of a country.
    pub(super) fn company(country: u64, random: &mut Random) -> u64 {
        COUNTRIES * CITIES_EACH
            + country * COMPANIES_EACH
            + draw::skewed(random, COMPANIES_EACH as usize) as u64
    }

    /// What people of a country are called: few names there are many's.
    pub(super) fn first_name(&self, country: u64, random: &mut Random) -> &str {
        name_of(&self.first_names, country, random)
    }

    pub(super) fn last_name(&self, country: u64, random: &mut Random) -> &str {
        name_of(&self.last_names, country, random)
    }

    /// A tag, of those that everybody likes or those that a country does.
    pub(super) fn tag(country: u64, random: &mut Random) -> u64 {
        let rank = draw::skewed(random, TAGS / 4);
        let first = if random.chance(50) {
            0
        } else {
            country as usize * 113
        };
        ((first + rank) % TAGS) as u64
    }

    /// Writes all of it as N-Triples.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, place) in (0_u64..).zip(&self.places) {
            let (class, part_of) = match number {
                number if number < COUNTRIES => {
                    let continent = CONTINENTS[number as usize % CONTINENTS.len()];
                    ("Country", Some(continent))
                }
                number if number < COUNTRIES * (1 + CITIES_EACH) => {
                    let country = (number - COUNTRIES) / CITIES_EACH;
                    ("City", Some(self.places[country as usize].as_str()))
                }
                _ => ("Continent", None),
            };
            let subject = format!("<{RESOURCE}{place}>");
            writeln!(out, "{subject} <{RDF_TYPE}> <{ONTOLOGY}Place> .")?;
            writeln!(out, "{subject} <{RDF_TYPE}> <{ONTOLOGY}{class}> .")?;
            named(out, &subject, place, number)?;
            if let Some(part_of) = part_of {
                writeln!(
                    out,
                    "{subject} <{VOCABULARY}isPartOf> <{RESOURCE}{part_of}> ."
                )?;
            }
        }
        for (number, name) in (0_u64..).zip(&self.organizations) {
            let subject = organization(number);
            let (class, place) = match number {
                number if number < COUNTRIES * CITIES_EACH => ("University", COUNTRIES + number),
                number => (
                    "Company",
                    (number - COUNTRIES * CITIES_EACH) / COMPANIES_EACH,
                ),
            };
            let place = &self.places[place as usize];
            writeln!(out, "{subject} <{RDF_TYPE}> <{ONTOLOGY}{class}> .")?;
            writeln!(out, "{subject} <{VOCABULARY}url> <{RESOURCE}{name}> .")?;
            writeln!(
                out,
                "{subject} <{VOCABULARY}isLocatedIn> <{RESOURCE}{place}> ."
            )?;
            named(out, &subject, name, number)?;
        }
        for (number, class) in (0_u64..).zip(&self.classes) {
            let subject = format!("_:tagclass{number}");
            writeln!(out, "{subject} <{RDF_TYPE}> <{VOCABULARY}TagClass> .")?;
            writeln!(out, "{subject} <{RDFS}label> \"{class}\" .")?;
            writeln!(
                out,
                "{subject} <{VOCABULARY}id> \"{number}\"^^<{XSD_INT}> ."
            )?;
            if number > 0 {
                writeln!(
                    out,
                    "{subject} <{RDFS}subClassOf> _:tagclass{} .",
                    (number - 1) / 3
                )?;
            }
        }
        for ((number, tag), class) in (0_u64..).zip(&self.tags).zip(&self.tag_classes) {
            let subject = format!("<{TAG}{tag}>");
            writeln!(out, "{subject} <{RDF_TYPE}> _:tagclass{class} .")?;
            named(out, &subject, tag, number)?;
        }
        Ok(())
    }
}

fn organization(number: u64) -> String {
    let kind = if number < COUNTRIES * CITIES_EACH {
        "uni"
    } else {
        "com"
    };
    format!("<{DATA}{kind}{number:06}>")
}

fn named(out: &mut dyn Write, subject: &str, name: &str, number: u64) -> io::Result<()> {
    writeln!(out, "{subject} <{FOAF_NAME}> \"{name}\" .")?;
    writeln!(
        out,
        "{subject} <{VOCABULARY}id> \"{number}\"^^<{XSD_INT}> ."
    )
}

fn name_of<'a>(names: &'a [String], country: u64, random: &mut Random) -> &'a str {
    let first = country as usize * 61;
    let index = (first + draw::skewed(random, NAMES_EACH)) % names.len();
    &names[index]
}
