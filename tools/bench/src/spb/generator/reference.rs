//! Entities and places read from reference data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use oxrdf::{NamedOrBlankNode, Term};

use crate::spb::entities::{Category, Entities, Entity};
use crate::spb::quads::{QuadsError, data_files, read_file};
use crate::spb::vocabulary::{LABELS, RDF_TYPE, WGS};

/// More entities are not taken: works are about the first so many.
const ENTITIES_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
struct Described {
    label: Option<String>,
    category: Option<Category>,
    is_place: bool,
    rank: f64,
}

/// Entities in the order of their ranks, if the data has ranks, then of their addresses.
pub(super) fn read(given: &[PathBuf]) -> Result<Entities, QuadsError> {
    let latitude = format!("<{WGS}lat>");
    let mut described: BTreeMap<String, Described> = BTreeMap::new();
    for path in data_files(given)? {
        read_file(&path, &mut |quad| {
            let NamedOrBlankNode::NamedNode(subject) = &quad.subject else {
                return;
            };
            let predicate = quad.predicate.to_string();
            let is_label = LABELS.contains(&predicate.as_str());
            let is_rank = predicate.ends_with("hasRDFRank>");
            let is_type = predicate == RDF_TYPE;
            let is_latitude = predicate == latitude;
            if !(is_label || is_rank || is_type || is_latitude) {
                return;
            }
            let subject = subject.to_string();
            if described.len() >= ENTITIES_MAX && !described.contains_key(&subject) {
                return;
            }
            let entity = described.entry(subject).or_default();
            match &quad.object {
                Term::Literal(literal) if is_label => {
                    entity
                        .label
                        .get_or_insert_with(|| literal.value().to_owned());
                }
                Term::Literal(literal) if is_rank => {
                    entity.rank = literal.value().parse().unwrap_or_default();
                }
                Term::NamedNode(class) if is_type => {
                    entity.category = category(class.as_str()).or(entity.category);
                }
                _ => entity.is_place |= is_latitude,
            }
        })?;
    }
    let (places, others): (Vec<_>, Vec<_>) = described
        .into_iter()
        .partition(|(_, entity)| entity.is_place);
    let mut ranked: Vec<(f64, Entity)> = others
        .into_iter()
        .filter_map(|(iri, described)| {
            let entity = Entity {
                iri,
                label: described.label?,
                category: described.category.unwrap_or(Category::Event),
            };
            Some((described.rank, entity))
        })
        .collect();
    // Stable: entities of one rank stay in the order of their addresses.
    ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let entities = ranked.into_iter().map(|(_, entity)| entity);
    let places = places.into_iter().map(|(iri, _)| iri);
    Ok(Entities::new(entities.collect(), places.collect()))
}

fn category(class: &str) -> Option<Category> {
    match class.rsplit(['/', '#']).next()? {
        "Person" | "Politician" => Some(Category::Persons),
        "Company" | "Organisation" => Some(Category::Company),
        _ => None,
    }
}
