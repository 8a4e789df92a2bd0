//! A fast parser of common `INSERT DATA` and `DELETE DATA`, ten times as fast as the grammar.
//!
//! ```text
//! (PREFIX name: <iri>)* (INSERT | DELETE) DATA { triples, GRAPH <iri> { triples } }  (; the second part again)*
//! triples   subjects, predicates, objects with `;` and `,`: IRIs, prefixed names, `a`, blank node labels,
//!           "strings" with a language or a datatype, integers
//! ```
//!
//! Bulk changes are megabytes of these. Whatever else stands in a text (escapes, comments, relative
//! IRIs, `[]`, collections, triple terms, anything wrong) makes this reader give up, and the whole
//! text goes to the grammar, which also words the errors. So what is read here must be read exactly
//! as there, and nothing needs to be read here.
//!
//! IRIs are taken only where no rule of RFC 3987 has to be looked at: ASCII, no percent signs,
//! brackets, ports or user names, and no segments of dots, which the grammar would resolve. Each
//! distinct token is looked at once.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use orrery_term::Term;

use super::{Operation, Statements, TermNumber};

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const XSD_INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";
/// Quads between two questions whether somebody still waits: less than a millisecond of work.
const QUADS_PER_LOOK: u32 = 1 << 10;
/// Letters of a language tag that needs no look at its parts.
const PLAIN_TAG_LETTERS: std::ops::RangeInclusive<usize> = 2..=3;

/// The operations of a text; `None` if the grammar has to read it, or if `is_abandoned`, asked now
/// and then, says that nobody waits for it.
pub(super) fn read(text: &str, is_abandoned: &dyn Fn() -> bool) -> Option<Vec<Operation>> {
    let mut reader = Reader {
        text,
        at: 0,
        quads: 0,
        is_abandoned,
        prefixes: HashMap::default(),
    };
    let mut operations = Vec::new();
    reader.prologue()?;
    loop {
        operations.push(reader.operation()?);
        reader.blanks();
        if !reader.is_at_end() {
            reader.expect(b';')?;
            reader.blanks();
        }
        if reader.is_at_end() {
            return has_labels_of_their_own(&operations).then_some(operations);
        }
    }
}

