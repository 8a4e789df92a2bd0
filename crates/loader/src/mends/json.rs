//! What is said of wrong JSON-LD. Its parser tells the place of what is no JSON; of what is no JSON-LD, it tells the keyword, and that is
//! looked for in the text.

use super::wording::{Said, between};
use crate::error::LoadOption;

pub(super) fn in_json(found: &str) -> Option<Said> {
    Some(match found {
        _ if found.starts_with("Trailing commas") => {
            Said::new("a comma stands before the end of a list", "take it away")
        }
        "Unexpected char: '''" => Said::new(
            "`'` is no quote of JSON",
            "write `\"` around keys and texts",
        ),
        _ if found.starts_with("Object values must be followed by a comma") => Said::new(
            "a comma or `}` is missing before this",
            "put a comma between the parts of an object, and `}` at its end",
        ),
        _ if found.starts_with("No LoadDocumentCallback") => Said::new(
            "the @context is another document, and none is fetched",
            "write the context itself in the place of its address",
        ),
        _ if found.starts_with("Term definition value must be") => Said::new(
            "a term of the @context is defined by something else than a text or an object",
            "write its IRI, or an object with \"@id\"",
        ),
        "@type and @language cannot be used together" => Said::new(
            "a value has both @type and @language",
            "leave out either: what has a language is a text",
        ),
        "@list and @set must be the only keys of an object" => Said::new(
            "another key stands beside @list or @set",
            "put it into an object of its own",
        ),
        _ if is_relative_base(found) => Said::new(
            "@base is a relative IRI, and there is no base",
            "write it in full",
        )
        .with(LoadOption::Base),
        _ => {
            let (keyword, kind) = must_be(found)?;
            Said::new(
                format!("{keyword} is something else than {kind}"),
                format!("write {kind}"),
            )
        }
    })
}

fn is_relative_base(found: &str) -> bool {
    found.starts_with("Invalid @base '") && found.ends_with("No scheme found in an absolute IRI")
}

/// A finding such as `@id value must be a string`, without what stood there instead, and without where it holds.
fn must_be(found: &str) -> Option<(&str, &str)> {
    let (keyword, kind) = found.split_once(" value must be ")?;
    let ends = [", found ", " in a context", " when "];
    let end = ends.iter().filter_map(|end| kind.find(end)).min();
    let kind = &kind[..end.unwrap_or(kind.len())];
    let is_keyword = keyword.starts_with('@') && !keyword.contains(' ');
    is_keyword.then_some((keyword, kind))
}

/// Which value of a keyword a finding means, by its beginning.
type IsMeant = fn(&str) -> bool;

fn any(_: &str) -> bool {
    true
}

fn is_no_text(value: &str) -> bool {
    !value.starts_with('"')
}

fn is_compound(value: &str) -> bool {
    value.starts_with(['{', '['])
}

fn is_address(value: &str) -> bool {
    value.starts_with(['"', '['])
}

/// The keywords that a finding may be about.
fn suspects(found: &str) -> Option<(Vec<&str>, IsMeant)> {
    let suspects: (Vec<&str>, IsMeant) = match found {
        _ if found.starts_with("No LoadDocumentCallback") => (vec!["@context"], is_address),
        _ if found.starts_with("Term definition value must be") => (vec!["@context"], any),
        _ if is_relative_base(found) => (vec!["@base"], any),
        "@type and @language cannot be used together" => (vec!["@language"], any),
        "@list and @set must be the only keys of an object" => (vec!["@list", "@set"], any),
        _ => match must_be(found)? {
            (keyword, "a string") => (vec![keyword], is_no_text),
            (keyword, kind) if between(kind, "a string, number", "null").is_some() => {
                (vec![keyword], is_compound)
            }
            (keyword, _) => (vec![keyword], any),
        },
    };
    Some(suspects)
}

/// Where in a text a finding must be about: bytes of a key. None where it may be about several.
pub(crate) fn place_of(found: &str, text: &str) -> Option<std::ops::Range<usize>> {
    let (keywords, is_meant) = suspects(found)?;
    let mut places = keywords.into_iter().flat_map(|keyword| {
        let key = format!("\"{keyword}\"");
        let length = key.len();
        let keys = text.match_indices(&key).map(|(at, _)| at);
        let meant = keys.filter(|at| {
            let behind = text[at + length..].trim_start();
            let value = behind.strip_prefix(':').map(str::trim_start);
            value.is_some_and(is_meant)
        });
        meant.map(|at| at..at + length).collect::<Vec<_>>()
    });
    places.next().filter(|_| places.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_placed_where_it_can_be_about_one_key_only() {
        let text = r#"{"@id": "a", "p": [{"@id": 5}, {"@value": ["x"]}, {"@value": "y"}]}"#;
        let at = |found| place_of(found, text).map(|place| place.start);
        assert_eq!(at("@id value must be a string"), text.find(r#""@id": 5"#));
        let value = "@value value must be a string, number, boolean or null";
        assert_eq!(at(value), text.find(r#""@value": ["#));
        assert_eq!(
            at("@list and @set must be the only keys of an object"),
            None
        );
        let twice = r#"[{"@id": 5}, {"@id": 6}]"#;
        assert_eq!(place_of("@id value must be a string", twice), None);
    }

    #[test]
    fn what_stood_there_instead_is_not_repeated() {
        let said = |found| {
            let said = in_json(found).unwrap();
            (said.message, said.mend.unwrap())
        };
        let (message, mend) = said("@direction value must be 'ltr' or 'rtl', found 'up'");
        assert_eq!(message, "@direction is something else than 'ltr' or 'rtl'");
        assert_eq!(mend, "write 'ltr' or 'rtl'");
        for found in [
            "@reverse value must be a string in a context",
            "@type value must be a string when @value is present",
        ] {
            assert_eq!(said(found).1, "write a string");
        }
    }
}
