//! Spatial relations: simple features (GeoSPARQL 1.1, 8.3), Egenhofer, RCC8, and the DE-9IM matrix.
//!
//! Each relation is a pattern over the matrix of what the insides, the boundaries and the outsides
//! of both have in common. Two that are equal as sets of points are equal in simple features and
//! Egenhofer's family, also where they have no boundary, as points have none. RCC8 is about areas.

use geo::relate::IntersectionMatrix;
use geo::{Contains, Geometry, HasDimensions, Intersects, Relate};

use crate::shape::Shape;

/// A relation of GeoSPARQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are GeoSPARQL's")]
pub enum Relation {
    SfEquals,
    SfDisjoint,
    SfIntersects,
    SfTouches,
    SfCrosses,
    SfWithin,
    SfContains,
    SfOverlaps,
    EhEquals,
    EhDisjoint,
    EhMeet,
    EhOverlap,
    EhCovers,
    EhCoveredBy,
    EhInside,
    EhContains,
    Rcc8Eq,
    Rcc8Dc,
    Rcc8Ec,
    Rcc8Po,
    Rcc8Tppi,
    Rcc8Tpp,
    Rcc8Ntpp,
    Rcc8Ntppi,
}

/// What a relation asks of the matrix.
enum Asks {
    Is(fn(&IntersectionMatrix) -> bool),
    /// One of these patterns.
    Patterns(&'static [&'static str]),
}

