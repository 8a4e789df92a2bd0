//! The queries and insertions as templates: `%person%` and the like stand where one takes a term.
//!
//! The texts are our own, after the specification and what the reference implementation for PostgreSQL answers;
//! `docs/snb.md` says why each is written as it is.

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
    Kind::Complex, 1, "q01.rq";
    Kind::Complex, 2, "q02.rq";
    Kind::Complex, 3, "q03.rq";
    Kind::Complex, 4, "q04.rq";
    Kind::Complex, 5, "q05.rq";
    Kind::Complex, 6, "q06.rq";
    Kind::Complex, 7, "q07.rq";
    Kind::Complex, 8, "q08.rq";
    Kind::Complex, 9, "q09.rq";
    Kind::Complex, 10, "q10.rq";
    Kind::Complex, 11, "q11.rq";
    Kind::Complex, 12, "q12.rq";
    Kind::Complex, 13, "q13.rq";
    Kind::Complex, 14, "q14.rq";
    Kind::Short, 1, "s1.rq";
    Kind::Short, 2, "s2.rq";
    Kind::Short, 3, "s3.rq";
    Kind::Short, 4, "s4.rq";
    Kind::Short, 5, "s5.rq";
    Kind::Short, 6, "s6.rq";
    Kind::Short, 7, "s7.rq";
    Kind::Insert, 1, "u1.ru";
    Kind::Insert, 2, "u2.ru";
    Kind::Insert, 3, "u3.ru";
    Kind::Insert, 4, "u4.ru";
    Kind::Insert, 5, "u5.ru";
    Kind::Insert, 6, "u6.ru";
    Kind::Insert, 7, "u7.ru";
    Kind::Insert, 8, "u8.ru";
}

/// What pairs of persons replied to each other: the second half of complex read 14.
pub const WEIGHTS: &str = include_str!("../../queries/snb/q14_weights.rq");

/// The friendship weights of complex read 14, as an edge weight that the database keeps up to date.
pub const FRIENDSHIP: &str = include_str!("../../queries/snb/friendship.ru");

/// Complex read 14 by these.
pub const WAYS_BY_EDGE_WEIGHT: &str = include_str!("../../queries/snb/q14_by_edge_weight.rq");

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
