//! Answers as terms, from any engine.

use oxrdf::{Term, Triple};

/// What a query answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Of `ASK`.
    Boolean(bool),
    /// Of `SELECT`, in the order in which the solutions came.
    Solutions(Solutions),
    /// Of `CONSTRUCT` and `DESCRIBE`.
    Graph(Vec<Triple>),
}

/// Rows with a cell for each variable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solutions {
    /// Names, without `?`.
    pub(crate) variables: Vec<String>,
    /// Unbound variables are `None`.
    pub(crate) rows: Vec<Vec<Option<Term>>>,
}

impl Answer {
    /// Number of rows or triples; 1 for a truth value.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Boolean(_) => 1,
            Self::Solutions(solutions) => solutions.rows.len(),
            Self::Graph(triples) => triples.len(),
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Boolean(value) => writeln!(f, "  {value}"),
            Self::Solutions(solutions) => {
                writeln!(f, "  ?{}", solutions.variables.join(" ?"))?;
                for row in &solutions.rows {
                    for cell in row {
                        match cell {
                            Some(term) => write!(f, "  {term}")?,
                            None => write!(f, "  -")?,
                        }
                    }
                    writeln!(f)?;
                }
                Ok(())
            }
            Self::Graph(triples) => {
                for triple in triples {
                    writeln!(f, "  {triple} .")?;
                }
                Ok(())
            }
        }
    }
}
