//! The diagnosis of an empty answer: the pattern without matches, and the likely intention.
//!
//! ```text
//! text -> patterns that every solution needs -> each asked for alone, in order -> the first without a match
//!      -> its IRIs asked for alone -> the first that occurs nowhere -> the same with https, the nearest one that occurs
//! ```
//!
//! The diagnosis runs after an empty answer, by queries of its own: in the same state, with the
//! same dataset and through the same view, so that it reveals nothing that the asker could not find
//! out by asking. The queries are few, stop at the first row and have [`TIME_MAX`] together. Nobody
//! pays for them, so an asker with a budget gets no diagnosis. Of many empty answers in a second
//! only the first ones are diagnosed (`looks`).
//!
//! Patterns that each have matches, but none together, are not reported: which of them is wrong
//! nobody knows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use hashbrown::HashSet;
use orrery_storage::ReadView;
use orrery_syntax::letters_apart;
use orrery_term::Term;
use orrery_term::prefixes::PrefixOrigin;
use orrery_term::vocabulary::rdf;
use spargebra::Query;
use spargebra::algebra::{GraphPattern, QueryDataset};
use spargebra::term::{NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::engine::Engine;
use crate::error::QueryError;
use crate::hint::names_graphs;
use crate::options::QueryOptions;
use crate::parse::{Assumed, Stack, without_mark};
use crate::prepare::prepare_parsed;
use crate::prepared::PreparedQuery;
use crate::results::QueryResults;

/// Patterns of a query that are looked at.
const PATTERNS_MAX: usize = 16;
/// How long all of it may take.
const TIME_MAX: Duration = Duration::from_millis(100);
/// Predicates, or classes, among which the nearest one is looked for.
const CANDIDATES_MAX: usize = 2_000;
/// Letters that may be wrong.
const LETTERS_MAX: usize = 2;
/// Names beyond that are not compared letter by letter: it takes the product of both lengths.
const NAME_BYTES_MAX: usize = 200;
/// Texts beyond that are not looked into: who writes such queries reads no hints.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Selected variables that are told of.
const UNBOUND_MAX: usize = 4;

impl Engine {
    /// What is to be said of a query that has found nothing.
    pub fn why_empty<'a>(
        &'a self,
        prepared: &'a PreparedQuery,
        text: &'a str,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            if text.len() > TEXT_BYTES_MAX || !self.looks().may_look() {
                return Vec::new();
            }
            let mut search = Search {
                engine: self,
                text: without_mark(text),
                view: prepared.view(),
                options: QueryOptions {
                    timeout: Some(TIME_MAX),
                    planning_timeout: None,
                    ..options.clone()
                },
                until: Instant::now() + TIME_MAX,
                dataset: None,
            };
            // What cannot be found out in time, or not be asked alone, is not told.
            search.hints().await.unwrap_or_default()
        })
    }

    /// The warning about selected variables that the query never binds. Costs nothing where each
    /// has a column.
    pub fn never_bound(
        &self,
        prepared: &PreparedQuery,
        text: &str,
        options: &QueryOptions,
    ) -> Vec<String> {
        let suspects: Vec<&str> = prepared.variables_without_column().collect();
        if suspects.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Vec::new();
        }
        let view = prepared.view();
        let Some(query) = self.reparsed(without_mark(text), view, options) else {
            return Vec::new();
        };
        let Query::Select { pattern, .. } = &query else {
            return Vec::new();
        };
        let found = below_projection(pattern).to_string();
        let names: HashSet<&str> = found.split('?').skip(1).map(name_of).collect();
        suspects
            .into_iter()
            .filter(|name| !names.contains(name))
            .take(UNBOUND_MAX)
            .map(|name| {
                format!("?{name} is selected and occurs in no pattern: it is unbound in every row")
            })
            .collect()
    }

    fn reparsed(&self, text: &str, view: &ReadView, options: &QueryOptions) -> Option<Query> {
        let assumed = Assumed {
            base_iri: options.base_iri.as_deref(),
            prefixes: options.assumed(view.snapshot()),
            waiting: None,
        };
        let read = self.shapes().read(text, assumed, Stack::Ordinary);
        Some(read.ok()?.query().into_owned())
    }
}

/// The variable's name that a text begins with, behind its `?`.
fn name_of(text: &str) -> &str {
    let end = text.find(|it: char| !it.is_alphanumeric() && it != '_');
    &text[..end.unwrap_or(text.len())]
}

/// What is projected.
fn below_projection(pattern: &GraphPattern) -> &GraphPattern {
    match pattern {
        GraphPattern::Project { inner, .. } => inner,
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Slice { inner, .. } => below_projection(inner),
        other => other,
    }
}

/// A pattern that every solution needs, and the graph it is asked of.
struct Needed {
    pattern: GraphPattern,
    graph: Option<NamedNodePattern>,
}

