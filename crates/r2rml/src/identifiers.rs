//! Identifiers in mappings: SQL's rules, lower case unless quoted.

use crate::error::{Error, Result};

/// The name of a column.
pub(crate) fn column_name(text: &str) -> Result<String> {
    match parts(text)?.as_slice() {
        [name] => Ok(name.clone()),
        _ => Err(Error::Words(format!("{text} is not the name of a column"))),
    }
}

/// The schema and the name of a table or view.
pub(crate) fn table_name(text: &str) -> Result<(String, String)> {
    let mut parts = parts(text)?;
    if parts.len() == 3 && parts[0] == orrery_sql::DATABASE {
        parts.remove(0);
    }
    match parts.as_slice() {
        [name] => Ok((
            orrery_storage::table::DEFAULT_SCHEMA.to_owned(),
            name.clone(),
        )),
        [schema, name] => Ok((schema.clone(), name.clone())),
        _ => Err(Error::Words(format!("{text} is not the name of a table"))),
    }
}

/// A name as SQL takes it in any case.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn parts(text: &str) -> Result<Vec<String>> {
    let wrong = || {
        Error::Words(format!(
            "{text} is no name of SQL; what has other characters than letters, digits and _ needs double quotes"
        ))
    };
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let name;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut chars = quoted.char_indices().peekable();
            let mut inner = String::new();
            let end = loop {
                match (chars.next(), chars.peek()) {
                    (Some((_, '"')), Some((_, '"'))) => {
                        inner.push('"');
                        chars.next();
                    }
                    (Some((at, '"')), _) => break at,
                    (Some((_, char)), _) => inner.push(char),
                    (None, _) => return Err(wrong()),
                }
            };
            rest = &quoted[end + 1..];
            name = inner;
        } else {
            let is_of_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$');
            let end = rest.find(|char| !is_of_name(char)).unwrap_or(rest.len());
            let (plain, behind) = rest.split_at(end);
            if plain.starts_with(|char: char| char.is_numeric() || char == '$') {
                return Err(wrong());
            }
            name = plain.to_lowercase();
            rest = behind;
        }
        if name.is_empty() || name.contains(char::is_control) {
            return Err(wrong());
        }
        parts.push(name);
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return Ok(parts),
            None => return Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_unless_they_are_quoted() {
        assert_eq!(column_name("Name").unwrap(), "name");
        assert_eq!(column_name("\"Na\"\"me\"").unwrap(), "Na\"me");
        assert_eq!(
            table_name("S.\"T\"").unwrap(),
            ("s".to_owned(), "T".to_owned())
        );
        assert_eq!(table_name("t").unwrap().0, "public");
        for wrong in [
            "Country Code",
            "\"a",
            "a.",
            "",
            "1a",
            "a\"b\"",
            "\"\u{1}row\"",
        ] {
            assert!(column_name(wrong).is_err(), "{wrong}");
        }
    }
}
