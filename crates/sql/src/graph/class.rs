//! Classes of entities as tables: `class('http://e/Product', '"label" text <http://e/label>,
//! "price" numeric(10,2) <http://e/price>')`.
//!
//! ```text
//!   asked for iri, label where price > 10    ->    SELECT ?iri ?c0 ?c1 { ?iri a <http://e/Product> ;
//!       <http://e/price> ?c1 . OPTIONAL { ?iri <http://e/label> ?c0 } }
//! ```
//!
//! The first column is the entity, `iri`; the others are properties of it. The query has the
//! patterns of those columns alone that are needed: what a condition is on has to be there, of the
//! others NULL stands for what is not. So an entity with several values of a property has a row for
//! each of them where that column is asked for.

use std::fmt::Write;

use orrery_storage::table::ColumnType;

use super::condition::Seen;
use super::declared::declared;
use crate::values::iri::require_iri;
use crate::{Error, Result, SqlState};

/// The column of the entity.
pub(crate) const ENTITY: &str = "iri";
/// The type of a column of IRIs, in the list of columns.
pub(crate) const IRI_TYPE: &str = "iri";

/// A class, and the properties that are columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    iri: String,
    /// Of all columns but the first.
    properties: Vec<String>,
}

impl Class {
    /// Of its IRI and the list of columns; with these.
    pub(super) fn new(iri: &str, list: &str) -> Result<(Self, Vec<(String, Seen)>)> {
        require_iri(iri)?;
        let mut properties = Vec::new();
        let mut resources = Vec::new();
        let mut columns = Vec::new();
        let mut rest = list;
        while !rest.trim().is_empty() {
            let entry = rest.split_once('<');
            let entry = entry.and_then(|(column, rest)| Some((column, rest.split_once('>')?)));
            let (column, (property, after)) = entry.ok_or_else(|| no_list(list))?;
            require_iri(property)?;
            let column = column.trim();
            let (name, is_resource) = match column.strip_suffix(IRI_TYPE) {
                Some(name) if name.ends_with([' ', '"']) => (format!("{name} text"), true),
                _ => (column.to_owned(), false),
            };
            columns.push(name);
            resources.push(is_resource);
            properties.push(property.to_owned());
            rest = match after.trim_start().split_once(',') {
                Some(("", rest)) => rest,
                _ if after.trim().is_empty() => "",
                _ => return Err(no_list(list)),
            };
        }
        let declared = match columns.is_empty() {
            true => Vec::new(),
            false => declared(&columns.join(", "))?,
        };
        if declared.len() != properties.len() {
            return Err(no_list(list));
        }
        let seen = |name: String, column_type, is_resource| Seen {
            name,
            column_type,
            is_resource,
        };
        let text = ColumnType::Text {
            length_max: None,
            is_padded: false,
        };
        let entity = (ENTITY.to_owned(), seen(ENTITY.to_owned(), text, true));
        let columns = declared.into_iter().zip(resources).enumerate();
        let columns = columns.map(|(place, ((name, column_type), is_resource))| {
            let variable = format!("c{place}");
            (name, seen(variable, column_type, is_resource))
        });
        let columns = std::iter::once(entity).chain(columns).collect();
        let iri = iri.to_owned();
        Ok((Self { iri, properties }, columns))
    }

    /// The query for the columns at these places, of which the required ones have to be there.
    pub(super) fn query(&self, wanted: &[usize], required: &[usize]) -> String {
        let mut selected = String::new();
        let mut whole = String::new();
        let mut optional = String::new();
        let mut places: Vec<usize> = wanted.iter().chain(required).copied().collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let property = place.checked_sub(1).and_then(|it| self.properties.get(it));
            // Writing to a String does not fail.
            let _ = match property {
                None => write!(selected, " ?{ENTITY}"),
                Some(property) => {
                    let variable = format!("?c{}", place - 1);
                    let _ = write!(selected, " {variable}");
                    match required.contains(&place) {
                        true => write!(whole, " ; <{property}> {variable}"),
                        false => write!(
                            optional,
                            " OPTIONAL {{ ?{ENTITY} <{property}> {variable} }}"
                        ),
                    }
                }
            };
        }
        if selected.is_empty() {
            let _ = write!(selected, " ?{ENTITY}");
        }
        let class = &self.iri;
        format!("SELECT{selected} {{ ?{ENTITY} a <{class}>{whole} .{optional} }}")
    }
}

fn no_list(list: &str) -> Error {
    Error::new(
        SqlState::SyntaxError,
        format!(
            "{list:?} is no list of columns with types and properties, such as 'label text <http://e/label>, price numeric(10,2) <http://e/price>'"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "\"label\" text <http://e/label>, price numeric(10,2)<http://e/a,b> , by iri <http://e/by>";

    #[test]
    fn the_query_has_the_patterns_of_what_is_asked_for_alone() {
        let (class, columns) = Class::new("http://e/C", LIST).unwrap();
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["iri", "label", "price", "by"]);
        let resources = columns.iter().map(|(_, seen)| seen.is_resource);
        assert_eq!(resources.collect::<Vec<_>>(), [true, false, false, true]);
        assert_eq!(
            class.query(&[1, 0], &[2]),
            "SELECT ?iri ?c0 ?c1 { ?iri a <http://e/C> ; <http://e/a,b> ?c1 . OPTIONAL { ?iri <http://e/label> ?c0 } }"
        );
        assert_eq!(
            class.query(&[], &[]),
            "SELECT ?iri { ?iri a <http://e/C> . }"
        );
        let (none, columns) = Class::new("http://e/C", " ").unwrap();
        assert_eq!(columns.len(), 1);
        assert_eq!(
            none.query(&[0], &[]),
            "SELECT ?iri { ?iri a <http://e/C> . }"
        );
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for wrong in [
            "label text",
            "label <http://e/l>",
            "label text <http://e/l> x",
            "label text <e l>",
            "label text <http://e/l>, label2",
            "label text, other text <http://e/l>",
        ] {
            assert!(Class::new("http://e/C", wrong).is_err(), "{wrong}");
        }
        for wrong in ["C", "http://e/ C", "http://e/C> }", ":a", ""] {
            assert!(Class::new(wrong, LIST).is_err(), "{wrong}");
        }
    }
}