/// Whether no blank node label stands in two operations, which is wrong.
fn has_labels_of_their_own(operations: &[Operation]) -> bool {
    let mut seen: HashSet<&str, FixedState> = HashSet::default();
    operations.iter().all(|operation| {
        let Operation::InsertData(data) = operation else {
            return true;
        };
        let is_new = data.labels().all(|label| !seen.contains(label));
        seen.extend(data.labels());
        is_new
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Those that were read.
    quads: u32,
    is_abandoned: &'t dyn Fn() -> bool,
    prefixes: HashMap<&'t str, &'t str, FixedState>,
}

/// One block of `DATA` in the making.
struct Data<'t> {
    statements: Statements,
    /// Numbers of tokens as they stand in the text.
    known: HashMap<&'t str, TermNumber, FixedState>,
    is_insertion: bool,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// A keyword and at least one blank, or for the last one of `DATA` its bracket.
    fn keyword(&mut self, keyword: &str) -> Option<()> {
        let end = self.at + keyword.len();
        let bytes = self.text.as_bytes();
        let is_here = bytes
            .get(self.at..end)?
            .eq_ignore_ascii_case(keyword.as_bytes());
        let ends = matches!(bytes.get(end)?, b' ' | b'\t' | b'\r' | b'\n' | b'{');
        (is_here && ends).then(|| self.at = end)?;
        self.blanks();
        Some(())
    }

    /// What is taken while `is_part` holds.
    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        self.at += rest.iter().take_while(|byte| is_part(**byte)).count();
        // Callers' parts are ASCII, so this is a boundary.
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn prologue(&mut self) -> Option<()> {
        loop {
            self.blanks();
            if !matches!(self.peek()?, b'P' | b'p') {
                return Some(());
            }
            self.keyword("PREFIX")?;
            let name = self.prefix()?;
            self.blanks();
            let iri = self.iri()?;
            self.prefixes.insert(name, iri);
        }
    }

    /// The name of a prefix, and the colon behind it.
    fn prefix(&mut self) -> Option<&'t str> {
        let name = self.take_while(is_word);
        self.expect(b':')?;
        (!name.starts_with(|first: char| first.is_ascii_digit())).then_some(name)
    }

    fn operation(&mut self) -> Option<Operation> {
        let is_insertion = self.keyword("INSERT").is_some();
        if !is_insertion {
            self.keyword("DELETE")?;
        }
        self.keyword("DATA")?;
        let mut data = Data {
            statements: Statements::new(),
            known: HashMap::default(),
            is_insertion,
        };
        self.expect(b'{')?;
        loop {
            self.blanks();
            match self.peek()? {
                b'}' => break,
                b'G' | b'g' if self.is_graph() => self.graph(&mut data)?,
                _ => self.triples(&mut data, Statements::DEFAULT_GRAPH)?,
            }
        }
        self.expect(b'}')?;
        Some(match is_insertion {
            true => Operation::InsertData(data.statements),
            false => Operation::DeleteData(data.statements),
        })
    }

    /// Whether the word here is `GRAPH`, not a prefix that begins like it.
    fn is_graph(&self) -> bool {
        let end = self.at + "GRAPH".len();
        let bytes = self.text.as_bytes();
        let word = bytes.get(self.at..end).unwrap_or_default();
        word.eq_ignore_ascii_case(b"GRAPH") && !bytes.get(end).is_some_and(|&byte| is_name(byte))
    }

    fn graph(&mut self, data: &mut Data<'t>) -> Option<()> {
        self.at += "GRAPH".len();
        self.blanks();
        let graph = self.named_node(data)?;
        self.blanks();
        self.expect(b'{')?;
        loop {
            self.blanks();
            if self.peek()? == b'}' {
                break;
            }
            self.triples(data, graph)?;
        }
        self.expect(b'}')?;
        self.blanks();
        if self.peek()? == b'.' {
            self.at += 1;
        }
        Some(())
    }

    /// The triples of one subject, and the point behind them, which the last may lack.
    fn triples(&mut self, data: &mut Data<'t>, graph: TermNumber) -> Option<()> {
        let subject = match self.peek()? {
            b'_' => self.blank_node(data)?,
            _ => self.named_node(data)?,
        };
        self.blanks();
        loop {
            let predicate = self.predicate(data)?;
            loop {
                self.blanks();
                let object = self.object(data)?;
                data.statements.quad([subject, predicate, object, graph]);
                self.quads = self.quads.wrapping_add(1);
                if self.quads.is_multiple_of(QUADS_PER_LOOK) && (self.is_abandoned)() {
                    return None;
                }
                self.blanks();
                if self.peek()? != b',' {
                    break;
                }
                self.at += 1;
            }
            while self.peek()? == b';' {
                self.at += 1;
                self.blanks();
            }
            match self.peek()? {
                b'.' => {
                    self.at += 1;
                    return Some(());
                }
                b'}' => return Some(()),
                // Another predicate; without a `;` before it, the grammar says what is wrong.
                _ if self.text[..self.at].trim_ascii_end().ends_with(';') => {}
                _ => return None,
            }
        }
    }

    fn predicate(&mut self, data: &mut Data<'t>) -> Option<TermNumber> {
        let next = self.text.as_bytes().get(self.at + 1)?;
        if self.peek()? == b'a' && matches!(next, b' ' | b'\t' | b'\r' | b'\n' | b'<') {
            self.at += 1;
            return data.number("a", |_| Some(Term::iri(RDF_TYPE)));
        }
        self.named_node(data)
    }

    fn object(&mut self, data: &mut Data<'t>) -> Option<TermNumber> {
        match self.peek()? {
            b'"' => self.literal(data),
            b'0'..=b'9' => self.integer(data),
            b'_' => self.blank_node(data),
            _ => self.named_node(data),
        }
    }

    /// An IRI or a prefixed name.
    fn named_node(&mut self, data: &mut Data<'t>) -> Option<TermNumber> {
        let start = self.at;
        if self.peek()? != b'<' {
            let iri = self.prefixed()?;
            return data.number(&self.text[start..self.at], |_| Some(Term::iri(iri)));
        }
        let length = memchr::memchr(b'>', &self.text.as_bytes()[start..])?;
        let token = self.text.get(start..=start + length)?;
        self.at = start + token.len();
        data.number(token, |token| {
            let iri = &token[1..token.len() - 1];
            is_plain_iri(iri).then(|| Term::iri(iri))
        })
    }

    /// An IRI in angle brackets.
    fn iri(&mut self) -> Option<&'t str> {
        self.expect(b'<')?;
        let iri = self.take_while(|byte| byte.is_ascii() && byte != b'>');
        self.expect(b'>')?;
        is_plain_iri(iri).then_some(iri)
    }

    /// The IRI of a prefixed name whose local part is a plain word.
    fn prefixed(&mut self) -> Option<String> {
        let name = self.prefix()?;
        let local = self.take_while(is_word);
        // Points, colons, percent signs and escapes may go on with it. A point at the end ends the
        // triple.
        let bytes = self.text.as_bytes();
        let goes_on = match bytes.get(self.at)? {
            b'.' => bytes.get(self.at + 1).is_some_and(|&byte| !is_end(byte)),
            byte => !is_end(*byte),
        };
        if goes_on {
            return None;
        }
        let iri = format!("{}{local}", self.prefixes.get(name)?);
        is_plain_iri(&iri).then_some(iri)
    }

    fn blank_node(&mut self, data: &mut Data<'t>) -> Option<TermNumber> {
        self.at += 1;
        self.expect(b':')?;
        let label = self.take_while(|byte| byte.is_ascii_alphanumeric());
        let is_whole = is_end(self.peek()?) && !label.is_empty();
        // Nobody can name a blank node that is to go; the grammar says so.
        (is_whole && data.is_insertion).then(|| data.statements.blank_node(label))
    }

    fn integer(&mut self, data: &mut Data<'t>) -> Option<TermNumber> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let bytes = self.text.as_bytes();
        let is_whole = match bytes.get(self.at)? {
            b'.' => matches!(bytes.get(self.at + 1)?, b' ' | b'\t' | b'\r' | b'\n' | b'}'),
            byte => matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b';' | b'}'),
        };
        if !is_whole {
            return None;
        }
        data.number(digits, |digits| Some(Term::typed(digits, XSD_INTEGER)))
    }

    fn literal(&mut self, data: &mut Data<'t>) -> Option<TermNumber> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let content = bytes[start + 1..]
            .iter()
            .position(|&byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\r'))?;
        let end = start + 1 + content;
        // A long string begins with two quotes, and is the grammar's.
        if bytes[end] != b'"' || (content == 0 && bytes.get(end + 1) == Some(&b'"')) {
            return None;
        }
        let lexical = self.text.get(start + 1..end)?;
        self.at = end + 1;
        match self.peek()? {
            b'@' => {
                self.at += 1;
                let tag = self.take_while(|byte| byte.is_ascii_lowercase());
                if !PLAIN_TAG_LETTERS.contains(&tag.len()) || !is_end(self.peek()?) {
                    return None;
                }
                let token = &self.text[start..self.at];
                data.number(token, |_| Some(Term::language(lexical, tag)))
            }
            b'^' => {
                self.at += 1;
                self.expect(b'^')?;
                let datatype: std::borrow::Cow<'t, str> = match self.peek()? {
                    b'<' => self.iri()?.into(),
                    _ => self.prefixed()?.into(),
                };
                let token = &self.text[start..self.at];
                // A string with a language or direction has them, not only their datatype.
                let is_plain = !datatype.starts_with(RDF);
                data.number(token, |_| is_plain.then(|| Term::typed(lexical, datatype)))
            }
            byte if is_end(byte) => {
                let token = &self.text[start..self.at];
                data.number(token, |_| Some(Term::string(lexical)))
            }
            _ => None,
        }
    }
}

