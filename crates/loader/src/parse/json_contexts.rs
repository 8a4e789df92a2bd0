//! Limits for JSON-LD contexts, which are refused before they exhaust a parser's stack or time.
//!
//! A term that is defined by another makes that one be defined first, by recursion (JSON-LD 1.1
//! API, 4.2): `"a": "b:x"` by its prefix, `{"@id": "b"}`, `@type`, `@reverse` and `@index`
//! likewise. The context of a term (`"@context"` within its definition) is processed while the term
//! is defined. So a text of 50 KB could nest thousands of calls, though its brackets nest three
//! levels deep.
//!
//! ```text
//! bytes -> strings and brackets -> each @context: a graph of its terms -> its longest way + that of the contexts in it
//! ```
//!
//! A `null` in an array of contexts may hold the context before it, and that the one before; they
//! are dropped by recursion. So their number is bounded.
//!
//! Each context that is processed copies the definitions that hold around it: with each `@context`
//! in a node or a definition, and with each use of a term that has one. So copies are counted, and
//! a text may have so many for each of its bytes.
//!
//! Contexts stand in memory until they end, as in the parser. Cost: a look at each byte that is not
//! in a string, and linear in the size of contexts.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use memchr::{memchr, memchr2};
use orrery_term::language::TagSyntax;
use orrery_term::nesting::Nesting;

/// So many definitions may wait for each other, those of contexts within contexts counted with
/// those around.
const DEPENDENT_DEFINITIONS_MAX: usize = 256;
/// So many nulls may stand in one array of contexts; all but the last mean nothing.
const NULLS_MAX: u32 = 8;
/// What is read of a string outside of contexts: enough for the key, each character escaped, and
/// for names of terms.
const KEY_BYTES_MAX: usize = 256;
/// So many definitions may be copied for each byte of the text, and so many in any text; each takes
/// about 0.2 µs. A node of 200 bytes below 300 terms, three of which have contexts, has 5 for each
/// byte.
const COPIES_PER_BYTE: u64 = 16;
const COPIES_FREE: u64 = 1 << 22;
const KEY: &str = "@context";

/// What whoever parses JSON-LD has as its stack, which is 64 KB for each definition that waits.
pub(crate) const PARSER_STACK_BYTES: usize = 16 << 20;

/// The text, as far as a parser may be given it.
pub(crate) struct BoundedContexts<R> {
    input: R,
    nesting: Nesting,
    scan: Scan,
}

impl<R: Read> BoundedContexts<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            nesting: Nesting::of(TagSyntax::JsonLd),
            scan: Scan::default(),
        }
    }
}

impl<R: Read> Read for BoundedContexts<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.nesting.push(&buffer[..length])?;
        self.scan.push(&buffer[..length])?;
        Ok(length)
    }
}

/// Where in a string the text is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Structure,
    String,
    Escape,
}

#[derive(Debug, Default)]
struct Scan {
    within: Within,
    /// The last string, as it is written.
    string: Vec<u8>,
    /// A string ended, and nothing followed it yet.
    has_string: bool,
    /// The key of a context was read, and not its value.
    is_context_next: bool,
    /// What is open of a context.
    open: Vec<Open>,
    bytes: u64,
    lines: u64,
    /// Definitions that hold here, and around each bracket that is open outside of contexts.
    active: usize,
    around: Vec<usize>,
    copies: u64,
    /// Terms that have contexts of their own; of a long one only that there is one.
    scoped: HashSet<String>,
    has_long_scoped: bool,
    /// Lines before the outermost context that is open.
    lines_before: u64,
}

/// What is open, by what the algorithm makes of it.
#[derive(Debug)]
enum Open {
    Context {
        terms: HashMap<String, Definition>,
        term: String,
        deepest: usize,
    },
    Contexts {
        nulls: u32,
        terms: usize,
        deepest: usize,
    },
    Definition {
        key: String,
        definition: Definition,
        deepest: usize,
    },
    /// What makes no definition.
    Other,
}

/// What a definition may need others for.
#[derive(Debug, Default)]
struct Definition {
    id: Option<String>,
    others: Vec<String>,
}

impl Open {
    fn context() -> Self {
        Self::Context {
            terms: HashMap::new(),
            term: String::new(),
            deepest: 0,
        }
    }

    fn contexts() -> Self {
        Self::Contexts {
            nulls: 0,
            terms: 0,
            deepest: 0,
        }
    }

    /// What opens within it.
    fn child(&self, is_object: bool) -> Self {
        match (self, is_object) {
            (Self::Context { .. }, true) => Self::Definition {
                key: String::new(),
                definition: Definition::default(),
                deepest: 0,
            },
            (Self::Contexts { .. }, true) => Self::context(),
            (Self::Definition { key, .. }, true) if key == KEY => Self::context(),
            (Self::Definition { key, .. }, false) if key == KEY => Self::contexts(),
            _ => Self::Other,
        }
    }
}

