//! The abstract tests of GeoSPARQL 1.1 (OGC 22-047r1, Annex A), requirement by requirement, with
//! cases of our own.
//!
//! The table of `docs/geo.md` has each requirement and whether it is met; that it is the same as
//! here is tested, too.

use std::collections::BTreeSet;

use super::rows_both_ways;
use crate::common::Fixture;

/// Features a to g, whose default geometries are written in all notations; and what is stated of
/// others.
const DATA: &str = r#"
    @prefix : <http://example.org/> .
    @prefix geo: <http://www.opengis.net/ont/geosparql#> .
    @prefix sf: <http://www.opengis.net/ont/sf#> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    :a a geo:Feature , :Area ; geo:hasDefaultGeometry :ga ; geo:hasGeometry :ga , :pa ; geo:hasArea "1.9e11"^^xsd:double ; geo:hasMetricArea 1.9e11 .
    :ga a geo:Geometry , sf:Polygon ; geo:asWKT "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"^^geo:wktLiteral ; geo:dimension 2 ; geo:coordinateDimension 2 ; geo:spatialDimension 2 ; geo:isEmpty false ; geo:isSimple true .
    :pa a geo:Geometry ; geo:asWKT "POINT(50 50)"^^geo:wktLiteral .
    :b a geo:Feature , :Area ; geo:hasDefaultGeometry :gb .
    :gb geo:asGML "<gml:Polygon xmlns:gml='http://www.opengis.net/gml/3.2'><gml:exterior><gml:LinearRing><gml:posList>0 1 1 1 1 2 0 2 0 1</gml:posList></gml:LinearRing></gml:exterior></gml:Polygon>"^^geo:gmlLiteral .
    :c a geo:Feature , :Area ; geo:hasDefaultGeometry :gc .
    :gc geo:asGeoJSON '{"type":"Polygon","coordinates":[[[4,0],[6,0],[6,2],[4,2],[4,0]]]}'^^geo:geoJSONLiteral .
    :d a geo:Feature , :Area ; geo:hasDefaultGeometry :gd .
    :gd geo:asKML "<Polygon xmlns='http://www.opengis.net/kml/2.2'><outerBoundaryIs><LinearRing><coordinates>3,3 5,3 5,5 3,5 3,3</coordinates></LinearRing></outerBoundaryIs></Polygon>"^^geo:kmlLiteral .
    :e a geo:Feature ; geo:hasDefaultGeometry :ge .
    :ge geo:asWKT "LINESTRING(2 -1, 2 1)"^^geo:wktLiteral .
    :g a geo:Feature , :Area ; geo:hasDefaultGeometry :gg .
    :gg geo:asWKT "<http://www.opengis.net/def/crs/EPSG/0/4326> POLYGON((1.5 1.5, 1.5 2, 2 2, 2 1.5, 1.5 1.5))"^^geo:wktLiteral .
    :collection a geo:FeatureCollection , geo:SpatialObjectCollection .
    :geometries a geo:GeometryCollection .
    :object a geo:SpatialObject ; geo:hasSize 1 ; geo:hasMetricSize 1.0 ; geo:hasLength 1 ; geo:hasMetricLength 1.0 ; geo:hasPerimeterLength 1 ; geo:hasMetricPerimeterLength 1.0 ;
        geo:hasArea 1 ; geo:hasMetricArea 1.0 ; geo:hasVolume 1 ; geo:hasMetricVolume 1.0 ; geo:hasCentroid :pa ; geo:hasBoundingBox :ga ; geo:hasSpatialResolution 1 ; geo:hasSerialization "x" .
"#;

/// The pairs of which a relation holds, of two different features; of areas only, for RCC8.
const RELATIONS: [(&str, &str); 24] = [
    ("sfEquals", ""),
    (
        "sfDisjoint",
        "bc bd bg be cd ce cg de dg eg cb db gb eb dc ec gc ed gd ge",
    ),
    ("sfIntersects", "ab ac ad ae ag ba ca da ea ga"),
    ("sfTouches", "ac ca"),
    ("sfCrosses", "ae ea"),
    ("sfWithin", "ba ga"),
    ("sfContains", "ab ag"),
    ("sfOverlaps", "ad da"),
    ("ehEquals", ""),
    (
        "ehDisjoint",
        "bc bd bg be cd ce cg de dg eg cb db gb eb dc ec gc ed gd ge",
    ),
    ("ehMeet", "ac ca"),
    ("ehOverlap", "ad da ae ea"),
    ("ehCovers", "ab"),
    ("ehCoveredBy", "ba"),
    ("ehInside", "ga"),
    ("ehContains", "ag"),
    ("rcc8eq", ""),
    ("rcc8dc", "bc bd bg cd cg dg cb db gb dc gc gd"),
    ("rcc8ec", "ac ca"),
    ("rcc8po", "ad da"),
    ("rcc8tppi", "ab"),
    ("rcc8tpp", "ba"),
    ("rcc8ntpp", "ga"),
    ("rcc8ntppi", "ag"),
];

