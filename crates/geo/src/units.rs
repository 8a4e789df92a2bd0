//! Units of measure: OGC's names, as GeoSPARQL's examples have them, and QUDT's, which GeoSPARQL
//! 1.1 recommends.

const OGC: &str = "http://www.opengis.net/def/uom/OGC/1.0/";
const QUDT: &str = "http://qudt.org/vocab/unit/";
const FOOT_M: f64 = 0.304_8;
const YARD_M: f64 = 0.914_4;
const MILE_M: f64 = 1_609.344;
const NAUTICAL_MILE_M: f64 = 1_852.0;

/// The name of a unit within its vocabulary, and whether that is QUDT's.
fn name(iri: &str) -> Option<(&str, bool)> {
    let plain = iri
        .strip_prefix("https://")
        .or(iri.strip_prefix("http://"))?;
    let within = |vocabulary: &str| plain.strip_prefix(vocabulary.strip_prefix("http://")?);
    within(OGC)
        .map(|name| (name, false))
        .or_else(|| within(QUDT).map(|name| (name, true)))
}

/// How many metres a unit of length has; none if it is no unit of length that is known.
pub(crate) fn length_in_metres(iri: &str) -> Option<f64> {
    Some(match name(iri)? {
        ("metre" | "meter", false) | ("M", true) => 1.0,
        ("kilometre" | "kilometer", false) | ("KiloM", true) => 1_000.0,
        ("centimetre" | "centimeter", false) | ("CentiM", true) => 0.01,
        ("millimetre" | "millimeter", false) | ("MilliM", true) => 0.001,
        ("mile" | "statuteMile", false) | ("MI", true) => MILE_M,
        ("nauticalMile", false) | ("MI_N", true) => NAUTICAL_MILE_M,
        ("yard", false) | ("YD", true) => YARD_M,
        ("foot", false) | ("FT", true) => FOOT_M,
        ("inch", false) | ("IN", true) => FOOT_M / 12.0,
        _ => return None,
    })
}

/// How many radians a unit of angle has.
pub(crate) fn angle_in_radians(iri: &str) -> Option<f64> {
    Some(match name(iri)? {
        ("radian", false) | ("RAD", true) => 1.0,
        ("degree", false) | ("DEG", true) => 1.0_f64.to_radians(),
        ("minute", false) | ("ARCMIN", true) => (1.0_f64 / 60.0).to_radians(),
        ("second", false) | ("ARCSEC", true) => (1.0_f64 / 3_600.0).to_radians(),
        _ => return None,
    })
}

/// How many square metres a unit of area has.
pub(crate) fn area_in_square_metres(iri: &str) -> Option<f64> {
    Some(match name(iri)? {
        ("square_metre" | "square_meter" | "squareMetre" | "squareMeter", false) | ("M2", true) => {
            1.0
        }
        ("square_kilometre" | "square_kilometer", false)
        | ("squareKilometre" | "squareKilometer", false)
        | ("KiloM2", true) => 1_000_000.0,
        ("hectare", false) | ("HA", true) => 10_000.0,
        ("acre", false) | ("AC", true) => 4_046.856_422_4,
        ("square_mile" | "squareMile", false) | ("MI2", true) => MILE_M * MILE_M,
        ("square_foot" | "squareFoot", false) | ("FT2", true) => FOOT_M * FOOT_M,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_of_one_kind_each_in_both_vocabularies() {
        let ogc = |name: &str| format!("{OGC}{name}");
        assert_eq!(length_in_metres(&ogc("metre")), Some(1.0));
        assert_eq!(length_in_metres(&ogc("kilometer")), Some(1_000.0));
        assert_eq!(
            length_in_metres("https://qudt.org/vocab/unit/KiloM"),
            Some(1_000.0)
        );
        assert_eq!(area_in_square_metres(&ogc("square_kilometre")), Some(1e6));
        assert_eq!(angle_in_radians(&ogc("radian")), Some(1.0));
        for none in [&ogc("KiloM"), &ogc("parsec"), "metre", &ogc("degree")] {
            assert_eq!(length_in_metres(none), None, "{none}");
        }
        assert_eq!(area_in_square_metres(&ogc("metre")), None);
        assert_eq!(angle_in_radians(&ogc("metre")), None);
    }
}
