//! Tests of GeoSPARQL's query rewrite extension against a naive evaluation of its rules.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use crate::random;
use crate::store;
use std::collections::BTreeSet;

use orrery_geo::{Notation, Relation, from_text, text_of};
use orrery_sparql::{QueryOptions, Tuning};
use orrery_storage::{Asker, GraphNames, ReadScope, SmallQuad};
use orrery_term::{LiteralKind, Term};

use random::Random;
use store::Store;

const GEO: &str = "http://www.opengis.net/ont/geosparql#";

fn iri(name: &str) -> Term<'static> {
    Term::iri(format!("http://e/{name}"))
}

fn geo(name: &str) -> Term<'static> {
    Term::iri(format!("{GEO}{name}"))
}

/// A geometry on a grid of a few cells, so that all relations occur.
fn literal(random: &mut Random) -> (Term<'static>, &'static str) {
    let (x, y) = (random.below(4), random.below(4));
    let (right, top) = (x + 1 + random.below(3), y + 1 + random.below(3));
    let wkt = match random.below(4) {
        0 => format!("POINT({x} {y})"),
        1 => format!("LINESTRING({x} {y}, {right} {top})"),
        _ => format!("POLYGON(({x} {y}, {right} {y}, {right} {top}, {x} {top}, {x} {y}))"),
    };
    let (notation, property) = match random.below(5) {
        0 => (Notation::Gml, "asGML"),
        1 => (Notation::Kml, "asKML"),
        2 => (Notation::GeoJson, "asGeoJSON"),
        _ => (Notation::Wkt, "asWKT"),
    };
    let shape = from_text(&wkt, Notation::Wkt).unwrap();
    let text = text_of(&shape, notation).unwrap();
    match random.below(12) {
        0 => (Term::typed("no geometry", notation.datatype()), property),
        _ => (Term::typed(text, notation.datatype()), property),
    }
}

/// Features with geometries of each kind, geometries without a feature, and stated relations; some
/// in a named graph.
fn data(random: &mut Random) -> Vec<SmallQuad> {
    let mut quads = Vec::new();
    for number in 0..6 + random.below(8) {
        let graph = (random.below(3) == 0).then(|| iri("g"));
        let mut add = |s: &Term<'static>, p: Term<'static>, o: Term<'static>| {
            quads.push((s.clone(), p, o, graph.clone()));
        };
        let feature = iri(&format!("f{number}"));
        let has: &[&str] = match random.below(6) {
            0 => &["hasDefaultGeometry"],
            1 => &["hasDefaultGeometry", "hasGeometry"],
            2 => &["hasGeometry", "hasGeometry"],
            3 => &["defaultGeometry"],
            4 => &[],
            _ => &["hasGeometry"],
        };
        if random.below(2) == 0 {
            add(&feature, iri("is"), iri("odd"));
        }
        for (place, has) in has.iter().enumerate() {
            let geometry = iri(&format!("g{number}_{place}"));
            add(&feature, geo(has), geometry.clone());
            let (literal, property) = literal(random);
            add(&geometry, geo(property), literal);
        }
        if has.is_empty() {
            let (literal, property) = literal(random);
            add(&feature, geo(property), literal);
        }
        let other = iri(&format!("f{}", random.below(12)));
        let (name, _) = Relation::ALL[random.below(Relation::ALL.len())];
        add(&feature, geo(name), other);
    }
    quads
}

/// The literals of what lies somewhere, in quads that are seen.
fn places(quads: &[&SmallQuad], what: &Term<'static>) -> Vec<Term<'static>> {
    let values = |of: &Term<'static>, name: &str| -> Vec<Term<'static>> {
        let found = quads.iter().filter(|it| it.0 == *of && it.1 == geo(name));
        found.map(|it| it.2.clone()).collect()
    };
    let mut geometries = values(what, "hasDefaultGeometry");
    geometries.extend(values(what, "defaultGeometry"));
    if geometries.is_empty() {
        geometries = values(what, "hasGeometry");
    }
    geometries.push(what.clone());
    let names = ["asWKT", "asGeoJSON", "asGML", "asKML"];
    let literals = geometries
        .iter()
        .flat_map(|it| names.iter().flat_map(|name| values(it, name)));
    literals.collect()
}

fn lie(relation: Relation, one: &Term<'_>, other: &Term<'_>) -> bool {
    let shape = |term: &Term<'_>| {
        let Term::Literal(literal) = term else {
            return None;
        };
        let LiteralKind::Typed(datatype) = &literal.kind else {
            return None;
        };
        from_text(&literal.lexical, Notation::of_datatype(datatype)?)
    };
    match (shape(one), shape(other)) {
        (Some(one), Some(other)) => relation.holds(&one, &other) == Some(true),
        _ => false,
    }
}

