//! Templates of `CONSTRUCT` with graphs, as Jena has them:
//! `CONSTRUCT { ?s ?p ?o GRAPH ?g { ?a ?b ?c } }`.
//!
//! spargebra's template is a list of triples. The graph of those that follow stands among them as a
//! *mark*: a triple whose predicate is no IRI, so that no text has one, and whose subject is the
//! graph's name. What walks over constants and variables of templates finds those of graphs as
//! well, and a template without graphs is what it was.

use spargebra::term::{NamedNode, NamedNodePattern, TermPattern, TriplePattern};

/// The predicate of a mark. A blank cannot stand in an IRI.
const MARK: &str = " graph";

/// The mark before triples of a graph; `None`: of the default graph.
pub(crate) fn mark(graph: Option<&NamedNodePattern>) -> TriplePattern {
    let mark = NamedNode::new_unchecked(MARK);
    TriplePattern {
        subject: match graph {
            Some(NamedNodePattern::NamedNode(name)) => name.clone().into(),
            Some(NamedNodePattern::Variable(name)) => name.clone().into(),
            None => mark.clone().into(),
        },
        object: mark.clone().into(),
        predicate: mark.into(),
    }
}

/// Whether a member of a template is a mark, and the graph of what follows then: its name, or
/// `None` for the default graph.
pub fn template_graph(member: &TriplePattern) -> Option<Option<&TermPattern>> {
    match &member.predicate {
        NamedNodePattern::NamedNode(predicate) if predicate.as_str() == MARK => {
            let is_named =
                !matches!(&member.subject, TermPattern::NamedNode(name) if name.as_str() == MARK);
            Some(is_named.then_some(&member.subject))
        }
        NamedNodePattern::NamedNode(_) | NamedNodePattern::Variable(_) => None,
    }
}
