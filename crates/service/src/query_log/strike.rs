//! Strikes names and passwords out of URLs in a text: `postgres://ann:secret@host/` becomes
//! `postgres://***@host/`.

/// The replacement; it is valid in an IRI.
const STRUCK: &str = "***";

/// Strikes names and passwords out of the URLs of a text.
pub(crate) fn strike(text: &mut String) {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("://")) {
        let begin = from + at + 3;
        let bytes = text.as_bytes().iter().skip(begin);
        // The authority ends here (RFC 3986, 3.2); a later @ is not of the userinfo.
        let is_end = |byte: &u8| {
            matches!(byte, b'/' | b'?' | b'#' | b'<' | b'>' | b'"' | b'\'')
                || byte.is_ascii_whitespace()
        };
        let length = bytes.take_while(|byte| !is_end(byte)).count();
        let authority = text.get(begin..begin + length).unwrap_or_default();
        from = begin;
        if let Some(end) = authority.rfind('@') {
            text.replace_range(begin..begin + end, STRUCK);
            from = begin + STRUCK.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(text: &str) -> String {
        let mut text = text.to_owned();
        strike(&mut text);
        text
    }

    #[test]
    fn names_and_passwords_of_urls_are_struck_out() {
        let cases = [
            ("", ""),
            (
                "SERVICE <http://ann:secret@e/sparql> {}",
                "SERVICE <http://***@e/sparql> {}",
            ),
            (
                "LOCATION 'postgres://ann@h/d' 'x://b:c@i'",
                "LOCATION 'postgres://***@h/d' 'x://***@i'",
            ),
            ("<http://ann:se@cret@e>", "<http://***@e>"),
            ("<http://e/ann@e> ?a@b", "<http://e/ann@e> ?a@b"),
            ("://", "://"),
            ("é://é:é@é", "é://***@é"),
        ];
        for (text, expected) in cases {
            assert_eq!(struck(text), expected);
        }
    }
}
