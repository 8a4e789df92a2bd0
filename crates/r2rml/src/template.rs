//! Templates (R2RML, 7.3): texts with columns in braces, and their inversion from IRI to values.
//!
//! What a column gives to an IRI is percent-encoded except for characters that stand for themselves
//! in one (RFC 3987, `iunreserved`), so an IRI can be taken apart again wherever something else
//! than such a character stands behind each column.

use crate::error::{Error, Result};

/// Pieces that a template may have.
const PIECES_MAX: usize = 1_000;

/// A text with columns in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template<C> {
    pub(crate) pieces: Vec<Piece<C>>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<C> {
    /// As it stands.
    Text(String),
    /// The value of a column.
    Column(C),
}

/// What an IRI says of the columns of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inverse {
    /// No row gives it.
    Never,
    /// Rows give it whose columns, in the order of the template, have these texts.
    Values(Vec<String>),
    /// It cannot be told without computing the template.
    Unknown,
}

impl Template<String> {
    /// Reads `http://e/{a}/{"B c"}`; the columns are named as SQL writes them. A backslash takes
    /// the meaning from braces.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| Error::Words(format!("the template {text:?} {what}"));
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars();
        while let Some(char) = rest.next() {
            match char {
                '\\' => match rest.next() {
                    Some(escaped @ ('{' | '}' | '\\')) => plain.push(escaped),
                    _ => return Err(wrong("has a backslash before neither {, } nor \\")),
                },
                '}' => return Err(wrong("has a } without {")),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match rest.next() {
                            Some('}') => break,
                            Some('\\') => match rest.next() {
                                Some(escaped @ ('{' | '}' | '\\')) => name.push(escaped),
                                _ => {
                                    return Err(wrong(
                                        "has a backslash before neither {, } nor \\",
                                    ));
                                }
                            },
                            Some('{') => return Err(wrong("has a { within another")),
                            Some(char) => name.push(char),
                            None => return Err(wrong("has a { without }")),
                        }
                    }
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Column(name));
                }
                char => plain.push(char),
            }
            if pieces.len() > PIECES_MAX {
                return Err(wrong("has too many columns"));
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self { pieces })
    }
}

impl<C> Template<C> {
    /// The same with other columns.
    pub(crate) fn map<D>(&self, mut column: impl FnMut(&C) -> Result<D>) -> Result<Template<D>> {
        let pieces = self.pieces.iter().map(|piece| {
            Ok(match piece {
                Piece::Text(text) => Piece::Text(text.clone()),
                Piece::Column(name) => Piece::Column(column(name)?),
            })
        });
        Ok(Template {
            pieces: pieces.collect::<Result<_>>()?,
        })
    }

    /// Its columns, in order.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &C> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Column(column) => Some(column),
            Piece::Text(_) => None,
        })
    }

    /// Whether different values of the columns always give different IRIs: behind each column that
    /// another follows stands something that encoded values do not have.
    pub(crate) fn is_injective(&self) -> bool {
        let mut after_column = false;
        for piece in &self.pieces {
            match piece {
                Piece::Column(_) if after_column => return false,
                Piece::Column(_) => after_column = true,
                Piece::Text(text) => {
                    // A last column may run to the end, whatever stands there.
                    if text.chars().any(is_separator) {
                        after_column = false;
                    } else if after_column {
                        // `{a}x{b}`: an x may be of either.
                        continue;
                    }
                }
            }
        }
        true
    }

    /// The texts of the columns that give an IRI.
    pub(crate) fn inverse(&self, iri: &str) -> Inverse {
        let mut values = Vec::new();
        let mut rest = iri;
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Text(text) => match rest.strip_prefix(text.as_str()) {
                    Some(behind) => rest = behind,
                    None => return Inverse::Never,
                },
                Piece::Column(_) => {
                    let end = match pieces.peek() {
                        None => rest.len(),
                        Some(Piece::Column(_)) => return Inverse::Unknown,
                        Some(Piece::Text(text)) => {
                            if !text.starts_with(is_separator) {
                                return Inverse::Unknown;
                            }
                            // The value itself has no separator.
                            match rest.find(is_separator) {
                                Some(end) => end,
                                None => return Inverse::Never,
                            }
                        }
                    };
                    let (value, behind) = rest.split_at(end);
                    match decoded(value) {
                        Some(value) => values.push(value),
                        None => return Inverse::Never,
                    }
                    rest = behind;
                }
            }
        }
        match rest.is_empty() {
            true => Inverse::Values(values),
            false => Inverse::Never,
        }
    }
}

