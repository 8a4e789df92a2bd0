//! The prefixes of texts that a regular expression can match.
//!
//! The pattern, parsed, is walked from its front: `^` first, then characters as long as there are
//! few choices. A larger class ends the walk and leaves its ranges of characters. `^[a-m].*ing`
//! without case: texts from `A` to `M`, from `a` to `m`, and those that begin with the Kelvin sign.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind, Look};

use super::translate::{self, Flags, LastLine};

/// Texts are followed so far.
const BEGINNING_BYTES_MAX: usize = 64;
/// More beginnings are not told apart.
const BEGINNINGS_MAX: usize = 16;
/// Classes of more characters say nothing worth while: the dot, or all but a few.
const CHARACTERS_MAX: usize = 10_000;
/// Pattern parts inside each other that are looked at.
const DEPTH_MAX: usize = 100;

/// Texts between two: those that are not less than `first`, and less than `last` or begin with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The least text.
    pub first: String,
    /// How the greatest texts begin; as long as `first`, but for the bytes of their last
    /// characters.
    pub last: String,
}

/// The beginnings of all texts that `REGEX` with this pattern and these flags can be true for;
/// `None` if the pattern does not say, or is wrong. No beginning is empty.
pub fn beginnings(pattern: &str, flags: &str) -> Option<Vec<Beginning>> {
    let flags = Flags::parse(flags).ok()?;
    let pattern = translate::translate(pattern, flags, LastLine::Open).ok()?;
    let parsed = ParserBuilder::new()
        .case_insensitive(flags.ignores_case)
        .build()
        .parse(&pattern)
        .ok()?;
    if !parsed.properties().look_set_prefix().contains(Look::Start) {
        return None;
    }
    let begun = Begun::of(&parsed, DEPTH_MAX);
    let mut beginnings = begun.ended;
    beginnings.extend(begun.open.into_iter().map(|text| Beginning {
        first: text.clone(),
        last: text,
    }));
    let says = beginnings
        .iter()
        .all(|beginning| !beginning.first.is_empty());
    (says && beginnings.len() <= BEGINNINGS_MAX).then_some(beginnings)
}

/// The beginnings of what a part of a pattern matches.
struct Begun {
    /// Texts that may go on with what follows the part: they are all that it matches.
    open: Vec<String>,
    /// Texts of which no more is known.
    ended: Vec<Beginning>,
}

impl Begun {
    /// Nothing but the empty text.
    fn empty() -> Self {
        Self {
            open: vec![String::new()],
            ended: Vec::new(),
        }
    }

    /// Anything at all.
    fn anything() -> Self {
        let mut begun = Self::empty();
        begun.end();
        begun
    }

    /// The part goes on with something unknown.
    fn end(&mut self) {
        let open = self.open.drain(..);
        self.ended.extend(open.map(|text| Beginning {
            first: text.clone(),
            last: text,
        }));
    }

