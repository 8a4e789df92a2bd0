//! SPARQL 1.1 Query Results JSON, written straight into the buffer.
//!
//! <https://www.w3.org/TR/sparql11-results-json/>

use super::text::{write_blank_node_label, write_escaped, write_unicode_escape};
use orrery_term::{LiteralKind, Term};

/// Appends the head of a SELECT answer, up to the opening bracket of the bindings.
pub(super) fn write_head(out: &mut Vec<u8>, variables: &[String]) {
    out.extend_from_slice(br#"{"head":{"vars":["#);
    for (index, variable) in variables.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, variable);
    }
    out.extend_from_slice(br#"]},"results":{"bindings":["#);
}

/// Appends the end of a SELECT answer.
pub(super) fn write_tail(out: &mut Vec<u8>) {
    out.extend_from_slice(b"]}}");
}

/// Appends the answer to an ASK.
pub(super) fn write_boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value {
        br#"{"head":{},"boolean":true}"#
    } else {
        br#"{"head":{},"boolean":false}"#
    });
}

/// The `"name":` of each variable, escaped once rather than in every row.
pub(super) fn object_keys(variables: &[String]) -> Vec<Vec<u8>> {
    variables
        .iter()
        .map(|variable| {
            let mut key = Vec::with_capacity(variable.len() + 3);
            write_string(&mut key, variable);
            key.push(b':');
            key
        })
        .collect()
}

/// Appends one solution, whose terms `write` appends; unbound variables are left out.
pub(super) fn write_row<T>(
    out: &mut Vec<u8>,
    keys: &[Vec<u8>],
    row: impl Iterator<Item = Option<T>>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    out.push(b'{');
    let mut is_first = true;
    for (key, term) in keys.iter().zip(row) {
        let Some(term) = term else { continue };
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        out.extend_from_slice(key);
        write(out, term);
    }
    out.push(b'}');
}

/// Appends a term.
pub(super) fn write_term(out: &mut Vec<u8>, term: &Term<'_>) {
    match term {
        Term::Iri(iri) => {
            out.extend_from_slice(br#"{"type":"uri","value":"#);
            write_string(out, iri);
        }
        Term::BlankNode(number) => {
            out.extend_from_slice(br#"{"type":"bnode","value":""#);
            write_blank_node_label(out, *number);
            out.push(b'"');
        }
        Term::Literal(literal) => {
            out.extend_from_slice(br#"{"type":"literal","value":"#);
            write_string(out, &literal.lexical);
            match &literal.kind {
                LiteralKind::String => {}
                LiteralKind::Language(tag) => {
                    out.extend_from_slice(br#","xml:lang":"#);
                    write_string(out, tag);
                }
                LiteralKind::Directional(tag, direction) => {
                    out.extend_from_slice(br#","xml:lang":"#);
                    write_string(out, tag);
                    out.extend_from_slice(br#","its:dir":"#);
                    write_string(out, direction.as_str());
                }
                LiteralKind::Typed(datatype) => {
                    out.extend_from_slice(br#","datatype":"#);
                    write_string(out, datatype);
                }
            }
        }
        Term::Triple(triple) => {
            out.extend_from_slice(br#"{"type":"triple","value":"#);
            let names: [&[u8]; 3] = [br#"{"subject":"#, br#","predicate":"#, br#","object":"#];
            for (name, part) in names.into_iter().zip(triple.parts()) {
                out.extend_from_slice(name);
                write_term(out, part);
            }
            out.push(b'}');
        }
    }
    out.push(b'}');
}

/// Appends a JSON string with its quotes (RFC 8259, 7).
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(
        out,
        text.as_bytes(),
        |byte| (byte < 0x20) | (byte == b'"') | (byte == b'\\'),
        |out, byte| match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => write_unicode_escape(out, other),
        },
    );
    out.push(b'"');
}
