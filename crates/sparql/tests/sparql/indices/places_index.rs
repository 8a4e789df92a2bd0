//! Tests of the spatial index: the same answers as without it, in every state and for every asker.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use crate::random;
use crate::store;
use orrery_sparql::{QueryOptions, Tuning, UpdateOptions};
use orrery_storage::{Asker, At, CommitOptions, GraphNames, ReadScope, SmallQuad};
use orrery_term::Term;

use random::Random;
use store::Store;

const WKT: &str = "http://www.opengis.net/ont/geosparql#wktLiteral";
const GEO_JSON: &str = "http://www.opengis.net/ont/geosparql#geoJSONLiteral";
const GML: &str = "http://www.opengis.net/ont/geosparql#gmlLiteral";
const KML: &str = "http://www.opengis.net/ont/geosparql#kmlLiteral";

fn iri(name: &str) -> Term<'static> {
    Term::iri(format!("http://e/{name}"))
}

/// A coordinate with two digits behind the point.
fn number(random: &mut Random, low: i32, high: i32) -> f64 {
    let steps = usize::try_from((high - low) * 100).unwrap();
    f64::from(low) + random.below(steps + 1) as f64 / 100.0
}

/// The text of a geometry, with the longitude first.
fn geometry(random: &mut Random) -> String {
    let (x, y) = match random.below(4) {
        // Most are near to Paris, some at the date line and at the poles.
        0 => (number(random, -180, 180), number(random, -90, 90)),
        1 => (number(random, 175, 185), number(random, -20, 20)),
        _ => (number(random, 1, 4), number(random, 47, 50)),
    };
    match random.below(8) {
        0 => {
            let (right, top) = (x + number(random, 0, 3) + 0.1, (y + 1.5).min(90.0));
            let y = y.min(top - 0.5);
            format!("POLYGON(({x} {y}, {right} {y}, {right} {top}, {x} {top}, {x} {y}))")
        }
        1 => format!(
            "LINESTRING({x} {y}, {} {})",
            x + number(random, -5, 5),
            number(random, -90, 90)
        ),
        2 => format!("MULTIPOINT(({x} {y}), ({} {y}))", x + 0.5),
        _ => format!("POINT({x} {y})"),
    }
}

fn object(random: &mut Random) -> Term<'static> {
    let wkt = |text: String| Term::typed(text, WKT);
    let crs = "<http://www.opengis.net/def/crs/EPSG/0/";
    match random.below(24) {
        0 => wkt(format!(
            "{crs}4326> POINT({} {})",
            number(random, 47, 50),
            number(random, 1, 4)
        )),
        1 => wkt(format!(
            "{crs}3857> POINT({} {})",
            number(random, 1, 4) * 111_000.0,
            number(random, 60, 64) * 100_000.0
        )),
        2 => wkt("<http://example.com/plan> POINT(2 48)".to_owned()),
        3 => wkt([
            "POINT EMPTY",
            "no geometry",
            "POINT(2.1 100)",
            "POINT(722.1 48.1)",
            "LINESTRING(-170 48, 170 48)",
        ][random.below(5)]
        .to_owned()),
        4 => Term::typed(
            format!(
                "{{\"type\": \"Point\", \"coordinates\": [{}, {}]}}",
                number(random, 1, 4),
                number(random, 47, 50)
            ),
            GEO_JSON,
        ),
        5 => Term::typed(
            format!(
                "<LineString srsName='EPSG:4326'><posList>{} {} 3 48</posList></LineString>",
                number(random, 1, 4),
                number(random, 47, 50)
            ),
            GML,
        ),
        6 => Term::typed(
            [
                format!(
                    "<Point><coordinates>{},{}</coordinates></Point>",
                    number(random, 1, 4),
                    number(random, 47, 50)
                ),
                "<Point>".to_owned(),
            ][usize::from(random.below(8) == 0)]
            .clone(),
            KML,
        ),
        7 => [
            Term::string("a text that is no place at all"),
            iri("place"),
            Term::string("short"),
        ][random.below(3)]
        .clone(),
        _ => wkt(geometry(random)),
    }
}

