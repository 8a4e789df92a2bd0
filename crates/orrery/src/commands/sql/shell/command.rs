//! The shell's own commands: their names, and the statements that those about tables run.

/// A command of the shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Quit,
    Help,
    /// On, off, or toggled.
    Timing(Option<bool>),
    /// The same for rows shown one value per line.
    Expanded(Option<bool>),
    /// Statements whose rows are shown, each under a title.
    Show(Vec<(String, String)>),
    Unknown,
}

pub(super) const HELP: &str = "\
\\d            tables and views
\\d NAME       columns, keys, indexes and conditions of a table; the query of a view
\\dt \\di \\dv   tables, indexes, views
\\timing       say how long each statement took, or do not (\\timing on, \\timing off)
\\x            one value a line, or a table again (\\x on, \\x off)
\\q            leave, also by Ctrl-D
Statements end with a semicolon. Ctrl-C stops the one that runs, or forgets what was typed.
";

impl Command {
    /// Parses a command, with its backslash.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim_end_matches(';').trim();
        let (name, argument) = match text.split_once(char::is_whitespace) {
            Some((name, argument)) => (name, argument.trim()),
            None => (text, ""),
        };
        let switch = || match argument {
            "" => Some(None),
            "on" => Some(Some(true)),
            "off" => Some(Some(false)),
            _ => None,
        };
        let relations = |kinds: &[&str]| Self::Show(vec![(String::new(), relations(kinds))]);
        match (name, argument) {
            ("\\q", "") => Self::Quit,
            ("\\?", "") => Self::Help,
            ("\\timing", _) => switch().map_or(Self::Unknown, Self::Timing),
            ("\\x", _) => switch().map_or(Self::Unknown, Self::Expanded),
            ("\\d", "") => relations(&["table", "view"]),
            ("\\dt", "") => relations(&["table"]),
            ("\\di", "") => relations(&["index"]),
            ("\\dv", "") => relations(&["view"]),
            ("\\d", name) => Self::Show(described(name)),
            _ => Self::Unknown,
        }
    }
}

fn relations(kinds: &[&str]) -> String {
    let list: Vec<String> = kinds.iter().map(|kind| format!("'{kind}'")).collect();
    let more = match kinds {
        ["index"] => ", table_name as \"table\", definition",
        _ => "",
    };
    format!(
        "SELECT schema_name AS schema, name, kind{more} FROM orrery_catalog.relations \
         WHERE kind IN ({}) ORDER BY schema_name, name",
        list.join(", ")
    )
}

/// Statements about one table or view. A schema may precede its name.
fn described(name: &str) -> Vec<(String, String)> {
    let (schema, name) = match name.split_once('.') {
        Some((schema, name)) => (folded(schema), folded(name)),
        None => ("public".to_owned(), folded(name)),
    };
    let of = |column: &str| {
        format!(
            "schema_name = {} AND {column} = {}",
            quoted(&schema),
            quoted(&name)
        )
    };
    let with_title = |title: &str, query: String| (format!("{title} of {name}"), query);
    vec![
        with_title(
            "Columns",
            format!(
                "SELECT name AS \"column\", type, CASE WHEN is_nullable THEN '' ELSE 'not null' END AS nullable, \
                 default_value AS \"default\" FROM orrery_catalog.columns WHERE {} ORDER BY place",
                of("table_name")
            ),
        ),
        with_title(
            "Constraints",
            format!(
                "SELECT name, definition FROM orrery_catalog.constraints WHERE {} ORDER BY kind DESC, name",
                of("table_name")
            ),
        ),
        with_title(
            "Indexes",
            format!(
                "SELECT name, definition FROM orrery_catalog.relations WHERE kind = 'index' AND {} ORDER BY name",
                of("table_name")
            ),
        ),
        with_title(
            "Query",
            format!(
                "SELECT definition FROM orrery_catalog.relations WHERE kind = 'view' AND {}",
                of("name")
            ),
        ),
    ]
}

/// A name as SQL folds it: in lower case unless it is quoted.
fn folded(name: &str) -> String {
    match name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_lowercase(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_arguments() {
        assert_eq!(Command::parse("\\q"), Command::Quit);
        assert_eq!(Command::parse("\\timing"), Command::Timing(None));
        assert_eq!(Command::parse("\\timing off"), Command::Timing(Some(false)));
        assert_eq!(Command::parse("\\x on;"), Command::Expanded(Some(true)));
        for unknown in ["\\timing maybe", "\\dz", "\\q now", "\\"] {
            assert_eq!(Command::parse(unknown), Command::Unknown, "{unknown}");
        }
        let Command::Show(shown) = Command::parse("\\d s.\"It\"\"em\"") else {
            panic!("not understood");
        };
        assert!(
            shown[0]
                .1
                .contains("schema_name = 's' AND table_name = 'It\"em'"),
            "{shown:?}"
        );
    }
}
