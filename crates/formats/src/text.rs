//! Writing text with escapes, and terms in the syntax that N-Triples and Turtle share.
//!
//! The escaping functions look for the next byte that needs attention and copy the
//! run before it in one piece. All special characters are ASCII, so cutting at
//! their bytes never cuts a UTF-8 sequence.

use orrery_term::{Literal, LiteralKind, Term, vocabulary::xsd};

/// Appends `text`, with each byte for which `special` holds replaced by what
/// `escape` appends for it.
#[inline]
pub(super) fn write_escaped(
    out: &mut Vec<u8>,
    text: &[u8],
    special: impl Fn(u8) -> bool,
    escape: impl Fn(&mut Vec<u8>, u8),
) {
    let mut rest = text;
    while let Some(position) = find_byte(rest, &special) {
        let (plain, tail) = rest.split_at(position);
        out.extend_from_slice(plain);
        escape(out, tail[0]);
        rest = &tail[1..];
    }
    out.extend_from_slice(rest);
}

/// The position of the first byte for which `special` holds. It tests many bytes at a time without
/// a branch in between. The compiler vectorizes this if `special` combines its comparisons by `|`,
/// not `||`, and the results of a piece are folded into one. (An array of results, compared with
/// zeros, became code that tests each byte: 50 ns for an IRI, 6 this way.)
#[inline]
pub(super) fn find_byte(text: &[u8], special: impl Fn(u8) -> bool) -> Option<usize> {
    const BYTES_AT_A_TIME: usize = 16;
    let (chunks, rest) = text.as_chunks::<BYTES_AT_A_TIME>();
    for (number, chunk) in chunks.iter().enumerate() {
        if is_any(chunk, &special) {
            let within = chunk.iter().position(|&byte| special(byte))?;
            return Some(number * BYTES_AT_A_TIME + within);
        }
    }
    // The last bytes once more, together with those before them: mostly none of them is special.
    if let Some(last) = text.last_chunk::<BYTES_AT_A_TIME>()
        && !is_any(last, &special)
    {
        return None;
    }
    let within = rest.iter().position(|&byte| special(byte))?;
    Some(chunks.len() * BYTES_AT_A_TIME + within)
}

#[inline(always)]
fn is_any<const N: usize>(bytes: &[u8; N], special: &impl Fn(u8) -> bool) -> bool {
    let found = bytes.iter().map(|&byte| u8::from(special(byte)));
    found.fold(0, |seen, found| seen | found) != 0
}

/// Appends `\u00XX`.
pub(super) fn write_unicode_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(b"\\u00");
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

/// Appends a number in decimal digits.
pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends the label of a blank node, without `_:`.
pub(super) fn write_blank_node_label(out: &mut Vec<u8>, number: u64) {
    out.push(b'b');
    write_number(out, number);
}

/// Appends a term as N-Triples writes it, tabs escaped, so that it also fits into a TSV field.
pub(super) fn write_ntriples_term(out: &mut Vec<u8>, term: &Term<'_>) {
    match term {
        Term::Iri(iri) => write_iri(out, iri),
        Term::BlankNode(number) => {
            out.extend_from_slice(b"_:");
            write_blank_node_label(out, *number);
        }
        Term::Literal(literal) => write_literal(out, literal),
        Term::Triple(triple) => {
            out.extend_from_slice(b"<<( ");
            for part in triple.parts() {
                write_ntriples_term(out, part);
                out.push(b' ');
            }
            out.extend_from_slice(b")>>");
        }
    }
}

fn write_literal(out: &mut Vec<u8>, literal: &Literal<'_>) {
    out.push(b'"');
    write_ntriples_text(out, &literal.lexical);
    out.push(b'"');
    write_literal_kind(out, literal);
}

/// Appends the text of a literal, or a piece of it, without its quotes.
pub(super) fn write_ntriples_text(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    // Canonical N-Triples escapes these two, which are no characters; hardly any text has them.
    while let Some(at) = rest.find(['\u{FFFE}', '\u{FFFF}']) {
        let (before, found) = rest.split_at(at);
        write_quoted(out, before);
        let is_last = found.starts_with('\u{FFFF}');
        out.extend_from_slice(if is_last { b"\\uFFFF" } else { b"\\uFFFE" });
        rest = &found['\u{FFFE}'.len_utf8()..];
    }
    write_quoted(out, rest);
}

fn write_quoted(out: &mut Vec<u8>, text: &str) {
    write_escaped(
        out,
        text.as_bytes(),
        |byte| (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte == 0x7F),
        |out, byte| match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            other => write_unicode_escape(out, other),
        },
    );
}

