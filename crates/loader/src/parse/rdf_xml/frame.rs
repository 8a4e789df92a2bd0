//! The stack of open elements, and the statements that each makes when it ends.

use super::scope::Scope;
use oxrdf::{BlankNode, NamedNode, NamedOrBlankNode, Triple};

/// An element that is open.
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// As its tag writes it.
    pub(super) name: Box<str>,
    pub(super) scope: Scope,
    /// How many namespaces and held statements there were before it.
    pub(super) namespaces_before: usize,
    pub(super) held_before: usize,
}

/// The statement that a property makes, but for its object.
pub(super) struct Statement {
    pub(super) subject: NamedOrBlankNode,
    pub(super) predicate: NamedNode,
    pub(super) id: Option<NamedNode>,
    pub(super) annotation: Option<NamedNode>,
    pub(super) annotation_node: Option<BlankNode>,
}

/// What an open element is.
pub(super) enum Kind {
    Document,
    /// `rdf:RDF`.
    Rdf,
    Node {
        subject: NamedOrBlankNode,
        /// `rdf:li` seen in it.
        items: u64,
        /// It is a property in truth, whose content is read as that of a node.
        is_property: bool,
    },
    Property {
        statement: Statement,
        object: Option<NamedOrBlankNode>,
        /// Its attributes say what its object is, so it is empty.
        is_told: bool,
        datatype: Option<NamedNode>,
        text: String,
    },
    Collection {
        statement: Statement,
        objects: Vec<NamedOrBlankNode>,
    },
    Literal {
        statement: Statement,
        text: String,
        /// Whether anybody is given it.
        is_given: bool,
    },
    InLiteral {
        /// Which frame is the literal.
        literal: usize,
        /// How many namespaces were written around it.
        written_before: usize,
    },
    Triple {
        statement: Statement,
        triples: Vec<Triple>,
    },
    /// Nothing is made of it, nor of what stands in it.
    Skipped,
}

impl Kind {
    /// Whether it is a property, which is left out whole.
    pub(super) fn is_property(&self) -> bool {
        match self {
            Self::Node { is_property, .. } => *is_property,
            Self::Property { .. }
            | Self::Collection { .. }
            | Self::Literal { .. }
            | Self::Triple { .. } => true,
            Self::Document | Self::Rdf | Self::InLiteral { .. } | Self::Skipped => false,
        }
    }
}

impl Frame {
    /// What is around all elements.
    pub(super) fn document(scope: Scope) -> Self {
        Self {
            kind: Kind::Document,
            name: "".into(),
            scope,
            namespaces_before: 1,
            held_before: 0,
        }
    }
}