const LITERAL: &str = "geo:hasDefaultGeometry/(geo:asWKT|geo:asGML|geo:asGeoJSON|geo:asKML)";
const A: &str = "'POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))'^^geo:wktLiteral";

/// What must hold, by requirement.
struct Case {
    requirement: &'static str,
    /// Conditions that must be true.
    conditions: Vec<String>,
    /// Patterns, and how many solutions they have.
    patterns: Vec<(String, usize)>,
}

fn case(requirement: &'static str, conditions: &[&str], patterns: &[(&str, usize)]) -> Case {
    let whole = |text: &str| text.replace("{A}", A);
    Case {
        requirement,
        conditions: conditions.iter().map(|it| whole(it)).collect(),
        patterns: patterns
            .iter()
            .map(|(it, rows)| (whole(it), *rows))
            .collect(),
    }
}

/// A property with one value in the data, each.
fn properties(requirement: &'static str, names: &[&str]) -> Case {
    let pattern = |name: &&str| (format!(":object geo:{name} ?value"), 1);
    Case {
        requirement,
        conditions: Vec::new(),
        patterns: names.iter().map(pattern).collect(),
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "core/sparql-protocol",
            &["1 = 1"],
            &[("?s ?p ?o . FILTER(?s = :b)", 3)],
        ),
        case(
            "core/spatial-object-class",
            &[],
            &[("?s a geo:SpatialObject", 1)],
        ),
        case("core/feature-class", &[], &[("?s a geo:Feature", 6)]),
        case(
            "core/spatial-object-collection-class",
            &[],
            &[("?s a geo:SpatialObjectCollection", 1)],
        ),
        case(
            "core/feature-collection-class",
            &[],
            &[("?s a geo:FeatureCollection", 1)],
        ),
        properties(
            "core/spatial-object-properties",
            &[
                "hasSize",
                "hasMetricSize",
                "hasLength",
                "hasMetricLength",
                "hasPerimeterLength",
                "hasMetricPerimeterLength",
                "hasArea",
                "hasMetricArea",
                "hasVolume",
                "hasMetricVolume",
            ],
        ),
        case(
            "geometry-extension/geometry-class",
            &[],
            &[("?s a geo:Geometry", 2)],
        ),
        case(
            "geometry-extension/geometry-collection-class",
            &[],
            &[("?s a geo:GeometryCollection", 1)],
        ),
        case(
            "geometry-extension/feature-properties",
            &[],
            &[
                ("?s geo:hasGeometry ?g", 2),
                ("?s geo:hasDefaultGeometry ?g", 6),
                ("?s geo:hasLength ?x", 1),
                ("?s geo:hasArea ?x", 2),
                ("?s geo:hasVolume ?x", 1),
                ("?s geo:hasCentroid ?x", 1),
                ("?s geo:hasBoundingBox ?x", 1),
                ("?s geo:hasSpatialResolution ?x", 1),
            ],
        ),
        case(
            "geometry-extension/geometry-properties",
            &[],
            &[
                ("?s geo:dimension 2", 1),
                ("?s geo:coordinateDimension 2", 1),
                ("?s geo:spatialDimension 2", 1),
                ("?s geo:isEmpty false", 1),
                ("?s geo:isSimple true", 1),
                ("?s geo:hasSerialization ?x", 1),
            ],
        ),
        case(
            "geometry-extension/query-functions",
            &[
                "ABS(geof:distance('POINT(0 0)'^^geo:wktLiteral, 'POINT(1 0)'^^geo:wktLiteral, uom:metre) - 111195.08) < 0.01",
                "geof:sfContains(geof:buffer('POINT(0 0)'^^geo:wktLiteral, 200, uom:kilometre), 'POINT(1 1)'^^geo:wktLiteral)",
                "!geof:sfContains(geof:buffer('POINT(0 0)'^^geo:wktLiteral, 100, uom:kilometre), 'POINT(1 1)'^^geo:wktLiteral)",
                "geof:sfEquals(geof:intersection({A}, 'POLYGON((3 3, 5 3, 5 5, 3 5, 3 3))'^^geo:wktLiteral), 'POLYGON((3 3, 4 3, 4 4, 3 4, 3 3))'^^geo:wktLiteral)",
                "geof:sfEquals(geof:union('POINT(1 1)'^^geo:wktLiteral, 'POINT(2 2)'^^geo:wktLiteral), 'MULTIPOINT((1 1), (2 2))'^^geo:wktLiteral)",
                "geof:isEmpty('POINT EMPTY'^^geo:wktLiteral) && !geof:isEmpty({A})",
                "geof:isSimple({A}) && !geof:isSimple('LINESTRING(0 0, 2 2, 0 2, 2 0)'^^geo:wktLiteral)",
                "ABS(geof:area('POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))'^^geo:wktLiteral, uom:square_kilometre) - 12308.8) < 0.1",
                "ABS(geof:length('LINESTRING(0 0, 1 0)'^^geo:wktLiteral, uom:metre) - 111195.08) < 0.01",
                "geof:numGeometries('MULTIPOINT((1 1), (2 2))'^^geo:wktLiteral) = 2 && geof:numGeometries({A}) = 1",
                "geof:sfEquals(geof:geometryN('MULTIPOINT((1 1), (2 2))'^^geo:wktLiteral, 2), 'POINT(2 2)'^^geo:wktLiteral)",
                "STR(geof:transform('POINT(2 48)'^^geo:wktLiteral, <http://www.opengis.net/def/crs/EPSG/0/4326>)) = '<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(48 2)'",
                "geof:dimension({A}) = 2 && geof:dimension('LINESTRING(0 0, 1 1)'^^geo:wktLiteral) = 1 && geof:dimension('POINT(0 0)'^^geo:wktLiteral) = 0",
                "geof:sfEquals(geof:difference({A}, 'POLYGON((2 0, 4 0, 4 4, 2 4, 2 0))'^^geo:wktLiteral), 'POLYGON((0 0, 2 0, 2 4, 0 4, 0 0))'^^geo:wktLiteral)",
                "geof:sfEquals(geof:symDifference('POINT(1 1)'^^geo:wktLiteral, 'MULTIPOINT((1 1), (2 2))'^^geo:wktLiteral), 'POINT(2 2)'^^geo:wktLiteral)",
                "geof:sfEquals(geof:envelope('LINESTRING(0 0, 4 4)'^^geo:wktLiteral), {A})",
                "geof:sfEquals(geof:boundary({A}), 'LINESTRING(0 0, 4 0, 4 4, 0 4, 0 0)'^^geo:wktLiteral)",
                "geof:minX({A}) = 0 && geof:maxX({A}) = 4 && geof:minY({A}) = 0 && geof:maxY({A}) = 4",
                "geof:minZ('LINESTRING Z(0 0 1, 1 1 5)'^^geo:wktLiteral) = 1 && geof:maxZ('LINESTRING Z(0 0 1, 1 1 5)'^^geo:wktLiteral) = 5",
            ],
            &[],
        ),
        case(
            "geometry-extension/srid-function",
            &[
                "STR(geof:getSRID({A})) = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84'",
                "STR(geof:getSRID('<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 2)'^^geo:wktLiteral)) = 'http://www.opengis.net/def/crs/EPSG/0/4326'",
                "STR(geof:getSRID('<Point srsName=\"urn:ogc:def:crs:EPSG::3857\"><pos>1 2</pos></Point>'^^geo:gmlLiteral)) = 'http://www.opengis.net/def/crs/EPSG/0/3857'",
            ],
            &[],
        ),
        case(
            "geometry-extension/sa-functions",
            &[],
            &[
                (
                    "{ SELECT (geof:aggBoundingBox(?l) AS ?x) { :a geo:hasDefaultGeometry/geo:asWKT ?l } } FILTER(geof:sfEquals(?x, {A}))",
                    1,
                ),
                (
                    "{ SELECT (geof:aggBoundingCircle(?l) AS ?x) { :a geo:hasDefaultGeometry/geo:asWKT ?l } } FILTER(geof:sfContains(?x, 'POINT(2 4.5)'^^geo:wktLiteral))",
                    1,
                ),
                (
                    "{ SELECT (geof:aggCentroid(?l) AS ?x) { :a geo:hasDefaultGeometry/geo:asWKT ?l } } FILTER(geof:sfEquals(?x, 'POINT(2 2)'^^geo:wktLiteral))",
                    1,
                ),
                (
                    "{ SELECT (geof:aggConcaveHull(?l) AS ?x) { :a geo:hasDefaultGeometry/geo:asWKT ?l } } FILTER(geof:dimension(?x) = 2)",
                    1,
                ),
                (
                    "{ SELECT (geof:aggConvexHull(?l) AS ?x) { :a geo:hasDefaultGeometry/geo:asWKT ?l } } FILTER(geof:sfEquals(?x, {A}))",
                    1,
                ),
                (
                    "{ SELECT (geof:aggUnion(?l) AS ?x) { :a geo:hasDefaultGeometry/geo:asWKT ?l } } FILTER(geof:sfEquals(?x, {A}))",
                    1,
                ),
            ],
        ),
        case(
            "geometry-extension/wkt-literal",
            &[
                "geof:sfWithin('POINT(1 1)'^^geo:wktLiteral, {A})",
                "geof:sfEquals('<http://www.opengis.net/def/crs/OGC/1.3/CRS84> POINT(1 1)'^^geo:wktLiteral, 'Point(1 1)'^^geo:wktLiteral)",
                "COALESCE(geof:isEmpty('POINT(1'^^geo:wktLiteral), 'error') = 'error'",
            ],
            &[],
        ),
        case(
            "geometry-extension/wkt-literal-default-srs",
            &[
                "STR(geof:getSRID('POINT(1 1)'^^geo:wktLiteral)) = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84'",
            ],
            &[],
        ),
        case(
            "geometry-extension/wkt-axis-order",
            &[
                "geof:sfEquals('<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(48 2)'^^geo:wktLiteral, 'POINT(2 48)'^^geo:wktLiteral)",
            ],
            &[],
        ),
        case(
            "geometry-extension/wkt-literal-empty",
            &["geof:isEmpty(''^^geo:wktLiteral)"],
            &[],
        ),
        case(
            "geometry-extension/geometry-as-wkt-literal",
            &[],
            &[("?s geo:asWKT ?l", 4)],
        ),
        case(
            "geometry-extension/asWKT-function",
            &[
                "STR(geof:asWKT('<Point><coordinates>1,2</coordinates></Point>'^^geo:kmlLiteral)) = 'POINT(1 2)'",
            ],
            &[],
        ),
        case(
            "geometry-extension/gml-literal",
            &[
                "geof:sfWithin('<gml:Point xmlns:gml=\"http://www.opengis.net/gml/3.2\"><gml:pos>1 1</gml:pos></gml:Point>'^^geo:gmlLiteral, {A})",
                // As much data in RDF write it.
                "geof:sfWithin('<gml:Point srsName=\"EPSG:4326\" xmlns:gml=\"http://www.opengis.net/ont/gml\"><gml:coordinates>1,1</gml:coordinates></gml:Point>'^^geo:gmlLiteral, {A})",
                "COALESCE(geof:isEmpty('<gml:Solid/>'^^geo:gmlLiteral), 'error') = 'error'",
            ],
            &[],
        ),
        case(
            "geometry-extension/gml-literal-empty",
            &["geof:isEmpty(''^^geo:gmlLiteral)"],
            &[],
        ),
        case("geometry-extension/gml-profile", &[], &[]),
        case(
            "geometry-extension/geometry-as-gml-literal",
            &[],
            &[("?s geo:asGML ?l", 1)],
        ),
        case(
            "geometry-extension/asGML-function",
            &[
                "DATATYPE(geof:asGML({A}, 'gml-sf0')) = geo:gmlLiteral && geof:sfEquals(geof:asGML({A}, 'gml-sf0'), {A})",
            ],
            &[],
        ),
        case(
            "geometry-extension/geojson-literal",
            &[
                "geof:sfWithin('{\"type\": \"Point\", \"coordinates\": [1, 1]}'^^geo:geoJSONLiteral, {A})",
                "COALESCE(geof:isEmpty('{\"type\": \"Point\"}'^^geo:geoJSONLiteral), 'error') = 'error'",
            ],
            &[],
        ),
        case(
            "geometry-extension/geojson-literal-default-srs",
            &[
                "STR(geof:getSRID('{\"type\": \"Point\", \"coordinates\": [1, 1]}'^^geo:geoJSONLiteral)) = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84'",
            ],
            &[],
        ),
        case(
            "geometry-extension/geojson-literal-empty",
            &["geof:isEmpty(''^^geo:geoJSONLiteral)"],
            &[],
        ),
        case(
            "geometry-extension/geometry-as-geojson-literal",
            &[],
            &[("?s geo:asGeoJSON ?l", 1)],
        ),
        case(
            "geometry-extension/asGeoJSON-function",
            &[
                "DATATYPE(geof:asGeoJSON({A})) = geo:geoJSONLiteral && geof:sfEquals(geof:asGeoJSON({A}), {A})",
            ],
            &[],
        ),
        case(
            "geometry-extension/kml-literal",
            &[
                "geof:sfWithin('<Point xmlns=\"http://www.opengis.net/kml/2.2\"><coordinates>1,1</coordinates></Point>'^^geo:kmlLiteral, {A})",
                "COALESCE(geof:isEmpty('<Point><coordinates>1</coordinates></Point>'^^geo:kmlLiteral), 'error') = 'error'",
            ],
            &[],
        ),
        case(
            "geometry-extension/kml-literal-default-srs",
            &[
                "STR(geof:getSRID('<Point><coordinates>1,1</coordinates></Point>'^^geo:kmlLiteral)) = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84'",
            ],
            &[],
        ),
        case(
            "geometry-extension/kml-literal-empty",
            &["geof:isEmpty(''^^geo:kmlLiteral)"],
            &[],
        ),
        case(
            "geometry-extension/geometry-as-kml-literal",
            &[],
            &[("?s geo:asKML ?l", 1)],
        ),
        case(
            "geometry-extension/asKML-function",
            &["DATATYPE(geof:asKML({A})) = geo:kmlLiteral && geof:sfEquals(geof:asKML({A}), {A})"],
            &[],
        ),
        case(
            "geometry-topology-extension/relate-query-function",
            &[
                "geof:relate('POINT(1 1)'^^geo:wktLiteral, {A}, 'T*F**F***')",
                "!geof:relate('POINT(5 1)'^^geo:wktLiteral, {A}, 'T*F**F***')",
                "geof:relate({A}, {A}, 'TFFFTFFFT')",
            ],
            &[],
        ),
    ]
}

