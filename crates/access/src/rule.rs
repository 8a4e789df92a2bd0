//! Rules: rights of users and groups on graphs and tables.
//!
//! A rule allows; nothing forbids, so that no order of rules matters, and to look a rule up is to
//! know what it does. What no rule allows is not there.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::graph_query::{self, NEVER_IN_IRIS};
use crate::users::{GroupId, UserId};

/// Bytes of an IRI, a prefix of one, or a name of a table.
const TARGET_BYTES_MAX: usize = 8 * 1024;

/// The subject of a rule.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Everybody, also who has said nothing of themselves.
    Anyone,
    /// Everybody who is a user.
    Authenticated,
    /// One user.
    User(UserId),
    /// Who is in a group.
    Group(GroupId),
}

/// The target of a rule.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// All graphs, also those to come.
    AllGraphs,
    /// The default graph.
    DefaultGraph,
    /// The graph of an IRI.
    Graph(String),
    /// The graphs whose IRIs begin so.
    GraphsBelow(String),
    /// The graphs that a query selects, in which `?user` is who asks.
    GraphsOf(String),
    /// All tables, also those to come.
    AllTables,
    /// The tables and views of a schema.
    Schema(String),
    /// A table or a view.
    Table {
        /// Its schema.
        schema: String,
        /// Its name.
        name: String,
    },
}

/// A right. Each has those before it with it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// To see what is in it, and that it is there.
    Read,
    /// To change what is in it, to make it and to remove it.
    Write,
    /// To make rules about it for others.
    Administer,
}

/// A rule.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Whom it is about.
    pub subject: Subject,
    /// What they may do.
    pub right: Right,
    /// With what.
    pub target: Target,
}

impl Right {
    /// A right by its name.
    ///
    /// # Errors
    /// When there is none of the name.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "administer" => Ok(Self::Administer),
            other => Err(Error::Rule {
                place: shown(other),
                why: "rights are read, write and administer".to_owned(),
            }),
        }
    }
}

impl Rule {
    /// Checks what can be checked without users and data.
    ///
    /// # Errors
    /// When it is about nothing that can be, or a right that cannot be had so.
    pub(crate) fn check(&self) -> Result<()> {
        match (self.right, &self.target) {
            // Whoever changes the data would say who makes rules.
            (Right::Administer, Target::GraphsOf(query)) => Err(Error::Rule {
                place: shown(query),
                why: "graphs that a query finds are read or written, not administered".to_owned(),
            }),
            (_, target) => target.check(),
        }
    }
}

impl Target {
    /// Whether all that another target is about is among what this is about.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::AllGraphs,
                Self::AllGraphs
                | Self::DefaultGraph
                | Self::Graph(_)
                | Self::GraphsBelow(_)
                | Self::GraphsOf(_),
            ) => true,
            (Self::GraphsBelow(mine), Self::Graph(other) | Self::GraphsBelow(other)) => {
                other.starts_with(mine.as_str())
            }
            (Self::AllTables, Self::AllTables | Self::Schema(_) | Self::Table { .. }) => true,
            (Self::Schema(mine), Self::Table { schema, .. }) => mine == schema,
            (mine, other) => mine == other,
        }
    }

    /// Checks what can be checked without data.
    ///
    /// # Errors
    /// When an IRI, or the beginning of one, cannot be one, or a name is empty or too long.
    pub fn check(&self) -> Result<()> {
        let wrong = |place: &str, why: &str| {
            Err(Error::Rule {
                place: shown(place),
                why: why.to_owned(),
            })
        };
        let of_length = |text: &str, max: usize| match text.len() {
            0 => wrong(text, "there is nothing"),
            bytes if bytes > max => wrong(text, &format!("it has more than {max} bytes")),
            _ => Ok(()),
        };
        match self {
            Self::AllGraphs | Self::DefaultGraph | Self::AllTables => Ok(()),
            Self::Graph(iri) | Self::GraphsBelow(iri) => {
                of_length(iri, TARGET_BYTES_MAX)?;
                if iri.contains(NEVER_IN_IRIS) {
                    return wrong(iri, "an IRI has no blanks, and none of < > \" { } | \\ ^ `");
                }
                let scheme = iri.split_once(':').map(|(scheme, _)| scheme);
                let is_scheme = |text: &str| {
                    text.starts_with(|it: char| it.is_ascii_alphabetic())
                        && text
                            .chars()
                            .all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
                };
                match scheme.is_some_and(is_scheme) {
                    true => Ok(()),
                    false => wrong(
                        iri,
                        "an IRI, and the beginning of one, has a scheme and a colon",
                    ),
                }
            }
            Self::GraphsOf(query) => {
                of_length(query, TARGET_BYTES_MAX)?;
                graph_query::check(query).or_else(|why| wrong(query, &why))
            }
            Self::Schema(name) => of_length(name, TARGET_BYTES_MAX),
            Self::Table { schema, name } => {
                of_length(schema, TARGET_BYTES_MAX)?;
                of_length(name, TARGET_BYTES_MAX)
            }
        }
    }
}