/// All pairs of subjects of which a relation is stated or follows.
fn expected(quads: &[&SmallQuad], name: &str) -> BTreeSet<(String, String)> {
    let relation = Relation::of_name(name).unwrap();
    let subjects: BTreeSet<String> = quads.iter().map(|it| it.0.to_string()).collect();
    let terms: Vec<Term<'static>> = subjects
        .iter()
        .map(|it| Term::iri(it.trim_matches(['<', '>']).to_owned()))
        .collect();
    let placed: Vec<_> = terms.iter().map(|it| (it, places(quads, it))).collect();
    let mut pairs = BTreeSet::new();
    for (one, ours) in &placed {
        for (other, theirs) in &placed {
            let mut all = ours
                .iter()
                .flat_map(|our| theirs.iter().map(move |it| (our, it)));
            if all.any(|(our, their)| lie(relation, our, their)) {
                pairs.insert((one.to_string(), other.to_string()));
            }
        }
    }
    let stated = quads.iter().filter(|it| it.1 == geo(name));
    pairs.extend(stated.map(|it| (it.0.to_string(), it.2.to_string())));
    pairs
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}

#[test]
fn relations_are_those_of_the_rules() {
    let (mut found, mut derived) = (0, 0);
    for seed in 0..12 {
        let random = &mut Random(seed);
        let quads = data(random);
        let store = Store::of(&quads);
        let is_in_graph = |it: &&SmallQuad| it.3.is_some();
        let default: Vec<&SmallQuad> = quads.iter().filter(|it| it.3.is_none()).collect();
        let named: Vec<&SmallQuad> = quads.iter().filter(is_in_graph).collect();
        let all: Vec<&SmallQuad> = quads.iter().collect();
        let mut names = GraphNames::default();
        names.named.insert(iri("g"));
        let of_graph = QueryOptions {
            scope: ReadScope::only(Asker::Process, names),
            union_default_graph: true,
            ..QueryOptions::of_process()
        };
        let union = QueryOptions {
            union_default_graph: true,
            ..QueryOptions::of_process()
        };
        for _ in 0..3 {
            let (name, _) = Relation::ALL[random.below(Relation::ALL.len())];
            for (quads, options, around) in [
                (&default, &QueryOptions::of_process(), ["", ""]),
                (&all, &union, ["", ""]),
                (&named, &of_graph, ["", ""]),
                (&named, &QueryOptions::of_process(), ["GRAPH ?g {", "}"]),
                (
                    &named,
                    &QueryOptions::of_process(),
                    ["GRAPH <http://e/g> {", "}"],
                ),
            ] {
                let pairs = expected(quads, name);
                let is_odd = |it: &String| {
                    let mut of = quads.iter().filter(|quad| quad.1 == iri("is"));
                    of.any(|quad| quad.0.to_string() == *it)
                };
                let rows = |query: &str| {
                    let query = format!("PREFIX geo: <{GEO}> {query}");
                    let rows = sorted(store.rows(&query, options));
                    let plain = QueryOptions {
                        tuning: Tuning {
                            rewrites: false,
                            ..Tuning::default()
                        },
                        ..options.clone()
                    };
                    assert_eq!(sorted(store.rows(&query, &plain)), rows, "{query}");
                    rows
                };
                let [open, close] = around;
                let both: Vec<String> = pairs.iter().map(|(a, b)| format!("{a} {b}")).collect();
                let query = format!("SELECT ?a ?b {{ {open} ?a geo:{name} ?b {close} }}");
                assert_eq!(rows(&query), sorted(both), "{seed} {query}");
                found += pairs.len();
                let stated = quads.iter().filter(|it| it.1 == geo(name)).count();
                derived += pairs.len() - stated.min(pairs.len());
                let end = format!(
                    "<http://e/{}>",
                    random.pick(&["f0", "f1", "f2", "f3", "g1_0"])
                );
                let of = |is_it: &dyn Fn(&(String, String)) -> Option<String>| {
                    sorted(pairs.iter().filter_map(is_it).collect())
                };
                let query = format!("SELECT ?a {{ {open} ?a geo:{name} {end} {close} }}");
                let wanted = of(&|(a, b)| (*b == end).then(|| a.clone()));
                assert_eq!(rows(&query), wanted, "{seed} {query}");
                let query = format!("SELECT ?b {{ {open} {end} geo:{name} ?b {close} }}");
                let wanted = of(&|(a, b)| (*a == end).then(|| b.clone()));
                assert_eq!(rows(&query), wanted, "{seed} {query}");
                let query = format!("SELECT ?a {{ {open} ?a geo:{name} ?a {close} }}");
                let wanted = of(&|(a, b)| (a == b).then(|| a.clone()));
                assert_eq!(rows(&query), wanted, "{seed} {query}");
                let query = format!(
                    "SELECT ?a ?b {{ {open} ?a <http://e/is> <http://e/odd> ; geo:{name} ?b {close} }}"
                );
                let wanted = of(&|(a, b)| is_odd(a).then(|| format!("{a} {b}")));
                assert_eq!(rows(&query), wanted, "{seed} {query}");
                let (a, b) = (format!("<http://e/f{}>", random.below(8)), &end);
                let query = format!("SELECT (1 AS ?x) {{ {open} {a} geo:{name} {b} {close} }}");
                let is_one = usize::from(pairs.contains(&(a, b.clone())));
                assert_eq!(rows(&query).len(), is_one, "{seed} {query}");
            }
        }
    }
    assert!(found > 600 && derived > 400, "{found} {derived}");
}

