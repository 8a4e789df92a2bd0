//! The scope of an element: base, language and other inherited attributes.

use oxiri::Iri;
use oxrdf::{BaseDirection, BlankNode, NamedNode};
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// The namespace of RDF's own names.
pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
pub(super) const XML: &str = "http://www.w3.org/XML/1998/namespace";
pub(super) const ITS: &str = "http://www.w3.org/2005/11/its";

/// What holds in an element and in all below it.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) base: Option<Rc<Iri<String>>>,
    /// Of texts; none where `xml:lang=""` ends what is said around.
    pub(super) language: Option<Rc<str>>,
    pub(super) direction: Option<BaseDirection>,
    pub(super) version: Version,
}

/// What `rdf:version` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Version {
    #[default]
    V11,
    V12,
    V12Basic,
}

impl Scope {
    /// Of a document with this base.
    pub(super) fn of_document(base_iri: Option<&str>) -> io::Result<Self> {
        let base = base_iri.map(|iri| Iri::parse(iri.to_owned())).transpose();
        let base = base.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self {
            base: base.map(Rc::new),
            ..Self::default()
        })
    }

    pub(super) fn has_triple_terms(&self) -> bool {
        self.version == Version::V12
    }
}

/// How the content of a property is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseType {
    Collection,
    Literal,
    Resource,
    Triple,
    /// As a literal that nobody is given.
    Other,
}

/// What the attributes say of an element; each with its name's place in the tag.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub(super) id: Option<(NamedNode, Range<usize>)>,
    pub(super) node_id: Option<(BlankNode, Range<usize>)>,
    pub(super) about: Option<(NamedNode, Range<usize>)>,
    pub(super) resource: Option<(NamedNode, Range<usize>)>,
    pub(super) datatype: Option<(NamedNode, Range<usize>)>,
    pub(super) of_type: Option<(NamedNode, Range<usize>)>,
    pub(super) parse_type: Option<(ParseType, Range<usize>)>,
    pub(super) annotation: Option<(NamedNode, Range<usize>)>,
    pub(super) annotation_node: Option<(BlankNode, Range<usize>)>,
    pub(super) properties: Vec<(NamedNode, String, Range<usize>)>,
}

/// What a name with a prefix stands for.
pub(super) enum Name<'n> {
    Rdf(&'n str),
    Other(String),
}
