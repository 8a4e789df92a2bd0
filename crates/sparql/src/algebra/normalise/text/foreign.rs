//! Text searches in the syntax of other stores, as patterns with a special predicate.
//!
//! ```text
//! ?l bif:contains "'red wine' AND cellar"        Virtuoso
//! ?l ql:contains-word "red win*"                 QLever
//! (?s ?score ?l ?g ?p) text:query (rdfs:label "red wine" 20 "lang:en")      Jena, with the text: of its own
//! ```
//!
//! Jena's becomes a `SERVICE` of ours. The others say of a literal that it matches. What they say
//! it in is near enough to our queries: Virtuoso quotes phrases with apostrophes too, and its
//! operators may be in small letters; QLever's words are all wanted, and `*` stands at the end of a
//! beginning.

use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode};
use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use super::request::TEXT;
use crate::algebra::normalise::called::taken_list;
use crate::algebra::services::TEXTS;
use crate::error::{QueryError, Result};

const CONTAINS: &str = "bif:contains";
const CONTAINS_WORD: &str = "http://qlever.cs.uni-freiburg.de/builtin-functions/contains-word";

/// A search for the literals of a variable.
pub(in crate::algebra::normalise) struct ForeignSearch<'p> {
    pub(in crate::algebra::normalise) literal: &'p Variable,
    /// In our notation.
    pub(in crate::algebra::normalise) query: String,
    /// As it was called.
    pub(in crate::algebra::normalise) name: &'static str,
}

impl<'p> ForeignSearch<'p> {
    /// The search that a pattern means, if it means one.
    pub(in crate::algebra::normalise) fn of(pattern: &'p TriplePattern) -> Result<Option<Self>> {
        let NamedNodePattern::NamedNode(predicate) = &pattern.predicate else {
            return Ok(None);
        };
        let name = match predicate.as_str() {
            CONTAINS => "bif:contains",
            CONTAINS_WORD => "ql:contains-word",
            _ => return Ok(None),
        };
        let (TermPattern::Variable(literal), TermPattern::Literal(query)) =
            (&pattern.subject, &pattern.object)
        else {
            return Err(QueryError::unsupported(format!(
                "{name} between other things than a variable and a string, as in ?label {name} \"red wine\""
            )));
        };
        let query = match name {
            "bif:contains" => ours(query.value()),
            _ => query.value().to_owned(),
        };
        Ok(Some(Self {
            literal,
            query,
            name,
        }))
    }
}

/// Terms that Jena's search gives: entity, score, literal, graph, property.
const JENA_GIVES_MAX: usize = 5;
/// Terms that it may ask with.
const JENA_ASKS_MAX: usize = 64;
const JENA_FORM: &str = "Jena's text:query is written `?entity text:query \"words\"` or `(?entity ?score ?literal ?graph ?property) text:query \
    (rdfs:label \"words\" 20 \"lang:en\")`";