impl Scan {
    /// Goes on with a piece of the text; fails where a parser must not be given it.
    fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.bytes += piece.len() as u64;
        let mut rest = piece;
        while let Some(&byte) = rest.first() {
            match self.within {
                Within::Escape => {
                    self.keep(&rest[..1]);
                    self.within = Within::String;
                }
                Within::String => {
                    let end = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    self.keep(&rest[..end]);
                    rest = &rest[end..];
                    match rest.first() {
                        None => return Ok(()),
                        Some(b'"') => {
                            self.within = Within::Structure;
                            self.has_string = true;
                        }
                        Some(_) => {
                            self.keep(b"\\");
                            self.within = Within::Escape;
                        }
                    }
                }
                Within::Structure => self.structure(byte)?,
            }
            rest = &rest[1..];
        }
        Ok(())
    }

    fn keep(&mut self, part: &[u8]) {
        let left = match self.open.is_empty() {
            true => KEY_BYTES_MAX.saturating_sub(self.string.len()),
            false => part.len(),
        };
        self.string.extend_from_slice(&part[..part.len().min(left)]);
    }

    /// Takes a byte that is in no string.
    fn structure(&mut self, byte: u8) -> io::Result<()> {
        match byte {
            b' ' | b'\t' | b'\r' => return Ok(()),
            b'\n' => {
                self.lines += 1;
                return Ok(());
            }
            b':' => {
                return self.key();
            }
            _ => {}
        }
        if std::mem::take(&mut self.has_string) {
            self.value()?;
        }
        let is_context = std::mem::take(&mut self.is_context_next);
        match byte {
            b'"' => {
                self.within = Within::String;
                self.string.clear();
            }
            b'{' | b'[' => {
                let opened = match self.open.last() {
                    Some(around) => around.child(byte == b'{'),
                    None if !is_context => {
                        self.around.push(self.active);
                        return Ok(());
                    }
                    None if byte == b'{' => Open::context(),
                    None => Open::contexts(),
                };
                match self.open.last() {
                    None => {
                        self.lines_before = self.lines;
                        self.copy(0)?;
                    }
                    Some(Open::Definition { .. }) if !matches!(opened, Open::Other) => {
                        self.note_scoped()?;
                    }
                    Some(_) => {}
                }
                self.open.push(opened);
            }
            b'}' | b']' => return self.close(),
            // No other word has this letter.
            b'n' => match self.open.last_mut() {
                Some(Open::Contexts { nulls, .. }) => {
                    *nulls += 1;
                    if *nulls > NULLS_MAX {
                        let what = format!("has more than {NULLS_MAX} nulls in one array");
                        return Err(self.refused(&what, "write the last of them alone"));
                    }
                }
                Some(Open::Definition { key, .. }) if key == KEY => self.note_scoped()?,
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// The last string is a key.
    fn key(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.has_string) {
            return Ok(());
        }
        let written = unescaped(&self.string);
        match self.open.last_mut() {
            None => {
                self.is_context_next = written == KEY;
                return self.use_term();
            }
            Some(Open::Context { terms, term, .. }) => {
                // Of several the last one holds.
                terms.insert(written.clone(), Definition::default());
                *term = written;
            }
            Some(Open::Definition { key, .. }) => *key = written,
            Some(Open::Contexts { .. } | Open::Other) => {}
        }
        Ok(())
    }

    /// The last string is a value.
    fn value(&mut self) -> io::Result<()> {
        match self.open.last_mut() {
            Some(Open::Context { terms, term, .. }) => {
                if let Some(definition) = terms.get_mut(term.as_str()) {
                    definition.id = Some(unescaped(&self.string));
                }
            }
            Some(Open::Definition {
                key, definition, ..
            }) => match key.as_str() {
                "@id" => definition.id = Some(unescaped(&self.string)),
                "@type" | "@reverse" | "@index" => {
                    definition.others.push(unescaped(&self.string));
                }
                _ => {}
            },
            Some(Open::Contexts { .. } | Open::Other) => {}
            None => return self.use_term(),
        }
        Ok(())
    }

    /// The term that is defined has a context of its own.
    fn note_scoped(&mut self) -> io::Result<()> {
        let context = self.open.iter().rev().nth(1);
        if let Some(Open::Context { term, .. }) = context {
            match term.len() < KEY_BYTES_MAX {
                true => drop(self.scoped.insert(term.clone())),
                false => self.has_long_scoped = true,
            }
        }
        let open = self.open.iter().map(|open| match open {
            Open::Context { terms, .. } => terms.len(),
            Open::Contexts { terms, .. } => *terms,
            Open::Definition { .. } | Open::Other => 0,
        });
        let of_open = open.sum();
        self.copy(of_open)
    }

    /// The last string stands outside of contexts, as a key or maybe as a type.
    fn use_term(&mut self) -> io::Result<()> {
        let is_use = match self.string.len() < KEY_BYTES_MAX {
            true => !self.scoped.is_empty() && self.scoped.contains(&unescaped(&self.string)),
            false => self.has_long_scoped,
        };
        match is_use {
            true => self.copy(0),
            false => Ok(()),
        }
    }

    /// The definitions that hold are copied, and so many more.
    fn copy(&mut self, more: usize) -> io::Result<()> {
        self.copies += (self.active + more) as u64;
        if self.copies > COPIES_FREE + COPIES_PER_BYTE * self.bytes {
            let what = "and those around it define too many terms for as many contexts within";
            return Err(self.refused(what, "put all terms into one @context, at the top"));
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        if self.open.is_empty() {
            self.active = self.around.pop().unwrap_or(0);
        }
        let depth = match self.open.pop() {
            Some(Open::Context { terms, deepest, .. }) => {
                self.end_terms(terms.len());
                deepest + longest(&terms)
            }
            Some(Open::Contexts { terms, deepest, .. }) => {
                self.end_terms(terms);
                deepest
            }
            Some(Open::Definition {
                definition: closed,
                deepest,
                ..
            }) => {
                if let Some(Open::Context { terms, term, .. }) = self.open.last_mut()
                    && let Some(definition) = terms.get_mut(term.as_str())
                {
                    *definition = closed;
                }
                deepest
            }
            Some(Open::Other) | None => return Ok(()),
        };
        if depth > DEPENDENT_DEFINITIONS_MAX {
            let what = format!(
                "defines terms by each other, in a circle or more than {DEPENDENT_DEFINITIONS_MAX} in a row"
            );
            return Err(self.refused(&what, "write the IRIs of some of them in full"));
        }
        if let Some(
            Open::Context { deepest, .. }
            | Open::Contexts { deepest, .. }
            | Open::Definition { deepest, .. },
        ) = self.open.last_mut()
        {
            *deepest = depth.max(*deepest);
        }
        Ok(())
    }

    /// A context, or an array of them, has ended.
    fn end_terms(&mut self, ended: usize) {
        match self.open.last_mut() {
            None => self.active += ended,
            Some(Open::Contexts { terms, .. }) => *terms += ended,
            Some(_) => {}
        }
    }

    fn refused(&self, what: &str, mend: &str) -> io::Error {
        let line = self.lines_before + 1;
        let message = format!("the @context that begins in line {line} {what}; {mend}");
        io::Error::new(io::ErrorKind::InvalidData, message)
    }
}

/// What a string stands for. Escapes that mean nothing are the parser's to refuse.
fn unescaped(written: &[u8]) -> String {
    if memchr(b'\\', written).is_some() {
        let quoted = [b"\"", written, b"\""].concat();
        if let Ok(text) = serde_json::from_slice(&quoted) {
            return text;
        }
    }
    String::from_utf8_lossy(written).into_owned()
}

/// At most so many definitions wait for each other: those of the longest way, and all that a circle
/// is on the way of.
fn longest(terms: &HashMap<String, Definition>) -> usize {
    let numbers: HashMap<&str, usize> = terms.keys().map(String::as_str).zip(0..).collect();
    let mut needed_by = vec![Vec::new(); terms.len()];
    let mut needs = vec![0_usize; terms.len()];
    for (term, definition) in terms {
        let number = numbers[term.as_str()];
        for other in needed(term, definition).filter_map(|it| numbers.get(it)) {
            needed_by[*other].push(number);
            needs[number] += 1;
        }
    }
    let mut depths = vec![1_usize; terms.len()];
    let mut ready: Vec<usize> = (0..terms.len()).filter(|it| needs[*it] == 0).collect();
    let (mut deepest, mut ended) = (0, 0);
    while let Some(number) = ready.pop() {
        ended += 1;
        deepest = depths[number].max(deepest);
        for &dependent in &needed_by[number] {
            depths[dependent] = depths[dependent].max(depths[number] + 1);
            needs[dependent] -= 1;
            if needs[dependent] == 0 {
                ready.push(dependent);
            }
        }
    }
    deepest + terms.len() - ended
}

/// The names that the definition of a term may make be defined before it (JSON-LD 1.1 API, 4.2.2
/// and 5.2.2).
fn needed<'t>(term: &'t str, definition: &'t Definition) -> impl Iterator<Item = &'t str> {
    let own = term
        .split_once(':')
        .and_then(|(prefix, rest)| match prefix {
            // The parser passes over a colon at the beginning.
            "" => rest.split_once(':').map(|(prefix, _)| prefix),
            prefix => Some(prefix),
        });
    let id = definition.id.as_deref().filter(|id| *id != term);
    let others = definition.others.iter().map(String::as_str);
    let values = id.into_iter().chain(others);
    let of_values = values
        .filter(|it| !is_like_keyword(it))
        .flat_map(|value| [Some(value), prefix_of(value)])
        .flatten();
    own.into_iter().chain(of_values)
}

fn prefix_of(value: &str) -> Option<&str> {
    let (prefix, rest) = value.split_once(':')?;
    (prefix != "_" && !rest.starts_with("//")).then_some(prefix)
}

fn is_like_keyword(value: &str) -> bool {
    let word = value.strip_prefix('@');
    word.is_some_and(|word| !word.is_empty() && word.bytes().all(|it| it.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests;