fn quad(random: &mut Random) -> SmallQuad {
    let graph = (random.below(3) == 0).then(|| iri("g"));
    let subject = iri(&format!("s{}", random.below(100_000)));
    (subject, iri("at"), object(random), graph)
}

fn condition(random: &mut Random) -> String {
    let place = match random.below(12) {
        0 => "<http://example.com/plan> POINT(2 48)".to_owned(),
        1 => "POINT EMPTY".to_owned(),
        2 => "POINT(0 90)".to_owned(),
        3 => "POLYGON((1 47, 3 47, 3 49, 1 49, 1 47))".to_owned(),
        4 => "POINT(179.9 0)".to_owned(),
        _ => geometry(random),
    };
    let place = format!("\"{place}\"^^geo:wktLiteral");
    match random.below(4) {
        0 => {
            let relation = random.pick(&[
                "sfWithin",
                "sfIntersects",
                "sfContains",
                "sfTouches",
                "sfEquals",
                "ehCoveredBy",
                "rcc8ntpp",
                "sfDisjoint",
            ]);
            match random.below(2) {
                0 => format!("geof:{relation}(?w, {place})"),
                _ => format!("geof:{relation}({place}, ?w)"),
            }
        }
        1 => format!(
            "geof:distance({place}, ?w, uom:kilometre) <= {}",
            random.below(400)
        ),
        2 => format!(
            "geof:metricDistance(?w, {place}) < {}e3",
            random.below(3_000)
        ),
        _ => format!(
            "{} > geof:distance(?w, {place}, uom:degree)",
            number(random, 0, 3)
        ),
    }
}

