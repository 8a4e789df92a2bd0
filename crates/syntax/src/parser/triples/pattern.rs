//! From triples and paths to patterns.

use spargebra::algebra::{GraphPattern, PropertyPathExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

/// A triple, or what is to be found by a path.
#[derive(Debug)]
pub(in crate::parser) enum Element {
    Triple(TriplePattern),
    Path(TermPattern, PropertyPathExpression, TermPattern),
}

/// A triple of these.
pub(in crate::parser) fn triple(
    subject: impl Into<TermPattern>,
    predicate: impl Into<NamedNodePattern>,
    object: impl Into<TermPattern>,
) -> TriplePattern {
    TriplePattern {
        subject: subject.into(),
        predicate: predicate.into(),
        object: object.into(),
    }
}

/// How many joins their pattern has at most.
pub(in crate::parser) fn joins_of(elements: &[Element]) -> usize {
    let is_path = |element: &Element| matches!(element, Element::Path(..));
    let paths = elements.iter().filter(|element| is_path(element)).count();
    let behind_triples = elements
        .windows(2)
        .filter(|pair| !is_path(&pair[0]) && is_path(&pair[1]));
    paths + behind_triples.count()
}

/// Triples and paths as a pattern: neighbouring triples are one basic graph pattern. As deep as there are
/// [joins](joins_of).
pub(in crate::parser) fn pattern_of(elements: Vec<Element>) -> GraphPattern {
    let mut triples = Vec::with_capacity(elements.len());
    let mut pattern = GraphPattern::default();
    for element in elements {
        match element {
            Element::Triple(triple) => triples.push(triple),
            Element::Path(subject, path, object) => {
                if !triples.is_empty() {
                    let patterns = std::mem::take(&mut triples);
                    pattern = join(pattern, GraphPattern::Bgp { patterns });
                }
                let path = GraphPattern::Path {
                    subject,
                    path,
                    object,
                };
                pattern = join(pattern, path);
            }
        }
    }
    if !triples.is_empty() {
        pattern = join(pattern, GraphPattern::Bgp { patterns: triples });
    }
    pattern
}

/// The triples of a template, which holds no paths.
pub(in crate::parser) fn triples_of(elements: Vec<Element>) -> Vec<TriplePattern> {
    let triples = elements.into_iter().filter_map(|element| match element {
        Element::Triple(triple) => Some(triple),
        Element::Path(..) => None,
    });
    triples.collect()
}

/// Whether a pattern is nothing but triples.
pub(in crate::parser) fn is_triples(pattern: &GraphPattern) -> bool {
    matches!(pattern, GraphPattern::Bgp { .. })
}

/// A join, but of nothing, and of triples with triples.
pub(in crate::parser) fn join(left: GraphPattern, right: GraphPattern) -> GraphPattern {
    match (left, right) {
        (GraphPattern::Bgp { patterns }, other) | (other, GraphPattern::Bgp { patterns })
            if patterns.is_empty() =>
        {
            other
        }
        (GraphPattern::Bgp { mut patterns }, GraphPattern::Bgp { patterns: more }) => {
            patterns.extend(more);
            GraphPattern::Bgp { patterns }
        }
        (left, right) => GraphPattern::Join {
            left: Box::new(left),
            right: Box::new(right),
        },
    }
}
