//! Tests of spatial filters, as joins and as filters.

use super::{rows, rows_both_ways};
use crate::common::{Fixture, PREFIXES};

const PLACES: &str = r#"
    @prefix : <http://example.org/> .
    @prefix geo: <http://www.opengis.net/ont/geosparql#> .
    :paris a :Town ; geo:asWKT "POINT(2.3522 48.8566)"^^geo:wktLiteral ; :people 2100000 .
    :versailles a :Town ; geo:asWKT "POINT(2.1301 48.8014)"^^geo:wktLiteral ; :people 85000 .
    :lyon a :Town ; geo:asWKT "POINT(4.8357 45.7640)"^^geo:wktLiteral ; :people 520000 .
    :fiji a :Town ; geo:asWKT "POINT(179.9 -17)"^^geo:wktLiteral ; :people 900000 .
    :taveuni a :Town ; geo:asWKT "POINT(-179.9 -17)"^^geo:wktLiteral ; :people 9000 .
    :broken a :Town ; geo:asWKT "POINT(x)"^^geo:wktLiteral .
    :north a :Area ; geo:asWKT "POLYGON((1.5 48.1, 3.5 48.1, 3.5 49.2, 1.5 49.2, 1.5 48.1))"^^geo:wktLiteral .
    :south a :Area ; geo:asWKT '{"type":"Polygon","coordinates":[[[4,45],[5,45],[5,46],[4,46],[4,45]]]}'^^geo:geoJSONLiteral .
"#;

const PAIR: &str = "?t a :Town ; geo:asWKT ?place . ?a a :Area ; geo:asWKT ?area .";

#[test]
fn places_within_areas_are_found_by_a_join() {
    let fixture = Fixture::new(PLACES);
    let expected = [
        "a=<north> t=<paris>",
        "a=<north> t=<versailles>",
        "a=<south> t=<lyon>",
    ];
    for filter in [
        "geof:sfWithin(?place, ?area)",
        "geof:sfContains(?area, ?place)",
        "geof:sfIntersects(?area, ?place)",
        "geof:sfIntersects(?area, ?place) && geof:dimension(?place) = 0",
    ] {
        let query = format!("SELECT ?t ?a {{ {PAIR} FILTER({filter}) }}");
        let found = rows_both_ways(&fixture, &query);
        let mut found: Vec<String> = found.iter().map(|row| sorted(row)).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{filter}");
        let plan = fixture.analyze(&format!("{PREFIXES}{query}")).unwrap();
        assert!(
            plan.contains("sfWithin(?place, ?area)") || !filter.contains("Within"),
            "{plan}"
        );
    }
}

/// The bindings of a row by name.
fn sorted(row: &str) -> String {
    let mut bindings: Vec<&str> = row.split(' ').collect();
    bindings.sort_unstable();
    bindings.join(" ")
}