/// What Jena's `text:query` asks for, as a pattern with a `SERVICE` of ours; the triples of its
/// lists are taken out of the patterns.
pub(in crate::algebra::normalise) fn jena_search(
    pattern: &TriplePattern,
    patterns: &mut Vec<TriplePattern>,
) -> Result<GraphPattern> {
    let wrong = |what: &str| QueryError::unsupported(format!("{what}; {JENA_FORM}"));
    let is_list = |term: &TermPattern, patterns: &[TriplePattern]| {
        patterns.iter().any(|it| {
            &it.subject == term && it.predicate == oxrdf::vocab::rdf::FIRST.into_owned().into()
        })
    };
    let gives = match is_list(&pattern.subject, patterns) {
        false => vec![pattern.subject.clone()],
        true => taken_list(patterns, &pattern.subject, JENA_GIVES_MAX)
            .ok_or_else(|| wrong("more than five variables, or no list, before text:query"))?,
    };
    let asks = match is_list(&pattern.object, patterns) {
        false => vec![pattern.object.clone()],
        true => taken_list(patterns, &pattern.object, JENA_ASKS_MAX)
            .ok_or_else(|| wrong("too much, or no list, behind text:query"))?,
    };
    let mut search = Vec::new();
    let subject = TermPattern::from(BlankNode::default());
    let mut add = |name: &str, object: TermPattern| {
        search.push(TriplePattern {
            subject: subject.clone(),
            predicate: NamedNode::new_unchecked(format!("{TEXT}{name}")).into(),
            object,
        });
    };
    let mut has_query = false;
    for ask in asks {
        match ask {
            TermPattern::NamedNode(_) if !has_query => add("property", ask),
            TermPattern::Literal(literal) if !has_query => {
                has_query = true;
                add("query", literal.into());
            }
            TermPattern::Literal(literal) if literal.datatype() == xsd::INTEGER => {
                // No limit, as Jena has it.
                if !literal.value().starts_with('-') {
                    add("limit", literal.into());
                }
            }
            TermPattern::Literal(literal) => match literal.value().split_once(':') {
                Some(("lang", "none")) => add("language", Literal::from("").into()),
                Some(("lang", tag)) => add("language", Literal::from(tag).into()),
                _ => {
                    return Err(wrong(
                        "text:query with something else than a limit or a language behind the words",
                    ));
                }
            },
            _ => {
                return Err(wrong(
                    "text:query without a string that is in the text of the query",
                ));
            }
        }
    }
    let names = ["entity", "score", "literal", "graph", "property"];
    let mut graph = None;
    for (name, given) in names.into_iter().zip(gives) {
        match (name, given) {
            // Not asked for.
            (_, TermPattern::BlankNode(_)) if name != "entity" => {}
            ("graph", TermPattern::Variable(variable)) => graph = Some(variable),
            ("graph", _) => return Err(wrong("the graph of text:query is a variable")),
            (_, given) => add(name, given),
        }
    }
    let search = GraphPattern::Service {
        name: NamedNode::new_unchecked(TEXTS).into(),
        inner: Box::new(GraphPattern::Bgp { patterns: search }),
        silent: false,
    };
    Ok(match graph {
        None => search,
        Some(graph) => GraphPattern::Graph {
            name: graph.into(),
            inner: Box::new(search),
        },
    })
}

/// A text expression of Virtuoso in our notation.
fn ours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let mut quote = None;
    let end_word = |word: &mut String, out: &mut String| {
        let capital = word.to_ascii_uppercase();
        out.push_str(match capital.as_str() {
            "AND" | "OR" | "NOT" => &capital,
            _ => word,
        });
        word.clear();
    };
    for char in text.chars() {
        match (quote, char) {
            (Some(open), char) if char == open => {
                quote = None;
                let is_beginning = word.ends_with('*') && !word.contains(char::is_whitespace);
                match is_beginning {
                    true => out.push_str(&word),
                    false => out.extend(["\"", &word, "\""]),
                }
                word.clear();
            }
            // Within apostrophes a quotation mark would end the phrase for us.
            (Some(_), '"') => word.push(' '),
            (Some(_), char) => word.push(char),
            (None, '\'' | '"') if word.is_empty() => quote = Some(char),
            (None, char) if char.is_whitespace() || matches!(char, '(' | ')') => {
                end_word(&mut word, &mut out);
                out.push(char);
            }
            (None, char) => word.push(char),
        }
    }
    match quote {
        None => end_word(&mut word, &mut out),
        // Not closed: told as such.
        Some(_) => out.extend(["\"", &word]),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_virtuoso_become_ours() {
        for (text, expected) in [
            ("'red wine'", "\"red wine\""),
            (
                "red and \"old cellar\" or 'win*'",
                "red AND \"old cellar\" OR win*",
            ),
            ("(red or white) and not wine", "(red OR white) AND NOT wine"),
            ("don't and", "don't AND"),
        ] {
            assert_eq!(ours(text), expected);
        }
    }
}
