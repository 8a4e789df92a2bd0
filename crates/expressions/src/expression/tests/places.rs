//! Tests of GeoSPARQL's functions in expressions, from literals to literals. What they compute is
//! tested where it is computed, in `orrery_geo`.

use super::functions::ours_as_text;

const ONE: &str = "'POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))'^^geo:wktLiteral";
const POINT: &str = "'POINT(1 1)'^^geo:wktLiteral";
const JSON: &str = r#"'{"type":"Point","coordinates":[1,1]}'^^geo:geoJSONLiteral"#;

#[test]
fn literals_and_iris_are_read_and_written() {
    for (text, expected) in [
        (format!("geof:sfContains({ONE}, {POINT})"), "true"),
        (format!("geof:sfContains({POINT}, {ONE})"), "false"),
        (format!("geof:sfEquals({JSON}, {POINT})"), "true"),
        (format!("geof:relate({ONE}, {POINT}, 'T*****FF*')"), "true"),
        (format!("geof:dimension({ONE})"), "2"),
        (
            format!("geof:distance({POINT}, {JSON}, uom:metre) = 0"),
            "true",
        ),
        (
            format!(
                "geof:distance({POINT}, 'POINT(2 1)'^^geo:wktLiteral, '{}metre'^^xsd:anyURI) > 111000",
                "http://www.opengis.net/def/uom/OGC/1.0/"
            ),
            "true",
        ),
        (
            format!("geof:centroid({ONE})"),
            "\"POINT(1 1)\"^^<http://www.opengis.net/ont/geosparql#wktLiteral",
        ),
        (
            format!("geof:getSRID({JSON})"),
            "\"http://www.opengis.net/def/crs/OGC/1.3/CRS84\"^^xsd:anyURI",
        ),
        (format!("geof:sfContains({ONE}, 'POINT(1 1)')"), "error"),
        (format!("geof:sfContains({ONE}, 1/0)"), "error"),
        (format!("geof:distance({POINT}, {JSON}, 'metre')"), "error"),
        (
            format!("geof:distance({POINT}, {JSON}, uom:parsec)"),
            "error",
        ),
        (
            "<http://jena.apache.org/function/spatial#convertLatLon>(48.5, '2'^^xsd:float)"
                .to_owned(),
            "\"POINT(2 48.5)\"^^<http://www.opengis.net/ont/geosparql#wktLiteral",
        ),
    ] {
        assert_eq!(ours_as_text(&text), expected, "{text}");
    }
}
