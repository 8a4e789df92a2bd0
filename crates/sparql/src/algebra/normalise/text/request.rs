//! The parser of a search request from the triples of its `SERVICE`.

use orrery_full_text::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::error::{QueryError, Result};

pub(super) const TEXT: &str = "https://orrery-db.org/text#";
/// Solutions that a limit may let through.
const LIMIT_MAX: usize = 100_000;
const FORM: &str = "SERVICE text:search { [] text:query \"words\" ; text:property rdfs:label ; text:entity ?e ; text:literal ?l ; \
     text:language \"en\" ; text:score ?s ; text:highlight ?h ; text:limit 20 }, of which text:query is needed";

/// A search.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) query: Query,
    /// The language of its literals, in small letters with all its regions; an empty one means
    /// none.
    pub(super) language: Option<String>,
    /// What stands for the predicate.
    pub(super) property: Option<Variable>,
    /// IRIs of predicates that quads may have; without any, all.
    pub(super) properties: Vec<String>,
    /// A variable, a blank node or an IRI.
    pub(super) entity: Option<TermPattern>,
    pub(super) literal: Option<Variable>,
    pub(super) score: Option<Variable>,
    pub(super) highlight: Option<Variable>,
    pub(super) limit: Option<usize>,
}

impl Request {
    /// Reads the pattern of a `SERVICE`.
    pub(super) fn of(inner: &GraphPattern) -> Result<Self> {
        let GraphPattern::Bgp { patterns } = inner else {
            return Err(wrong("it holds something else than triples"));
        };
        let Some(first) = patterns.first() else {
            return Err(wrong("it is empty"));
        };
        if patterns
            .iter()
            .any(|pattern| pattern.subject != first.subject)
        {
            return Err(wrong(
                "its triples have different subjects; write a SERVICE for each search",
            ));
        }
        let mut parts = Parts::default();
        for pattern in patterns {
            parts.add(pattern)?;
        }
        let Some(query) = parts.query.clone() else {
            return Err(wrong("it has no text:query"));
        };
        parts.check_different()?;
        let query = Query::parse(&query).map_err(|error| {
            QueryError::unsupported(format!("the text:query {query:?}: {error}"))
        })?;
        let query = match parts.language.as_deref() {
            None => query,
            Some("") => query.in_language(None),
            language => query.in_language(language),
        };
        Ok(Self {
            query,
            language: parts.language,
            property: parts.property,
            properties: parts.properties,
            entity: parts.entity,
            literal: parts.literal,
            score: parts.score,
            highlight: parts.highlight,
            limit: parts.limit,
        })
    }
}

#[derive(Default)]
struct Parts {
    query: Option<String>,
    language: Option<String>,
    properties: Vec<String>,
    property: Option<Variable>,
    entity: Option<TermPattern>,
    literal: Option<Variable>,
    score: Option<Variable>,
    highlight: Option<Variable>,
    limit: Option<usize>,
}

impl Parts {
    /// Each variable stands for one thing.
    fn check_different(&self) -> Result<()> {
        let entity = match &self.entity {
            Some(TermPattern::Variable(variable)) => Some(variable),
            _ => None,
        };
        let all = [
            entity,
            self.property.as_ref(),
            self.literal.as_ref(),
            self.score.as_ref(),
            self.highlight.as_ref(),
        ];
        let mut names: Vec<&str> = all.into_iter().flatten().map(Variable::as_str).collect();
        names.sort_unstable();
        match names.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(wrong(&format!("?{} is bound in two ways", two[0]))),
            None => Ok(()),
        }
    }

    fn add(&mut self, pattern: &TriplePattern) -> Result<()> {
        let NamedNodePattern::NamedNode(predicate) = &pattern.predicate else {
            return Err(wrong("a predicate is a variable"));
        };
        let Some(name) = predicate.as_str().strip_prefix(TEXT) else {
            return Err(wrong(&format!(
                "<{}> is none of its predicates; patterns over data stand outside of it",
                predicate.as_str()
            )));
        };
        let object = &pattern.object;
        match name {
            "query" => match object {
                TermPattern::Literal(literal) => {
                    once(name, &mut self.query, literal.value().to_owned())
                }
                _ => Err(wrong(
                    "text:query has to be a string in the text of the query",
                )),
            },
            "language" => match object {
                TermPattern::Literal(literal) if is_language(literal.value()) => {
                    once(name, &mut self.language, literal.value().to_lowercase())
                }
                _ => Err(wrong(
                    "text:language is a language as en or en-gb, or \"\" for strings without one",
                )),
            },
            "property" => match object {
                TermPattern::NamedNode(node) => {
                    self.properties.push(node.as_str().to_owned());
                    Ok(())
                }
                TermPattern::Variable(variable) => once(name, &mut self.property, variable.clone()),
                _ => Err(wrong("text:property is an IRI or a variable")),
            },
            "entity" => match object {
                TermPattern::NamedNode(_)
                | TermPattern::BlankNode(_)
                | TermPattern::Variable(_) => once(name, &mut self.entity, object.clone()),
                _ => Err(wrong("text:entity is a variable or an IRI")),
            },
            "literal" => once(name, &mut self.literal, variable(name, object)?),
            "score" => once(name, &mut self.score, variable(name, object)?),
            "highlight" => once(name, &mut self.highlight, variable(name, object)?),
            "limit" => {
                let limit = match object {
                    TermPattern::Literal(literal) => literal.value().parse().ok(),
                    _ => None,
                };
                let limit = limit.filter(|limit| (1..=LIMIT_MAX).contains(limit));
                let limit = limit.ok_or_else(|| {
                    wrong(&format!("text:limit is a number from 1 to {LIMIT_MAX}"))
                })?;
                once(name, &mut self.limit, limit)
            }
            other => Err(wrong(&format!("there is no text:{other}"))),
        }
    }
}

fn is_language(tag: &str) -> bool {
    tag.chars()
        .all(|char| char.is_ascii_alphanumeric() || char == '-')
}

fn variable(name: &str, object: &TermPattern) -> Result<Variable> {
    match object {
        TermPattern::Variable(variable) => Ok(variable.clone()),
        _ => Err(wrong(&format!("text:{name} is a variable"))),
    }
}

fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(wrong(&format!("text:{name} stands there twice"))),
    }
}

fn wrong(what: &str) -> QueryError {
    QueryError::unsupported(format!("this search: {what}; a search is {FORM}"))
}