/// Appends tag or datatype of a literal, as they follow its closing quote.
pub(super) fn write_literal_kind(out: &mut Vec<u8>, literal: &Literal<'_>) {
    match &literal.kind {
        LiteralKind::String => {}
        LiteralKind::Language(tag) => {
            out.push(b'@');
            out.extend_from_slice(tag.as_bytes());
        }
        LiteralKind::Directional(tag, direction) => {
            out.push(b'@');
            out.extend_from_slice(tag.as_bytes());
            out.extend_from_slice(b"--");
            out.extend_from_slice(direction.as_str().as_bytes());
        }
        LiteralKind::Typed(datatype) => {
            out.extend_from_slice(b"^^");
            write_iri(out, datatype);
        }
    }
}

/// Appends an IRI in angle brackets. Characters that may not stand there cannot
/// come from a checked source; should one arrive all the same, it is escaped rather
/// than let it end the term early.
pub(super) fn write_iri(out: &mut Vec<u8>, iri: &str) {
    out.push(b'<');
    write_escaped(
        out,
        iri.as_bytes(),
        |byte| (byte <= 0x20) | (byte == b'<') | (byte == b'>') | (byte == b'"') | (byte == b'\\'),
        write_unicode_escape,
    );
    out.push(b'>');
}

/// Appends a term in Turtle syntax: as N-Triples, but numbers and booleans bare where Turtle has a
/// short form.
pub(super) fn write_turtle_term(out: &mut Vec<u8>, term: &Term<'_>) {
    match term {
        Term::Literal(literal) if is_bare_in_turtle(literal) => {
            out.extend_from_slice(literal.lexical.as_bytes());
        }
        other => write_ntriples_term(out, other),
    }
}

/// True if Turtle may write the literal without quotes and datatype.
pub(super) fn is_bare_in_turtle(literal: &Literal<'_>) -> bool {
    let LiteralKind::Typed(datatype) = &literal.kind else {
        return false;
    };
    let lexical = literal.lexical.as_bytes();
    match datatype.as_ref() {
        xsd::BOOLEAN => matches!(lexical, b"true" | b"false"),
        xsd::INTEGER => is_digits(unsigned(lexical)),
        xsd::DECIMAL => is_decimal(unsigned(lexical)),
        xsd::DOUBLE => is_double(unsigned(lexical)),
        _ => false,
    }
}

fn unsigned(lexical: &[u8]) -> &[u8] {
    lexical
        .strip_prefix(b"+")
        .or_else(|| lexical.strip_prefix(b"-"))
        .unwrap_or(lexical)
}

fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// `[0-9]* '.' [0-9]+`
fn is_decimal(text: &[u8]) -> bool {
    let Some(point) = text.iter().position(|&byte| byte == b'.') else {
        return false;
    };
    let (whole, fraction) = (&text[..point], &text[point + 1..]);
    (whole.is_empty() || is_digits(whole)) && is_digits(fraction)
}

/// `([0-9]+ '.' [0-9]* | '.' [0-9]+ | [0-9]+) [eE] [+-]? [0-9]+`
fn is_double(text: &[u8]) -> bool {
    let Some(mark) = text.iter().position(|byte| matches!(byte, b'e' | b'E')) else {
        return false;
    };
    let (mantissa, exponent) = (&text[..mark], unsigned(&text[mark + 1..]));
    let is_mantissa = match mantissa.iter().position(|&byte| byte == b'.') {
        None => is_digits(mantissa),
        Some(0) => is_digits(&mantissa[1..]),
        Some(point) => {
            is_digits(&mantissa[..point]) && mantissa[point + 1..].iter().all(u8::is_ascii_digit)
        }
    };
    is_mantissa && is_digits(exponent)
}

/// Appends text for an XML element or a quoted attribute; what XML forbids becomes U+FFFD.
pub(super) fn write_xml_text(out: &mut Vec<u8>, text: &str) {
    // U+FFFE and U+FFFF, the only forbidden characters beyond ASCII, begin with this byte.
    if text.as_bytes().contains(&0xEF) && text.contains(is_xml_forbidden) {
        let replaced = text.replace(is_xml_forbidden, "\u{FFFD}");
        return write_xml_text(out, &replaced);
    }
    write_escaped(
        out,
        text.as_bytes(),
        |byte| (byte < 0x20) | (byte == b'<') | (byte == b'>') | (byte == b'&') | (byte == b'"'),
        |out, byte| match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            // A reader normalizes a bare carriage return to a line feed (XML 1.0, 2.11).
            b'\r' => out.extend_from_slice(b"&#13;"),
            b'\t' => out.extend_from_slice(b"&#9;"),
            b'\n' => out.extend_from_slice(b"&#10;"),
            _ => out.extend_from_slice("\u{FFFD}".as_bytes()),
        },
    );
}

/// True for what is no `Char` of XML 1.0.
pub(super) fn is_xml_forbidden(character: char) -> bool {
    matches!(character,
        '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_wherever_it_stands() {
        for length in 0..130 {
            let mut text = vec![b'a'; length];
            assert_eq!(find_byte(&text, |byte| byte == b'"'), None);
            for place in (0..length).rev() {
                text[place] = b'"';
                assert_eq!(find_byte(&text, |byte| byte == b'"'), Some(place));
            }
        }
    }
}
