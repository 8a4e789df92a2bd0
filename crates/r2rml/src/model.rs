//! The model of a mapping: triples maps, logical tables and term maps (R2RML, 5 to 9).
//!
//! It is what the text says, with names of columns as the catalog has them; whether there are such
//! tables and columns is not known yet (see [`rules`](crate::rules)).

use orrery_term::Term;

use crate::template::Template;

/// Triples maps that a mapping may have.
pub(crate) const TRIPLES_MAPS_MAX: usize = 10_000;
/// Predicates, objects and graphs of one triples map, together.
pub(crate) const TERM_MAPS_MAX: usize = 10_000;

/// Some triples maps, and what relative IRIs are resolved against.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mapping {
    pub(crate) base: String,
    pub(crate) triples_maps: Vec<TriplesMap>,
}

/// Triples out of each row of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TriplesMap {
    /// For messages.
    pub(crate) name: String,
    pub(crate) table: LogicalTable,
    pub(crate) subject: TermMap,
    pub(crate) classes: Vec<String>,
    /// Of all its triples.
    pub(crate) graphs: Vec<TermMap>,
    pub(crate) properties: Vec<Properties>,
}

/// Where rows come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LogicalTable {
    /// A table or view of the catalog.
    Table {
        schema: String,
        name: String,
        /// With the number of each row, as the column [`ROW`].
        is_numbered: bool,
    },
    /// A query.
    Query(String),
}

/// The column of a numbered table that has the numbers of the rows. No text can name it.
pub(crate) const ROW: &str = "\u{1}row";

/// Each predicate with each object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Properties {
    pub(crate) predicates: Vec<TermMap>,
    pub(crate) objects: Vec<ObjectMap>,
    /// Beside those of the triples map.
    pub(crate) graphs: Vec<TermMap>,
}

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ObjectMap {
    Term(TermMap),
    /// The subjects of another triples map.
    Parent {
        /// Its place among the triples maps.
        triples_map: usize,
        /// Columns of this one and of the other that are equal.
        joins: Vec<(String, String)>,
    },
}

/// A term out of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TermMap {
    pub(crate) value: TermValue,
    pub(crate) term_type: TermType,
}

/// What a term is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TermValue {
    Constant(Term<'static>),
    Column(String),
    Template(Template<String>),
}

/// What is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TermType {
    Iri,
    BlankNode,
    Literal(Annotation),
}

/// The datatype of a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Annotation {
    /// That of the value (R2RML, 10.2), a string for a template.
    Natural,
    Datatype(String),
    Language(String),
}

impl TermMap {
    pub(crate) fn iri(iri: impl Into<String>) -> Self {
        Self {
            value: TermValue::Constant(Term::iri(iri.into())),
            term_type: TermType::Iri,
        }
    }
}