impl Store {
    /// The rows, which are the same without the index; sorted if their order is not asked for.
    fn same(&self, query: &str, options: &QueryOptions, is_ordered: bool) -> Vec<String> {
        let without = QueryOptions {
            tuning: Tuning {
                uses_places_index: false,
                ..Tuning::default()
            },
            ..options.clone()
        };
        let (mut found, mut expected) = (self.rows(query, options), self.rows(query, &without));
        if !is_ordered {
            found.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(found, expected, "{query}");
        found
    }
}

fn asked(random: &mut Random) -> String {
    let condition = condition(random);
    match random.below(3) {
        0 => format!("SELECT ?s ?w {{ ?s <http://e/at> ?w FILTER({condition}) }}"),
        1 => {
            format!("SELECT ?s ?w ?g {{ GRAPH ?g {{ ?s <http://e/at> ?w }} FILTER({condition}) }}")
        }
        _ => format!(
            "SELECT ?s ?o {{ ?s <http://e/at> ?w OPTIONAL {{ ?s <http://e/at> ?o FILTER(isIRI(?o)) }} FILTER({condition} && isLiteral(?w)) }}"
        ),
    }
}

/// Commits, a checkpoint, a compaction of nothing, old states, and readers who see one graph.
#[test]
fn answers_are_those_without_the_index() {
    let mut found = 0;
    for seed in 0..25 {
        let random = &mut Random(seed);
        let base: Vec<SmallQuad> = (0..[0, 30, 120][random.below(3)])
            .map(|_| quad(random))
            .collect();
        let store = Store::of(&base);
        let mut all = base;
        let mut states = vec![store.engine.database().snapshot().commit()];
        let mut names = GraphNames::default();
        names.named.insert(iri("g"));
        let scope = ReadScope::only(Asker::Process, names);
        let of_graph = QueryOptions {
            scope,
            union_default_graph: true,
            ..QueryOptions::of_process()
        };
        for _ in 0..3 {
            for _ in 0..8 {
                let query = asked(random);
                found += store.same(&query, &QueryOptions::of_process(), false).len();
                store.same(&query, &of_graph, false);
                let at = At::Commit(states[random.below(states.len())]);
                let snapshot = store.engine.database().snapshot_at(at).unwrap();
                let old = QueryOptions {
                    snapshot: Some(snapshot),
                    ..QueryOptions::of_process()
                };
                store.same(&query, &old, false);
            }
            let inserted: Vec<SmallQuad> = (0..40).map(|_| quad(random)).collect();
            let deleted: Vec<SmallQuad> = all
                .iter()
                .filter(|_| random.below(5) == 0)
                .cloned()
                .collect();
            states.push(store.change(&inserted, &deleted));
            all.extend(inserted);
            if random.below(3) == 0 {
                store.writer.checkpoint().unwrap();
            }
        }
    }
    assert!(found > 2_000, "{found}");
}

/// Points on a grid around Paris, a few of other kinds, and names of all.
fn grid(random: &mut Random) -> Vec<SmallQuad> {
    let mut quads = Vec::new();
    for place in 0..3_000_u32 {
        let (x, y) = (
            f64::from(place % 60) / 20.0,
            47.0 + f64::from(place / 60) / 20.0,
        );
        let subject = iri(&format!("s{place}"));
        let text = format!("POINT({x} {y})");
        quads.push((subject.clone(), iri("at"), Term::typed(text, WKT), None));
        if place % 2 == 0 {
            quads.push((
                subject,
                iri("name"),
                Term::string(format!("the name of place {place}")),
                None,
            ));
        }
    }
    quads.extend((0..300).map(|_| {
        let (subject, predicate, object, _) = quad(random);
        (subject, predicate, object, None)
    }));
    quads
}

fn plan(store: &Store, query: &str) -> String {
    let prepared = store
        .engine
        .prepare(query, &QueryOptions::of_process())
        .unwrap();
    prepared.explain()
}

const FIRST: &str = "?s <http://e/at> ?w";
const NAMED: &str = "?s <http://e/at> ?w ; <http://e/name> ?n";

#[test]
fn what_is_near_is_looked_up() {
    let store = Store::of(&grid(&mut Random(1)));
    let paris = "\"POINT(1.501 48.002)\"^^geo:wktLiteral";
    for (condition, is_looked_up) in [
        (format!("geof:distance(?w, {paris}, uom:kilometre) < 20"), true),
        (format!("geof:distance(?w, {paris}, uom:kilometre) < 20000"), false),
        ("geof:sfWithin(?w, \"POLYGON((1 48, 1.2 48, 1.2 48.2, 1 48.2, 1 48))\"^^geo:wktLiteral)".to_owned(), true),
        (format!("geof:sfDisjoint(?w, {paris})"), false),
        ("geof:sfEquals(?w, \"POINT EMPTY\"^^geo:wktLiteral)".to_owned(), false),
    ] {
        for pattern in [FIRST, NAMED] {
            let query = format!("SELECT ?s {{ {pattern} FILTER({condition}) }}");
            store.same(&query, &QueryOptions::of_process(), false);
            let plan = plan(&store, &query);
            assert_eq!(plan.contains("RowsExec"), is_looked_up, "{query}\n{plan}");
        }
    }
}

#[test]
fn the_nearest_are_those_of_a_sort_of_all() {
    let mut random = Random(2);
    let store = Store::of(&grid(&mut random));
    let options = QueryOptions::of_process();
    for place in [
        "POINT(1.501 48.002)",
        "POINT(-120 -40)",
        "POINT(179.99 1)",
        "LINESTRING(1 48, 1.1 48.3)",
        "POINT(2 89.9)",
    ] {
        let call = format!("geof:distance(?w, \"{place}\"^^geo:wktLiteral, uom:metre)");
        for query in [
            format!("SELECT ?s {{ {NAMED} FILTER(BOUND(?w)) }} ORDER BY {call} ?s LIMIT 10"),
            format!(
                "SELECT ?s ?d {{ {NAMED} BIND({call} AS ?d) }} ORDER BY ?d ?s LIMIT 7 OFFSET 3"
            ),
            format!(
                "SELECT ?s ({call} AS ?d) {{ {FIRST} OPTIONAL {{ ?s <http://e/name> ?n }} FILTER(!BOUND(?n)) FILTER({call} > 1000) }} ORDER BY ?d ?s LIMIT 20"
            ),
            // What has no distance comes first.
            format!("SELECT ?s {{ {FIRST} }} ORDER BY {call} ?s LIMIT 60"),
            format!(
                "SELECT DISTINCT ?s {{ {FIRST} FILTER({call} < 1e5) }} ORDER BY {call} ?s LIMIT 5"
            ),
            // Fewer than are asked for, within any distance.
            format!(
                "SELECT ?s {{ {NAMED} FILTER(?n = \"the name of place 40\") }} ORDER BY {call} ?s LIMIT 3"
            ),
        ] {
            store.same(&query, &options, true);
        }
    }
    let call = "geof:distance(?w, \"POINT(1.501 48.002)\"^^geo:wktLiteral, uom:metre)";
    let nearest =
        format!("SELECT ?s {{ {NAMED} FILTER({call} >= 0) }} ORDER BY {call} ?s LIMIT 10");
    let explained = plan(&store, &nearest);
    assert!(explained.contains("FirstEnoughExec"), "{explained}");
    // What came since is found, what went is not, and old states are as they were.
    let before = store.same(&nearest, &options, true);
    let old = store.engine.database().snapshot();
    let found =
        format!("SELECT ?s ?w {{ {NAMED} FILTER({call} >= 0) }} ORDER BY {call} ?s LIMIT 1");
    assert_eq!(store.same(&found, &options, true).len(), 1);
    let new = iri("new");
    let place = Term::typed("POINT(1.501 48.0021)", WKT);
    let quads = vec![
        (new.clone(), iri("at"), place, None),
        (new, iri("name"), Term::string("a new one"), None),
    ];
    store.change(&quads, &[]);
    let after = store.same(&nearest, &options, true);
    assert_eq!(after[0], "<http://e/new>");
    assert_eq!(after[1..], before[..9]);
    let old = QueryOptions {
        snapshot: Some(old),
        ..options
    };
    assert_eq!(store.same(&nearest, &old, true), before);
}

#[test]
fn an_update_sees_its_own_places_and_none_of_those_that_were_taken_back() {
    let store = Store::of(&grid(&mut Random(3)));
    let options = UpdateOptions::of_process();
    let near = "geof:distance(?w, \"POINT(-50 -50)\"^^geo:wktLiteral, uom:kilometre) < 1";
    let add = |x: &str| {
        format!(
            "INSERT DATA {{ <http://e/{x}> <http://e/at> \"POINT({x} -50)\"^^geo:wktLiteral }} ;
            INSERT {{ ?s <http://e/found> true }} WHERE {{ ?s <http://e/at> ?w FILTER({near}) }}"
        )
    };
    let apply = |text: &str, is_kept: bool| {
        let update = store.engine.prepare_update(text, &options).unwrap();
        let mut transaction = store.writer.begin().unwrap();
        let applied = store.engine.apply(&update, &options, &mut transaction);
        store.runtime.block_on(applied).unwrap();
        if is_kept {
            transaction
                .commit(CommitOptions::default())
                .unwrap()
                .wait()
                .unwrap();
        }
    };
    let found = "SELECT ?s { ?s <http://e/found> true }";
    let none: [&str; 0] = [];
    apply(&add("-50.001"), false);
    assert_eq!(store.rows(found, &QueryOptions::of_process()), none);
    // Another place has its number now.
    apply(&add("-49"), true);
    assert_eq!(store.rows(found, &QueryOptions::of_process()), none);
    apply(&add("-50.002"), true);
    assert_eq!(
        store.rows(found, &QueryOptions::of_process()),
        ["<http://e/-50.002>"]
    );
    let query = format!("SELECT ?s {{ ?s <http://e/at> ?w FILTER({near}) }}");
    assert_eq!(
        store.same(&query, &QueryOptions::of_process(), false),
        ["<http://e/-50.002>"]
    );
}

#[test]
fn pairs_of_numbers_are_looked_up_by_ranges() {
    let random = &mut Random(4);
    let mut quads = Vec::new();
    let value = |low, high, random: &mut Random| {
        let text = format!("{}", number(random, low, high));
        match random.below(8) {
            0 => Term::typed(text, "http://www.w3.org/2001/XMLSchema#double"),
            4 => Term::typed(
                format!("{:E}", number(random, low, high)),
                "http://www.w3.org/2001/XMLSchema#double",
            ),
            1 => Term::typed(text, "http://www.w3.org/2001/XMLSchema#float"),
            2 => Term::string(text),
            3 => Term::typed(
                format!("{}", random.below(90)),
                "http://www.w3.org/2001/XMLSchema#integer",
            ),
            _ => Term::typed(text, "http://www.w3.org/2001/XMLSchema#decimal"),
        }
    };
    for town in 0..800 {
        let subject = iri(&format!("s{town}"));
        quads.push((subject.clone(), iri("lat"), value(-92, 92, random), None));
        quads.push((subject, iri("long"), value(-182, 182, random), None));
    }
    let store = Store::of(&quads);
    let options = QueryOptions::of_process();
    let point = "<http://jena.apache.org/function/spatial#convertLatLon>(?lat, ?long)";
    let mut found = 0;
    for place in [
        "POINT(0 40)",
        "POINT(179.5 -10)",
        "POINT(20 89)",
        "POLYGON((-20 -20, 30 -20, 30 41.5, -20 41.5, -20 -20))",
    ] {
        let place = format!("\"{place}\"^^geo:wktLiteral");
        for condition in [
            format!(
                "<http://jena.apache.org/function/spatial#nearby>({point}, {place}, 1500, uom:kilometre)"
            ),
            format!("geof:distance({place}, {point}, uom:kilometre) < 900"),
            format!("geof:sfWithin({point}, {place})"),
            format!("geof:sfEquals({place}, {point})"),
        ] {
            let query = format!(
                "SELECT ?s {{ ?s <http://e/lat> ?lat ; <http://e/long> ?long FILTER({condition}) }}"
            );
            found += store.same(&query, &options, false).len();
        }
    }
    assert!(found > 100, "{found}");
    let near = format!("geof:metricDistance({point}, \"POINT(0 40)\"^^geo:wktLiteral) < 1e5");
    let plan = plan(
        &store,
        &format!("SELECT ?s {{ ?s <http://e/lat> ?lat ; <http://e/long> ?long FILTER({near}) }}"),
    );
    assert!(
        plan.contains("filter (?lat >= \"39.1") && plan.contains("Posg"),
        "{plan}"
    );
}

/// Pairs of numbers of a kind, most of them near to Paris.
fn pairs(random: &mut Random, datatype: &str, most: i32) -> Vec<SmallQuad> {
    let datatype = format!("http://www.w3.org/2001/XMLSchema#{datatype}");
    let mut quads = Vec::new();
    for town in 0..2_500 {
        let subject = iri(&format!("s{town}"));
        let (latitude, longitude) = match random.below(3) {
            0 => (number(random, -most, most), number(random, -180, 180)),
            _ => (number(random, 47, 50), number(random, 0, 5)),
        };
        for (name, value) in [("lat", latitude), ("long", longitude)] {
            let text = match random.below(2) {
                0 if datatype.ends_with("double") && format!("{value:E}").contains('.') => {
                    format!("{value:E}")
                }
                _ if datatype.ends_with("decimal") => format!("{value:.2}"),
                _ => value.to_string(),
            };
            quads.push((
                subject.clone(),
                iri(name),
                Term::typed(text, datatype.clone()),
                None,
            ));
        }
        if town % 3 == 0 {
            quads.push((subject, iri("is"), iri("odd"), None));
        }
    }
    quads
}

#[test]
fn the_nearest_pairs_are_those_of_a_sort_of_all() {
    let random = &mut Random(5);
    for (datatype, most, is_looked_up) in [
        ("decimal", 90, true),
        ("double", 90, true),
        ("float", 90, false),
        // Some are no points, and come first.
        ("double", 95, false),
    ] {
        let store = Store::of(&pairs(random, datatype, most));
        let options = QueryOptions::of_process();
        let pattern = "?s <http://e/lat> ?lat ; <http://e/long> ?long";
        for place in [
            "POINT(2.35 48.85)",
            "POINT(-120 -40)",
            "POINT(179.99 1)",
            "LINESTRING(1 48, 1.1 48.3)",
            "POINT(2 89.9)",
            "<http://example.com/plan> POINT(1 1)",
        ] {
            let point = "<http://jena.apache.org/function/spatial#convertLatLon>(?lat, ?long)";
            let call = format!("geof:distance({point}, \"{place}\"^^geo:wktLiteral, uom:metre)");
            for query in [
                format!("SELECT ?s {{ {pattern} }} ORDER BY {call} ?s LIMIT 10"),
                format!(
                    "SELECT ?s ?d {{ {pattern} ; <http://e/is> <http://e/odd> BIND({call} AS ?d) }} ORDER BY ?d ?s LIMIT 7 OFFSET 3"
                ),
                format!(
                    "SELECT ?s {{ {pattern} FILTER({call} > 1e5) }} ORDER BY {call} ?s LIMIT 60"
                ),
                format!(
                    "SELECT ?s {{ {pattern} FILTER(?lat > 49.98) }} ORDER BY {call} ?s LIMIT 5"
                ),
            ] {
                store.same(&query, &options, true);
            }
        }
        let call = "geof:distance(<http://jena.apache.org/function/spatial#convertLatLon>(?lat, ?long), \"POINT(2.35 48.85)\"^^geo:wktLiteral, uom:metre)";
        let nearest = format!("SELECT ?s {{ {pattern} }} ORDER BY {call} ?s LIMIT 10");
        let explained = plan(&store, &nearest);
        assert_eq!(
            explained.contains("FirstEnoughExec"),
            is_looked_up,
            "{datatype}\n{explained}"
        );
        // What is no point comes first, and ends that.
        let broken = [
            (iri("broken"), iri("lat"), Term::string("north"), None),
            (
                iri("broken"),
                iri("long"),
                Term::typed("1", "http://www.w3.org/2001/XMLSchema#integer"),
                None,
            ),
        ];
        store.change(&broken, &[]);
        let found = store.same(&nearest, &options, true);
        assert!(most > 90 || found[0] == "<http://e/broken>", "{found:?}");
        assert!(!plan(&store, &nearest).contains("FirstEnoughExec"));
    }
}

/// What a million points cost with the index and without: `cargo test --release --test sparql
/// places_index -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn a_million_points() {
    use std::time::{Duration, Instant};
    let random = &mut Random(5);
    let quads: Vec<SmallQuad> = (0..1_000_000)
        .map(|place| {
            let (x, y) = (number(random, -180, 180), number(random, -70, 75));
            let text = format!("POINT({x:.2}{:03} {y})", random.below(1_000));
            let subject = iri(&format!("s{place}"));
            (subject, iri("at"), Term::typed(text, WKT), None)
        })
        .collect();
    let store = Store::of(&quads);
    let call = "geof:distance(?w, \"POINT(2.35 48.85)\"^^geo:wktLiteral, uom:kilometre)";
    let area = "\"POLYGON((2 48, 3 48, 3 49, 2.5 48.5, 2 48))\"^^geo:wktLiteral";
    let queries = [
        (
            "within 20 km",
            format!("SELECT ?s {{ {FIRST} FILTER({call} < 20) }}"),
        ),
        (
            "within an area",
            format!("SELECT ?s {{ {FIRST} FILTER(geof:sfWithin(?w, {area})) }}"),
        ),
        (
            "the nearest 10",
            format!("SELECT ?s {{ {FIRST} }} ORDER BY {call} LIMIT 10"),
        ),
    ];
    let with = QueryOptions::of_process();
    let without = QueryOptions {
        tuning: Tuning {
            uses_places_index: false,
            ..Tuning::default()
        },
        ..QueryOptions::of_process()
    };
    let time = |query: &str, options: &QueryOptions, runs: usize| -> (Duration, Vec<String>) {
        let mut times = Vec::new();
        let mut found = Vec::new();
        for _ in 0..runs {
            let start = Instant::now();
            found = store.rows(query, options);
            times.push(start.elapsed());
        }
        found.sort_unstable();
        times.sort_unstable();
        (times[runs / 2], found)
    };
    let before: Vec<_> = queries
        .iter()
        .map(|(_, query)| time(query, &without, 3))
        .collect();
    let start = Instant::now();
    while !plan(&store, &queries[0].1).contains("RowsExec") {
        std::thread::yield_now();
    }
    println!("made in {:?}", start.elapsed());
    for ((name, query), (slow, expected)) in queries.iter().zip(before) {
        let (quick, found) = time(query, &with, 21);
        assert_eq!(found, expected, "{name}");
        let ratio = slow.as_secs_f64() / quick.as_secs_f64();
        println!(
            "{name}: {} rows, {slow:?} without, {quick:?} with: {ratio:.0} times",
            found.len()
        );
    }
}

/// The same for pairs of numbers: the nearest, and what is near, with ranges and without.
#[test]
#[ignore = "a measurement"]
fn a_million_pairs() {
    use std::time::{Duration, Instant};
    for datatype in ["decimal", "double"] {
        let datatype = format!("http://www.w3.org/2001/XMLSchema#{datatype}");
        let random = &mut Random(6);
        let mut quads = Vec::with_capacity(2_000_000);
        for place in 0..1_000_000 {
            let subject = iri(&format!("s{place}"));
            // Three digits more must not leave the earth: then not all pairs are points.
            for (name, low, high) in [("lat", -70, 75), ("long", -179, 179)] {
                let text = format!("{:.2}{:03}", number(random, low, high), random.below(1_000));
                let text = match text.parse::<f64>().unwrap() {
                    value if datatype.ends_with("double") => value.to_string(),
                    _ => text,
                };
                quads.push((
                    subject.clone(),
                    iri(name),
                    Term::typed(text, datatype.clone()),
                    None,
                ));
            }
        }
        let store = Store::of(&quads);
        drop(quads);
        let point = "<http://jena.apache.org/function/spatial#convertLatLon>(?lat, ?long)";
        let call =
            format!("geof:distance({point}, \"POINT(2.35 48.85)\"^^geo:wktLiteral, uom:kilometre)");
        let pattern = "?s <http://e/lat> ?lat ; <http://e/long> ?long";
        let with = QueryOptions::of_process();
        let without = QueryOptions {
            tuning: Tuning {
                uses_places_index: false,
                ..Tuning::default()
            },
            ..QueryOptions::of_process()
        };
        for (name, query) in [
            (
                "within 20 km",
                format!("SELECT ?s {{ {pattern} FILTER({call} < 20) }}"),
            ),
            (
                "the nearest 10",
                format!("SELECT ?s {{ {pattern} }} ORDER BY {call} LIMIT 10"),
            ),
            (
                "the nearest 1",
                format!("SELECT ?s {{ {pattern} }} ORDER BY {call} LIMIT 1"),
            ),
        ] {
            let time = |options: &QueryOptions, runs: usize| -> (Duration, Vec<String>) {
                let mut times = Vec::new();
                let mut found = Vec::new();
                for _ in 0..runs {
                    let start = Instant::now();
                    found = store.rows(&query, options);
                    times.push(start.elapsed());
                }
                found.sort_unstable();
                times.sort_unstable();
                (times[runs / 2], found)
            };
            let (slow, expected) = time(&without, 3);
            let (quick, found) = time(&with, 21);
            assert_eq!(found, expected, "{name}");
            let ratio = slow.as_secs_f64() / quick.as_secs_f64();
            println!(
                "{datatype}, {name}: {} rows, {slow:?} without, {quick:?} with: {ratio:.0} times",
                found.len()
            );
        }
    }
}