fn plan(store: &Store, query: &str) -> String {
    let query = format!("PREFIX geo: <{GEO}> {query}");
    let prepared = store.engine.prepare(&query, &QueryOptions::of_process());
    prepared.unwrap().explain()
}

/// A grid of points, an area around some of them, and a stated relation.
fn grid() -> Vec<SmallQuad> {
    let wkt = |text: String| Term::typed(text, Notation::Wkt.datatype());
    let mut quads = Vec::new();
    for place in 0..2_000_u32 {
        let feature = iri(&format!("p{place}"));
        let geometry = iri(&format!("p{place}g"));
        let text = format!("POINT({} {})", place % 50, place / 50);
        quads.push((feature.clone(), iri("is"), iri("Point"), None));
        quads.push((feature, geo("hasGeometry"), geometry.clone(), None));
        quads.push((geometry, geo("asWKT"), wkt(text), None));
    }
    let area = wkt("POLYGON((9.5 9.5, 12.5 9.5, 12.5 11.5, 9.5 11.5, 9.5 9.5))".to_owned());
    quads.push((iri("area"), iri("is"), iri("Area"), None));
    quads.push((iri("area"), geo("hasDefaultGeometry"), iri("areag"), None));
    quads.push((iri("areag"), geo("asWKT"), area, None));
    quads.push((iri("stated"), geo("sfWithin"), iri("area"), None));
    quads
}

#[test]
fn relations_are_joined_by_place_and_looked_up() {
    let store = Store::of(&grid());
    let rows = |query: &str| {
        let query = format!("PREFIX geo: <{GEO}> {query}");
        store.rows(&query, &QueryOptions::of_process())
    };
    for (query, found, operator) in [
        // Six points and their geometries, the area and its own, and what is stated.
        (
            "SELECT ?a { ?a geo:sfWithin <http://e/area> }",
            15,
            "RowsExec",
        ),
        (
            "SELECT ?b { <http://e/area> geo:sfContains ?b }",
            14,
            "RowsExec",
        ),
        (
            "SELECT ?a { ?a <http://e/is> <http://e/Point> ; geo:sfWithin <http://e/area> }",
            6,
            "RowsExec",
        ),
        (
            "SELECT ?a ?b { ?a <http://e/is> <http://e/Point> ; geo:sfWithin ?b . ?b <http://e/is> <http://e/Area> }",
            6,
            "PlacesJoinExec",
        ),
        (
            "SELECT ?a { ?a geo:sfWithin 'POLYGON((0.5 0.5, 1.5 0.5, 1.5 1.5, 0.5 1.5, 0.5 0.5))'^^geo:wktLiteral }",
            2,
            "RowsExec",
        ),
        (
            "SELECT ?a { [] geo:sfContains ?a . ?a <http://e/is> <http://e/Area> }",
            2,
            "PlacesJoinExec",
        ),
        (
            "SELECT ?a { ?a (geo:sfTouches|^geo:sfContains) <http://e/area> }",
            14,
            "RowsExec",
        ),
        (
            "SELECT ?x { <http://e/p510> geo:sfWithin/<http://e/is> ?x }",
            2,
            "RowsExec",
        ),
    ] {
        assert_eq!(rows(query).len(), found, "{query}");
        let plan = plan(&store, query);
        assert!(plan.contains(operator), "{query}\n{plan}");
    }
    // What is stated only.
    for query in [
        "SELECT ?a ?b { VALUES ?p { geo:sfWithin } ?a ?p ?b }",
        "SELECT ?a ?b { ?a geo:sfWithin+ ?b }",
    ] {
        assert_eq!(
            rows(query),
            ["<http://e/stated> <http://e/area>"],
            "{query}"
        );
    }
}

#[test]
fn data_without_geometries_have_what_is_stated() {
    let quads = [
        (iri("a"), geo("sfWithin"), iri("b"), None),
        (iri("b"), geo("sfWithin"), iri("c"), None),
    ];
    let store = Store::of(&quads);
    let query = "SELECT ?a ?b { ?a geo:sfWithin ?b }";
    let related = plan(&store, query);
    assert_eq!(related.replace("sfWithin", "within"), {
        let quads = [
            (iri("a"), geo("within"), iri("b"), None),
            (iri("b"), geo("within"), iri("c"), None),
        ];
        plan(&Store::of(&quads), "SELECT ?a ?b { ?a geo:within ?b }")
    });
    // The first geometry changes that, for the same text.
    let query = format!("PREFIX geo: <{GEO}> {query}");
    let rows = || store.rows(&query, &QueryOptions::of_process()).len();
    assert_eq!(rows(), 2);
    let place = Term::typed("POINT(1 1)", Notation::Wkt.datatype());
    store.change(&[(iri("a"), geo("asWKT"), place, None)], &[]);
    assert_eq!(rows(), 3);
}
