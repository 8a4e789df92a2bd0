//! The static entities that insertions refer to by number: tags, places, organizations.
//!
//! Their addresses are made of names, so that a number alone does not give one. A client reads them
//! once, some 25,500 at every scale of the official data, and then inserts with `INSERT DATA`
//! alone.

use std::collections::HashMap;

use serde_json::Value;

/// Asks for the number and address of every tag, place and organization.
pub const QUERY: &str = include_str!("../../queries/snb/catalog.rq");

/// Addresses by number.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    tags: HashMap<u64, String>,
    places: HashMap<u64, String>,
    organizations: HashMap<u64, String>,
}

impl Catalog {
    /// Reads the answer to [`QUERY`]; `None` if it is none.
    pub fn read(bindings: &[Value]) -> Option<Self> {
        let mut catalog = Self::default();
        for binding in bindings {
            let value = |name: &str| binding.get(name)?.get("value")?.as_str();
            let number = value("id")?.parse().ok()?;
            let map = match value("kind")? {
                "tag" => &mut catalog.tags,
                "place" => &mut catalog.places,
                _ => &mut catalog.organizations,
            };
            map.insert(number, format!("<{}>", value("thing")?));
        }
        Some(catalog)
    }

    /// A catalog of these addresses, in their brackets, numbered from 0.
    pub(crate) fn of(
        tags: impl Iterator<Item = String>,
        places: impl Iterator<Item = String>,
        organizations: impl Iterator<Item = String>,
    ) -> Self {
        Self {
            tags: (0..).zip(tags).collect(),
            places: (0..).zip(places).collect(),
            organizations: (0..).zip(organizations).collect(),
        }
    }

    /// The address of a tag.
    pub fn tag(&self, number: u64) -> Option<&str> {
        self.tags.get(&number).map(String::as_str)
    }

    /// The address of a city, country or continent.
    pub fn place(&self, number: u64) -> Option<&str> {
        self.places.get(&number).map(String::as_str)
    }

    /// The address of a university or company.
    pub fn organization(&self, number: u64) -> Option<&str> {
        self.organizations.get(&number).map(String::as_str)
    }
}

#[cfg(test)]
impl Catalog {
    pub(crate) fn with(kind: &str, number: u64, address: &str) -> Self {
        let cell = |text: &str| serde_json::json!({ "type": "literal", "value": text });
        let binding = serde_json::json!({
            "id": cell(&number.to_string()), "kind": cell(kind), "thing": cell(address)
        });
        Self::read(&[binding]).unwrap_or_default()
    }
}