/// What of a text a message shows.
fn shown(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Administer => "administer",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllGraphs => f.write_str("all graphs"),
            Self::DefaultGraph => f.write_str("the default graph"),
            Self::Graph(iri) => write!(f, "graph <{iri}>"),
            Self::GraphsBelow(beginning) => write!(f, "graphs below <{beginning}>"),
            Self::GraphsOf(query) => write!(f, "graphs of {query}"),
            Self::AllTables => f.write_str("all tables"),
            Self::Schema(schema) => write!(f, "schema {schema}"),
            Self::Table { schema, name } => write!(f, "table {schema}.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_checked_as_far_as_they_can_be() {
        let graph = |iri: &str| Target::Graph(iri.to_owned()).check();
        assert_eq!(graph("http://example.org/g"), Ok(()));
        assert_eq!(graph("urn:x"), Ok(()));
        for bad in [
            "",
            "g",
            "/g",
            ":g",
            "1a:b",
            "http://a b",
            "http://a<b>",
            "http://a\u{0}",
        ] {
            assert!(graph(bad).is_err(), "{bad:?}");
        }
        assert!(Target::GraphsBelow("http".to_owned()).check().is_err());
        assert_eq!(Target::GraphsBelow("http:".to_owned()).check(), Ok(()));
        assert!(Target::Schema("s".repeat(9000)).check().is_err());
        let long = graph(&"x".repeat(9000)).unwrap_err().to_string();
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn targets_cover_what_is_among_them() {
        let graph = |iri: &str| Target::Graph(iri.to_owned());
        let below = |iri: &str| Target::GraphsBelow(iri.to_owned());
        let schema = Target::Schema("s".to_owned());
        let table = |schema: &str| Target::Table {
            schema: schema.to_owned(),
            name: "t".to_owned(),
        };
        for (mine, other, is_covered) in [
            (Target::AllGraphs, Target::DefaultGraph, true),
            (Target::AllGraphs, below("x:"), true),
            (Target::AllGraphs, Target::AllTables, false),
            (below("x:a"), graph("x:ab"), true),
            (below("x:a"), below("x:"), false),
            (below("x:a"), Target::DefaultGraph, false),
            (graph("x:a"), graph("x:a"), true),
            (graph("x:a"), below("x:a"), false),
            (Target::AllTables, table("s"), true),
            (schema.clone(), table("s"), true),
            (schema.clone(), table("r"), false),
            (table("s"), schema, false),
        ] {
            assert_eq!(mine.covers(&other), is_covered, "{mine} and {other}");
        }
    }

    #[test]
    fn rights_have_those_before_them() {
        assert!(Right::Administer > Right::Write && Right::Write > Right::Read);
        assert_eq!(Right::named("write"), Ok(Right::Write));
        let error = Right::named("delete").unwrap_err().to_string();
        assert_eq!(
            error,
            "not a rule: rights are read, write and administer, at `delete`"
        );
    }
}