impl<'t> Data<'t> {
    /// The number of a token's term, which is made if the token was not seen before.
    fn number(
        &mut self,
        token: &'t str,
        term: impl FnOnce(&'t str) -> Option<Term<'t>>,
    ) -> Option<TermNumber> {
        if let Some(&number) = self.known.get(token) {
            return Some(number);
        }
        // Too much text is refused by who reads the text again.
        let number = self.statements.term(&term(token)?).ok()?;
        self.known.insert(token, number);
        Some(number)
    }
}

/// Letters, digits and what names have beside them in ASCII, without punctuation.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Whether a name could go on with this byte.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b':' | b'_' | b'-' | b'.' | b'%' | b'\\')
        || !byte.is_ascii()
}

/// Whether a token surely ends before this byte.
fn is_end(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\r' | b'\n' | b',' | b';' | b'.' | b'}'
    )
}

/// Whether an IRI is absolute, valid, and its own resolution, seen at a glance (RFC 3986, 3 and
/// 5.2.4).
fn is_plain_iri(iri: &str) -> bool {
    let Some((scheme, rest)) = iri.split_once(':') else {
        return false;
    };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let after_authority = match rest.strip_prefix("//") {
        Some(rest) => {
            let host = rest
                .bytes()
                .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
                .count();
            let behind = rest.as_bytes().get(host);
            match host > 0 && matches!(behind, None | Some(b'/' | b'?' | b'#')) {
                true => &rest[host..],
                false => return false,
            }
        }
        None => rest,
    };
    is_scheme
        && is_path(after_authority.as_bytes())
        && after_authority.bytes().filter(|&byte| byte == b'#').count() <= 1
}

/// The bytes that may stand in a path, a query and a fragment.
const PATH_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        allowed[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~!$&'()*+,=;:@/?#";
    let mut at = 0;
    while at < others.len() {
        allowed[others[at] as usize] = true;
        at += 1;
    }
    allowed
};

/// Whether all bytes may stand in a path, a query and a fragment, and no segment begins with a
/// point.
fn is_path(bytes: &[u8]) -> bool {
    let mut before = 0;
    for &byte in bytes {
        if !PATH_BYTES[usize::from(byte)] || (before == b'/' && matches!(byte, b'.' | b'/')) {
            return false;
        }
        before = byte;
    }
    bytes.first() != Some(&b'.')
}

#[cfg(test)]
mod tests;
