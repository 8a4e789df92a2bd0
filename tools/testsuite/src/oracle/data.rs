//! Random data sets: few nodes, all kinds of terms.

use std::collections::BTreeSet;

use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple};

use super::random::Random;

/// Namespace of all names.
pub(crate) const NAMESPACE: &str = "http://example.org/";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// Most quads of a data set.
const QUADS_MAX: usize = 60;

/// What literals a data set has, and so what a query over it can be compared on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers in canonical form, strings, tagged strings, dateTimes, triple terms.
    Canonical,
    /// Also numbers that are not written in canonical form, of which the reference forgets the form
    /// as soon as an expression touches them.
    Odd,
    /// Also booleans, dates, durations, and calendar values with and without time zone, which the
    /// reference cannot compare.
    Calendar,
}

/// How the quads come into a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrival {
    /// All at once, into sorted files.
    Built,
    /// Some at first, with others that do not belong there; two transactions put that right. What
    /// is read then are the files with insertions and tombstones over them.
    Updated,
    /// As `Updated`, beside others in graphs that the asker may not see.
    AmongHidden,
    /// In the same way, beside others in all graphs that the rules of this seed do not let their
    /// asker read; some seeds ask for a state that is past.
    UnderRules(u64),
}

/// Quads, of some kind.
#[derive(Clone, Debug)]
pub(crate) struct DataSet {
    /// What literals it may have.
    pub(crate) kind: Kind,
    pub(crate) arrival: Arrival,
    /// The quads, sorted and distinct; blank nodes are called `b1`, `b2`, ...
    pub(crate) quads: Vec<Quad>,
}

/// Nodes: subjects, objects, some of them also names of graphs.
pub(crate) const NODES: [&str; 5] = ["a", "b", "c", "d", "g1"];
/// Names of graphs.
pub(crate) const GRAPHS: [&str; 3] = ["g1", "g2", "a"];
/// Predicates from node to node.
pub(crate) const LINKS: [&str; 3] = ["p", "r", "l"];
/// Predicates to literals of all kinds.
pub(crate) const VALUES: [&str; 3] = ["q", "v", "t"];
/// From IRIs to IRIs only: what is ordered by it has one order.
pub(crate) const CLEAN_LINK: &str = "l";
/// From IRIs to small integers only.
pub(crate) const CLEAN_VALUE: &str = "k";

const NUMBERS: [(&str, &str); 12] = [
    ("0", "integer"),
    ("1", "integer"),
    ("2", "integer"),
    ("3", "integer"),
    ("-1", "integer"),
    ("0.5", "decimal"),
    ("1", "decimal"),
    ("-1.25", "decimal"),
    ("2", "double"),
    ("0.5", "double"),
    ("0.5", "float"),
    ("3", "float"),
];
const ODD_NUMBERS: [(&str, &str); 8] = [
    ("01", "integer"),
    ("+2", "integer"),
    ("1.0", "decimal"),
    ("1.50", "decimal"),
    ("2.0E0", "double"),
    ("0.50", "double"),
    ("1", "byte"),
    ("3", "nonNegativeInteger"),
];
const CALENDAR: [(&str, &str); 10] = [
    ("true", "boolean"),
    ("false", "boolean"),
    ("2000-01-01", "date"),
    ("2000-01-01Z", "date"),
    ("2000-01-02", "date"),
    ("2000-01-01T12:00:00", "dateTime"),
    ("10:00:00", "time"),
    ("P1M", "duration"),
    ("P30D", "dayTimeDuration"),
    ("2000", "gYear"),
];
const TEXTS: [&str; 6] = ["", "a", "ab", "a longer string", "é", "1"];
const TAGGED: [(&str, &str); 4] = [
    ("a", "en"),
    ("a", "fr"),
    ("b", "en-us"),
    ("a longer text", "en"),
];
const DATE_TIMES: [&str; 3] = [
    "2000-01-01T00:00:00Z",
    "2000-01-02T00:00:00.25Z",
    "1999-12-31T23:00:00-05:00",
];

/// A name of the data.
pub(crate) fn named(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{NAMESPACE}{name}"))
}

/// A literal of a datatype of XML Schema.
fn typed((lexical, datatype): (&str, &str)) -> Literal {
    Literal::new_typed_literal(
        lexical,
        NamedNode::new_unchecked(format!("{XSD}{datatype}")),
    )
}

