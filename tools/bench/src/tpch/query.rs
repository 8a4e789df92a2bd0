//! The 22 queries, with the substitution parameters that the specification validates answers with.
//!
//! The texts stand in `queries/tpch`. They are the functional definitions of clause 2.4; Q15 has
//! its view in a WITH, and the five queries of which only the first rows are asked have a LIMIT,
//! both of which the specification allows (2.2.4, 2.1.2.9).

use std::borrow::Cow;

use super::Scale;

/// Stands in Q11 for a number that depends on the scale.
const FRACTION: &str = ":fraction";
/// That number at scale 1.
const FRACTION_AT_ONE: f64 = 0.0001;

/// How the values of a column are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ColumnKind {
    /// Texts, dates, keys and counts: the same.
    Exact,
    /// Sums and single values of decimals, which are exact: the same to the hundredth.
    Sum,
    /// Averages and ratios, which systems round differently.
    Average,
}

/// One of the queries.
#[derive(Debug)]
pub struct Query {
    /// Its number, from 1 to 22.
    pub number: u8,
    /// The specification's name for it.
    pub name: &'static str,
    text: &'static str,
    /// The columns of the answer.
    pub columns: &'static [ColumnKind],
    /// The columns that it is ordered by.
    pub ordered_by: &'static [usize],
}

impl Query {
    /// The query with this number.
    pub fn numbered(number: u8) -> Option<&'static Self> {
        QUERIES.get(usize::from(number).checked_sub(1)?)
    }

    /// The text to be asked of a database of this scale.
    pub fn text(&self, scale: Scale) -> Cow<'static, str> {
        if self.text.contains(FRACTION) {
            // At most ten digits: 0.0001 by 3,000 is not more.
            let fraction = format!("{:.10}", FRACTION_AT_ONE / scale.factor());
            Cow::Owned(self.text.replace(FRACTION, &fraction))
        } else {
            Cow::Borrowed(self.text)
        }
    }
}

macro_rules! queries {
    ($($number:literal $file:literal $name:literal [$($kind:ident)*] [$($column:literal)*])*) => {
        [$(Query {
            number: $number,
            name: $name,
            text: include_str!(concat!("../../queries/tpch/", $file, ".sql")),
            columns: &[$(ColumnKind::$kind),*],
            ordered_by: &[$($column),*],
        }),*]
    };
}

/// All of them: number, file, name, kinds of the columns, columns that the rows are ordered by.
pub const QUERIES: [Query; 22] = queries! {
    1 "q01" "pricing summary report"
        [Exact Exact Sum Sum Sum Sum Average Average Average Exact] [0 1]
    2 "q02" "minimum cost supplier"
        [Sum Exact Exact Exact Exact Exact Exact Exact] [0 2 1 3]
    3 "q03" "shipping priority"
        [Exact Sum Exact Exact] [1 2]
    4 "q04" "order priority checking"
        [Exact Exact] [0]
    5 "q05" "local supplier volume"
        [Exact Sum] [1]
    6 "q06" "forecasting revenue change"
        [Sum] []
    7 "q07" "volume shipping"
        [Exact Exact Exact Sum] [0 1 2]
    8 "q08" "national market share"
        [Exact Average] [0]
    9 "q09" "product type profit measure"
        [Exact Exact Sum] [0 1]
    10 "q10" "returned item reporting"
        [Exact Exact Sum Sum Exact Exact Exact Exact] [2]
    11 "q11" "important stock identification"
        [Exact Sum] [1]
    12 "q12" "shipping modes and order priority"
        [Exact Exact Exact] [0]
    13 "q13" "customer distribution"
        [Exact Exact] [1 0]
    14 "q14" "promotion effect"
        [Average] []
    15 "q15" "top supplier"
        [Exact Exact Exact Exact Sum] [0]
    16 "q16" "parts/supplier relationship"
        [Exact Exact Exact Exact] [3 0 1 2]
    17 "q17" "small-quantity-order revenue"
        [Average] []
    18 "q18" "large volume customer"
        [Exact Exact Exact Exact Sum Sum] [4 3]
    19 "q19" "discounted revenue"
        [Sum] []
    20 "q20" "potential part promotion"
        [Exact Exact] [0]
    21 "q21" "suppliers who kept orders waiting"
        [Exact Exact] [1 0]
    22 "q22" "global sales opportunity"
        [Exact Exact Sum] [0]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_stand_at_their_numbers() {
        for (index, query) in QUERIES.iter().enumerate() {
            assert_eq!(usize::from(query.number), index + 1);
            // Not by address: a constant may stand in several places of a program.
            assert_eq!(Query::numbered(query.number).unwrap().text, query.text);
            assert!(
                query
                    .ordered_by
                    .iter()
                    .all(|column| *column < query.columns.len())
            );
            assert!(!query.text.contains(';'));
        }
        assert!(Query::numbered(0).is_none() && Query::numbered(23).is_none());
    }

    #[test]
    fn the_fraction_of_the_eleventh_query_depends_on_the_scale() {
        let text = |scale| QUERIES[10].text(Scale::new(scale).unwrap());
        assert!(text(1.0).contains("* 0.0001000000\n"));
        assert!(text(0.01).contains("* 0.0100000000\n"));
        assert!(text(1_000.0).contains("* 0.0000001000\n"));
    }
}
