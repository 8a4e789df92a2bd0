//! Coordinate reference systems.

use std::fmt;
use std::sync::Arc;

use geo::{Coord, Geometry, MapCoords};

/// Degrees of longitude and latitude, in this order: what a literal means that names none.
pub const CRS84: &str = "http://www.opengis.net/def/crs/OGC/1.3/CRS84";
const EPSG: &str = "http://www.opengis.net/def/crs/EPSG/0/";
/// The radius of the sphere that Web Mercator draws, in metres.
const MERCATOR_RADIUS_M: f64 = 6_378_137.0;

/// A reference system.
///
/// Geometries of the first three are held as degrees of longitude and latitude, so that they can be
/// compared with each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Crs {
    /// Degrees, longitude first.
    #[default]
    Crs84,
    /// EPSG:4326 and 4979, the same degrees, written with the latitude first.
    LatitudeFirst(u32),
    /// EPSG:3857, Web Mercator, in metres.
    WebMercator,
    /// Any other, as a plane about which nothing is known. The IRI as it was written.
    Plane(Arc<str>),
}

impl Crs {
    /// The system of an IRI.
    pub fn of_iri(iri: &str) -> Self {
        let plain = iri
            .strip_prefix("https://")
            .map(|rest| format!("http://{rest}"));
        let plain = plain.as_deref().unwrap_or(iri);
        if plain == CRS84 || plain == "urn:ogc:def:crs:OGC:1.3:CRS84" {
            return Self::Crs84;
        }
        let code = plain
            .strip_prefix(EPSG)
            .or_else(|| plain.strip_prefix("urn:ogc:def:crs:EPSG::"));
        match code {
            Some("4326") => Self::LatitudeFirst(4326),
            Some("4979") => Self::LatitudeFirst(4979),
            Some("3857") => Self::WebMercator,
            _ => Self::Plane(iri.into()),
        }
    }

    /// Whether its geometries are held as degrees of longitude and latitude.
    pub fn is_on_earth(&self) -> bool {
        !matches!(self, Self::Plane(_))
    }

    /// Whether geometries of both can be compared.
    pub fn goes_with(&self, other: &Self) -> bool {
        self == other || self.is_on_earth() && other.is_on_earth()
    }

    /// Coordinates as they are written, as they are held.
    pub(crate) fn held(&self, written: Geometry) -> Geometry {
        match self {
            Self::Crs84 | Self::Plane(_) => written,
            Self::LatitudeFirst(_) => written.map_coords(swapped),
            Self::WebMercator => written.map_coords(|Coord { x, y }| Coord {
                x: (x / MERCATOR_RADIUS_M).to_degrees(),
                y: (y / MERCATOR_RADIUS_M).sinh().atan().to_degrees(),
            }),
        }
    }

    /// Coordinates as they are held, as they are written. Web Mercator has no poles: what lies
    /// there is infinitely far away.
    pub(crate) fn written(&self, held: &Geometry) -> Geometry {
        match self {
            Self::Crs84 | Self::Plane(_) => held.clone(),
            Self::LatitudeFirst(_) => held.map_coords(swapped),
            Self::WebMercator => held.map_coords(|Coord { x, y }| Coord {
                x: x.to_radians() * MERCATOR_RADIUS_M,
                y: y.to_radians().tan().asinh() * MERCATOR_RADIUS_M,
            }),
        }
    }
}

fn swapped(Coord { x, y }: Coord) -> Coord {
    Coord { x: y, y: x }
}

/// The IRI.
impl fmt::Display for Crs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crs84 => f.write_str(CRS84),
            Self::LatitudeFirst(code) => write!(f, "{EPSG}{code}"),
            Self::WebMercator => write!(f, "{EPSG}3857"),
            Self::Plane(iri) => f.write_str(iri),
        }
    }
}

#[cfg(test)]
mod tests {
    use geo::Point;

    use super::*;

    #[test]
    fn iris_are_known_in_their_forms_and_come_back() {
        for (iri, expected) in [
            (CRS84, Crs::Crs84),
            ("urn:ogc:def:crs:OGC:1.3:CRS84", Crs::Crs84),
            (
                "https://www.opengis.net/def/crs/EPSG/0/4326",
                Crs::LatitudeFirst(4326),
            ),
            ("urn:ogc:def:crs:EPSG::3857", Crs::WebMercator),
            (
                "http://www.opengis.net/def/crs/EPSG/0/27700",
                Crs::Plane("http://www.opengis.net/def/crs/EPSG/0/27700".into()),
            ),
        ] {
            let crs = Crs::of_iri(iri);
            assert_eq!(crs, expected, "{iri}");
            assert_eq!(Crs::of_iri(&crs.to_string()), crs, "{iri}");
        }
        assert!(Crs::Crs84.goes_with(&Crs::WebMercator));
        assert!(!Crs::Crs84.goes_with(&Crs::Plane("x".into())));
    }

    #[test]
    fn web_mercator_is_turned_into_degrees_and_back() {
        // Where epsg.io has the Eiffel Tower.
        let written = Geometry::Point(Point::new(255_422.6, 6_250_868.9));
        let held = Crs::WebMercator.held(written.clone());
        let Geometry::Point(point) = &held else {
            panic!("{held:?}");
        };
        assert!((point.x() - 2.294_5).abs() < 1e-4, "{point:?}");
        assert!((point.y() - 48.858_2).abs() < 1e-3, "{point:?}");
        let Geometry::Point(back) = Crs::WebMercator.written(&held) else {
            panic!();
        };
        assert!((back.x() - 255_422.6).abs() < 1e-6 && (back.y() - 6_250_868.9).abs() < 1e-6);
    }
}
