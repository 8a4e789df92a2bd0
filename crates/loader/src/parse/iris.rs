//! The rules for IRIs in documents.

use crate::parse::ntriples::check_iri;
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use std::borrow::Cow;

/// Which IRIs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Iris {
    /// Those of RFC 3987.
    #[default]
    Right,
    /// All that N-Triples can write, with a scheme: dumps have `http://a/#b#c`, `http://a/[1]`,
    /// `http://a/100%`.
    AsWritten,
}

impl Iris {
    /// Accepts an absolute IRI, or says what is wrong with it; whether it is taken though it is
    /// none of RFC 3987.
    pub(crate) fn check(self, iri: &str) -> Result<bool, Cow<'static, str>> {
        match check_iri(iri) {
            Ok(()) => Ok(false),
            Err(_) if self == Self::AsWritten && is_as_written(iri) => Ok(true),
            Err(message) => Err(message),
        }
    }
}

/// Whether it has a scheme, and N-Triples writes each of its characters as it is.
fn is_as_written(iri: &str) -> bool {
    let Some((scheme, rest)) = iri.split_once(':') else {
        return false;
    };
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_wrong = |byte: u8| byte <= b' ' || b"<>\"{}|^`\\".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(is_of_scheme)
        && !rest.bytes().any(is_wrong)
}

/// What is wrong with a quad of a parser that was told to look at nothing.
pub(crate) fn check_quad(quad: &Quad, iris: Iris) -> Result<(), String> {
    if iris == Iris::Right {
        // Its parser has looked.
        return Ok(());
    }
    if let GraphName::NamedNode(name) = &quad.graph_name {
        check_named(name, iris)?;
    }
    check_parts((&quad.subject, &quad.predicate, &quad.object), iris)
}

fn check_named(iri: &NamedNode, iris: Iris) -> Result<(), String> {
    match iris.check(iri.as_str()) {
        Ok(_) => Ok(()),
        Err(message) => Err(format!("{message}, found <{}>", iri.as_str())),
    }
}

fn check_parts(
    (subject, predicate, object): (&NamedOrBlankNode, &NamedNode, &Term),
    iris: Iris,
) -> Result<(), String> {
    let mut parts = (subject, predicate, object);
    // Triple terms nest in their objects.
    loop {
        let (subject, predicate, object) = parts;
        if let NamedOrBlankNode::NamedNode(subject) = subject {
            check_named(subject, iris)?;
        }
        check_named(predicate, iris)?;
        match object {
            Term::NamedNode(object) => return check_named(object, iris),
            Term::BlankNode(_) => return Ok(()),
            Term::Literal(literal) => return check_literal(literal, iris),
            Term::Triple(triple) => {
                let Triple {
                    subject,
                    predicate,
                    object,
                } = triple.as_ref();
                parts = (subject, predicate, object);
            }
        }
    }
}

fn check_literal(literal: &Literal, iris: Iris) -> Result<(), String> {
    if let Some(tag) = literal.language() {
        return match Literal::new_language_tagged_literal("", tag) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("'{tag}' is no language tag: {error}")),
        };
    }
    let datatype = literal.datatype();
    if datatype == rdf::LANG_STRING || datatype == rdf::DIR_LANG_STRING {
        return Err("a literal of rdf:langString has to have a language tag".to_owned());
    }
    check_named(&datatype.into_owned(), iris)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iris_of_dumps_are_taken_where_they_are_asked_for_and_what_nothing_writes_never() {
        for iri in [
            "http://x/a#b#c",
            "http://x/a[1]",
            "http://x/100%",
            "http://[x/",
        ] {
            assert!(Iris::Right.check(iri).is_err(), "{iri}");
            assert_eq!(Iris::AsWritten.check(iri), Ok(true), "{iri}");
        }
        assert_eq!(Iris::AsWritten.check("http://x/a"), Ok(false));
        for iri in [
            "",
            "a",
            "a b:c",
            "1:a",
            "http://x/a b",
            "http://x/<",
            "http://x/{1}",
            "x:\u{1}",
        ] {
            assert!(Iris::AsWritten.check(iri).is_err(), "{iri}");
        }
    }
}
