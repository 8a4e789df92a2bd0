//! Sets of tables by name, for rights on schemas and single tables.

use std::collections::{BTreeMap, BTreeSet};

/// Tables and views by their names. It is good for all states of a database, the past ones too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableNames {
    /// All tables of these schemas, also those to come.
    pub schemas: BTreeSet<String>,
    /// Tables by their schemas.
    pub tables: BTreeMap<String, BTreeSet<String>>,
}

impl TableNames {
    /// Adds a single table.
    pub fn insert(&mut self, schema: String, name: String) {
        self.tables.entry(schema).or_default().insert(name);
    }

    /// Whether a table or a view is one of them.
    pub fn contains(&self, schema: &str, name: &str) -> bool {
        let single = || self.tables.get(schema).is_some_and(|it| it.contains(name));
        self.schemas.contains(schema) || single()
    }

    /// Whether there are none, whichever tables there are.
    pub fn is_empty(&self) -> bool {
        self.schemas.is_empty() && self.tables.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_all_their_tables_and_no_others() {
        let mut names = TableNames::default();
        assert!(names.is_empty() && !names.contains("public", "t"));
        names.schemas.insert("sales".to_owned());
        names.insert("public".to_owned(), "t".to_owned());
        assert!(names.contains("sales", "anything") && names.contains("public", "t"));
        assert!(!names.contains("public", "u") && !names.contains("t", "public"));
        assert!(!names.contains("Sales", "t") && !names.is_empty());
    }
}