impl Needed {
    fn within_graph(&self, pattern: GraphPattern) -> GraphPattern {
        match &self.graph {
            Some(name) => GraphPattern::Graph {
                name: name.clone(),
                inner: Box::new(pattern),
            },
            None => pattern,
        }
    }

    /// It, if it is a triple.
    fn triple(&self) -> Option<&TriplePattern> {
        match &self.pattern {
            GraphPattern::Bgp { patterns } => patterns.first(),
            _ => None,
        }
    }
}

/// Collects what every solution needs.
fn collect(pattern: &GraphPattern, graph: Option<&NamedNodePattern>, out: &mut Vec<Needed>) {
    if out.len() >= PATTERNS_MAX {
        return;
    }
    match pattern {
        GraphPattern::Bgp { patterns } => {
            out.extend(patterns.iter().map(|triple| Needed {
                pattern: GraphPattern::Bgp {
                    patterns: vec![triple.clone()],
                },
                graph: graph.cloned(),
            }));
        }
        GraphPattern::Path { .. } => out.push(Needed {
            pattern: pattern.clone(),
            graph: graph.cloned(),
        }),
        GraphPattern::Join { left, right } | GraphPattern::Lateral { left, right } => {
            collect(left, graph, out);
            collect(right, graph, out);
        }
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => {
            collect(left, graph, out);
        }
        GraphPattern::Graph { name, inner } => collect(inner, Some(name), out),
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Group { inner, .. } => collect(inner, graph, out),
        GraphPattern::Slice { inner, length, .. } => {
            if *length != Some(0) {
                collect(inner, graph, out);
            }
        }
        // One of its sides may well have nothing.
        GraphPattern::Union { .. } | GraphPattern::Values { .. } | GraphPattern::Service { .. } => {
        }
    }
}

/// Where an IRI stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Predicate,
    /// The object of `rdf:type`.
    Class,
    Subject,
    Object,
}

impl Place {
    fn words(self) -> &'static str {
        match self {
            Self::Predicate => "the predicate",
            Self::Class => "the class",
            Self::Subject => "the subject",
            Self::Object => "the object",
        }
    }

    /// The pattern that has an IRI there, and nothing else.
    fn with(self, iri: &NamedNode) -> TriplePattern {
        let mut triple = any_triple();
        match self {
            Self::Predicate => triple.predicate = iri.clone().into(),
            Self::Class => {
                triple.predicate = NamedNode::new_unchecked(rdf::TYPE).into();
                triple.object = iri.clone().into();
            }
            Self::Subject => triple.subject = iri.clone().into(),
            Self::Object => triple.object = iri.clone().into(),
        }
        triple
    }
}

fn any_triple() -> TriplePattern {
    let variable = Variable::new_unchecked;
    TriplePattern {
        subject: variable("s").into(),
        predicate: variable("p").into(),
        object: variable("o").into(),
    }
}

/// The IRIs of a pattern: the predicate first, for that is what is mostly wrong.
fn iris_of(triple: &TriplePattern) -> Vec<(Place, &NamedNode)> {
    let mut iris = Vec::new();
    let mut is_type = false;
    if let NamedNodePattern::NamedNode(predicate) = &triple.predicate {
        is_type = predicate.as_str() == rdf::TYPE;
        iris.push((Place::Predicate, predicate));
    }
    if let TermPattern::NamedNode(object) = &triple.object {
        let place = match is_type {
            true => Place::Class,
            false => Place::Object,
        };
        iris.push((place, object));
    }
    if let TermPattern::NamedNode(subject) = &triple.subject {
        iris.push((Place::Subject, subject));
    }
    iris
}

/// The same IRI by the other of the two schemes.
fn other_scheme(iri: &str) -> Option<String> {
    match iri.split_once("://")? {
        ("http", rest) => Some(format!("https://{rest}")),
        ("https", rest) => Some(format!("http://{rest}")),
        _ => None,
    }
}

/// An IRI's namespace and its last part.
fn split(iri: &str) -> (&str, &str) {
    let at = iri.rfind(['#', '/', ':']).map_or(0, |at| at + 1);
    iri.split_at(at)
}

/// The one that was probably meant, of those that occur: the same name in another namespace, or
/// nearly the same in this one.
fn nearest(iri: &str, candidates: &[String]) -> Option<String> {
    let (namespace, name) = split(iri);
    let apart = |candidate: &String| {
        let (other_namespace, other_name) = split(candidate);
        if other_namespace == namespace {
            let is_far = name.len().abs_diff(other_name.len()) > LETTERS_MAX;
            if is_far || name.len() > NAME_BYTES_MAX {
                return None;
            }
            let letters = letters_apart(name.as_bytes(), other_name.as_bytes());
            let most = LETTERS_MAX.min(name.len() / 3);
            (letters <= most).then_some(letters)
        } else {
            (other_name == name && name.len() > 1).then_some(LETTERS_MAX + 1)
        }
    };
    let near = candidates.iter().filter_map(|it| Some((apart(it)?, it)));
    near.min().map(|(_, candidate)| candidate.clone())
}

