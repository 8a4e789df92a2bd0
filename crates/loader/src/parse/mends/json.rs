//! Messages about errors in JSON-LD. The parser reports the place of wrong JSON, but only the
//! keyword of wrong JSON-LD, which is then searched in the text.

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

/// A finding such as `@id value must be a string`, without what stood there instead, and without
/// where it holds.
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

/// Whether a text gives a keyword another name: `"id": "@id"`. (`"@type": "@id"` says of what kind
/// a term's values are.)
fn has_alias(keyword: &str, text: &str) -> bool {
    let quoted = format!("\"{keyword}\"");
    let mut values = text.match_indices(&quoted).map(|(at, _)| &text[..at]);
    values.any(|before| {
        let key = before.trim_end().strip_suffix(':').map(str::trim_end);
        let key = key.and_then(|key| key.strip_suffix('"'));
        let name = key.and_then(|key| Some(&key[key.rfind('"')? + 1..]));
        name.is_some_and(|name| !name.starts_with('@'))
    })
}

/// Where in a text a finding must be about: bytes of a key. None where it may be about several, or
/// about a key of another name.
pub(crate) fn place_of(found: &str, text: &str) -> Option<std::ops::Range<usize>> {
    let (keywords, is_meant) = suspects(found)?;
    if keywords.iter().any(|keyword| has_alias(keyword, text)) {
        return None;
    }
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
    fn a_finding_may_be_about_a_key_that_stands_for_the_keyword() {
        let found = "@id value must be a string";
        let aliased = r#"{"@context": {"id": "@id", "x": {"@id": null}}, "id": 5}"#;
        assert_eq!(place_of(found, aliased), None);
        let lang = r#"{"@context": {"lang" : "@language", "@language": "en"}, "p": {"lang": "de", "@type": "t"}}"#;
        let both = "@type and @language cannot be used together";
        assert_eq!(place_of(both, lang), None);
        let of_kind = r#"{"@context": {"x": {"@id": "http://e/x", "@type": "@id"}}, "@id": 5}"#;
        let at = place_of(found, of_kind).map(|place| place.start);
        assert_eq!(at, of_kind.find(r#""@id": 5"#));
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
