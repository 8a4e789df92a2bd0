//! Identifiers: folded to lower case unless quoted.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName};

use crate::names::{CATALOG, SCHEMA};
use crate::{Error, Result, SqlState};

/// Bytes of a name, as PostgreSQL has it.
const NAME_BYTES_MAX: usize = 63;

/// The schema and the name of a table, view or index; without a schema the default one.
pub(crate) fn qualified(name: &ObjectName) -> Result<(String, String)> {
    let parts = name.0.iter().map(|part| match part.as_ident() {
        Some(ident) => folded(ident),
        None => Err(Error::new(
            SqlState::SyntaxError,
            format!("{name} is not a name"),
        )),
    });
    let mut parts: Vec<String> = parts.collect::<Result<_>>()?;
    if parts.len() == 3 && parts[0] == CATALOG {
        parts.remove(0);
    }
    match <[String; 2]>::try_from(parts) {
        Ok([schema, name]) => Ok((schema, name)),
        Err(parts) => match <[String; 1]>::try_from(parts) {
            Ok([name]) => Ok((SCHEMA.to_owned(), name)),
            Err(_) => Err(Error::unsupported("a reference to another database")),
        },
    }
}

/// A name without a schema, such as that of a constraint or a column.
pub(crate) fn simple(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [part] if part.as_ident().is_some() => Ok(qualified(name)?.1),
        _ => Err(Error::new(
            SqlState::SyntaxError,
            format!("{name} has a schema where none can be given"),
        )),
    }
}

/// A name in lower case unless it is quoted.
pub(crate) fn folded(name: &Ident) -> Result<String> {
    let folded = match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    };
    if folded.len() > NAME_BYTES_MAX {
        return Err(Error::new(
            SqlState::NameTooLong,
            format!("the name \"{folded}\" has more than {NAME_BYTES_MAX} bytes"),
        ));
    }
    if folded.is_empty() || folded.contains(char::is_control) {
        return Err(Error::new(
            SqlState::SyntaxError,
            "a name is empty, or has control characters",
        ));
    }
    Ok(folded)
}

/// A name as a statement of ours writes it.
pub(crate) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