struct Search<'a> {
    engine: &'a Engine,
    text: &'a str,
    view: &'a Arc<ReadView>,
    options: QueryOptions,
    until: Instant,
    dataset: Option<QueryDataset>,
}

impl Search<'_> {
    async fn hints(&mut self) -> Result<Vec<String>, QueryError> {
        let has_dataset = !self.options.default_graphs.is_empty()
            || !self.options.named_graphs.is_empty()
            || self.options.union_default_graph;
        if !has_dataset && !names_graphs(self.text) && self.is_only_in_named_graphs().await? {
            return Ok(vec![
                "the default graph is empty, and all data are in named graphs: write GRAPH ?g { ... } around the pattern, or name graphs by FROM"
                    .to_owned(),
            ]);
        }
        let Some(query) = self.engine.reparsed(self.text, self.view, &self.options) else {
            return Ok(Vec::new());
        };
        let (Query::Select {
            pattern, dataset, ..
        }
        | Query::Construct {
            pattern, dataset, ..
        }
        | Query::Describe {
            pattern, dataset, ..
        }
        | Query::Ask {
            pattern, dataset, ..
        }) = &query;
        self.dataset = dataset.clone();
        let mut needed = Vec::new();
        collect(pattern, None, &mut needed);
        for needed in needed.iter().take(PATTERNS_MAX) {
            if self.occurs(needed, needed.pattern.clone()).await? {
                continue;
            }
            let shown = needed.pattern.to_string();
            let shown = shown.trim_end_matches([' ', '.']);
            let because = self.because(needed).await?;
            return Ok(vec![format!(
                "nothing matches the pattern {shown}{because}"
            )]);
        }
        Ok(Vec::new())
    }

    /// Whether whoever asks sees data in named graphs only. Asked for as all else is: what is
    /// counted of a database is of all of it.
    async fn is_only_in_named_graphs(&mut self) -> Result<bool, QueryError> {
        let mut anything = Needed {
            pattern: bgp(any_triple()),
            graph: None,
        };
        if self.occurs(&anything, bgp(any_triple())).await? {
            return Ok(false);
        }
        anything.graph = Some(Variable::new_unchecked("g").into());
        self.occurs(&anything, bgp(any_triple())).await
    }

    /// Which part of a pattern occurs nowhere, and what was probably meant.
    async fn because(&mut self, needed: &Needed) -> Result<String, QueryError> {
        let Some(triple) = needed.triple() else {
            return Ok(String::new());
        };
        for (place, iri) in iris_of(triple) {
            if self.occurs(needed, bgp(place.with(iri))).await? {
                continue;
            }
            let meant = self.meant(needed, place, iri).await?;
            let of_prefix = self.of_prefix(iri.as_str(), meant.as_deref());
            let what = format!(
                ": no statement has {} <{}>{of_prefix}",
                place.words(),
                iri.as_str()
            );
            return Ok(match meant {
                Some(meant) => format!("{what}, but some have <{meant}>"),
                None => what,
            });
        }
        Ok(String::new())
    }

    async fn meant(
        &mut self,
        needed: &Needed,
        place: Place,
        iri: &NamedNode,
    ) -> Result<Option<String>, QueryError> {
        if let Some(other) = other_scheme(iri.as_str()) {
            let node = NamedNode::new_unchecked(other.clone());
            if self.occurs(needed, bgp(place.with(&node))).await? {
                return Ok(Some(other));
            }
        }
        let (triple, variable) = match place {
            Place::Predicate => (any_triple(), "p"),
            Place::Class => {
                let mut triple = any_triple();
                triple.predicate = NamedNode::new_unchecked(rdf::TYPE).into();
                (triple, "o")
            }
            Place::Subject | Place::Object => return Ok(None),
        };
        let candidates = self.different(needed, triple, variable).await?;
        Ok(nearest(iri.as_str(), &candidates))
    }

    /// Said of an IRI that was written with a prefix which the text does not declare; not where a
    /// well-known one stands for what was meant.
    fn of_prefix(&self, iri: &str, meant: Option<&str>) -> String {
        let Some(prefixes) = self.options.assumed(self.view.snapshot()) else {
            return String::new();
        };
        let assumed = prefixes.iter().find(|(name, namespace, origin)| {
            let is_right = *origin == PrefixOrigin::WellKnown
                && meant.is_some_and(|meant| meant.starts_with(namespace));
            iri.starts_with(namespace)
                && uses(self.text, name)
                && !declares(self.text, name)
                && !is_right
        });
        match assumed {
            Some((name, namespace, _)) => format!(
                " (`{name}:` is not declared in the text, and stands for <{namespace}> in this database)"
            ),
            None => String::new(),
        }
    }

    /// Whether a pattern has a match.
    async fn occurs(&mut self, needed: &Needed, pattern: GraphPattern) -> Result<bool, QueryError> {
        let query = Query::Ask {
            dataset: self.dataset.clone(),
            pattern: needed.within_graph(pattern),
            base_iri: None,
        };
        let prepared = self.prepare(&query)?;
        match prepared.execute().await? {
            QueryResults::Boolean(occurs) => Ok(occurs),
            QueryResults::Solutions(_) | QueryResults::Triples(_) => Ok(true),
        }
    }

    /// The IRIs that a variable takes.
    async fn different(
        &mut self,
        needed: &Needed,
        triple: TriplePattern,
        variable: &str,
    ) -> Result<Vec<String>, QueryError> {
        let project = GraphPattern::Project {
            inner: Box::new(needed.within_graph(bgp(triple))),
            variables: vec![Variable::new_unchecked(variable)],
        };
        let distinct = GraphPattern::Distinct {
            inner: Box::new(project),
        };
        let query = Query::Select {
            dataset: self.dataset.clone(),
            pattern: GraphPattern::Slice {
                inner: Box::new(distinct),
                start: 0,
                length: Some(CANDIDATES_MAX),
            },
            base_iri: None,
        };
        let prepared = self.prepare(&query)?;
        let mut found = HashSet::new();
        if let QueryResults::Solutions(mut stream) = prepared.execute().await? {
            while let Some(batch) = stream.next().await {
                // As far as it came in time.
                let Ok(batch) = batch else { break };
                let terms = (0..batch.rows()).filter_map(|row| batch.term(row, 0));
                found.extend(terms.filter_map(|term| match term {
                    Term::Iri(iri) => Some(iri.to_string()),
                    _ => None,
                }));
            }
        }
        Ok(found.into_iter().collect())
    }

    fn prepare(&mut self, query: &Query) -> Result<PreparedQuery, QueryError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(QueryError::Timeout { limit: TIME_MAX });
        }
        self.options.timeout = Some(left);
        prepare_parsed(self.engine, (self.text, query), self.view, &self.options)
    }
}

