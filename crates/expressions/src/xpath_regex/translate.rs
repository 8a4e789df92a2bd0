//! The translation of XPath's regular expressions to those of the regex crate (XPath Functions 3.1,
//! 5.6.1; XML Schema 1.1 part 2, appendix G).
//!
//! One pass over the characters, with no recursion but into subtracted classes: every atom of the
//! pattern becomes one unit of the other syntax, so that a quantifier after it means the same. What
//! XPath does not know (look-around, named groups, `\b`, a `{` or `]` that is not escaped) is wrong
//! here too; the flags become part of each atom.
//!
//! With the flag `m`, XPath has no line behind a newline that ends the text: `^` does not match
//! there, and `$` not either. The regex crate sees an empty line there, so such texts have a
//! translation of their own ([`LastLine`]).

use std::borrow::Cow;
use std::fmt::Write as _;

use super::blocks::block;

/// Groups that may stand inside each other; subtracted classes likewise.
const DEPTH_MAX: usize = 100;
/// No character above this one has another case.
const LAST_CASED: u32 = 0x1_E943;

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is wrong (err:FORX0001, err:FORX0002): an error of the expression.
    Wrong,
    /// It may be right, but is more than is done here. Ends the query.
    Unsupported(String),
}

type Result<T> = std::result::Result<T, Refusal>;

/// The flags of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// `s`: the dot matches line ends, too.
    pub(super) dot_matches_all: bool,
    /// `m`: `^` and `$` match at lines.
    pub(super) multi_line: bool,
    /// `i`: without case.
    pub(super) ignores_case: bool,
    /// `x`: white space in the pattern means nothing.
    pub(super) ignores_space: bool,
    /// `q`: the pattern is plain text.
    pub(super) is_literal: bool,
}

impl Flags {
    /// Reads flags; one that does not exist is wrong.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut flags = Self::default();
        for flag in text.chars() {
            let set = match flag {
                's' => &mut flags.dot_matches_all,
                'm' => &mut flags.multi_line,
                'i' => &mut flags.ignores_case,
                'x' => &mut flags.ignores_space,
                'q' => &mut flags.is_literal,
                _ => return Err(Refusal::Wrong),
            };
            *set = true;
        }
        Ok(flags)
    }
}

/// Which texts a pattern with the flag `m` is translated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLine {
    /// Those that do not end with a newline.
    Open,
    /// Those that do, with a byte behind them that is no character: no part of a pattern matches
    /// it, `$` does not match before it as it does at the end, and `^` can tell it from a
    /// character.
    Ended,
}

/// `^` with the flag `m`, where the text ends with a newline and a byte that is no character:
/// begins the text, or stands behind a newline and before a character, be it part of a word or not.
/// (A half boundary does not match beside what is no character.)
const LINE_START: &str = r"(?:\A|(?m:^)(?:\b{start}|\b{end-half}))";

/// The pattern in the regex crate's syntax, to be compiled without case if the flags say so.
pub(super) fn translate(pattern: &str, flags: Flags, last_line: LastLine) -> Result<String> {
    if flags.is_literal {
        return Ok(::regex::escape(pattern));
    }
    let pattern = match flags.ignores_space {
        true => Cow::Owned(without_space(pattern)),
        false => Cow::Borrowed(pattern),
    };
    let mut translator = Translator {
        rest: Rest(&pattern),
        flags,
        last_line,
        out: String::with_capacity(2 * pattern.len()),
        open_groups: 0,
        follows_atom: false,
    };
    while let Some(character) = translator.rest.next() {
        translator.take(character)?;
    }
    match translator.open_groups {
        0 => Ok(translator.out),
        _ => Err(Refusal::Wrong),
    }
}

/// A pattern without the white space that stands outside of classes (flag `x`).
fn without_space(pattern: &str) -> String {
    let mut kept = String::with_capacity(pattern.len());
    let mut open_classes = 0_usize;
    let mut is_escaped = false;
    for character in pattern.chars() {
        if open_classes == 0 && matches!(character, '\t' | '\n' | '\r' | ' ') {
            continue;
        }
        kept.push(character);
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => open_classes += 1,
            ']' => open_classes = open_classes.saturating_sub(1),
            _ => {}
        }
    }
    kept
}

