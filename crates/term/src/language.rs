//! The spelling of language tags.
//!
//! Tags are compared without regard to case (RFC 5646, 2.1.1), so terms hold them in lower case,
//! and equal terms are equal bytes. What a reader gets is the tag as it was written: `en-GB`,
//! `zh-Hant`. One small table says how ([`LanguageTags`]); it is asked where terms leave the house,
//! never where they are compared.
//!
//! Parsers of others put tags into lower case themselves. Their text is looked through beside them
//! ([`TagFinder`]), which finds what looks like a tag in strings and comments, too; so what it
//! finds is only asked how a tag is written that a term has.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::{memchr, memmem::Finder};

use crate::term::{LiteralKind, Term};

/// Tags that are noted at most; further ones come back in lower case.
pub const LANGUAGE_TAGS_MAX: usize = 4_096;
/// What a finder notes at most of a syntax in which nearly everything may be a tag. What no term
/// has is forgotten with the finder.
const CANDIDATES_MAX: usize = 1 << 16;
/// Longest tag that is noted, in bytes: longer ones are nobody's.
pub const LANGUAGE_TAG_BYTES_MAX: usize = 48;
/// Longest part of a tag between hyphens (RFC 5646, 2.1), in bytes.
const TAG_PART_BYTES_MAX: usize = 8;
/// How much may stand between the parts of a tag's notation: white space, a sign, a quote.
const GAP_BYTES_MAX: usize = 64;

/// How tags are written, by the tag in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanguageTags {
    written: BTreeMap<Box<str>, Box<str>>,
    /// How many are not in lower case.
    with_capitals: usize,
}

impl LanguageTags {
    /// Notes how one source of terms (a load, a document, a request) writes a tag. Of several ways
    /// the one that has small letters first stays, in whatever order they come, for a load has no
    /// order. Returns whether anything changed.
    pub fn note(&mut self, tag: &str) -> bool {
        self.note_of_at_most(LANGUAGE_TAGS_MAX, tag)
    }

    fn note_of_at_most(&mut self, tags_max: usize, tag: &str) -> bool {
        let lower = lower_case(tag);
        match self.written.get(&*lower) {
            Some(known) if **known >= *tag => return false,
            None if tag.len() > LANGUAGE_TAG_BYTES_MAX || self.written.len() >= tags_max => {
                return false;
            }
            Some(_) | None => {}
        }
        let before = self.written.insert(lower.clone().into(), tag.into());
        self.with_capitals += usize::from(*lower != *tag);
        self.with_capitals -= usize::from(before.is_some_and(|before| *before != *lower));
        true
    }

    /// Takes the notes of another part of the same source.
    pub fn note_all(&mut self, others: &Self) {
        others.written.values().for_each(|tag| {
            self.note(tag);
        });
    }

    /// Takes the tags of a later source: those that are known stay as they are written.
    pub fn add(&mut self, later: &Self) {
        for (lower, tag) in &later.written {
            if !self.is_known(lower) {
                self.note(tag);
            }
        }
    }

    /// The tags of a later source that are not known yet.
    pub fn unknown_of(&self, later: &Self) -> Self {
        let mut all = self.clone();
        all.add(later);
        let new = all
            .written
            .iter()
            .filter(|(lower, _)| !self.is_known(lower));
        new.map(|(_, tag)| &**tag).collect()
    }

    /// Whether it is noted how a tag, in lower case, is written.
    pub fn is_known(&self, lower: &str) -> bool {
        self.written.contains_key(lower)
    }

    /// Whether a tag, in lower case, is not known and would be noted.
    pub fn has_place(&self, lower: &str) -> bool {
        self.written.len() < LANGUAGE_TAGS_MAX
            && lower.len() <= LANGUAGE_TAG_BYTES_MAX
            && !self.is_known(lower)
    }

    /// How a tag, in lower case, is written, if otherwise.
    pub fn written(&self, lower: &str) -> Option<&str> {
        if self.with_capitals == 0 {
            return None;
        }
        let written = self.written.get(lower)?;
        (**written != *lower).then_some(written)
    }

    /// Whether all tags are in lower case: then nothing has to be asked.
    pub fn is_lower_case(&self) -> bool {
        self.with_capitals == 0
    }

