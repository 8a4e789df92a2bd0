//! The name characters that XML, Turtle and SPARQL share.

/// `NCNameStartChar` of Namespaces in XML; `PN_CHARS_U` of Turtle, N-Triples and SPARQL.
pub fn is_name_start(character: char) -> bool {
    matches!(character,
        'A'..='Z' | 'a'..='z' | '_'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// What may follow: `PN_CHARS`. An `NCNameChar` is one of these, or a full stop.
pub fn is_name_character(character: char) -> bool {
    is_name_start(character)
        || matches!(character,
            '-' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}