/// What is left of a pattern.
struct Rest<'p>(&'p str);

impl Rest<'_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.0.chars();
        let next = characters.next();
        self.0 = characters.as_str();
        next
    }

    fn starts_with(&self, text: &str) -> bool {
        self.0.starts_with(text)
    }

    fn take_if(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

struct Translator<'p> {
    rest: Rest<'p>,
    flags: Flags,
    last_line: LastLine,
    out: String,
    open_groups: usize,
    /// Whether a quantifier may come next.
    follows_atom: bool,
}

impl Translator<'_> {
    fn take(&mut self, character: char) -> Result<()> {
        let mut is_atom = true;
        match character {
            '|' => {
                self.out.push('|');
                is_atom = false;
            }
            '(' => {
                self.open_group()?;
                is_atom = false;
            }
            ')' => {
                self.open_groups = self.open_groups.checked_sub(1).ok_or(Refusal::Wrong)?;
                self.out.push(')');
            }
            '?' | '*' | '+' | '{' => {
                self.quantifier(character)?;
                is_atom = false;
            }
            '.' if self.flags.dot_matches_all => self.out.push_str("(?s:.)"),
            '.' => self.out.push_str(r"[^\n\r]"),
            '^' if self.flags.multi_line => self.out.push_str(match self.last_line {
                LastLine::Open => "(?m:^)",
                LastLine::Ended => LINE_START,
            }),
            '^' => self.out.push_str(r"(?:\A)"),
            '$' if self.flags.multi_line => self.out.push_str("(?m:$)"),
            '$' => self.out.push_str(r"(?:\z)"),
            '[' => {
                let class = class(&mut self.rest, 0)?;
                class.write(self.flags.ignores_case, &mut self.out);
            }
            '\\' => match escape(&mut self.rest)? {
                Escape::Character(character) => push_literal(character, &mut self.out),
                Escape::Set(set) => {
                    let class = Class::of(Item::Set(set));
                    class.write(self.flags.ignores_case, &mut self.out);
                }
            },
            ']' | '}' => return Err(Refusal::Wrong),
            other => push_literal(other, &mut self.out),
        }
        self.follows_atom = is_atom;
        Ok(())
    }

    fn open_group(&mut self) -> Result<()> {
        self.open_groups += 1;
        if self.open_groups > DEPTH_MAX {
            return Err(too_deep());
        }
        if self.rest.take_if("?:") {
            self.out.push_str("(?:");
        } else if self.rest.starts_with("?") {
            return Err(Refusal::Wrong);
        } else {
            self.out.push('(');
        }
        Ok(())
    }

    /// `?`, `*`, `+`, `{n}`, `{n,}` or `{n,m}`, with a `?` behind for as few as possible.
    fn quantifier(&mut self, character: char) -> Result<()> {
        if !self.follows_atom {
            return Err(Refusal::Wrong);
        }
        self.out.push(character);
        if character == '{' {
            let (quantity, rest) = self.rest.0.split_once('}').ok_or(Refusal::Wrong)?;
            let (least, most) = match quantity.split_once(',') {
                Some((least, most)) => (count(least)?, most),
                None => (count(quantity)?, ""),
            };
            if !most.is_empty() && count(most)? < least {
                return Err(Refusal::Wrong);
            }
            self.out.push_str(quantity);
            self.out.push('}');
            self.rest = Rest(rest);
        }
        if self.rest.take_if("?") {
            self.out.push('?');
        }
        Ok(())
    }
}

/// The number in a quantifier.
fn count(digits: &str) -> Result<u32> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::Wrong);
    }
    digits.parse().map_err(|_| {
        Refusal::Unsupported(format!("a regular expression that repeats {digits} times"))
    })
}

fn too_deep() -> Refusal {
    Refusal::Unsupported(format!(
        "a regular expression nested deeper than {DEPTH_MAX} levels"
    ))
}