    /// Whether nothing is noted.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// All tags as they are written, in the order of what they are in lower case.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.written.values().map(|tag| &**tag)
    }

    /// All tags in lower case, each with how it is written.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.written.iter().map(|(lower, tag)| (&**lower, &**tag))
    }

    /// A term as it is written: to be shown, not to be compared.
    pub fn in_term<'t>(&self, mut term: Term<'t>) -> Term<'t> {
        if !self.is_lower_case() {
            self.in_literals(&mut term);
        }
        term
    }

    fn in_literals(&self, term: &mut Term<'_>) {
        match term {
            Term::Literal(literal) => match &mut literal.kind {
                LiteralKind::Language(tag) | LiteralKind::Directional(tag, _) => {
                    if let Some(written) = self.written(tag) {
                        *tag = written.to_owned().into();
                    }
                }
                LiteralKind::String | LiteralKind::Typed(_) => {}
            },
            Term::Triple(triple) => self.in_literals(triple.object_mut()),
            Term::BlankNode(_) | Term::Iri(_) => {}
        }
    }
}

impl<'t> FromIterator<&'t str> for LanguageTags {
    fn from_iter<I: IntoIterator<Item = &'t str>>(tags: I) -> Self {
        let mut all = Self::default();
        tags.into_iter().for_each(|tag| {
            all.note(tag);
        });
        all
    }
}

fn lower_case(tag: &str) -> Cow<'_, str> {
    match tag.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => tag.to_ascii_lowercase().into(),
        false => tag.into(),
    }
}

/// In which syntax a text has its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagSyntax {
    /// `"text"@en-GB`: Turtle, TriG, SPARQL, results in TSV.
    At,
    /// `xml:lang="en-GB"`: RDF/XML, results in XML.
    Xml,
    /// `"@language": "en-GB"`, aliases of that such as `"lang": "en-GB"`, and keys such as
    /// `"en-GB": "text"` of language maps: JSON-LD. So every short key and string may be one, if it
    /// has the form of a tag.
    JsonLd,
    /// `"xml:lang": "en-GB"`: results in JSON.
    JsonResults,
}

impl TagSyntax {
    /// What stands near each tag, and nearly nowhere else.
    fn mark(self) -> &'static [u8] {
        match self {
            Self::At => b"@",
            Self::Xml => b"xml:lang",
            Self::JsonLd => b":",
            Self::JsonResults => b"\"xml:lang\"",
        }
    }

    /// The text from each tag at a mark on.
    fn tags_at(self, text: &[u8], mark: usize) -> [Option<&[u8]>; 2] {
        let (before, after) = (&text[..mark], &text[mark + self.mark().len()..]);
        let tag = match self {
            Self::At => last_but_space(before)
                .is_some_and(|byte| matches!(byte, b'"' | b'\''))
                .then_some(after),
            Self::Xml => behind(after, b"=", b"\"'"),
            Self::JsonResults => behind(after, b":", b"\""),
            Self::JsonLd => {
                let Some(key) = key_before(before) else {
                    return [None, None];
                };
                let value = behind(after, b"", b"\"");
                return match text[key] {
                    b'@' if text[key..mark].starts_with(b"@language\"") => [None, value],
                    b'@' => [None, None],
                    _ => [Some(&text[key..]), value],
                };
            }
        };
        [tag, None]
    }

    /// How many tags are noted at most.
    fn tags_max(self) -> usize {
        match self {
            Self::JsonLd => CANDIDATES_MAX,
            Self::At | Self::Xml | Self::JsonResults => LANGUAGE_TAGS_MAX,
        }
    }

    /// Whether a tag is one, by its form and what stands behind it.
    fn is_tag(self, tag: &[u8], behind: &[u8]) -> bool {
        if self != Self::JsonLd {
            return tag.first().is_some_and(u8::is_ascii_alphabetic);
        }
        let mut parts = tag.split(|byte| *byte == b'-');
        let is_part = |part: &[u8]| (1..=TAG_PART_BYTES_MAX).contains(&part.len());
        let is_language = |part: &[u8]| is_part(part) && part.iter().all(u8::is_ascii_alphabetic);
        behind.first() == Some(&b'"') && parts.next().is_some_and(is_language) && parts.all(is_part)
    }
}

/// Where a short key of JSON begins that ends here.
fn key_before(text: &[u8]) -> Option<usize> {
    let key = text.trim_ascii_end().strip_suffix(b"\"")?;
    let start = key.len().saturating_sub(LANGUAGE_TAG_BYTES_MAX + 1);
    let quote = key[start..].iter().rposition(|byte| *byte == b'"')?;
    Some(start + quote + 1)
}

