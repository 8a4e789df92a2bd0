//! GeoSPARQL 1.1: geometries, their relations, distances and measures.
//!
//! ```text
//! "POINT(2.3 48.9)"^^geo:wktLiteral --parse--> Shape --\
//! "{"type": ...}"^^geo:geoJSONLiteral --parse--> Shape --+--> Function --> true, a number, another Shape, an IRI
//! "<gml:Point ...>"^^geo:gmlLiteral --parse--> Shape --+
//!                              a unit, a number, a pattern --/
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | `crs` | reference systems: which coordinates are degrees, and in which order they are written |
//! | `shape` | a geometry with its reference system |
//! | `notation`, `literal` | conversion between geometries and literals |
//! | `gml`, `kml`, `xml` | GML and KML geometries, and the XML reader |
//! | `units` | metres, miles, degrees |
//! | `relations` | spatial relations: simple features, Egenhofer, RCC8, DE-9IM |
//! | `measures` | distances, lengths and areas on the earth |
//! | `shapes` | functions from geometries to geometries: hulls, buffers, intersections |
//! | `functions` | GeoSPARQL's functions by name |
//! | `aggregates` | aggregates of geometries |
//!
//! The geometry itself is the `geo` crate's, in two dimensions: a height is kept as far as it is
//! asked for (`geof:maxZ`), and plays no part in relations and measures, as in simple features.
//! Nothing here knows terms, plans or files.
//!
//! On the earth, distances and lengths are along great circles of a sphere with the mean radius of
//! 6,371,008.8 m, areas those of the ellipsoid of WGS 84; relations, hulls and intersections take
//! degrees as if they were a plane, as GeoSPARQL has it. What crosses the antimeridian has to be
//! split there (RFC 7946, 3.1.9).

mod aggregates;
mod crs;
mod functions;
mod gml;
mod kml;
mod literal;
mod measures;
mod notation;
mod relations;
mod shape;
mod shapes;
mod units;
mod xml;

pub use aggregates::PlacesAggregate;
pub use crs::{CRS84, Crs};
pub use functions::{Answer, Argument, Function, JENA, NAMESPACE, Parameter, function};
pub use literal::{from_text, literal_of, text_of};
pub use measures::{EARTH_RADIUS_M, covering, distance_m, metres_of, surroundings};
pub use notation::{GEO_JSON_LITERAL, GML_LITERAL, KML_LITERAL, Notation, WKT_LITERAL};
pub use relations::Relation;
pub use shape::Shape;
