//! The query templates with parameters such as `%ProductXYZ%`.
//!
//! The texts, in `queries/explore`, are our own after the specification, version
//! 3.1 (query 6 was taken out by it). Parameters have the official tool's names,
//! so that [`instantiate`] fills its templates as well.

use std::collections::BTreeMap;

use thiserror::Error;

/// One explore query.
#[derive(Clone, Copy, Debug)]
pub struct QueryTemplate {
    /// Its number in the specification.
    pub number: u8,
    /// Whether the result is a graph (DESCRIBE, CONSTRUCT) or a table.
    pub is_graph_query: bool,
    /// The text, with parameters.
    pub text: &'static str,
}

macro_rules! templates {
    ($($number:literal $is_graph_query:literal $file:literal;)*) => {
        [$(QueryTemplate {
            number: $number,
            is_graph_query: $is_graph_query,
            text: include_str!(concat!("../queries/explore/", $file)),
        }),*]
    };
}

/// The explore queries, by number.
pub const EXPLORE: [QueryTemplate; 11] = templates! {
    1 false "q01.rq";
    2 false "q02.rq";
    3 false "q03.rq";
    4 false "q04.rq";
    5 false "q05.rq";
    7 false "q07.rq";
    8 false "q08.rq";
    9 true "q09.rq";
    10 false "q10.rq";
    11 false "q11.rq";
    12 true "q12.rq";
};

/// A query that goes by a name, not by a number of the explore use case.
#[derive(Clone, Copy, Debug)]
pub struct NamedTemplate {
    /// What reports call it.
    pub name: &'static str,
    /// The text, with parameters.
    pub text: &'static str,
}

macro_rules! named_templates {
    ($($name:literal $file:literal;)*) => {
        [$(NamedTemplate {
            name: $name,
            text: include_str!(concat!("../queries/", $file)),
        }),*]
    };
}

/// The queries of the business intelligence use case.
pub const BUSINESS: [NamedTemplate; 8] = named_templates! {
    "BI Q1" "bi/q01.rq";
    "BI Q2" "bi/q02.rq";
    "BI Q3" "bi/q03.rq";
    "BI Q4" "bi/q04.rq";
    "BI Q5" "bi/q05.rq";
    "BI Q6" "bi/q06.rq";
    "BI Q7" "bi/q07.rq";
    "BI Q8" "bi/q08.rq";
};

/// Eight queries over the whole data set, as analysts ask them.
pub const ANALYTICAL: [NamedTemplate; 8] = named_templates! {
    "count all" "analytical/count_all.rq";
    "count by predicate" "analytical/count_by_predicate.rq";
    "price by producer" "analytical/price_by_producer.rq";
    "distinct objects" "analytical/distinct_objects.rq";
    "product star" "analytical/product_star.rq";
    "label regex" "analytical/label_regex.rq";
    "reviews by country" "analytical/reviews_by_country.rq";
    "shared features" "analytical/shared_features.rq";
};

/// The order in which a customer runs the explore queries: one query mix.
pub const EXPLORE_MIX: [u8; 25] = [
    1, 2, 2, 3, 2, 2, 4, 2, 2, 5, 7, 7, 5, 7, 7, 8, 9, 9, 8, 9, 9, 10, 10, 11, 12,
];

/// The explore query of this number.
pub fn explore_template(number: u8) -> Option<&'static QueryTemplate> {
    EXPLORE.iter().find(|template| template.number == number)
}

/// A parameter without a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the query template has the parameter %{name}%, for which there is no value")]
pub struct MissingParameter {
    /// The parameter's name.
    pub name: String,
}

/// The template with every `%name%` replaced by that parameter's value.
///
/// # Errors
/// When the template has a parameter that `parameters` does not.
pub fn instantiate(
    template: &str,
    parameters: &BTreeMap<String, String>,
) -> Result<String, MissingParameter> {
    let mut text = String::with_capacity(template.len() + 512);
    let mut rest = template;
    while let Some(start) = rest.find('%') {
        let (before, after) = rest.split_at(start);
        text.push_str(before);
        let name_length = after[1..]
            .find(|letter: char| !letter.is_ascii_alphanumeric())
            .unwrap_or(after.len() - 1);
        let (name, end) = after[1..].split_at(name_length);
        if name.is_empty() || !end.starts_with('%') {
            // A per cent sign of the query itself.
            text.push('%');
            rest = &after[1..];
            continue;
        }
        match parameters.get(name) {
            Some(value) => text.push_str(value),
            None => {
                return Err(MissingParameter {
                    name: name.to_owned(),
                });
            }
        }
        rest = &end[1..];
    }
    text.push_str(rest);
    Ok(text)
}

/// The names of the parameters of a template, each once, in order.
pub fn parameter_names(template: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut parts = template.split('%').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_name = !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_alphanumeric());
        if is_name && parts.peek().is_some() {
            parts.next();
            if !names.contains(&part) {
                names.push(part);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn parameters_are_replaced_everywhere() {
        let text = instantiate(
            "%a% ?p %b% . %a% ?q 5 % 3",
            &parameters(&[("a", "<x>"), ("b", "1")]),
        );
        assert_eq!(text.as_deref(), Ok("<x> ?p 1 . <x> ?q 5 % 3"));
    }

    #[test]
    fn a_parameter_without_value_is_an_error() {
        let error = instantiate("?s ?p %missing%", &BTreeMap::new()).unwrap_err();
        assert_eq!(error.name, "missing");
    }

    #[test]
    fn names_come_once_each() {
        assert_eq!(parameter_names("%a% %b% %a% < 5 % 2"), ["a", "b"]);
        assert_eq!(parameter_names("nothing"), Vec::<&str>::new());
    }

    #[test]
    fn the_mix_runs_every_query() {
        for template in EXPLORE {
            assert!(
                EXPLORE_MIX.contains(&template.number),
                "{}",
                template.number
            );
        }
        assert!(
            EXPLORE_MIX
                .iter()
                .all(|number| explore_template(*number).is_some())
        );
    }
}
