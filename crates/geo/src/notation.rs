//! The notations of geometries: WKT, GeoJSON, GML and KML, by datatype.

/// The datatype of Well-Known Text.
pub const WKT_LITERAL: &str = "http://www.opengis.net/ont/geosparql#wktLiteral";
/// The datatype of GeoJSON.
pub const GEO_JSON_LITERAL: &str = "http://www.opengis.net/ont/geosparql#geoJSONLiteral";
/// The datatype of GML.
pub const GML_LITERAL: &str = "http://www.opengis.net/ont/geosparql#gmlLiteral";
/// The datatype of KML.
pub const KML_LITERAL: &str = "http://www.opengis.net/ont/geosparql#kmlLiteral";

/// The notation of a geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notation {
    /// Well-Known Text.
    Wkt,
    /// GeoJSON.
    GeoJson,
    /// GML 3.2.
    Gml,
    /// KML 2.2.
    Kml,
}

impl Notation {
    /// All of them, by their datatypes' names.
    pub const ALL: [Self; 4] = [Self::GeoJson, Self::Gml, Self::Kml, Self::Wkt];

    /// The notation of a datatype.
    pub fn of_datatype(iri: &str) -> Option<Self> {
        match iri {
            WKT_LITERAL => Some(Self::Wkt),
            GEO_JSON_LITERAL => Some(Self::GeoJson),
            GML_LITERAL => Some(Self::Gml),
            KML_LITERAL => Some(Self::Kml),
            _ => None,
        }
    }

    /// The datatype.
    pub fn datatype(self) -> &'static str {
        match self {
            Self::Wkt => WKT_LITERAL,
            Self::GeoJson => GEO_JSON_LITERAL,
            Self::Gml => GML_LITERAL,
            Self::Kml => KML_LITERAL,
        }
    }
}