/// Whether a character is in no encoded value.
fn is_separator(char: char) -> bool {
    !is_unreserved(char) && char != '%'
}

/// RFC 3987, 2.2: `iunreserved`.
fn is_unreserved(char: char) -> bool {
    char.is_ascii_alphanumeric()
        || matches!(char, '-' | '.' | '_' | '~')
        || matches!(u32::from(char),
            0xA0..=0xD7FF | 0xF900..=0xFDCF | 0xFDF0..=0xFFEF
            | 0x1_0000..=0x1_FFFD | 0x2_0000..=0x2_FFFD | 0x3_0000..=0x3_FFFD | 0x4_0000..=0x4_FFFD
            | 0x5_0000..=0x5_FFFD | 0x6_0000..=0x6_FFFD | 0x7_0000..=0x7_FFFD | 0x8_0000..=0x8_FFFD
            | 0x9_0000..=0x9_FFFD | 0xA_0000..=0xA_FFFD | 0xB_0000..=0xB_FFFD | 0xC_0000..=0xC_FFFD
            | 0xD_0000..=0xD_FFFD | 0xE_1000..=0xE_FFFD)
}

/// Appends a text as it stands in an IRI.
pub(crate) fn encode(text: &str, into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut bytes = [0; 4];
    for char in text.chars() {
        if is_unreserved(char) {
            into.push(char);
            continue;
        }
        for byte in char.encode_utf8(&mut bytes).bytes() {
            into.push('%');
            into.push(char::from(DIGITS[usize::from(byte >> 4)]));
            into.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// The text that is encoded so; none if no text is.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                rest = behind;
            }
            (b'%', _) => return None,
            (byte, behind) => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    let value = String::from_utf8(bytes).ok()?;
    // What is encoded otherwise (`%41` for `A`, `%c3`) is another IRI.
    let mut again = String::with_capacity(text.len());
    encode(&value, &mut again);
    (again == text).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template<String> {
        Template::parse(text).unwrap()
    }

    #[test]
    fn texts_columns_and_escaped_braces_are_told_apart() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let column = |name: &str| Piece::Column(name.to_owned());
        assert_eq!(
            template("http://e/{a}/\\{x\\}{\"B c\"}").pieces,
            [
                text("http://e/"),
                column("a"),
                text("/{x}"),
                column("\"B c\"")
            ]
        );
        for wrong in ["{a", "a}", "{a{b}}", "\\a", "{a\\"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_iri_is_taken_apart_as_it_was_put_together() {
        let both = template("http://e/{a}/x/{b}");
        for (a, b) in [
            ("1", "2"),
            ("a b", "\u{e4}/\u{4e2d}?"),
            ("", "%41"),
            ("100%", "~"),
        ] {
            let mut iri = "http://e/".to_owned();
            encode(a, &mut iri);
            iri.push_str("/x/");
            encode(b, &mut iri);
            let values = vec![a.to_owned(), b.to_owned()];
            assert_eq!(both.inverse(&iri), Inverse::Values(values), "{iri}");
        }
        for never in [
            "http://e/1/x/2/3",
            "http://e/1/y/2",
            "http://e/1",
            "http://e/%41/x/2",
            "http://e/%c3%a4/x/2",
        ] {
            assert_eq!(both.inverse(never), Inverse::Never, "{never}");
        }
        assert_eq!(
            template("http://e/{a}{b}").inverse("http://e/12"),
            Inverse::Unknown
        );
        assert_eq!(
            template("http://e/{a}x{b}").inverse("http://e/1x2"),
            Inverse::Unknown
        );
    }

    #[test]
    fn only_templates_that_can_be_taken_apart_tell_rows_apart() {
        for (text, is_injective) in [
            ("http://e/{a}", true),
            ("http://e/{a}/{b}", true),
            ("{a};{b}.html", true),
            ("http://e/{a}{b}", false),
            ("http://e/{a}-{b}", false),
            ("http://e/{a}-x/{b}", true),
        ] {
            assert_eq!(template(text).is_injective(), is_injective, "{text}");
        }
    }
}