/// Requirements about relations: their prefixes, and where the relations are asked for.
const OF_RELATIONS: [(&str, &str); 9] = [
    ("topology-vocab-extension/sf-spatial-relations", "sf"),
    ("topology-vocab-extension/eh-spatial-relations", "eh"),
    ("topology-vocab-extension/rcc8-spatial-relations", "rcc8"),
    ("geometry-topology-extension/sf-query-functions", "sf"),
    ("geometry-topology-extension/eh-query-functions", "eh"),
    ("geometry-topology-extension/rcc8-query-functions", "rcc8"),
    ("query-rewrite-extension/sf-query-rewrite", "sf"),
    ("query-rewrite-extension/eh-query-rewrite", "eh"),
    ("query-rewrite-extension/rcc8-query-rewrite", "rcc8"),
];

/// What is not done; `docs/geo.md` says why.
const NOT_DONE: [&str; 7] = [
    "geometry-extension/dggs-literal",
    "geometry-extension/dggs-literal-empty",
    "geometry-extension/geometry-as-dggs-literal",
    "geometry-extension/asDGGS-function",
    "rdfs-entailment-extension/bgp-rdfs-ent",
    "rdfs-entailment-extension/wkt-geometry-types",
    "rdfs-entailment-extension/gml-geometry-types",
];

