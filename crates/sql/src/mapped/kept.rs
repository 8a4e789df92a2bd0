//! The mapped graphs of a state, stored among the views.

use datafusion::sql::parser::Statement as Parsed;
use orrery_storage::table::{Tables, ViewDefinition};

use super::definition::{MappedGraph, SCHEMA};
use super::statement::{GraphStatement, of};
use crate::parse::statement::parse_one;
use crate::{Error, Result, SqlState};

impl MappedGraph {
    /// All mapped graphs of a state, in order of creation.
    ///
    /// # Errors
    /// When a definition cannot be read, as a newer version may have written it.
    pub fn all(tables: &Tables) -> Result<Vec<Self>> {
        let views = tables.views().filter(|view| view.schema == SCHEMA);
        views.map(|view| Self::of(view)).collect()
    }

    /// Whether there are any.
    pub fn are_there(tables: &Tables) -> bool {
        tables.views().any(|view| view.schema == SCHEMA)
    }

    /// The one with a name.
    ///
    /// # Errors
    /// As [`Self::all`]; and when there is none.
    pub fn named(tables: &Tables, name: &str) -> Result<Self> {
        match tables.view_named(SCHEMA, name) {
            Some(view) => Self::of(view),
            None => Err(Error::new(
                SqlState::UndefinedObject,
                format!("no mapped graph is called {name}"),
            )),
        }
    }

    fn of(view: &ViewDefinition) -> Result<Self> {
        let kept = match parse_one(&view.query)? {
            Parsed::Statement(statement) => of(&statement),
            _ => None,
        };
        match kept {
            Some(GraphStatement::Create(graph)) => Ok(graph),
            _ => Err(Error::new(
                SqlState::InternalError,
                format!("the definition of the mapped graph {} is none", view.name),
            )),
        }
    }
}