fn push_literal(character: char, out: &mut String) {
    out.push_str(&::regex::escape(character.encode_utf8(&mut [0; 4])));
}

/// What a backslash begins.
enum Escape {
    Character(char),
    Set(Set),
}

/// A set of characters that an escape stands for, as the inside of a class.
struct Set {
    inside: Cow<'static, str>,
    is_negated: bool,
    /// Categories and blocks stay what they are under the flag `i`.
    is_cased: bool,
}

impl Set {
    fn new(inside: &'static str, is_negated: bool) -> Self {
        Self {
            inside: Cow::Borrowed(inside),
            is_negated,
            is_cased: false,
        }
    }
}

/// XML 1.0, production 4, with the colon.
const NAME_START: &str = r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}";
/// XML 1.0, production 4a.
const NAME: &str = r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}:A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}";

/// The escape whose backslash was just read.
fn escape(rest: &mut Rest<'_>) -> Result<Escape> {
    let character = rest.next().ok_or(Refusal::Wrong)?;
    Ok(match character {
        'n' => Escape::Character('\n'),
        'r' => Escape::Character('\r'),
        't' => Escape::Character('\t'),
        '\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']' | '^'
        | '$' => Escape::Character(character),
        's' | 'S' => Escape::Set(Set::new(r" \t\n\r", character == 'S')),
        'd' | 'D' => Escape::Set(Set::new(r"\p{Nd}", character == 'D')),
        // Everything but punctuation, separators and others.
        'w' | 'W' => Escape::Set(Set::new(r"\p{P}\p{Z}\p{C}", character == 'w')),
        'i' | 'I' => Escape::Set(Set::new(NAME_START, character == 'I')),
        'c' | 'C' => Escape::Set(Set::new(NAME, character == 'C')),
        'p' | 'P' => Escape::Set(property(rest, character == 'P')?),
        '1'..='9' => {
            return Err(Refusal::Unsupported(format!(
                "the back-reference \\{character} in a regular expression; patterns are matched in linear time"
            )));
        }
        _ => return Err(Refusal::Wrong),
    })
}

/// As [`escape`]; there are no back-references in classes.
fn escape_in_class(rest: &mut Rest<'_>) -> Result<Escape> {
    escape(rest).map_err(|_| Refusal::Wrong)
}

/// `{Lu}` or `{IsBasicLatin}`.
fn property(rest: &mut Rest<'_>, is_negated: bool) -> Result<Set> {
    let inside = rest
        .0
        .strip_prefix('{')
        .and_then(|rest| rest.split_once('}'));
    let (name, behind) = inside.ok_or(Refusal::Wrong)?;
    *rest = Rest(behind);
    let inside = match name.strip_prefix("Is") {
        Some(name) => {
            let (first, last) = block(name).ok_or(Refusal::Wrong)?;
            format!(r"\x{{{first:X}}}-\x{{{last:X}}}")
        }
        None if CATEGORIES.contains(&name) => format!(r"\p{{{name}}}"),
        None => return Err(Refusal::Wrong),
    };
    Ok(Set {
        inside: Cow::Owned(inside),
        is_negated,
        is_cased: true,
    })
}

/// The general categories of characters; surrogates (`Cs`) are none.
const CATEGORIES: [&str; 36] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C",
    "Cc", "Cf", "Co", "Cn",
];

/// A class: some of these (or all but these), less another class.
struct Class {
    is_negated: bool,
    items: Vec<Item>,
    subtracted: Option<Box<Class>>,
}

enum Item {
    Range(char, char),
    Set(Set),
}