impl Relation {
    /// Every one, by its local name in GeoSPARQL's functions and properties.
    pub const ALL: [(&'static str, Self); 24] = [
        ("sfEquals", Self::SfEquals),
        ("sfDisjoint", Self::SfDisjoint),
        ("sfIntersects", Self::SfIntersects),
        ("sfTouches", Self::SfTouches),
        ("sfCrosses", Self::SfCrosses),
        ("sfWithin", Self::SfWithin),
        ("sfContains", Self::SfContains),
        ("sfOverlaps", Self::SfOverlaps),
        ("ehEquals", Self::EhEquals),
        ("ehDisjoint", Self::EhDisjoint),
        ("ehMeet", Self::EhMeet),
        ("ehOverlap", Self::EhOverlap),
        ("ehCovers", Self::EhCovers),
        ("ehCoveredBy", Self::EhCoveredBy),
        ("ehInside", Self::EhInside),
        ("ehContains", Self::EhContains),
        ("rcc8eq", Self::Rcc8Eq),
        ("rcc8dc", Self::Rcc8Dc),
        ("rcc8ec", Self::Rcc8Ec),
        ("rcc8po", Self::Rcc8Po),
        ("rcc8tppi", Self::Rcc8Tppi),
        ("rcc8tpp", Self::Rcc8Tpp),
        ("rcc8ntpp", Self::Rcc8Ntpp),
        ("rcc8ntppi", Self::Rcc8Ntppi),
    ];

    /// The relation of a local name.
    pub fn of_name(name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, relation)| *relation)
    }

    /// Its local name.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, relation)| *relation == self);
        known.map_or("", |(name, _)| name)
    }

    fn asks(self) -> Asks {
        use Asks::{Is, Patterns};
        match self {
            Self::SfEquals | Self::EhEquals => Is(IntersectionMatrix::is_equal_topo),
            Self::SfDisjoint | Self::EhDisjoint => Is(IntersectionMatrix::is_disjoint),
            Self::SfIntersects => Is(IntersectionMatrix::is_intersects),
            Self::SfTouches | Self::EhMeet => Is(IntersectionMatrix::is_touches),
            Self::SfCrosses => Is(IntersectionMatrix::is_crosses),
            Self::SfWithin => Is(IntersectionMatrix::is_within),
            Self::SfContains => Is(IntersectionMatrix::is_contains),
            Self::SfOverlaps => Is(IntersectionMatrix::is_overlaps),
            Self::EhOverlap => Patterns(&["T*T***T**"]),
            Self::EhCovers => Patterns(&["T*TFT*FF*"]),
            Self::EhCoveredBy => Patterns(&["TFF*TFT**"]),
            Self::EhInside => Patterns(&["TFF*FFT**"]),
            Self::EhContains => Patterns(&["T*TFF*FF*"]),
            Self::Rcc8Eq => Patterns(&["TFFFTFFFT"]),
            Self::Rcc8Dc => Patterns(&["FFTFFTTTT"]),
            Self::Rcc8Ec => Patterns(&["FFTFTTTTT"]),
            Self::Rcc8Po => Patterns(&["TTTTTTTTT"]),
            Self::Rcc8Tppi => Patterns(&["TTTFTTFFT"]),
            Self::Rcc8Tpp => Patterns(&["TFFTTFTTT"]),
            Self::Rcc8Ntpp => Patterns(&["TFFTFFTTT"]),
            Self::Rcc8Ntppi => Patterns(&["TTTFFTFFT"]),
        }
    }

    /// Whether it holds only where the smallest rectangles of both have a point in common: what an
    /// index may look for.
    pub fn is_close(self) -> bool {
        !matches!(self, Self::SfDisjoint | Self::EhDisjoint | Self::Rcc8Dc)
    }

    /// Whether it holds; none where the two cannot be compared.
    pub fn holds(self, one: &Shape, other: &Shape) -> Option<bool> {
        if !one.goes_with(other) {
            return None;
        }
        let (left, right) = (&one.geometry, &other.geometry);
        // These are much quicker than the matrix, above all of a point and an area.
        match self {
            Self::SfIntersects => return Some(left.intersects(right)),
            Self::SfDisjoint | Self::EhDisjoint => return Some(!left.intersects(right)),
            _ => {}
        }
        if let Some(apart) = self.of_what_is_apart(one.bounds(), other.bounds()) {
            return Some(apart);
        }
        match self {
            Self::SfContains if is_area(left) => return Some(left.contains(right)),
            Self::SfWithin if is_area(right) => return Some(right.contains(left)),
            _ => {}
        }
        Some(self.is_told_by(&left.relate(right)))
    }

    /// Whether it holds of two whose rectangles have nothing in common; none of others.
    fn of_what_is_apart(self, one: Option<geo::Rect>, other: Option<geo::Rect>) -> Option<bool> {
        let (one, other) = (one?, other?);
        // RCC8's is asked for areas: the matrix knows whether they are.
        let is_apart = self != Self::Rcc8Dc && !one.intersects(&other);
        is_apart.then(|| !self.is_close())
    }

    fn is_told_by(self, matrix: &IntersectionMatrix) -> bool {
        match self.asks() {
            Asks::Is(holds) => holds(matrix),
            Asks::Patterns(patterns) => patterns
                .iter()
                .any(|pattern| matrix.matches(pattern).unwrap_or(false)),
        }
    }
}

/// Of lines only the matrix knows that a point at which two of them end is within both together.
fn is_area(geometry: &Geometry) -> bool {
    matches!(geometry, Geometry::Polygon(_) | Geometry::MultiPolygon(_))
}

/// Whether the matrix of two shapes is of a pattern: nine of `T`, `F`, `0`, `1`, `2` and `*`. None
/// where it is no pattern, or the two cannot be compared.
pub(crate) fn matches(one: &Shape, other: &Shape, pattern: &str) -> Option<bool> {
    if !one.goes_with(other) {
        return None;
    }
    let matrix = one.geometry.relate(&other.geometry);
    matrix.matches(&pattern.to_ascii_uppercase()).ok()
}

