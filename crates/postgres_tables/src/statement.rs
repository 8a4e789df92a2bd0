//! The statement sent to the foreign server: columns, conditions, limit.

use crate::address::SourceName;
use crate::columns::{ForeignColumn, SourceKind};
use crate::literal::quoted_name;

/// What a scan asks for.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) table: SourceName,
    pub(crate) columns: Vec<ForeignColumn>,
    pub(crate) conditions: Vec<String>,
    pub(crate) limit: Option<usize>,
}

impl Selection {
    /// The text, with further conditions.
    pub(crate) fn text(&self, more: &[String]) -> String {
        let columns = self.columns.iter().map(|column| {
            let name = quoted_name(&column.name);
            match column.source.kind {
                SourceKind::Other => format!("{name}::text"),
                _ => name,
            }
        });
        let columns: Vec<String> = columns.collect();
        // Without columns there are rows nevertheless.
        let space = if columns.is_empty() { "" } else { " " };
        let mut text = format!("SELECT{space}{} FROM {}", columns.join(", "), self.table);
        let conditions: Vec<&str> = self
            .conditions
            .iter()
            .chain(more)
            .map(String::as_str)
            .collect();
        if !conditions.is_empty() {
            text.push_str(" WHERE ");
            text.push_str(&conditions.join(" AND "));
        }
        if let Some(limit) = self.limit {
            text.push_str(&format!(" LIMIT {limit}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use orrery_storage::table::ColumnType;

    use super::*;
    use crate::columns::SourceType;

    #[test]
    fn a_statement_has_what_is_wanted_and_nothing_else() {
        let column = |name: &str, word: &str| ForeignColumn {
            name: name.to_owned(),
            column_type: ColumnType::Integer,
            source: SourceType::parse(word).unwrap(),
            is_nullable: true,
        };
        let mut selection = Selection {
            table: SourceName::parse("s.\"T\"").unwrap(),
            columns: vec![column("a\"", "int4"), column("j", "other")],
            conditions: vec!["(\"a\" = 1)".to_owned()],
            limit: Some(3),
        };
        assert_eq!(
            selection.text(&["(\"b\" = 2)".to_owned()]),
            "SELECT \"a\"\"\", \"j\"::text FROM \"s\".\"T\" WHERE (\"a\" = 1) AND (\"b\" = 2) LIMIT 3"
        );
        selection.columns.clear();
        selection.conditions.clear();
        selection.limit = None;
        assert_eq!(selection.text(&[]), "SELECT FROM \"s\".\"T\"");
    }
}
