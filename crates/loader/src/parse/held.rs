//! Quads that are held back until their document is known to be correct, and their memory.

use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};
use std::io::Read;

/// About what a quad takes beside its texts.
const QUAD_BYTES: usize = 400;

/// A text that is told where a reader has understood all of it so far, so that it does not take
/// that for one long statement.
pub(crate) trait InParts: Read {
    /// A part of it was read.
    fn end_part(&self);
}

impl InParts for &[u8] {
    fn end_part(&self) {}
}

/// About what a quad takes.
pub(crate) fn quad_bytes(quad: &Quad) -> usize {
    let graph = match &quad.graph_name {
        GraphName::NamedNode(name) => name.as_str().len(),
        GraphName::BlankNode(_) | GraphName::DefaultGraph => 0,
    };
    let node = |node: &NamedOrBlankNode| match node {
        NamedOrBlankNode::NamedNode(name) => name.as_str().len(),
        NamedOrBlankNode::BlankNode(_) => 0,
    };
    let mut bytes = QUAD_BYTES + graph + node(&quad.subject) + quad.predicate.as_str().len();
    let mut object = &quad.object;
    loop {
        match object {
            Term::NamedNode(name) => return bytes + name.as_str().len(),
            Term::BlankNode(_) => return bytes,
            Term::Literal(literal) => {
                return bytes + literal.value().len() + literal.datatype().as_str().len();
            }
            Term::Triple(triple) => {
                bytes += QUAD_BYTES + node(&triple.subject) + triple.predicate.as_str().len();
                object = &triple.object;
            }
        }
    }
}