/// The class whose bracket was just read.
fn class(rest: &mut Rest<'_>, depth: usize) -> Result<Class> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    let mut class = Class {
        is_negated: rest.take_if("^"),
        items: Vec::new(),
        subtracted: None,
    };
    loop {
        let first = match rest.next().ok_or(Refusal::Wrong)? {
            ']' if class.items.is_empty() => return Err(Refusal::Wrong),
            ']' => return Ok(class),
            '[' => return Err(Refusal::Wrong),
            '-' if rest.take_if("[") => {
                if class.items.is_empty() {
                    return Err(Refusal::Wrong);
                }
                class.subtracted = Some(Box::new(self::class(rest, depth + 1)?));
                return match rest.take_if("]") {
                    true => Ok(class),
                    false => Err(Refusal::Wrong),
                };
            }
            // A hyphen stands for itself at the beginning and at the end only.
            '-' if class.items.is_empty() || rest.starts_with("]") || rest.starts_with("-[") => '-',
            '-' => return Err(Refusal::Wrong),
            '\\' => match escape_in_class(rest)? {
                Escape::Character(character) => character,
                Escape::Set(set) => {
                    class.items.push(Item::Set(set));
                    continue;
                }
            },
            other => other,
        };
        let last = match begins_range(rest) {
            true => range_end(rest)?,
            false => first,
        };
        if last < first {
            return Err(Refusal::Wrong);
        }
        class.items.push(Item::Range(first, last));
    }
}

/// Whether the next hyphen makes a range of the character before it and the one behind it.
fn begins_range(rest: &Rest<'_>) -> bool {
    let Some(behind) = rest.0.strip_prefix('-') else {
        return false;
    };
    !behind.starts_with([']', '[']) && !behind.starts_with("-[")
}

fn range_end(rest: &mut Rest<'_>) -> Result<char> {
    rest.take_if("-");
    match rest.next().ok_or(Refusal::Wrong)? {
        '\\' => match escape_in_class(rest)? {
            Escape::Character(character) => Ok(character),
            Escape::Set(_) => Err(Refusal::Wrong),
        },
        other => Ok(other),
    }
}

impl Class {
    fn of(item: Item) -> Self {
        Self {
            is_negated: false,
            items: vec![item],
            subtracted: None,
        }
    }

    /// Whether it has a set that keeps its case under the flag `i`.
    fn is_cased(&self) -> bool {
        let is_cased = |item: &Item| matches!(item, Item::Set(set) if set.is_cased);
        self.items.iter().any(is_cased) || self.subtracted.as_ref().is_some_and(|s| s.is_cased())
    }

    /// Writes the class. Under the flag `i` the regex crate would fold categories, too; where there
    /// are some, that is switched off, and the other characters are given in both cases.
    fn write(&self, ignores_case: bool, out: &mut String) {
        let folds_itself = ignores_case && self.is_cased();
        if folds_itself {
            out.push_str("(?-i:");
        }
        self.write_folded(folds_itself, out);
        if folds_itself {
            out.push(')');
        }
    }

    fn write_folded(&self, folds: bool, out: &mut String) {
        if let Some(subtracted) = &self.subtracted {
            out.push('[');
            self.write_items(folds, out);
            out.push_str("--");
            subtracted.write_folded(folds, out);
            out.push(']');
        } else {
            self.write_items(folds, out);
        }
    }

    fn write_items(&self, folds: bool, out: &mut String) {
        out.push_str(if self.is_negated { "[^" } else { "[" });
        for item in &self.items {
            match item {
                Item::Range(first, last) => {
                    push_range(*first, *last, out);
                    if folds {
                        for variant in case_variants(*first, *last) {
                            push_range(variant, variant, out);
                        }
                    }
                }
                Item::Set(set) => {
                    out.push_str(if set.is_negated { "[^" } else { "[" });
                    out.push_str(&set.inside);
                    out.push(']');
                }
            }
        }
        out.push(']');
    }
}

fn push_range(first: char, last: char, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, r"\x{{{:X}}}-\x{{{:X}}}", first as u32, last as u32);
}

/// The characters of a range in their other cases.
fn case_variants(first: char, last: char) -> Vec<char> {
    let end = (last as u32).min(LAST_CASED);
    let mut variants = Vec::new();
    for character in (first as u32..=end).filter_map(char::from_u32) {
        variants.extend(single(character.to_lowercase()).filter(|c| *c != character));
        variants.extend(single(character.to_uppercase()).filter(|c| *c != character));
    }
    variants
}

/// The only one.
fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    first.filter(|_| characters.next().is_none())
}