/// 0 of points, 1 of lines, 2 of areas, -1 of what is empty.
pub(crate) fn dimension(shape: &Shape) -> i64 {
    use geo::dimensions::Dimensions;
    match shape.geometry.dimensions() {
        Dimensions::Empty => -1,
        Dimensions::ZeroDimensional => 0,
        Dimensions::OneDimensional => 1,
        Dimensions::TwoDimensional => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::from_text;
    use crate::notation::Notation;

    fn shape(text: &str) -> Shape {
        from_text(text, Notation::Wkt).unwrap_or_else(|| panic!("{text}"))
    }

    const LARGE: &str = "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))";
    const WITHIN: &str = "POLYGON((3 3, 4 3, 4 4, 3 4, 3 3))";
    const AT_EDGE: &str = "POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))";
    const ACROSS: &str = "POLYGON((9 9, 12 9, 12 12, 9 12, 9 9))";
    const BESIDE: &str = "POLYGON((10 0, 12 0, 12 2, 10 2, 10 0))";
    const APART: &str = "POLYGON((20 20, 21 20, 21 21, 20 21, 20 20))";
    const POINT: &str = "POINT(5 5)";
    const ON_EDGE: &str = "POINT(0 5)";
    const LINE: &str = "LINESTRING(-5 5, 5 5)";

    fn held(one: &str, other: &str) -> Vec<&'static str> {
        let (one, other) = (shape(one), shape(other));
        let all = Relation::ALL
            .iter()
            .filter(|(_, relation)| relation.holds(&one, &other).unwrap());
        all.map(|(name, _)| *name).collect()
    }

    #[test]
    fn each_pair_has_the_relations_of_the_specification() {
        for (one, other, expected) in [
            (
                LARGE,
                LARGE,
                "sfEquals sfIntersects sfWithin sfContains ehEquals rcc8eq",
            ),
            (
                LARGE,
                WITHIN,
                "sfIntersects sfContains ehContains rcc8ntppi",
            ),
            (WITHIN, LARGE, "sfIntersects sfWithin ehInside rcc8ntpp"),
            (LARGE, AT_EDGE, "sfIntersects sfContains ehCovers rcc8tppi"),
            (AT_EDGE, LARGE, "sfIntersects sfWithin ehCoveredBy rcc8tpp"),
            (LARGE, ACROSS, "sfIntersects sfOverlaps ehOverlap rcc8po"),
            (LARGE, BESIDE, "sfIntersects sfTouches ehMeet rcc8ec"),
            (LARGE, APART, "sfDisjoint ehDisjoint rcc8dc"),
            (POINT, LARGE, "sfIntersects sfWithin ehInside"),
            (ON_EDGE, LARGE, "sfIntersects sfTouches ehMeet"),
            (
                POINT,
                POINT,
                "sfEquals sfIntersects sfWithin sfContains ehEquals",
            ),
            (POINT, ON_EDGE, "sfDisjoint ehDisjoint"),
            (LINE, LARGE, "sfIntersects sfCrosses ehOverlap"),
            (LINE, POINT, "sfIntersects sfTouches ehMeet"),
            (
                LINE,
                "LINESTRING(0 0, 0 9)",
                "sfIntersects sfCrosses ehOverlap",
            ),
        ] {
            let mut expected: Vec<&str> = expected.split(' ').collect();
            let mut held = held(one, other);
            expected.sort_unstable();
            held.sort_unstable();
            assert_eq!(held, expected, "{one} {other}");
        }
    }

    #[test]
    fn patterns_are_nine_letters() {
        let (large, within) = (shape(LARGE), shape(WITHIN));
        assert_eq!(matches(&large, &within, "T*****FF*"), Some(true));
        assert_eq!(matches(&large, &within, "t*****ff*"), Some(true));
        assert_eq!(matches(&within, &large, "T*****FF*"), Some(false));
        assert_eq!(matches(&large, &within, "T*****FF"), None);
        assert_eq!(matches(&large, &within, "T*****FFX"), None);
    }

    #[test]
    fn what_has_different_systems_is_not_compared() {
        let plan = shape("<http://example.com/plan> POINT(5 5)");
        let large = shape(LARGE);
        assert!(
            Relation::ALL
                .iter()
                .all(|(_, it)| it.holds(&plan, &large).is_none())
        );
        let same = shape("<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(2 1)");
        assert_eq!(
            Relation::SfEquals.holds(&same, &shape("POINT(1 2)")),
            Some(true)
        );
    }
}