/// What stands behind a sign and an opening quote, with white space between.
fn behind<'t>(text: &'t [u8], sign: &[u8], quotes: &[u8]) -> Option<&'t [u8]> {
    let text = text.trim_ascii_start().strip_prefix(sign)?;
    let (quote, rest) = text.trim_ascii_start().split_first()?;
    quotes.contains(quote).then_some(rest)
}

fn last_but_space(text: &[u8]) -> Option<&u8> {
    text.iter()
        .rev()
        .take(GAP_BYTES_MAX)
        .find(|byte| !byte.is_ascii_whitespace())
}

/// Looks through a text, which may come in pieces, for what looks like language tags.
#[derive(Debug)]
pub struct TagFinder {
    syntax: TagSyntax,
    mark: Finder<'static>,
    found: LanguageTags,
    /// The end of what came so far, in which one may have begun.
    border: Vec<u8>,
}

impl TagFinder {
    /// A finder that has seen nothing.
    pub fn new(syntax: TagSyntax) -> Self {
        Self {
            syntax,
            mark: Finder::new(syntax.mark()),
            found: LanguageTags::default(),
            border: Vec::new(),
        }
    }

    /// What a whole text has.
    pub fn in_text(syntax: TagSyntax, text: &str) -> LanguageTags {
        if memchr(syntax.mark()[0], text.as_bytes()).is_none() {
            return LanguageTags::default();
        }
        let mut finder = Self::new(syntax);
        finder.look(text.as_bytes(), true);
        finder.found
    }

