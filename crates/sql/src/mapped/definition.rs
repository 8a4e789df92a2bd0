//! The definition of a mapped graph, and its text.

use datafusion::sql::sqlparser::tokenizer::Token;

/// The schema of the definitions. No statement can create one of this name.
pub(super) const SCHEMA: &str = "\u{1}graphs";
/// What a definition begins with, where a view has its query.
const CREATE: &str = "CREATE GRAPH ";

/// A graph that is made of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedGraph {
    /// Its IRI.
    pub name: String,
    /// How it is made.
    pub source: MappingSource,
    /// What relative IRIs are resolved against, where it is said.
    pub base: Option<String>,
}

/// The mapping of a graph: R2RML, or the Direct Mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappingSource {
    /// By a mapping in R2RML.
    R2rml(String),
    /// By the Direct Mapping of the tables of a schema.
    Direct(String),
}

/// Whether a definition with a text is a mapped graph, and not a view.
pub(crate) fn is_mapped(text: &str) -> bool {
    text.starts_with(CREATE)
}

impl MappedGraph {
    /// The statement that makes it.
    pub fn statement(&self) -> String {
        let quoted = |text: &str| Token::SingleQuotedString(text.replace('\'', "''")).to_string();
        let mut text = format!("{CREATE}{} FROM ", quoted(&self.name));
        match &self.source {
            MappingSource::R2rml(mapping) => {
                text.push_str("MAPPING ");
                text.push_str(&quoted(mapping));
            }
            MappingSource::Direct(schema) => {
                text.push_str(&format!("TABLES \"{}\"", schema.replace('"', "\"\"")));
            }
        }
        if let Some(base) = &self.base {
            text.push_str(&format!(" BASE {}", quoted(base)));
        }
        text
    }
}
