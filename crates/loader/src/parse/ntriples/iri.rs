//! The check of IRIs: the same ones as `oxiri::Iri::parse`, which is RFC 3987 with a scheme.

use oxiri::Iri;
use std::borrow::Cow;

/// Bytes of a scheme after its first letter.
const SCHEME: u8 = 1;
/// ASCII `iunreserved` and `sub-delims`: what may stand in a host.
const HOST: u8 = 2;
/// [`HOST`] and `:`, `@`, `/`: what may stand in a path.
const PATH: u8 = 4;
/// [`PATH`] and `?`: what may stand in a query or a fragment.
const QUERY: u8 = 8;

const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        if c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.') {
            classes[byte] |= SCHEME;
        }
        let is_host = c.is_ascii_alphanumeric()
            || matches!(
                c,
                b'!' | b'$'
                    | b'&'
                    | b'\''
                    | b'('
                    | b')'
                    | b'*'
                    | b'+'
                    | b','
                    | b'-'
                    | b'.'
                    | b';'
                    | b'='
                    | b'_'
                    | b'~'
            );
        if is_host {
            classes[byte] |= HOST;
        }
        if is_host || matches!(c, b':' | b'@' | b'/') {
            classes[byte] |= PATH;
        }
        if is_host || matches!(c, b':' | b'@' | b'/' | b'?') {
            classes[byte] |= QUERY;
        }
        byte += 1;
    }
    classes
}

/// Accepts an absolute IRI or says what is wrong with it.
pub(crate) fn check_iri(iri: &str) -> Result<(), Cow<'static, str>> {
    if is_plain(iri.as_bytes()) {
        return Ok(());
    }
    match Iri::parse(iri) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("expected an absolute IRI: {error}").into()),
    }
}

/// Whether this is an IRI of the usual kind: ASCII, no percent signs, no user, no port. Other
/// valid IRIs are left to the full parser.
fn is_plain(iri: &[u8]) -> bool {
    if !iri.first().is_some_and(u8::is_ascii_alphabetic) {
        return false;
    }
    let mut at = end_of_class(iri, 0, SCHEME);
    if iri.get(at) != Some(&b':') {
        return false;
    }
    at += 1;
    if iri[at..].starts_with(b"//") {
        at = end_of_class(iri, at + 2, HOST);
        if !matches!(iri.get(at), None | Some(b'/' | b'?' | b'#')) {
            return false;
        }
    }
    at = end_of_class(iri, at, PATH);
    if iri.get(at) == Some(&b'?') {
        at = end_of_class(iri, at, QUERY);
    }
    if iri.get(at) == Some(&b'#') {
        at = end_of_class(iri, at + 1, QUERY);
    }
    at == iri.len()
}

fn end_of_class(bytes: &[u8], from: usize, class: u8) -> usize {
    bytes[from..]
        .iter()
        .position(|&byte| CLASSES[usize::from(byte)] & class == 0)
        .map_or(bytes.len(), |length| from + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_iris_take_the_short_way() {
        for iri in [
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
            "urn:isbn:0451450523",
            "https://example.org/a?b=c/d?e#f/?g",
            "mailto:someone@example.org",
            "http://example.org",
            "a:",
        ] {
            assert!(is_plain(iri.as_bytes()), "{iri}");
        }
    }

    #[test]
    fn relative_and_broken_iris_are_refused() {
        for iri in [
            "",
            "a",
            "/a",
            "1a:b",
            "http://a b",
            "http://a/%zz",
            "a:#b#c",
            "http://[1/",
        ] {
            assert!(check_iri(iri).is_err(), "{iri}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn the_short_way_accepts_only_what_oxiri_accepts(
            iri in "[a-c]{0,2}:?/{0,3}[a-c0-9:@%\\[\\].~!é\u{e000}/?#^ -]{0,12}"
        ) {
            prop_assert_eq!(check_iri(&iri).is_ok(), Iri::parse(iri.as_str()).is_ok());
        }
    }
}