    /// Looks through the next piece. Returns whether it has what no piece before had.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        // What reaches over the border between two pieces, then the piece itself.
        const BORDER_BYTES: usize = 2 * (LANGUAGE_TAG_BYTES_MAX + GAP_BYTES_MAX);
        let mut border = std::mem::take(&mut self.border);
        border.extend_from_slice(&piece[..piece.len().min(BORDER_BYTES)]);
        let mut is_new = self.look(&border, false);
        if piece.len() > BORDER_BYTES {
            is_new |= self.look(piece, false);
            border.clear();
            border.extend_from_slice(&piece[piece.len() - BORDER_BYTES..]);
        } else {
            border.drain(..border.len().saturating_sub(BORDER_BYTES));
        }
        self.border = border;
        is_new
    }

    /// What was found. A tag at the very end of the last piece is not.
    pub fn found(&self) -> &LanguageTags {
        &self.found
    }

    /// Notes the tags of a text; where it may go on, none that reaches its end. Returns whether one
    /// was not noted yet.
    fn look(&mut self, text: &[u8], is_whole: bool) -> bool {
        let mut is_new = false;
        let mut last: &[u8] = b"";
        for mark in self.mark.find_iter(text) {
            for rest in self.syntax.tags_at(text, mark).into_iter().flatten() {
                let is_of_tag = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
                let end = match rest.iter().position(|byte| !is_of_tag(byte)) {
                    Some(end) => end,
                    None if is_whole => rest.len(),
                    None => continue,
                };
                let (tag, behind) = rest.split_at(end);
                // A text mostly has the same one again.
                if tag == last || !self.syntax.is_tag(tag, behind) {
                    continue;
                }
                last = tag;
                if let Ok(tag) = std::str::from_utf8(tag) {
                    // A base direction comes after two hyphens.
                    let tag = tag.split_once("--").map_or(tag, |(tag, _)| tag);
                    is_new |= self.found.note_of_at_most(self.syntax.tags_max(), tag);
                }
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(syntax: TagSyntax, text: &str) -> Vec<String> {
        let whole = TagFinder::in_text(syntax, text);
        // In pieces of any length the same is found.
        for bytes in [1, 3, 7, 64, 300] {
            let mut finder = TagFinder::new(syntax);
            text.as_bytes().chunks(bytes).for_each(|piece| {
                finder.push(piece);
            });
            finder.push(b" ");
            assert_eq!(finder.found(), &whole, "{bytes}");
        }
        whole.iter().map(str::to_owned).collect()
    }

    #[test]
    fn tags_are_found_in_each_syntax() {
        let turtle = "<a> <b> \"x\"@en-GB, 'y' @zh-Hant--ltr, \"\"\"z\"\"\"@de . # me@Example.com\n<a> <b> 'w'@PT";
        assert_eq!(
            found(TagSyntax::At, turtle),
            ["de", "en-GB", "PT", "zh-Hant"]
        );
        let xml = "<p xml:lang = 'de-AT'>x</p><q xml:lang=\"fr\"/><r xml:language=\"X\"/>";
        assert_eq!(found(TagSyntax::Xml, xml), ["de-AT", "fr"]);
        let json =
            "{\"@language\" : \"pt-BR\", \"label\": {\"zh-Hant\" : \"@language\", \"1\": 2}}";
        assert_eq!(
            found(TagSyntax::JsonLd, json),
            ["label", "pt-BR", "zh-Hant"]
        );
        // An alias of @language, and what is none: not in the form of a tag, or the value of
        // another keyword.
        let json = "{\"lang\":\"en and more\",\"q-1\": \"1-GB\", \"lang\" : \"en-GB\", \"@id\":\"urn\", \"ninechars\": \"en\"}";
        assert_eq!(
            found(TagSyntax::JsonLd, json),
            ["en", "en-GB", "lang", "q-1"]
        );
        let answer = "{\"type\":\"literal\",\"xml:lang\":\"en-GB\",\"value\":\"x\"}";
        assert_eq!(found(TagSyntax::JsonResults, answer), ["en-GB"]);
    }

    #[test]
    fn of_several_ways_within_a_source_small_letters_win_in_any_order() {
        let ways = ["EN-GB", "en-GB", "En-gb"];
        let all: LanguageTags = ways.into_iter().collect();
        let reversed: LanguageTags = ways.into_iter().rev().collect();
        assert_eq!(all, reversed);
        assert_eq!(all.written("en-gb"), Some("en-GB"));
        let with_lower: LanguageTags = ["en-gb", "EN-GB"].into_iter().collect();
        assert_eq!(with_lower.written("en-gb"), None);
        assert!(with_lower.is_lower_case() && with_lower.is_known("en-gb"));
    }

    #[test]
    fn what_is_known_stays_as_it_is_written() {
        let mut known: LanguageTags = ["EN", "de"].into_iter().collect();
        let later: LanguageTags = ["en", "DE", "fr-CA"].into_iter().collect();
        assert_eq!(
            known.unknown_of(&later).iter().collect::<Vec<_>>(),
            ["fr-CA"]
        );
        known.add(&later);
        assert_eq!(known.iter().collect::<Vec<_>>(), ["de", "EN", "fr-CA"]);
        assert_eq!(known.written("de"), None);
    }

    #[test]
    fn there_is_a_limit_on_tags_and_on_their_length() {
        let mut tags = LanguageTags::default();
        assert!(!tags.note(&"A".repeat(LANGUAGE_TAG_BYTES_MAX + 1)));
        for number in 0..LANGUAGE_TAGS_MAX + 10 {
            tags.note(&format!("X-{number}"));
        }
        assert_eq!(tags.iter().count(), LANGUAGE_TAGS_MAX);
        assert_eq!(
            tags.unknown_of(&["Q".into()].iter().map(String::as_str).collect())
                .iter()
                .count(),
            0
        );
    }

    #[test]
    fn many_keys_of_json_leave_room_for_later_tags() {
        let mut json: String = (0..2 * LANGUAGE_TAGS_MAX)
            .map(|number| format!("\"k-{number}\": 1,"))
            .collect();
        json.push_str("\"@language\": \"en-GB\"}");
        let found = TagFinder::in_text(TagSyntax::JsonLd, &json);
        assert_eq!(found.written("en-gb"), Some("en-GB"));
        // What terms have is bounded as ever.
        let mut of_terms = LanguageTags::default();
        of_terms.add(&found);
        assert_eq!(of_terms.iter().count(), LANGUAGE_TAGS_MAX);
        assert!(!of_terms.has_place("fr"));
    }

    #[test]
    fn a_finder_says_when_it_found_something_new() {
        let mut finder = TagFinder::new(TagSyntax::JsonResults);
        assert!(finder.push(b"{\"xml:lang\":\"en-GB\"} "));
        assert!(!finder.push(b"{\"xml:lang\":\"en-GB\"} "));
        assert!(finder.push(b"{\"xml:lang\":\"de\"} "));
    }

    #[test]
    fn a_term_is_shown_with_its_tags_as_they_are_written() {
        let tags: LanguageTags = ["en-GB", "de"].into_iter().collect();
        let inner = crate::Triple::new(
            Term::iri("urn:s"),
            Term::iri("urn:p"),
            Term::directional("x", "en-gb", crate::Direction::LeftToRight),
        );
        let term = tags.in_term(inner.unwrap().into());
        assert_eq!(term.to_string(), "<<( <urn:s> <urn:p> \"x\"@en-GB--ltr )>>");
        assert_eq!(
            tags.in_term(Term::language("y", "DE")).to_string(),
            "\"y\"@de"
        );
    }
}
