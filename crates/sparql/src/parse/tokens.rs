//! Where spargebra's grammar, which has no tokens, reads a query otherwise than SPARQL's does.
//!
//! - `TRUE` and `False` are keywords, of any case; spargebra takes them in lower case only.
//! - `?x<?a&&?b>?y` is a variable, the IRI `?a&&?b`, and a variable, for the longest token wins;
//!   spargebra sees two comparisons. The question mark is written as an escape, which only an IRI may hold
//!   (spargebra's feature `standard-unicode-escaping`, which is off, would resolve it too early).
//!
//! Hardly any query needs a change, so the text is usually passed on as it is.

use std::borrow::Cow;

use super::skip::{skip_comment, skip_iri, skip_string};

/// A query as spargebra is to read it.
pub(super) fn as_parsed(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut changed = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'#' => at = skip_comment(bytes, at),
            b'"' | b'\'' => at = skip_string(bytes, at),
            b'<' => {
                let end = skip_iri(bytes, at);
                if end > at && matches!(bytes[at + 1], b'?' | b'$') {
                    changed.push_str(&text[copied..=at]);
                    changed.push_str(if bytes[at + 1] == b'?' {
                        "\\u003F"
                    } else {
                        "\\u0024"
                    });
                    copied = at + 2;
                }
                at = end;
            }
            byte if is_name(byte) => {
                let end = end_of_name(bytes, at);
                let word = &bytes[at..end];
                let is_boolean = ["true", "false"].into_iter().any(|keyword| {
                    word.eq_ignore_ascii_case(keyword.as_bytes()) && word != keyword.as_bytes()
                });
                if is_boolean && stands_alone(bytes, at, end) {
                    changed.push_str(&text[copied..at]);
                    changed.push_str(&text[at..end].to_ascii_lowercase());
                    copied = end;
                }
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    changed.push_str(&text[copied..]);
    Cow::Owned(changed)
}

/// Bytes that names of variables, prefixes and resources are made of, without their punctuation.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'%') || byte >= 0x80
}

/// Behind the last byte of the name that starts at `at`.
pub(super) fn end_of_name(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..]
        .iter()
        .take_while(|byte| is_name(**byte))
        .count();
    at + length
}

/// Whether the word is no part of a variable, prefixed name, blank node or language tag.
pub(super) fn stands_alone(bytes: &[u8], at: usize, end: usize) -> bool {
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let is_part = matches!(before, Some(b'?' | b'$' | b':' | b'@' | b'.' | b'\\'));
    !is_part && bytes.get(end) != Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_of_any_case_are_read() {
        assert_eq!(
            as_parsed("SELECT (TRUE AS ?t) {}"),
            "SELECT (true AS ?t) {}"
        );
        assert_eq!(as_parsed("ASK { ?s ?p False}"), "ASK { ?s ?p false}");
    }

    #[test]
    fn what_only_looks_like_a_boolean_stays() {
        for text in [
            "SELECT ?TRUE $False { ?s TRUE:x :TRUE, e:a.TRUE, \"TRUE\" , 'TRUE'@TRUE # TRUE\n}",
            "ASK { ?s <TRUE> true, <http://e/TRUE>, isTRUE, TRUE_, _:TRUE }",
        ] {
            assert!(matches!(as_parsed(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn the_longest_token_wins() {
        let text = "ASK { FILTER(?x<?a&&?b>?y) }";
        assert!(super::super::parse(text, Some("http://example.com/")).is_err());
        let text = "ASK { ?s<?a&&?b>?o FILTER(?x<?a && ?b>?y) }";
        let query = super::super::parse(text, Some("http://example.com/")).unwrap();
        assert!(
            query.to_string().contains("<http://example.com/?a&&?b>"),
            "{query}"
        );
    }
}