fn asked(fixture: &Fixture, query: &str) -> Vec<String> {
    let query = format!("PREFIX geo: <http://www.opengis.net/ont/geosparql#> {query}");
    rows_both_ways(fixture, &query)
}

#[test]
fn requirements_of_the_standard_are_met() {
    let fixture = Fixture::new(DATA);
    for case in cases() {
        for condition in case.conditions {
            let query = format!("SELECT (1 AS ?ok) {{ FILTER({condition}) }}");
            let found = asked(&fixture, &query).len();
            assert_eq!(found, 1, "{}: {condition}", case.requirement);
        }
        for (pattern, expected) in case.patterns {
            let found = asked(&fixture, &format!("SELECT * {{ {pattern} }}")).len();
            assert_eq!(found, expected, "{}: {pattern}", case.requirement);
        }
    }
}

/// `x=<a> y=<b>` as `ab`.
fn pairs(rows: &[String]) -> BTreeSet<String> {
    let pair = |row: &String| {
        let mut bindings: Vec<&str> = row.split(' ').collect();
        bindings.sort_unstable();
        let ends = bindings.iter().map(|it| it[2..].trim_matches(['<', '>']));
        ends.collect::<String>()
    };
    rows.iter().map(pair).collect()
}

#[test]
fn relations_are_functions_and_properties() {
    let fixture = Fixture::new(DATA);
    for (name, expected) in RELATIONS {
        let expected: BTreeSet<String> = expected.split_whitespace().map(str::to_owned).collect();
        let kind = match name.starts_with("rcc8") {
            true => ":Area",
            false => "geo:Feature",
        };
        let both = format!("?x a {kind} . ?y a {kind} . FILTER(?x != ?y)");
        let converted = [
            ["?l", "?m"],
            ["geof:asWKT(?l)", "geof:asWKT(?m)"],
            ["geof:asGML(?l, '3.2')", "geof:asGML(?m, '3.2')"],
            ["geof:asGeoJSON(?l)", "geof:asGeoJSON(?m)"],
            ["geof:asKML(?l)", "geof:asKML(?m)"],
            ["geof:asGML(?l, '3.2')", "geof:asKML(?m)"],
        ];
        for [one, other] in converted {
            let query = format!(
                "SELECT ?x ?y {{ {both} ?x {LITERAL} ?l . ?y {LITERAL} ?m FILTER(geof:{name}({one}, {other})) }}"
            );
            assert_eq!(pairs(&asked(&fixture, &query)), expected, "{query}");
        }
        let query = format!("SELECT ?x ?y {{ {both} ?x geo:{name} ?y }}");
        assert_eq!(pairs(&asked(&fixture, &query)), expected, "{query}");
        // Each feature to itself, and with its geometry.
        let is_equal = ["sfEquals", "ehEquals", "rcc8eq"].contains(&name);
        let query = format!("SELECT ?x {{ ?x a :Area ; geo:{name} ?x }}");
        let itself = ["sfIntersects", "sfWithin", "sfContains"].contains(&name) || is_equal;
        let found = asked(&fixture, &query).len();
        assert_eq!(found, if itself { 5 } else { 0 }, "{query}");
        let query = format!("SELECT ?x {{ :a geo:{name} ?x FILTER(?x = :ga) }}");
        assert_eq!(
            asked(&fixture, &query).len(),
            usize::from(itself),
            "{query}"
        );
        // What is stated alone.
        let stated = format!(
            "@prefix geo: <http://www.opengis.net/ont/geosparql#> . <http://example.org/x> geo:{name} <http://example.org/y> ."
        );
        for more in ["", DATA] {
            let fixture = Fixture::new(&format!("{more}\n{stated}"));
            let query = format!("SELECT ?y {{ :x geo:{name} ?y }}");
            assert_eq!(asked(&fixture, &query), ["y=<y>"], "{query}");
        }
    }
}