#[test]
fn places_that_are_written_beyond_a_pole_or_a_turn_are_where_they_are() {
    let fixture = Fixture::new(
        r#"
        @prefix : <http://example.org/> .
        @prefix geo: <http://www.opengis.net/ont/geosparql#> .
        :over a :Odd ; geo:asWKT "POINT(2 100)"^^geo:wktLiteral .
        :under a :Odd ; geo:asWKT "LINESTRING(2 -95, 3 -95)"^^geo:wktLiteral .
        :twice a :Odd ; geo:asWKT "POINT(718 10)"^^geo:wktLiteral .
        :thrice a :Odd ; geo:asWKT "POINT(-1082 10)"^^geo:wktLiteral .
        :north a :Place ; geo:asWKT "POINT(-178 80)"^^geo:wktLiteral .
        :south a :Place ; geo:asWKT "POINT(-178 -85)"^^geo:wktLiteral .
        :west a :Place ; geo:asWKT "POINT(-2 10)"^^geo:wktLiteral .
        :other a :Place ; geo:asWKT "POINT(2 80)"^^geo:wktLiteral .
    "#,
    );
    for (odd, place) in [("odd", "place"), ("place", "odd")] {
        let query = format!(
            "SELECT ?o ?p {{ ?o a :Odd ; geo:asWKT ?odd . ?p a :Place ; geo:asWKT ?place FILTER(geof:distance(?{odd}, ?{place}, uom:metre) < 1) }}"
        );
        let mut found: Vec<String> = rows_both_ways(&fixture, &query)
            .iter()
            .map(|row| sorted(row))
            .collect();
        found.sort_unstable();
        let expected = [
            "o=<over> p=<north>",
            "o=<thrice> p=<west>",
            "o=<twice> p=<west>",
            "o=<under> p=<south>",
        ];
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn all_notations_go_together() {
    let fixture = Fixture::new(
        r#"
        @prefix : <http://example.org/> .
        @prefix geo: <http://www.opengis.net/ont/geosparql#> .
        :wkt geo:asWKT "POINT(2 48)"^^geo:wktLiteral .
        :json geo:asGeoJSON '{"type":"Point","coordinates":[2,48]}'^^geo:geoJSONLiteral .
        :gml geo:asGML "<gml:Point xmlns:gml='http://www.opengis.net/gml/3.2' srsName='urn:ogc:def:crs:EPSG::4326'><gml:pos>48 2</gml:pos></gml:Point>"^^geo:gmlLiteral .
        :kml geo:asKML "<Point xmlns='http://www.opengis.net/kml/2.2'><coordinates>2,48</coordinates></Point>"^^geo:kmlLiteral .
        :broken geo:asKML "<Point"^^geo:kmlLiteral .
        :area geo:asWKT "POLYGON((1 47, 3 47, 3 49, 1 49, 1 47))"^^geo:wktLiteral .
    "#,
    );
    for (query, expected) in [
        (
            "SELECT ?s ?t { ?s ?p ?one . ?t ?q ?other FILTER(geof:sfEquals(?one, ?other)) }",
            17,
        ),
        (
            "SELECT ?s { ?s ?p ?one . :area geo:asWKT ?area FILTER(geof:sfWithin(?one, ?area)) }",
            5,
        ),
        (
            "SELECT ?s { ?s ?p ?one FILTER(geof:distance(?one, 'POINT(2 48)'^^geo:wktLiteral, uom:metre) < 1e-3) }",
            5,
        ),
        (
            "SELECT ?s { ?s ?p ?one } ORDER BY geof:distance(?one, '<Point><coordinates>2,48</coordinates></Point>'^^geo:kmlLiteral, uom:metre) LIMIT 3",
            3,
        ),
        (
            "PREFIX spatial: <http://jena.apache.org/spatial#> SELECT ?s { ?s spatial:nearby (48 2 1) }",
            5,
        ),
        (
            "SELECT ?all { { SELECT (geof:aggUnion(?one) AS ?all) { ?s geo:asGML|geo:asKML ?one FILTER(?s != :broken) } } FILTER(geof:sfEquals(?all, 'POINT(2 48)'^^geo:wktLiteral)) }",
            1,
        ),
        (
            "SELECT ?s { ?s geo:asWKT ?one FILTER(DATATYPE(geof:asGML(?one, 'gml-sf0')) = geo:gmlLiteral && DATATYPE(geof:asKML(?one)) = geo:kmlLiteral) }",
            2,
        ),
        (
            "SELECT ?s { ?s geo:asWKT ?one FILTER(geof:sfEquals(?one, geof:asGML(?one, <http://www.opengis.net/def/profile/ogc/2.0/gml-sf2>))) }",
            2,
        ),
    ] {
        let query = format!("PREFIX geo: <http://www.opengis.net/ont/geosparql#> {query}");
        assert_eq!(rows_both_ways(&fixture, &query).len(), expected, "{query}");
    }
}

#[test]
fn distances_join_across_the_date_line_too() {
    let fixture = Fixture::new(PLACES);
    let towns = "?t a :Town ; geo:asWKT ?one . ?u a :Town ; geo:asWKT ?other .";
    for (filter, expected) in [
        ("geof:distance(?one, ?other, uom:kilometre) < 30", 10),
        ("30.0 >= geof:distance(?one, ?other, uom:kilometre)", 10),
        ("geof:metricDistance(?one, ?other) < 1e3", 5),
        // Not as far as they are from themselves.
        ("geof:distance(?one, ?other, uom:metre) < 0", 0),
        ("geof:distance(?one, ?other, uom:metre) <= 0", 5),
        ("geof:distance(?one, ?other, uom:degree) < 180", 25),
        (
            "<http://jena.apache.org/function/spatial#nearby>(?one, ?other, 30, uom:kilometre)",
            10,
        ),
        // What is no number is no join, and no solution.
        ("geof:distance(?one, ?other, uom:kilometre) < 'near'", 0),
        ("geof:distance(?one, ?other, uom:parsec) < 1", 0),
    ] {
        // Paris and Versailles, and the two islands, are near to each other; each is to itself.
        let expected = if expected == 10 { 9 } else { expected };
        let query = format!("SELECT ?t ?u {{ {towns} FILTER({filter}) }}");
        assert_eq!(rows_both_ways(&fixture, &query).len(), expected, "{filter}");
    }
}

#[test]
fn other_conditions_and_steps_stay_where_they_belong() {
    let fixture = Fixture::new(PLACES);
    for (query, expected) in [
        // A condition of one side, one of both, and a part that is no side.
        (
            format!("SELECT ?t {{ {PAIR} ?t :people ?n FILTER(?n > 100000) FILTER(geof:sfWithin(?place, ?area)) }}"),
            2,
        ),
        (
            format!("SELECT ?t {{ {PAIR} FILTER(geof:sfWithin(?place, ?area)) FILTER(STR(?t) < STR(?a)) }}"),
            1,
        ),
        (
            format!("SELECT ?t ?x {{ {PAIR} VALUES ?x {{ 1 2 }} FILTER(geof:sfWithin(?place, ?area)) }}"),
            6,
        ),
        (
            format!("SELECT ?t {{ {PAIR} OPTIONAL {{ ?t :people ?n }} FILTER(geof:sfWithin(?place, ?area)) }}"),
            3,
        ),
        (
            format!("SELECT (COUNT(*) AS ?n) {{ {PAIR} FILTER(geof:sfWithin(?place, ?area)) }} GROUP BY ?a"),
            2,
        ),
        (
            format!("SELECT ?t {{ {PAIR} FILTER(geof:sfWithin(?place, ?area)) }} ORDER BY ?t LIMIT 2"),
            2,
        ),
        // Two of them between three parts.
        (
            format!("SELECT ?t ?u {{ {PAIR} ?u geo:asWKT ?third FILTER(geof:sfWithin(?place, ?area)) FILTER(geof:sfEquals(?third, ?place)) }}"),
            3,
        ),
        // One between things that are joined anyway, and what is not near.
        (
            "SELECT ?t { ?t geo:asWKT ?place FILTER(geof:sfWithin(?place, ?place)) }".to_owned(),
            7,
        ),
        (
            format!("SELECT ?t ?a {{ {PAIR} FILTER(geof:sfDisjoint(?place, ?area)) }}"),
            7,
        ),
        // Inside of what looks at rows around it.
        (
            "SELECT ?t { ?t a :Town ; geo:asWKT ?place FILTER EXISTS { ?a a :Area ; geo:asWKT ?area FILTER(geof:sfWithin(?place, ?area)) } }".to_owned(),
            3,
        ),
        (
            "SELECT ?t ?a { ?t a :Town ; geo:asWKT ?place OPTIONAL { ?a a :Area ; geo:asWKT ?area FILTER(geof:sfWithin(?place, ?area)) } }".to_owned(),
            6,
        ),
    ] {
        assert_eq!(rows_both_ways(&fixture, &query).len(), expected, "{query}");
    }
}

#[test]
fn names_of_functions_are_known_without_a_prefix() {
    let fixture = Fixture::new(PLACES);
    let query = "SELECT ?t { ?t geo:asWKT ?place FILTER(geof:dimension(?place) = 2) }";
    assert_eq!(rows(&fixture, query), ["t=<north>", "t=<south>"]);
}

#[test]
fn aggregates_make_one_shape_of_those_of_a_group() {
    let fixture = Fixture::new(PLACES);
    let good = "?t a :Town ; geo:asWKT ?place ; :people ?n .";
    let value = |query: &str| {
        let found = rows(&fixture, query);
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        found[0].clone()
    };
    // What a union of points is, told by the functions of two.
    let union = value(&format!(
        "SELECT (geof:numGeometries(geof:aggUnion(?place)) AS ?geometries) {{ {good} }}"
    ));
    assert!(union.contains("\"5\""), "{union}");
    let box_of_all = value(&format!(
        "SELECT (geof:minX(?b) AS ?w) (geof:maxY(?b) AS ?h) {{ {{ SELECT (geof:aggBoundingBox(?place) AS ?b) {{ {good} FILTER(?n > 80000 && ?n < 3000000 && ?t != :fiji) }} }} }}"
    ));
    assert!(
        box_of_all.contains("2.1301") && box_of_all.contains("48.8566"),
        "{box_of_all}"
    );
    // By groups, each its own; of a group with what is no geometry, none.
    let query = "SELECT ?a (geof:aggConvexHull(?place) AS ?hull) { ?t a :Town ; geo:asWKT ?place BIND(?t = :broken AS ?a) } GROUP BY ?a ORDER BY ?a";
    let found = rows(&fixture, query);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .any(|row| row.contains("POLYGON") && row.contains("false")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|row| row.contains("true") && !row.contains("hull")),
        "{found:?}"
    );
    // All that follow of the same: the hull's circle, distinct values, HAVING and ORDER BY, and
    // states in parts.
    for (query, expected) in [
        (format!("SELECT (geof:aggCentroid(DISTINCT ?place) AS ?c) {{ {good} VALUES ?twice {{ 1 2 }} FILTER(?t IN (:lyon)) }}"), "POINT(4.8357 45.764)"),
        (format!("SELECT (COUNT(*) AS ?c) {{ {good} }} HAVING (geof:dimension(geof:aggBoundingCircle(?place)) = 2)"), "\"5\""),
        (format!("SELECT (geof:aggUnion(?place) AS ?c) {{ {good} FILTER(?n > 1e9) }}"), ""),
        ("SELECT (geof:area(geof:aggUnion(?area), uom:square_kilometre) > 0 AS ?c) { ?a a :Area ; geo:asWKT ?area }".to_owned(), "true"),
    ] {
        let found = value(&query);
        assert!(found.contains(expected), "{query}: {found}");
    }
    let misplaced = fixture.ask(&format!(
        "{PREFIXES}SELECT ?t {{ {good} FILTER(geof:aggUnion(?place) = ?place) }}"
    ));
    let message = misplaced.map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("aggregate"), "{message}");
    let unknown = fixture.ask(&format!(
        "{PREFIXES}SELECT (geof:aggNothing(?place) AS ?x) {{ {good} }}"
    ));
    assert!(unknown.is_err());
}

