//! The triples of a manifest.

use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNode, NamedOrBlankNodeRef, TermRef};
use oxttl::TurtleParser;

use super::Files;

pub(super) const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";

/// A manifest, read.
pub(super) struct Manifest {
    iri: String,
    pub(super) graph: Graph,
}

pub(super) fn mf(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{MF}{name}"))
}

pub(super) fn as_node(term: TermRef<'_>) -> Result<NamedOrBlankNodeRef<'_>, String> {
    match term {
        TermRef::NamedNode(node) => Ok(node.into()),
        TermRef::BlankNode(node) => Ok(node.into()),
        other => Err(format!("{other} stands where a node should")),
    }
}

pub(super) fn node_iri(term: TermRef<'_>) -> Result<&str, String> {
    match term {
        TermRef::NamedNode(node) => Ok(node.as_str()),
        other => Err(format!("{other} stands where a file should")),
    }
}

impl Manifest {
    pub(super) fn parse(files: &Files, iri: &str) -> Result<Self, String> {
        let text = files.read(iri)?;
        let parser = TurtleParser::new()
            .with_base_iri(iri)
            .map_err(|error| format!("{iri}: {error}"))?;
        let graph = parser
            .for_slice(&text)
            .collect::<Result<Graph, _>>()
            .map_err(|error| format!("{iri}: {error}"))?;
        Ok(Self {
            iri: iri.to_owned(),
            graph,
        })
    }

    pub(super) fn root(&self) -> Result<NamedOrBlankNodeRef<'_>, String> {
        self.graph
            .subject_for_predicate_object(rdf::TYPE, mf("Manifest").as_ref())
            .ok_or_else(|| format!("{}: no manifest in it", self.iri))
    }

    /// The members of the list that is a property's value; none without the property.
    pub(super) fn list(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        property: &NamedNode,
    ) -> Result<Vec<TermRef<'_>>, String> {
        let mut members = Vec::new();
        let mut rest = self.graph.object_for_subject_predicate(subject, property);
        while let Some(list) = rest.filter(|list| *list != TermRef::from(rdf::NIL)) {
            let list = as_node(list)?;
            let first = self.graph.object_for_subject_predicate(list, rdf::FIRST);
            members.push(first.ok_or_else(|| format!("{}: a list has no end", self.iri))?);
            rest = self.graph.object_for_subject_predicate(list, rdf::REST);
        }
        Ok(members)
    }

    pub(super) fn file(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        property: &NamedNode,
    ) -> Result<String, String> {
        let value = self.graph.object_for_subject_predicate(subject, property);
        let value = value.ok_or_else(|| format!("{property} is missing"))?;
        node_iri(value).map(str::to_owned)
    }

    pub(super) fn files(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        property: &NamedNode,
    ) -> Result<Vec<String>, String> {
        self.graph
            .objects_for_subject_predicate(subject, property)
            .map(|value| node_iri(value).map(str::to_owned))
            .collect()
    }
}
