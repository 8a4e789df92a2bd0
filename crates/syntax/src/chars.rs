//! Which characters names are made of (SPARQL 1.2, 19.8, the rules `PN_CHARS_BASE` to
//! `PN_LOCAL_ESC`).
//!
//! ASCII is looked up in a table, for nearly all names are; the rest is compared with ranges.

const NAME: u8 = 1;
const NAME_START: u8 = 2;
const VARIABLE: u8 = 4;
const IRI: u8 = 8;
const PLAIN: u8 = 16;

/// What each ASCII byte may be part of.
const CLASSES: [u8; 128] = {
    let mut classes = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        let it = byte as u8;
        if it.is_ascii_alphabetic() {
            classes[byte] |= NAME | NAME_START | VARIABLE | PLAIN;
        }
        if it.is_ascii_digit() {
            classes[byte] |= NAME | VARIABLE | PLAIN;
        }
        if it == b'_' {
            classes[byte] |= NAME | VARIABLE | PLAIN;
        }
        if it == b'-' {
            classes[byte] |= NAME | PLAIN;
        }
        let ends_iri = matches!(
            it,
            b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\'
        );
        if it > b' ' && !ends_iri {
            classes[byte] |= IRI;
        }
        byte += 1;
    }
    classes
};

fn has(byte: u8, class: u8) -> bool {
    CLASSES
        .get(usize::from(byte))
        .is_some_and(|it| it & class != 0)
}

/// ASCII of `PN_CHARS`: letters, digits, `_`, `-`.
pub(crate) fn is_ascii_name(byte: u8) -> bool {
    has(byte, NAME)
}

/// ASCII letters, with which a prefix or a keyword begins.
pub(crate) fn is_ascii_name_start(byte: u8) -> bool {
    has(byte, NAME_START)
}

/// ASCII of `VARNAME`.
pub(crate) fn is_ascii_variable(byte: u8) -> bool {
    has(byte, VARIABLE)
}

/// ASCII that may stand between `<` and `>`.
pub(crate) fn is_ascii_iri(byte: u8) -> bool {
    has(byte, IRI)
}

/// Letters, digits, `_` and `-`: valid in each part of an IRI behind its authority.
pub(crate) fn is_plain(byte: u8) -> bool {
    has(byte, PLAIN)
}

/// What may follow a `\` in a local name.
pub(crate) fn is_local_escape(byte: u8) -> bool {
    b"_~.-!$&'()*+,;=/?#@%".contains(&byte)
}