const JENA: &str = r#"
    @prefix : <http://example.org/> .
    @prefix geo: <http://www.opengis.net/ont/geosparql#> .
    @prefix wgs: <http://www.w3.org/2003/01/geo/wgs84_pos#> .
    :paris geo:hasGeometry :g . :g geo:asWKT "POINT(2.3522 48.8566)"^^geo:wktLiteral .
    :versailles geo:hasDefaultGeometry [ geo:asGeoJSON '{"type":"Point","coordinates":[2.1301,48.8014]}'^^geo:geoJSONLiteral ] .
    :orly wgs:lat 48.7262 ; wgs:long 2.3652 ; a :Airport .
    :lyon a :Town ; geo:asWKT "POINT(4.8357 45.7640)"^^geo:wktLiteral .
    :fiji wgs:lat -17.0 ; wgs:long 179.9 .
    :taveuni geo:asWKT "POINT(-179.9 -17)"^^geo:wktLiteral .
"#;

#[test]
fn places_as_users_of_jena_ask_for_them() {
    let fixture = Fixture::new(JENA);
    let ask = |pattern: &str| {
        let query =
            format!("PREFIX spatial: <http://jena.apache.org/spatial#> SELECT ?s {{ {pattern} }}");
        let mut found = rows_both_ways(&fixture, &query);
        found.retain(|row| row.contains("s=<"));
        found.sort_unstable();
        found.join(" ").replace("s=", "")
    };
    let near = "<g> <orly> <paris> <versailles>";
    for (pattern, expected) in [
        ("?s spatial:nearby (48.85 2.35 30)", near),
        ("?s spatial:withinCircle (48.85 2.35 30000 uom:metre)", near),
        (
            "?s spatial:nearbyGeom ('POINT(2.35 48.85)'^^geo:wktLiteral 30 uom:kilometre -1)",
            near,
        ),
        ("?s spatial:nearby (48.85 2.35 30) ; a :Airport", "<orly>"),
        ("?s spatial:withinBox (45 4 46 5)", "<lyon>"),
        // Over the date line.
        (
            "?s spatial:intersectBox (-20 179 -10 -179)",
            "<fiji> <taveuni>",
        ),
        ("?s spatial:nearby (-17 180 30)", "<fiji> <taveuni>"),
        (
            "?s spatial:intersectBoxGeom ('LINESTRING(4.8357 45, 5 45.7640)'^^geo:wktLiteral)",
            "<lyon>",
        ),
        (
            "?s spatial:withinBoxGeom ('LINESTRING(4.8357 45, 5 45.7640)'^^geo:wktLiteral)",
            "",
        ),
        (
            ":orly spatial:nearby (48.85 2.35 30) . ?s a :Town",
            "<lyon>",
        ),
        (":orly spatial:nearby (48.85 2.35 1) . ?s a :Town", ""),
    ] {
        assert_eq!(ask(pattern), expected, "{pattern}");
    }
    let query = "PREFIX spatial: <http://jena.apache.org/spatial#> SELECT ?s { ?s spatial:nearby (48.85 2.35 30 uom:kilometre 2) }";
    assert_eq!(rows(&fixture, query).len(), 2);
    for (pattern, message) in [
        (
            "?s spatial:nearby (?lat 2.35 30)",
            "latitude longitude radius",
        ),
        ("?s spatial:nearby (1 2)", "latitude longitude radius"),
        ("?s spatial:withinBox (1 2 3)", "the least first"),
        ("?s spatial:equals (1)", "there are spatial:nearby"),
        ("?s spatial:nearby ?x", "a list of constants"),
    ] {
        let query = format!(
            "{PREFIXES}PREFIX spatial: <http://jena.apache.org/spatial#> SELECT ?s {{ {pattern} }}"
        );
        let error = fixture.ask(&query).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{pattern}: {error}");
    }
}