fn bgp(triple: TriplePattern) -> GraphPattern {
    GraphPattern::Bgp {
        patterns: vec![triple],
    }
}

/// Whether a text writes a name with a prefix. It may be one in a comment; then an IRI of that
/// namespace stands in it in full.
fn uses(text: &str, prefix: &str) -> bool {
    occurrences(text, prefix).next().is_some()
}

/// Whether a text declares a prefix itself.
fn declares(text: &str, prefix: &str) -> bool {
    occurrences(text, prefix).any(|at| {
        let before = text[..at].trim_end();
        let word = before.len().checked_sub("prefix".len());
        word.and_then(|start| before.get(start..))
            .is_some_and(|word| word.eq_ignore_ascii_case("prefix"))
    })
}

/// Where a prefix stands with its colon, and is not the end of another one.
fn occurrences<'t>(text: &'t str, prefix: &str) -> impl Iterator<Item = usize> + 't {
    let written = format!("{prefix}:");
    let places: Vec<usize> = text.match_indices(&written).map(|(at, _)| at).collect();
    places.into_iter().filter(|at| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|it| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '<' | '/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_of_the_same_namespace_before_the_same_name_of_another() {
        let near = |iri: &str, candidates: &[&str]| {
            let candidates: Vec<String> = candidates.iter().map(|it| (*it).to_owned()).collect();
            nearest(iri, &candidates)
        };
        let label = "http://e/label".to_owned();
        assert_eq!(
            near(
                "http://e/lable",
                &["http://e/table", "http://e/label", "http://f/lable"]
            ),
            Some(label)
        );
        assert_eq!(
            near("http://e#name", &["http://e/x", "http://e/name"]),
            Some("http://e/name".to_owned())
        );
        assert_eq!(near("http://e/ab", &["http://e/ac"]), None);
        assert_eq!(near("http://e/label", &["http://e/price"]), None);
        // Neither of them is compared letter by letter.
        let long = format!("http://e/{}", "a".repeat(1 << 20));
        assert_eq!(near(&long, &[long.as_str(), "http://e/b"]), None);
    }

    #[test]
    fn a_prefix_that_a_text_declares_is_told_from_one_that_it_only_uses() {
        let text = "prefix  schema: <http://schema.org/>\nSELECT * { ?s a schema:Person ; :p ?o }";
        assert!(uses(text, "schema") && declares(text, "schema"));
        assert!(uses(text, "") && !declares(text, ""));
        assert!(!uses(text, "ema") && !uses(text, "http"));
    }
}
