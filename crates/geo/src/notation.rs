//! The notations of geometries, by the datatypes of their literals.

/// The datatype of Well-Known Text.
pub const WKT_LITERAL: &str = "http://www.opengis.net/ont/geosparql#wktLiteral";
/// The datatype of GeoJSON.
pub const GEO_JSON_LITERAL: &str = "http://www.opengis.net/ont/geosparql#geoJSONLiteral";

/// In which notation a shape is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notation {
    /// Well-Known Text.
    Wkt,
    /// GeoJSON.
    GeoJson,
}

impl Notation {
    /// The notation of a datatype.
    pub fn of_datatype(iri: &str) -> Option<Self> {
        match iri {
            WKT_LITERAL => Some(Self::Wkt),
            GEO_JSON_LITERAL => Some(Self::GeoJson),
            _ => None,
        }
    }

    /// The datatype.
    pub fn datatype(self) -> &'static str {
        match self {
            Self::Wkt => WKT_LITERAL,
            Self::GeoJson => GEO_JSON_LITERAL,
        }
    }
}