    fn of(part: &Hir, depth: usize) -> Self {
        if depth == 0 {
            return Self::anything();
        }
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::empty(),
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => {
                    let known = &text[..text.floor_char_boundary(BEGINNING_BYTES_MAX)];
                    let mut begun = Self {
                        open: vec![known.to_owned()],
                        ended: Vec::new(),
                    };
                    if known.len() < text.len() {
                        begun.end();
                    }
                    begun
                }
                Err(_) => Self::anything(),
            },
            HirKind::Class(class) => Self::of_class(class),
            HirKind::Capture(capture) => Self::of(&capture.sub, depth - 1),
            HirKind::Repetition(repetition) => match repetition.min {
                0 => Self::anything(),
                least => {
                    let mut begun = Self::of(&repetition.sub, depth - 1);
                    if (least, repetition.max) != (1, Some(1)) {
                        begun.end();
                    }
                    begun
                }
            },
            HirKind::Concat(parts) => {
                parts
                    .iter()
                    .fold(Self::empty(), |begun, part| match begun.open.is_empty() {
                        true => begun,
                        false => begun.then(Self::of(part, depth - 1)),
                    })
            }
            HirKind::Alternation(parts) => {
                let mut all = Self {
                    open: Vec::new(),
                    ended: Vec::new(),
                };
                for part in parts {
                    let begun = Self::of(part, depth - 1);
                    all.open.extend(begun.open);
                    all.ended.extend(begun.ended);
                    if all.open.len() + all.ended.len() > BEGINNINGS_MAX {
                        return Self::anything();
                    }
                }
                all
            }
        }
    }

    fn of_class(class: &Class) -> Self {
        let Class::Unicode(class) = class else {
            return Self::anything();
        };
        let ranges = class.ranges();
        let characters: usize = ranges.iter().map(ClassUnicodeRange::len).sum();
        if ranges.len() > BEGINNINGS_MAX || characters > CHARACTERS_MAX {
            return Self::anything();
        }
        if ranges.iter().all(|range| range.start() == range.end()) {
            return Self {
                open: ranges.iter().map(|range| range.start().into()).collect(),
                ended: Vec::new(),
            };
        }
        Self {
            open: Vec::new(),
            ended: ranges
                .iter()
                .map(|range| Beginning {
                    first: range.start().into(),
                    last: range.end().into(),
                })
                .collect(),
        }
    }

    /// This part and then another one.
    fn then(mut self, next: Self) -> Self {
        let count = self.open.len() * (next.open.len() + next.ended.len());
        let longest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
        if self.ended.len() + count > BEGINNINGS_MAX
            || longest(&self.open) + longest(&next.open) > BEGINNING_BYTES_MAX
        {
            self.end();
            return self;
        }
        let mut open = Vec::new();
        for text in &self.open {
            open.extend(next.open.iter().map(|more| format!("{text}{more}")));
            self.ended.extend(next.ended.iter().map(|more| Beginning {
                first: format!("{text}{}", more.first),
                last: format!("{text}{}", more.last),
            }));
        }
        self.open = open;
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::RegexCache;
    use super::*;

    fn shown(pattern: &str, flags: &str) -> Option<String> {
        let beginnings = beginnings(pattern, flags)?;
        let shown = beginnings.iter().map(|beginning| match beginning {
            one if one.first == one.last => one.first.clone(),
            Beginning { first, last } => format!("{first}..{last}"),
        });
        Some(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_beginnings_of_a_pattern() {
        for (pattern, flags, expected) in [
            ("^abc", "", Some("abc")),
            ("^abc$", "", Some("abc")),
            (r"^http://a\.example/", "", Some("http://a.example/")),
            ("^ab*", "", Some("a")),
            ("^ab?c", "", Some("a")),
            ("^ab{0,2}", "", Some("a")),
            ("^ab+c", "", Some("ab")),
            ("^a.c", "", Some("a")),
            ("^[ab]c", "", Some("a..b")),
            ("^[ac]d", "", Some("ad cd")),
            ("^x[a-m].*ing", "", Some("xa..xm")),
            ("^[a-m].*ing", "i", Some("A..M a..m \u{212a}")),
            ("^ab", "i", Some("AB Ab aB ab")),
            ("^(ab|c)d", "", Some("abd cd")),
            ("^(?:ab|c.)d", "", Some("c abd")),
            ("^a|^b", "", Some("a..b")),
            ("^a b", "x", Some("ab")),
            ("^[ab]|c", "", None),
            ("^(a|)", "", None),
            ("^.*a", "", None),
            ("^a", "m", None),
            ("a.c", "q", None),
            ("abc", "", None),
            ("^(", "", None),
            ("^a", "z", None),
        ] {
            assert_eq!(
                shown(pattern, flags).as_deref(),
                expected,
                "{pattern} {flags}"
            );
        }
        let long = format!("^{}", "a".repeat(1_000));
        let known = "a".repeat(BEGINNING_BYTES_MAX);
        assert_eq!(shown(&long, ""), Some(known));
    }

    proptest! {
        #[test]
        fn what_matches_begins_so(
            pattern in r"\^?(\(?[abc.|]\)?[*+?]?|\[[ab]-?[bc]\]){1,5}",
            flags in "i?",
            texts in proptest::collection::vec("[abcABC]{0,5}", 20),
        ) {
            if let (Some(beginnings), Ok(Some(regex))) =
                (beginnings(&pattern, &flags), RegexCache::default().get(&pattern, &flags))
            {
                for text in texts.iter().filter(|text| regex.is_match(text)) {
                    let is_within = beginnings.iter().any(|Beginning { first, last }| {
                        text >= first && (text < last || text.starts_with(last))
                    });
                    prop_assert!(is_within, "{} matches {}: {:?}", pattern, text, beginnings);
                }
            }
        }
    }
}
