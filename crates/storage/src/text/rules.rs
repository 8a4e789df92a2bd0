//! The rules that select the literals of a full-text index.

use std::collections::BTreeMap;

use orrery_term::{Literal, LiteralKind, Term};
use serde::{Deserialize, Serialize};

use crate::files::components::DirectoryComponents;

/// Which literals are indexed: strings, with a language tag or without, that stand in a quad with
/// one of the predicates, in one of the graphs, whose subject has one of the classes by an
/// `rdf:type` in any graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRules {
    /// IRIs of predicates; without any, all.
    #[serde(default)]
    pub predicates: Vec<String>,
    /// Languages, in lower case: `en` takes `en-gb` too, an empty one strings without a tag.
    /// Without any, all.
    #[serde(default)]
    pub languages: Vec<String>,
    /// IRIs of classes; without any, subjects need none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// IRIs of graphs, an empty one for the default graph; without any, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<String>,
    /// Whether the index has the trigrams of its texts too, for substrings and regular expressions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grams: bool,
}

/// An index of the texts of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextEntry {
    /// The rules that it was made by.
    pub rules: TextRules,
    /// Its file.
    pub directory: DirectoryComponents,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

impl TextRules {
    /// Whether strings in a language, or without one, are indexed.
    pub fn takes_language(&self, tag: Option<&str>) -> bool {
        self.languages.is_empty()
            || self.languages.iter().any(|language| match tag {
                None => language.is_empty(),
                Some(tag) => tag.strip_prefix(language.as_str()).is_some_and(|rest| {
                    !language.is_empty() && (rest.is_empty() || rest.starts_with('-'))
                }),
            })
    }

    /// Whether it depends on a literal's quads, too, whether it is indexed.
    pub fn selects_quads(&self) -> bool {
        !self.predicates.is_empty() || self.selects_classes_or_graphs()
    }

    /// Whether graphs or classes matter: programs before there were these know of predicates and
    /// languages alone.
    pub(crate) fn selects_classes_or_graphs(&self) -> bool {
        !self.classes.is_empty() || !self.graphs.is_empty()
    }

    /// Whether quads in a graph are looked at; none is the default graph.
    pub fn takes_graph(&self, iri: Option<&str>) -> bool {
        self.graphs.is_empty() || self.graphs.iter().any(|known| known == iri.unwrap_or(""))
    }

    /// Whether quads with a predicate are looked at.
    pub fn takes_predicate(&self, iri: &str) -> bool {
        self.predicates.is_empty() || self.predicates.iter().any(|known| known == iri)
    }

    /// The text of a term and its language tag, if it is indexed.
    pub fn text_of<'t>(&self, term: &'t Term<'_>) -> Option<(&'t str, Option<&'t str>)> {
        let Term::Literal(Literal { lexical, kind }) = term else {
            return None;
        };
        let tag = match kind {
            LiteralKind::String => None,
            LiteralKind::Language(tag) | LiteralKind::Directional(tag, _) => Some(&**tag),
            LiteralKind::Typed(_) => return None,
        };
        self.takes_language(tag).then_some((&**lexical, tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_take_their_regions_and_nothing_else() {
        let rules = TextRules {
            languages: vec!["en".to_owned(), String::new()],
            ..TextRules::default()
        };
        for (tag, is_taken) in [
            (Some("en"), true),
            (Some("en-gb"), true),
            (Some("enm"), false),
            (Some("de"), false),
            (None, true),
        ] {
            assert_eq!(rules.takes_language(tag), is_taken, "{tag:?}");
        }
        assert!(TextRules::default().takes_language(Some("de")));
        let only_english = TextRules {
            languages: vec!["en".to_owned()],
            ..TextRules::default()
        };
        assert!(!only_english.takes_language(None));
    }

    #[test]
    fn only_strings_are_texts() {
        let rules = TextRules::default();
        assert_eq!(rules.text_of(&Term::string("a")), Some(("a", None)));
        assert_eq!(
            rules.text_of(&Term::language("a", "EN")),
            Some(("a", Some("en")))
        );
        assert_eq!(rules.text_of(&Term::iri("http://a")), None);
    }
}
