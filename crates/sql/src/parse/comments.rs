//! A rewrite that puts a blank between an operator and a comment directly after it.
//!
//! The library takes consecutive operator signs for one operator, those of comments too: it reads
//! `a>--b` as an operator `>--`, and the comment's text as SQL. In PostgreSQL an operator ends
//! where `--` or `/*` begins. The blank moves nothing after it: a comment within a line loses one
//! character.
//!
//! ```text
//!   a>--b      a> --b            a*/*is*/b      a* /*x*/b
//! ```

use std::borrow::Cow;

use super::split::skipped;

/// The signs that operators are made of.
const SIGNS: &[u8] = b"+-*/<>=~!@#%^&|`?";
/// A comment that says nothing.
const EMPTY: &str = "/**/";

/// The text with these blanks. It has no token more than the signs of its comments.
pub(super) fn with_blanks_before(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut at, mut copied, mut is_operator) = (0, 0, false);
    let mut out = String::new();
    while at < bytes.len() {
        match skipped(bytes, at) {
            None => {
                is_operator = SIGNS.contains(&bytes[at]);
                at += 1;
            }
            Some(skipped) => {
                let end = at + skipped.length;
                if skipped.is_comment && is_operator {
                    out.push_str(&text[copied..at]);
                    let comment = &text[at..end];
                    push_behind_blank(comment, skipped.has_end, &mut out);
                    copied = end;
                }
                (at, is_operator) = (end, false);
            }
        }
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(out + &text[copied..]),
    }
}

/// Of a comment that ends within its line as many characters, of another all of them.
fn push_behind_blank(comment: &str, has_end: bool, out: &mut String) {
    let said = comment.chars().count().checked_sub(EMPTY.len());
    match said.filter(|_| has_end && !comment.contains('\n')) {
        None => {
            out.push(' ');
            out.push_str(comment);
        }
        Some(0) => out.push_str("    "),
        Some(said) => {
            out.push_str(" /*");
            out.extend(std::iter::repeat_n('x', said - 1));
            out.push_str("*/");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_stands_before_comments_that_follow_operators() {
        for (text, expected) in [
            ("a>--it's\n1", "a> --it's\n1"),
            ("a*/*is*/b", "a* /*x*/b"),
            ("a*/*\u{e9}/*b*/*/b", "a* /*xxxxx*/b"),
            ("a-/**/b", "a-    b"),
            ("a-/*\n*/b", "a- /*\n*/b"),
            ("a<>/*", "a<> /*"),
            ("a</*/*b*/", "a< /*/*b*/"),
            ("a//*b*/c", "a/ /**/c"),
            ("a=--b\n+--c", "a= --b\n+ --c"),
        ] {
            assert_eq!(with_blanks_before(text), expected, "{text}");
        }
    }

    #[test]
    fn any_other_text_stays() {
        for text in [
            "a - --b",
            "--a\n--b",
            "/*a*/--b",
            "/* a*--b */ c",
            "'a>--b' \"a>--b\" E'\\'>--' $$a>--b$$ a>'--'",
            "a>-1",
            "count(*)--all",
            "",
        ] {
            assert!(
                matches!(with_blanks_before(text), Cow::Borrowed(_)),
                "{text}"
            );
        }
    }
}