/// The rows of the table in the documentation: a requirement, and whether it is met.
#[test]
fn the_documentation_has_each_requirement() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/geo.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut written = BTreeSet::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", requirements, is_met, ..] = cells.as_slice()
            && requirements.starts_with('`')
            && ["yes", "no"].iter().any(|it| is_met.starts_with(it))
        {
            let (class, names) = requirements.split_once('/').unwrap();
            for name in names.split(',') {
                let name = name.trim().trim_matches('`');
                written.insert((
                    format!("{}/{name}", class.trim_matches('`')),
                    is_met.starts_with("yes"),
                ));
            }
        }
    }
    let met = cases().into_iter().map(|case| case.requirement);
    let met = met.chain(OF_RELATIONS.iter().map(|(requirement, _)| *requirement));
    let met = met.map(|it| (it.to_owned(), true));
    let not = NOT_DONE.iter().map(|it| ((*it).to_owned(), false));
    let expected: BTreeSet<(String, bool)> = met.chain(not).collect();
    assert_eq!(written, expected);
    // The profiles of GML that are supported (geometry-extension/gml-profile).
    assert!(text.contains("Simple Features profile (OGC 10-100r3, levels 0 to 2)"));
    for (_, family) in OF_RELATIONS {
        assert!(RELATIONS.iter().any(|(name, _)| name.starts_with(family)));
    }
}
