//! The query templates, and the frequencies of operations.
//!
//! The texts are our own, after the specification; `docs/spb.md` says why each is written as it is.
//! `%entity%` and the like stand where a query takes a term. Editorial operations are written by
//! [`super::creative_work`].

use std::fmt;

use serde::{Serialize, Serializer};

use orrery_bsbm::Random;

/// The aggregation queries of the basic interactive set.
pub const QUERIES: u8 = 12;

/// What an editor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// A new work.
    Insert,
    /// A work is written anew.
    Update,
    /// A work is taken out.
    Delete,
}

/// Editorial operations of 100, as the official definitions have them.
const EDITS: [(Edit, u32); 3] = [(Edit::Insert, 80), (Edit::Update, 10), (Edit::Delete, 10)];

impl Edit {
    /// One of them, as often as it comes.
    pub fn draw(random: &mut Random) -> Self {
        let mut left = random.below(100);
        for (edit, share) in EDITS {
            if left < share {
                return edit;
            }
            left -= share;
        }
        Self::Insert
    }
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An aggregation query, by its number from 1.
    Query(u8),
    /// An editorial operation.
    Edit(Edit),
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(number) => write!(formatter, "Q{number}"),
            Self::Edit(Edit::Insert) => formatter.write_str("insert"),
            Self::Edit(Edit::Update) => formatter.write_str("update"),
            Self::Edit(Edit::Delete) => formatter.write_str("delete"),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How query 8 finds words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSearch {
    /// By the database's index of texts: whole words, in capitals or not.
    Index,
    /// By reading every text: within words too, as they are written.
    Scan,
}

/// The text of an aggregation query.
pub fn template(number: u8, search: TextSearch) -> Option<&'static str> {
    let text = match number {
        1 => include_str!("../../queries/spb/q01.rq"),
        2 => include_str!("../../queries/spb/q02.rq"),
        3 => include_str!("../../queries/spb/q03.rq"),
        4 => include_str!("../../queries/spb/q04.rq"),
        5 => include_str!("../../queries/spb/q05.rq"),
        6 => include_str!("../../queries/spb/q06.rq"),
        7 => include_str!("../../queries/spb/q07.rq"),
        8 if search == TextSearch::Index => include_str!("../../queries/spb/q08_text.rq"),
        8 => include_str!("../../queries/spb/q08.rq"),
        9 => include_str!("../../queries/spb/q09.rq"),
        10 => include_str!("../../queries/spb/q10.rq"),
        11 => include_str!("../../queries/spb/q11.rq"),
        12 => include_str!("../../queries/spb/q12.rq"),
        _ => return None,
    };
    Some(text)
}

/// Whether a query's result is a graph.
pub fn is_graph_query(number: u8) -> bool {
    matches!(number, 1..=4 | 8)
}

/// All aggregation queries in an order of chance: the official driver's pool, out of which each is
/// taken once before any is taken again.
pub fn round(random: &mut Random) -> Vec<u8> {
    let mut numbers: Vec<u8> = (1..=QUERIES).collect();
    for last in (1..numbers.len()).rev() {
        let other = random.below(last as u32 + 1) as usize;
        numbers.swap(last, other);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_has_a_text_of_its_own_that_says_what_it_gives() {
        let mut texts: Vec<&str> = (1..=QUERIES)
            .filter_map(|number| template(number, TextSearch::Scan))
            .collect();
        texts.extend(template(8, TextSearch::Index));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 13);
        for number in 1..=QUERIES {
            let text = template(number, TextSearch::Scan).unwrap();
            assert!(text.starts_with("# "), "Q{number} says what it asks");
            assert_eq!(
                text.contains("CONSTRUCT"),
                is_graph_query(number),
                "Q{number}"
            );
        }
        assert_eq!(template(13, TextSearch::Scan), None);
    }

    #[test]
    fn every_query_comes_once_a_round() {
        let mut random = Random::new(1);
        let (first, second) = (round(&mut random), round(&mut random));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=QUERIES).collect::<Vec<_>>());
        assert_ne!(first, second);
    }

    #[test]
    fn edits_come_as_often_as_they_should() {
        let mut random = Random::new(1);
        let edits: Vec<Edit> = (0..10_000).map(|_| Edit::draw(&mut random)).collect();
        let count = |edit| edits.iter().filter(|other| **other == edit).count();
        assert!((7_800..8_200).contains(&count(Edit::Insert)));
        assert!((850..1_150).contains(&count(Edit::Update)));
        assert!((850..1_150).contains(&count(Edit::Delete)));
    }
}
