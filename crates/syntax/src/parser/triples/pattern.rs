//! The conversion of triples and paths to patterns.

use spargebra::algebra::{GraphPattern, PropertyPathExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

/// Triples, and between them what is to be found by paths. Triples have a list of their own, which
/// becomes the pattern as it is: a long text is a long list of large parts, and to move them once
/// more took as long as to read them.
#[derive(Debug, Default)]
pub(in crate::parser) struct Elements {
    triples: Vec<TriplePattern>,
    paths: Vec<PlacedPath>,
}

/// What is to be found by a path.
#[derive(Debug)]
struct PlacedPath {
    /// How many triples come before it.
    triples_before: usize,
    subject: TermPattern,
    path: PropertyPathExpression,
    object: TermPattern,
}

impl Elements {
    pub(super) fn push(&mut self, triple: TriplePattern) {
        self.triples.push(triple);
    }

    pub(super) fn push_path(
        &mut self,
        subject: TermPattern,
        path: PropertyPathExpression,
        object: TermPattern,
    ) {
        self.paths.push(PlacedPath {
            triples_before: self.triples.len(),
            subject,
            path,
            object,
        });
    }

    /// Puts others behind these, and leaves none there.
    pub(super) fn append(&mut self, others: &mut Self) {
        let triples_before = self.triples.len();
        self.paths
            .extend(others.paths.drain(..).map(|path| PlacedPath {
                triples_before: triples_before + path.triples_before,
                ..path
            }));
        self.triples.append(&mut others.triples);
    }

    /// How many triples and paths there are.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.triples.len(), self.paths.len())
    }

    /// Takes those away that came since there were so many.
    pub(super) fn split_off(&mut self, (triples, paths): (usize, usize)) -> Self {
        let mut taken = Self {
            triples: self.triples.split_off(triples),
            paths: self.paths.split_off(paths),
        };
        for path in &mut taken.paths {
            path.triples_before -= triples;
        }
        taken
    }

    pub(in crate::parser) fn is_empty(&self) -> bool {
        self.triples.is_empty() && self.paths.is_empty()
    }

    /// The triples, where there are no paths.
    pub(in crate::parser) fn into_triples(self) -> Vec<TriplePattern> {
        self.triples
    }

    /// Takes the triples out, where there are no paths.
    pub(in crate::parser) fn drain_triples(&mut self) -> std::vec::Drain<'_, TriplePattern> {
        self.triples.drain(..)
    }

    /// How many joins their pattern has at most.
    pub(in crate::parser) fn joins(&self) -> usize {
        let mut before = 0;
        let behind_triples = self.paths.iter().filter(|path| {
            let has_triples = path.triples_before > before;
            before = path.triples_before;
            has_triples
        });
        self.paths.len() + behind_triples.count()
    }

    /// Triples and paths as a pattern: neighbouring triples are one basic graph pattern. As deep as
    /// there are [joins](Self::joins).
    pub(in crate::parser) fn into_pattern(self) -> GraphPattern {
        let mut pattern = GraphPattern::default();
        let mut put = |patterns: Vec<TriplePattern>, path: Option<GraphPattern>| {
            let triples = (!patterns.is_empty()).then_some(GraphPattern::Bgp { patterns });
            for next in triples.into_iter().chain(path) {
                pattern = join(std::mem::take(&mut pattern), next);
            }
        };
        if self.paths.is_empty() {
            put(self.triples, None);
            return pattern;
        }
        let mut triples = self.triples.into_iter();
        let mut taken = 0;
        for placed in self.paths {
            let before = triples.by_ref().take(placed.triples_before - taken);
            taken = placed.triples_before;
            let path = GraphPattern::Path {
                subject: placed.subject,
                path: placed.path,
                object: placed.object,
            };
            put(before.collect(), Some(path));
        }
        put(triples.collect(), None);
        pattern
    }
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
