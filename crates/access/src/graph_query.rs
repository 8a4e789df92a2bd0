//! Rules by query: graphs that a query selects for a user, such as
//! `SELECT ?g { GRAPH ?g { ?event ex:attendee ?user } }`.
//!
//! ```text
//! text of an administrator -> checked when the rule comes
//!    -> `?user` replaced by the asker, once for each of their names -> run over the state that is read
//! ```
//!
//! The query is run over all graphs, also those that who asks does not see. `?user` stands for each
//! identity of the user, as an IRI, and for the name, as a string. Who is not known has neither: a
//! query that says `?user` finds nothing for them.

use orrery_syntax::{Lexer, Limits, ParserOptions, TokenKind, parse_query};
use orrery_term::Term;
use spargebra::Query;
use spargebra::algebra::GraphPattern;

use crate::User;

/// The variable that stands for who asks, without its sign.
const USER: &str = "user";
/// What is written for it where a query is checked.
const ANYBODY: &str = "<urn:user>";
/// Of the text of a query: what stacks of all threads hold.
const LIMITS: Limits = Limits {
    nesting_max: 32,
    operators_max: 500,
};

/// What an IRI never has (RFC 3987).
pub(crate) const NEVER_IN_IRIS: fn(char) -> bool = |it| it <= ' ' || "<>\"{}|\\^`".contains(it);

/// Checks a query.
///
/// # Errors
/// One sentence on what is wrong: it is no query, or none that selects graphs.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let query = read(text)?;
    let Query::Select { pattern, .. } = &query else {
        return Err("the query of a rule is a SELECT".to_owned());
    };
    match projected(pattern) {
        [one] if one.as_str() != USER => {}
        _ => {
            return Err(
                "the query of a rule selects one variable, the graph, which is not ?user"
                    .to_owned(),
            );
        }
    }
    read(&with_user(text, ANYBODY))
        .map(drop)
        .map_err(|why| format!("?user stands where no IRI may ({why})"))
}

/// The texts to run for a user, or for somebody who is not known: what they find together is what
/// the rule is about.
pub(crate) fn texts_for(text: &str, user: Option<&User>) -> Vec<String> {
    if users_in(text).next().is_none() {
        return vec![text.to_owned()];
    }
    let Some(user) = user else {
        return Vec::new();
    };
    let identities = user.identities.iter().map(|it| it.as_str());
    // An identity may have characters that no IRI has: no data has those either.
    let identities = identities.filter(|iri| !iri.contains(NEVER_IN_IRIS));
    let identities = identities.map(|iri| format!("<{iri}>"));
    let name = Term::string(user.name.as_str()).to_string();
    let texts = identities.chain([name]).map(|it| with_user(text, &it));
    // In places where no string may stand, such as that of a predicate, only identities are asked
    // for.
    texts.filter(|text| read(text).is_ok()).collect()
}

fn read(text: &str) -> Result<Query, String> {
    let read = parse_query(
        text,
        &ParserOptions {
            limits: LIMITS,
            ..ParserOptions::default()
        },
    );
    read.map(|(query, _)| query)
        .map_err(|error| error.to_string())
}

fn projected(mut pattern: &GraphPattern) -> &[spargebra::term::Variable] {
    loop {
        pattern = match pattern {
            GraphPattern::Project { variables, .. } => return variables,
            GraphPattern::Slice { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner } => inner,
            _ => return &[],
        };
    }
}

/// The text with `?user` written as a term.
fn with_user(text: &str, term: &str) -> String {
    let mut written = String::with_capacity(text.len() + term.len());
    let mut end = 0;
    for (from, to) in users_in(text) {
        // Apart from what stands beside it, as a variable is.
        written.extend([&text[end..from], " ", term, " "]);
        end = to;
    }
    written.push_str(&text[end..]);
    written
}

/// Where in a text `?user` stands: from which byte to which.
fn users_in(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut lexer = Lexer::new(text);
    let tokens = std::iter::from_fn(move || {
        let token = lexer.next_token();
        (token.kind != TokenKind::End).then_some(token)
    });
    tokens
        .filter(move |token| token.kind == TokenKind::Variable && token.text(text)[1..] == *USER)
        .map(|token| (token.start as usize, token.end as usize))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::{Identity, Name, UserId};

    use super::*;

    const ATTENDED: &str =
        "PREFIX ex: <http://example.org/> SELECT ?g { GRAPH ?g { ?event ex:attendee ?user } }";

    fn ann() -> User {
        let identities = ["https://ann.example/#me", "https://login.example#a|b"];
        User {
            id: UserId(3),
            name: Name::new("ann").unwrap(),
            password: None,
            is_administrator: false,
            is_locked: false,
            groups: BTreeSet::new(),
            identities: identities.map(|it| Identity::new(it).unwrap()).into(),
        }
    }

    #[test]
    fn the_user_is_written_as_each_of_its_names() {
        let texts = texts_for(ATTENDED, Some(&ann()));
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            texts[0].contains("ex:attendee  <https://ann.example/#me>  }"),
            "{texts:?}"
        );
        assert!(texts[1].contains("ex:attendee  \"ann\"  }"), "{texts:?}");
        assert!(texts_for(ATTENDED, None).is_empty());
    }

    #[test]
    fn only_the_variable_is_written_otherwise() {
        let text = "SELECT ?g { GRAPH ?g { ?users <urn:?user> \"?user\" . FILTER(?users=$user) } } # ?user";
        let texts = texts_for(text, Some(&ann()));
        let expected = "SELECT ?g { GRAPH ?g { ?users <urn:?user> \"?user\" . FILTER(?users= \"ann\" ) } } # ?user";
        assert_eq!(texts[1], expected);
    }

    #[test]
    fn where_no_string_may_stand_identities_alone_are_asked_for() {
        let texts = texts_for("SELECT ?g { ?g ?user 1 }", Some(&ann()));
        assert_eq!(texts, ["SELECT ?g { ?g  <https://ann.example/#me>  1 }"]);
    }

    #[test]
    fn who_is_not_known_has_what_does_not_depend_on_who_asks() {
        let public = "SELECT ?g { ?g a <urn:Public> }";
        assert_eq!(texts_for(public, None), [public]);
        assert_eq!(texts_for(public, Some(&ann())), [public]);
    }

    #[test]
    fn queries_that_select_no_graphs_are_refused() {
        assert_eq!(check(ATTENDED), Ok(()));
        assert_eq!(check("SELECT DISTINCT ?g { GRAPH ?g {} } LIMIT 3"), Ok(()));
        for (text, why) in [
            ("SELECT ?g { ", "line 1, column 12"),
            ("ASK {}", "a SELECT"),
            ("DELETE WHERE { ?s ?p ?o }", "line 1, column 1"),
            ("SELECT ?g ?h { GRAPH ?g { ?h ?p ?o } }", "one variable"),
            ("SELECT ?user { GRAPH ?user {} }", "one variable"),
            (
                "SELECT ?g { GRAPH ?g {} BIND(1 AS ?user) }",
                "where no IRI may",
            ),
        ] {
            let refused = check(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