/// A random literal of the kind, for data and for queries.
pub(crate) fn literal(random: &mut Random, kind: Kind) -> Literal {
    match (kind, random.below(10)) {
        (Kind::Odd, 0..4) => return typed(random.pick(&ODD_NUMBERS)),
        (Kind::Calendar, 0..5) => return typed(random.pick(&CALENDAR)),
        _ => {}
    }
    match random.below(16) {
        0..=7 => typed(random.pick(&NUMBERS)),
        8..=10 => Literal::new_simple_literal(random.pick(&TEXTS)),
        11 | 12 => {
            let (text, tag) = random.pick(&TAGGED);
            Literal::new_language_tagged_literal_unchecked(text, tag)
        }
        13 => typed((random.pick(&DATE_TIMES), "dateTime")),
        14 => Literal::new_typed_literal(random.pick(&["x", "y"]), named("datatype")),
        _ => typed(("abc", "integer")),
    }
}

impl DataSet {
    /// Its quads, each a line of N-Quads.
    pub(crate) fn written(&self) -> String {
        let lines = self.quads.iter().map(|quad| format!("{quad} .\n"));
        lines.collect()
    }

    /// A random data set.
    pub(crate) fn random(random: &mut Random) -> Self {
        let kind = match random.below(20) {
            0..=14 => Kind::Canonical,
            15..=17 => Kind::Odd,
            _ => Kind::Calendar,
        };
        let has_graphs = random.chance(70);
        let mut quads = BTreeSet::new();
        let mut sorted = Vec::new();
        let most = random.pick(&[20, 40, QUADS_MAX]);
        for _ in 0..random.below(most + 1) {
            let quad = quad(random, kind, has_graphs);
            if quads.insert(quad.to_string()) {
                sorted.push(quad);
            }
        }
        let arrival = match random.below(10) {
            0..=2 => Arrival::Updated,
            3 | 4 => Arrival::AmongHidden,
            _ => Arrival::Built,
        };
        Self {
            kind,
            arrival,
            quads: sorted,
        }
    }

    /// Whether there is a named graph.
    pub(crate) fn has_graphs(&self) -> bool {
        let is_named = |quad: &Quad| quad.graph_name != GraphName::DefaultGraph;
        matches!(self.arrival, Arrival::UnderRules(_)) || self.quads.iter().any(is_named)
    }
}

fn blank(random: &mut Random) -> BlankNode {
    BlankNode::new_unchecked(random.pick(&["b1", "b2", "b3"]))
}

fn quad(random: &mut Random, kind: Kind, has_graphs: bool) -> Quad {
    let graph = if has_graphs && random.chance(45) {
        GraphName::from(named(random.pick(&GRAPHS)))
    } else {
        GraphName::DefaultGraph
    };
    let node = |random: &mut Random| named(random.pick(&NODES));
    let subject: NamedOrBlankNode = match random.below(7) {
        0 => blank(random).into(),
        _ => node(random).into(),
    };
    match random.below(10) {
        0 | 1 => {
            let number = Literal::from(i64::try_from(random.below(4)).unwrap_or(0));
            Quad::new(node(random), named(CLEAN_VALUE), number, graph)
        }
        2 => Quad::new(node(random), named(CLEAN_LINK), node(random), graph),
        3..=6 => {
            let object: Term = match random.below(7) {
                0 => blank(random).into(),
                _ => node(random).into(),
            };
            Quad::new(subject, named(random.pick(&["p", "r"])), object, graph)
        }
        _ => {
            let predicate = named(random.pick(&VALUES));
            let object: Term = match random.below(12) {
                0..=2 => node(random).into(),
                3 => blank(random).into(),
                4 if kind == Kind::Canonical => triple_term(random).into(),
                _ => literal(random, kind).into(),
            };
            Quad::new(subject, predicate, object, graph)
        }
    }
}

/// A triple term, rarely with another one in it.
fn triple_term(random: &mut Random) -> Triple {
    let object: Term = match random.below(6) {
        0 => triple_term(random).into(),
        1 => blank(random).into(),
        2 => literal(random, Kind::Canonical).into(),
        _ => named(random.pick(&NODES)).into(),
    };
    let subject = named(random.pick(&NODES));
    Triple::new(subject, named(random.pick(&LINKS)), object)
}
