//! The query and insertion templates, with placeholders such as `%person%`.
//!
//! The texts are our own, after the specification and what the reference implementation for
//! PostgreSQL answers; `docs/snb.md` says why each is written as it is.

use super::operation::Kind;

macro_rules! texts {
    ($($kind:path, $number:literal, $file:literal;)*) => {
        /// The text of a kind of operation.
        pub fn template(kind: Kind) -> Option<&'static str> {
            match kind {
                $($kind($number) => Some(include_str!(concat!("../../queries/snb/", $file))),)*
                _ => None,
            }
        }
    };
}

texts! {
    Kind::Complex, 1, "complex/q01.rq";
    Kind::Complex, 2, "complex/q02.rq";
    Kind::Complex, 3, "complex/q03.rq";
    Kind::Complex, 4, "complex/q04.rq";
    Kind::Complex, 5, "complex/q05.rq";
    Kind::Complex, 6, "complex/q06.rq";
    Kind::Complex, 7, "complex/q07.rq";
    Kind::Complex, 8, "complex/q08.rq";
    Kind::Complex, 9, "complex/q09.rq";
    Kind::Complex, 10, "complex/q10.rq";
    Kind::Complex, 11, "complex/q11.rq";
    Kind::Complex, 12, "complex/q12.rq";
    Kind::Complex, 13, "complex/q13.rq";
    Kind::Complex, 14, "complex/q14.rq";
    Kind::Short, 1, "short/s1.rq";
    Kind::Short, 2, "short/s2.rq";
    Kind::Short, 3, "short/s3.rq";
    Kind::Short, 4, "short/s4.rq";
    Kind::Short, 5, "short/s5.rq";
    Kind::Short, 6, "short/s6.rq";
    Kind::Short, 7, "short/s7.rq";
    Kind::Insert, 1, "inserts/u1.ru";
    Kind::Insert, 2, "inserts/u2.ru";
    Kind::Insert, 3, "inserts/u3.ru";
    Kind::Insert, 4, "inserts/u4.ru";
    Kind::Insert, 5, "inserts/u5.ru";
    Kind::Insert, 6, "inserts/u6.ru";
    Kind::Insert, 7, "inserts/u7.ru";
    Kind::Insert, 8, "inserts/u8.ru";
}

/// What pairs of persons replied to each other: the second half of complex read 14.
pub const WEIGHTS: &str = include_str!("../../queries/snb/complex/q14_weights.rq");

/// The friendship weights of complex read 14, as an edge weight that the database keeps up to date.
pub const FRIENDSHIP: &str = include_str!("../../queries/snb/friendship.ru");

/// Complex read 14 by these.
pub const WAYS_BY_EDGE_WEIGHT: &str =
    include_str!("../../queries/snb/complex/q14_by_edge_weight.rq");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_text_of_its_own() {
        let mut texts: Vec<&str> = Kind::all().filter_map(template).collect();
        assert_eq!(texts.len(), 29);
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 29);
    }
}
