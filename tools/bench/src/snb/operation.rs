//! The operations of the workload and their parameters.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// What an operation is, by its number in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A complex read, 1 to 14.
    Complex(u8),
    /// A short read, 1 to 7.
    Short(u8),
    /// An insertion, 1 to 8.
    Insert(u8),
}

impl Kind {
    /// All 29.
    pub fn all() -> impl Iterator<Item = Self> {
        let complex = (1..=14).map(Self::Complex);
        complex
            .chain((1..=7).map(Self::Short))
            .chain((1..=8).map(Self::Insert))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complex(number) => write!(formatter, "IC{number}"),
            Self::Short(number) => write!(formatter, "IS{number}"),
            Self::Insert(number) => write!(formatter, "IU{number}"),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One operation with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A read of one query.
    Read {
        /// Which one: not complex reads 13 and 14.
        kind: Kind,
        /// The terms that its template takes.
        parameters: BTreeMap<String, String>,
    },
    /// How long the shortest way between two persons is: complex read 13.
    Distance {
        /// The number of the one.
        from: u64,
        /// The number of the other.
        to: u64,
    },
    /// All shortest ways between two persons, by how much those on them wrote to each other:
    /// complex read 14.
    Ways {
        /// The number of the one.
        from: u64,
        /// The number of the other.
        to: u64,
    },
    /// A change.
    Insert(Box<Insertion>),
}

impl Operation {
    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Read { kind, .. } => *kind,
            Self::Distance { .. } => Kind::Complex(13),
            Self::Ways { .. } => Kind::Complex(14),
            Self::Insert(insertion) => insertion.kind(),
        }
    }
}

/// What is inserted. Numbers, and milliseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub enum Insertion {
    /// Insertion 1.
    Person {
        person: u64,
        first_name: String,
        last_name: String,
        gender: String,
        birthday: i64,
        creation_date: i64,
        location_ip: String,
        browser_used: String,
        city: u64,
        languages: Vec<String>,
        emails: Vec<String>,
        tags: Vec<u64>,
        /// Universities with years.
        study_at: Vec<(u64, i64)>,
        /// Companies with years.
        work_at: Vec<(u64, i64)>,
    },
    /// Insertion 2, or 3 of a comment.
    Like {
        person: u64,
        message: u64,
        is_comment: bool,
        creation_date: i64,
    },
    /// Insertion 4.
    Forum {
        forum: u64,
        title: String,
        creation_date: i64,
        moderator: u64,
        tags: Vec<u64>,
    },
    /// Insertion 5.
    Membership {
        forum: u64,
        person: u64,
        join_date: i64,
    },
    /// Insertion 6.
    Post {
        post: u64,
        /// Empty if it has a content.
        image_file: String,
        creation_date: i64,
        location_ip: String,
        browser_used: String,
        language: String,
        content: String,
        length: u64,
        author: u64,
        forum: u64,
        country: u64,
        tags: Vec<u64>,
    },
    /// Insertion 7.
    Comment {
        comment: u64,
        creation_date: i64,
        location_ip: String,
        browser_used: String,
        content: String,
        length: u64,
        author: u64,
        country: u64,
        /// The message, and whether that is a comment.
        reply_to: (u64, bool),
        tags: Vec<u64>,
    },
    /// Insertion 8.
    Friendship {
        person1: u64,
        person2: u64,
        creation_date: i64,
    },
}

impl Insertion {
    /// What it is.
    pub fn kind(&self) -> Kind {
        Kind::Insert(match self {
            Self::Person { .. } => 1,
            Self::Like { is_comment, .. } => 2 + u8::from(*is_comment),
            Self::Forum { .. } => 4,
            Self::Membership { .. } => 5,
            Self::Post { .. } => 6,
            Self::Comment { .. } => 7,
            Self::Friendship { .. } => 8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_29_kinds() {
        assert_eq!(Kind::all().count(), 29);
        assert_eq!(Kind::Complex(3).to_string(), "IC3");
        let like = Insertion::Like {
            person: 1,
            message: 2,
            is_comment: true,
            creation_date: 0,
        };
        assert_eq!(like.kind(), Kind::Insert(3));
    }
}
