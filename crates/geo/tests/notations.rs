//! Tests of GML and KML: reading, writing, and hostile texts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use orrery_geo::{Answer, Argument, NAMESPACE, Notation, Shape, from_text, function, text_of};
use proptest::prelude::*;

const GML: &str = "xmlns:gml=\"http://www.opengis.net/gml/3.2\"";

fn wkt_of(text: &str, notation: Notation) -> Option<String> {
    text_of(&from_text(text, notation)?, Notation::Wkt)
}

#[test]
fn gml_is_read_as_what_it_means() {
    let wkt = |text: &str| wkt_of(&text.replace("GML", GML), Notation::Gml);
    let ring = "<gml:LinearRing><gml:posList>0 0 4 0 4 4 0 0</gml:posList></gml:LinearRing>";
    let polygon = format!("<gml:Polygon><gml:exterior>{ring}</gml:exterior></gml:Polygon>");
    for (text, expected) in [
        (
            "<gml:Point GML><gml:pos>1 2.50</gml:pos></gml:Point>",
            "POINT(1 2.5)",
        ),
        (
            "<Point xmlns='http://www.opengis.net/gml'><coordinates>1,2</coordinates></Point>",
            "POINT(1 2)",
        ),
        (
            "<Point><pos srsDimension='3'>1 2 3</pos></Point>",
            "POINT(1 2)",
        ),
        (
            "<gml:Point GML gml:id='p'><gml:name>n</gml:name><gml:pos>1e0 -2E-1</gml:pos></gml:Point>",
            "POINT(1 -0.2)",
        ),
        ("<gml:Point GML/>", "MULTIPOINT EMPTY"),
        ("", "GEOMETRYCOLLECTION EMPTY"),
        (
            "<LineString><posList>1 2\n 3 4</posList></LineString>",
            "LINESTRING(1 2,3 4)",
        ),
        (
            "<LineString srsDimension='3'><posList>1 2 9 3 4 9</posList></LineString>",
            "LINESTRING(1 2,3 4)",
        ),
        (
            "<LineString><pos>1 2</pos><pointProperty><Point><pos>3 4</pos></Point></pointProperty></LineString>",
            "LINESTRING(1 2,3 4)",
        ),
        (
            "<LineString><coordinates decimal=',' cs=' ' ts=';'>1,5 2;3 4</coordinates></LineString>",
            "LINESTRING(1.5 2,3 4)",
        ),
        (
            "<Curve><segments><LineStringSegment><posList>0 0 1 1</posList></LineStringSegment><LineStringSegment><posList>1 1 2 0</posList></LineStringSegment></segments></Curve>",
            "LINESTRING(0 0,1 1,2 0)",
        ),
        (
            &polygon.replace("<gml:Polygon", "<gml:Polygon GML"),
            "POLYGON((0 0,4 0,4 4,0 0))",
        ),
        (
            "<Polygon><outerBoundaryIs><LinearRing><coordinates>0,0 9,0 9,9 0,0</coordinates></LinearRing></outerBoundaryIs><innerBoundaryIs><LinearRing><coordinates>4,2 5,2 5,3 4,2</coordinates></LinearRing></innerBoundaryIs></Polygon>",
            "POLYGON((0 0,9 0,9 9,0 0),(4 2,5 2,5 3,4 2))",
        ),
        (
            "<Polygon><exterior><Ring><curveMember><LineString><posList>0 0 4 0 4 4</posList></LineString></curveMember><curveMember><LineString><posList>4 4 0 0</posList></LineString></curveMember></Ring></exterior></Polygon>",
            "POLYGON((0 0,4 0,4 4,0 0))",
        ),
        (
            &format!(
                "<gml:Surface GML><gml:patches><gml:PolygonPatch><gml:exterior>{ring}</gml:exterior></gml:PolygonPatch></gml:patches></gml:Surface>"
            ),
            "POLYGON((0 0,4 0,4 4,0 0))",
        ),
        (
            "<MultiPoint><pointMember><Point><pos>1 2</pos></Point></pointMember><pointMembers><Point><pos>3 4</pos></Point><Point><pos>5 6</pos></Point></pointMembers></MultiPoint>",
            "MULTIPOINT((1 2),(3 4),(5 6))",
        ),
        (
            "<MultiLineString><lineStringMember><LineString><posList>1 2 3 4</posList></LineString></lineStringMember></MultiLineString>",
            "MULTILINESTRING((1 2,3 4))",
        ),
        (
            &format!(
                "<gml:MultiSurface GML><gml:surfaceMember>{polygon}</gml:surfaceMember></gml:MultiSurface>"
            ),
            "MULTIPOLYGON(((0 0,4 0,4 4,0 0)))",
        ),
        (
            &format!(
                "<gml:MultiGeometry GML><gml:geometryMember><gml:Point><gml:pos>1 2</gml:pos></gml:Point></gml:geometryMember><gml:geometryMembers>{polygon}</gml:geometryMembers></gml:MultiGeometry>"
            ),
            "GEOMETRYCOLLECTION(POINT(1 2),POLYGON((0 0,4 0,4 4,0 0)))",
        ),
        (
            "<Envelope><lowerCorner>1 2</lowerCorner><upperCorner>3 4</upperCorner></Envelope>",
            "POLYGON((3 2,3 4,1 4,1 2,3 2))",
        ),
        (
            "<Point srsName='http://www.opengis.net/def/crs/OGC/1.3/CRS84'><pos>1 2</pos></Point>",
            "POINT(1 2)",
        ),
        (
            "<Point srsName='EPSG:4326'><pos>1 2</pos></Point>",
            "POINT(1 2)",
        ),
        (
            "<Point srsName='urn:ogc:def:crs:EPSG::4326'><pos>1 2</pos></Point>",
            "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 2)",
        ),
        (
            "<MultiPoint><pointMember><Point srsName='urn:x'><pos>1 2</pos></Point></pointMember></MultiPoint>",
            "<urn:x> MULTIPOINT((1 2))",
        ),
        (
            "<LineString srsName='urn:ogc:def:crs:EPSG::4979'><posList>1 2 9 3 4 9</posList></LineString>",
            "<http://www.opengis.net/def/crs/EPSG/0/4979> LINESTRING(1 2,3 4)",
        ),
    ] {
        assert_eq!(wkt(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn kml_is_read_as_what_it_means() {
    let wkt = |text: &str| wkt_of(text, Notation::Kml);
    for (text, expected) in [
        (
            "<Point xmlns='http://www.opengis.net/kml/2.2'><extrude>1</extrude><coordinates> 1,2,30 </coordinates></Point>",
            "POINT(1 2)",
        ),
        (
            "<k:Point xmlns:k='http://earth.google.com/kml/2.1'><k:coordinates>1,2</k:coordinates></k:Point>",
            "POINT(1 2)",
        ),
        ("", "GEOMETRYCOLLECTION EMPTY"),
        (
            "<LineString><coordinates>1,2\n3,4</coordinates></LineString>",
            "LINESTRING(1 2,3 4)",
        ),
        (
            "<LinearRing><coordinates>0,0 1,0 1,1 0,0</coordinates></LinearRing>",
            "LINESTRING(0 0,1 0,1 1,0 0)",
        ),
        (
            "<Polygon><outerBoundaryIs><LinearRing><coordinates>0,0 9,0 9,9 0,0</coordinates></LinearRing></outerBoundaryIs><innerBoundaryIs><LinearRing><coordinates>4,2 5,2 5,3 4,2</coordinates></LinearRing></innerBoundaryIs></Polygon>",
            "POLYGON((0 0,9 0,9 9,0 0),(4 2,5 2,5 3,4 2))",
        ),
        (
            "<MultiGeometry><Point><coordinates>1,2</coordinates></Point><LineString><coordinates>1,2 3,4</coordinates></LineString></MultiGeometry>",
            "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(1 2,3 4))",
        ),
        (
            "<MultiGeometry><Point><coordinates>1,2</coordinates></Point><Point><coordinates>3,4</coordinates></Point></MultiGeometry>",
            "MULTIPOINT((1 2),(3 4))",
        ),
    ] {
        assert_eq!(wkt(text).as_deref(), Some(expected), "{text}");
    }
    let height = from_text(
        "<Point><coordinates>1,2,30</coordinates></Point>",
        Notation::Kml,
    );
    let function = function(&format!("{NAMESPACE}maxZ")).unwrap();
    let height = function.call(&[Argument::Shape(&height.unwrap())]);
    assert!(matches!(height, Some(Answer::Number(30.0))), "{height:?}");
}

#[test]
fn what_is_no_geometry_is_none() {
    let deep = |depth: usize| {
        let (open, close) = (
            "<MultiGeometry><geometryMember>",
            "</geometryMember></MultiGeometry>",
        );
        format!(
            "{}<Point><pos>1 2</pos></Point>{}",
            open.repeat(depth),
            close.repeat(depth)
        )
    };
    assert!(from_text(&deep(31), Notation::Gml).is_some());
    for text in [
        "POINT(1 2)",
        "<Point><pos>1</pos></Point>",
        "<Point><pos>1 2 3 4</pos></Point>",
        "<Point><pos>1 x</pos></Point>",
        "<Point><pos>NaN 1</pos></Point>",
        "<Point><pos>1 2 inf</pos></Point>",
        "<Point><pos>1e13 1</pos></Point>",
        "<Point><pos>1 2</pos>",
        "<Point><pos>1 2</pos></Point><Point/>",
        "<Point><pos>1 2</pos><pos>1 2</pos></Point>",
        "<Point srsDimension='3'><pos>1 2</pos></Point>",
        "<Point srsDimension='9'><pos>1 2</pos></Point>",
        "<Point srsName='urn:a'><pos srsName='urn:b'>1 2</pos></Point>",
        "<Point xmlns='http://example.com/'><pos>1 2</pos></Point>",
        "<gml:Point><gml:pos>1 2</gml:pos></gml:Point>",
        "<LineString><posList>1 2 3</posList></LineString>",
        "<LineString><posList>1 2</posList></LineString>",
        "<LineString srsDimension='3'><posList>1 2 3 4 5</posList></LineString>",
        "<Curve><foo/></Curve>",
        "<Surface><patches/></Surface>",
        "<Curve><segments><Arc><posList>0 0 1 1 2 0</posList></Arc></segments></Curve>",
        "<Polygon><exterior><LinearRing><posList>0 0 1 1 0 0</posList></LinearRing></exterior></Polygon>",
        "<Polygon><interior><LinearRing><posList>0 0 1 0 1 1 0 0</posList></LinearRing></interior></Polygon>",
        "<MultiPoint><pointMember><LineString><posList>0 0 1 1</posList></LineString></pointMember></MultiPoint>",
        "<Solid/>",
        "<!DOCTYPE a [<!ENTITY b '1 2'>]><Point><pos>&b;</pos></Point>",
        &deep(32),
        &deep(50_000),
    ] {
        assert!(from_text(text, Notation::Gml).is_none(), "{text:.80}");
    }
    let deep = |depth: usize| {
        let (open, close) = ("<MultiGeometry>", "</MultiGeometry>");
        let point = "<Point><coordinates>1,2</coordinates></Point><LineString><coordinates>1,2 3,4</coordinates></LineString>";
        format!("{}{point}{}", open.repeat(depth), close.repeat(depth))
    };
    assert!(from_text(&deep(31), Notation::Kml).is_some());
    for text in [
        "<Point><coordinates>1</coordinates></Point>",
        "<Point><coordinates>1, 2</coordinates></Point>",
        "<Point><coordinates>1,2 3,4</coordinates></Point>",
        "<Point xmlns='http://www.opengis.net/gml'><coordinates>1,2</coordinates></Point>",
        "<Placemark><Point><coordinates>1,2</coordinates></Point></Placemark>",
        "<MultiGeometry><Model/></MultiGeometry>",
        &deep(32),
        &deep(60),
    ] {
        assert!(from_text(text, Notation::Kml).is_none(), "{text:.80}");
    }
}

fn written(name: &str, shape: &Shape, profile: Option<&str>) -> Option<String> {
    let function = function(&format!("{NAMESPACE}{name}")).unwrap();
    let mut given = vec![Argument::Shape(shape)];
    given.extend(profile.map(Argument::Text));
    match function.call(&given)? {
        Answer::Literal(text, _) => Some(text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_are_written_with_their_namespaces() {
    let shape = from_text("MULTIPOINT((1 2), (3 4.5))", Notation::Wkt).unwrap();
    let gml = "<gml:MultiPoint xmlns:gml=\"http://www.opengis.net/gml/3.2\" srsName=\"http://www.opengis.net/def/crs/OGC/1.3/CRS84\" srsDimension=\"2\" gml:id=\"g1\"><gml:pointMember><gml:Point gml:id=\"g2\"><gml:pos>1 2</gml:pos></gml:Point></gml:pointMember><gml:pointMember><gml:Point gml:id=\"g3\"><gml:pos>3 4.5</gml:pos></gml:Point></gml:pointMember></gml:MultiPoint>";
    for profile in [
        "http://www.opengis.net/def/profile/ogc/2.0/gml-sf0",
        "GML 3.2",
        "3.2.1",
        "gml-sf2",
    ] {
        assert_eq!(
            written("asGML", &shape, Some(profile)).as_deref(),
            Some(gml),
            "{profile}"
        );
    }
    for profile in ["2.1.2", "3.1.1", "kml", "gml-sf3"] {
        assert_eq!(written("asGML", &shape, Some(profile)), None, "{profile}");
    }
    let kml = "<MultiGeometry xmlns=\"http://www.opengis.net/kml/2.2\"><Point><coordinates>1,2</coordinates></Point><Point><coordinates>3,4.5</coordinates></Point></MultiGeometry>";
    assert_eq!(written("asKML", &shape, None).as_deref(), Some(kml));
    // GML in the shape's system, KML always with the longitude first, and nothing of a plane.
    let latitude_first = from_text(
        "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(48 2)",
        Notation::Wkt,
    )
    .unwrap();
    let gml = written("asGML", &latitude_first, Some("3.2")).unwrap();
    assert!(
        gml.contains("EPSG/0/4326\"") && gml.contains("<gml:pos>48 2<"),
        "{gml}"
    );
    let kml = written("asKML", &latitude_first, None).unwrap();
    assert!(kml.contains("<coordinates>2,48<"), "{kml}");
    let plan = from_text("<http://example.com/a?b&c> POINT(7 9)", Notation::Wkt).unwrap();
    assert_eq!(written("asKML", &plan, None), None);
    let gml = written("asGML", &plan, Some("3.2")).unwrap();
    let back = from_text(&gml, Notation::Gml).unwrap();
    assert_eq!(back.crs(), plan.crs(), "{gml}");
    // What is made of a geometry is written as it was.
    let envelope = written("envelope", &from_text(&gml, Notation::Gml).unwrap(), None).unwrap();
    assert!(envelope.starts_with("<gml:Polygon"), "{envelope}");
}

/// Geometries as Well-Known Text, among them empty ones, and collections of collections.
fn geometry() -> impl Strategy<Value = String> {
    let at = || {
        (-180_i32..180, -90_i32..90)
            .prop_map(|(x, y)| format!("{} {}", f64::from(x) / 4.0, f64::from(y) / 4.0))
    };
    let line =
        move || prop::collection::vec(at(), 2..6).prop_map(|it| format!("({})", it.join(",")));
    let ring = move || {
        prop::collection::vec(at(), 3..6).prop_map(|mut it| {
            it.push(it[0].clone());
            format!("({})", it.join(","))
        })
    };
    let area =
        move || prop::collection::vec(ring(), 1..3).prop_map(|it| format!("({})", it.join(",")));
    let all = |name: &'static str, parts: BoxedStrategy<String>| {
        prop::collection::vec(parts, 0..4).prop_map(move |it| match it.is_empty() {
            true => format!("{name} EMPTY"),
            false => format!("{name}({})", it.join(",")),
        })
    };
    let one = prop_oneof![
        at().prop_map(|it| format!("POINT({it})")),
        line().prop_map(|it| format!("LINESTRING{it}")),
        area().prop_map(|it| format!("POLYGON{it}")),
        Just("LINESTRING EMPTY".to_owned()),
        Just("POLYGON EMPTY".to_owned()),
        all("MULTIPOINT", at().prop_map(|it| format!("({it})")).boxed()),
        all("MULTILINESTRING", line().boxed()),
        all("MULTIPOLYGON", area().boxed()),
    ];
    one.prop_recursive(3, 12, 4, move |inner| {
        all("GEOMETRYCOLLECTION", inner.boxed())
    })
}

/// The points of a geometry in their order.
fn points(shape: &Shape) -> String {
    let text = text_of(shape, Notation::Wkt).unwrap();
    let digits: Vec<&str> = text
        .split(|it: char| !(it.is_ascii_digit() || "-. ".contains(it)))
        .collect();
    digits
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(text in geometry()) {
        let shape = from_text(&text, Notation::Wkt).unwrap();
        let gml = text_of(&shape, Notation::Gml).unwrap();
        let back = from_text(&gml, Notation::Gml).unwrap();
        prop_assert_eq!(back.geometry(), shape.geometry(), "{}", gml);
        // KML has one name for all sets of geometries.
        let kml = text_of(&shape, Notation::Kml).unwrap();
        let back = from_text(&kml, Notation::Kml).unwrap();
        prop_assert_eq!(points(&back), points(&shape), "{}", kml);
    }

    #[test]
    fn no_text_does_harm(text in geometry(), cuts in prop::collection::vec((any::<prop::sample::Index>(), "[<>/a-zA-Z0-9 \"'&;.,-]{0,9}"), 1..4)) {
        let shape = from_text(&text, Notation::Wkt).unwrap();
        for notation in [Notation::Gml, Notation::Kml] {
            let mut text = text_of(&shape, notation).unwrap();
            for (place, new) in &cuts {
                let at = place.index(text.len());
                text.replace_range(at..text.len().min(at + new.len() / 2), new);
            }
            let _ = from_text(&text, notation);
        }
    }
}

/// Found by a comparison with shapely.
#[test]
fn an_edge_of_no_length_meets_what_its_point_does() {
    let shape = |text: &str| from_text(text, Notation::Wkt).unwrap();
    let one = shape("MULTILINESTRING((6 1,1 3),(2 5,0 5))");
    let other = shape("LINESTRING(1 6,2 0,6 1,6 1)");
    let function = function(&format!("{NAMESPACE}intersection")).unwrap();
    let Some(Answer::Literal(text, _)) =
        function.call(&[Argument::Shape(&one), Argument::Shape(&other)])
    else {
        panic!()
    };
    assert!(text.contains("(6 1)"), "{text}");
}
