//! The trigrams that every match of a regular expression contains.
//!
//! The pattern, parsed, is walked from its leaves up. Of each part is known, in folded characters
//! ([`orrery_full_text::fold`]): all texts that it matches, where these are few; else how they
//! begin and how they end, and what grams are in them. Where two parts meet, the ends of one and
//! the beginnings of the other give the grams across (Russ Cox, "Regular Expression Matching with a
//! Trigram Index", 2012).
//!
//! Whatever is too much is forgotten, which finds more texts, never less: [`TEXTS_MAX`],
//! [`TEXT_BYTES_MAX`], [`CLASS_CHARACTERS_MAX`], [`DEPTH_MAX`], and the bound that a query of grams
//! has.

use std::collections::BTreeSet;

use orrery_full_text::{GramQuery, fold};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::translate::{self, Flags, LastLine};

/// Longer patterns are not looked into.
const PATTERN_BYTES_MAX: usize = 16 * 1024;
/// Texts of a part that are told apart.
const TEXTS_MAX: usize = 16;
/// Bytes of each of these: of longer ones the ends are kept.
const TEXT_BYTES_MAX: usize = 64;
/// Characters of a beginning or an end that make a gram with what is beside it.
const END_CHARACTERS: usize = 2;
/// Characters of a class that are looked at one by one.
const CLASS_CHARACTERS_MAX: usize = 64;
/// Copies of a repeated part that are written out.
const COPIES_MAX: u32 = 4;
/// Parts inside each other that are looked at.
const DEPTH_MAX: usize = 100;

/// The trigrams that a text must have to match a `REGEX` pattern with flags; `None` if the pattern
/// is wrong or very long.
pub fn regex_grams(pattern: &str, flags: &str) -> Option<GramQuery> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let flags = Flags::parse(flags).ok()?;
    let pattern = translate::translate(pattern, flags, LastLine::Open).ok()?;
    let parsed = ParserBuilder::new()
        .case_insensitive(flags.ignores_case)
        .build()
        .parse(&pattern)
        .ok()?;
    Some(Part::of(&parsed, DEPTH_MAX).into_grams())
}

type Texts = BTreeSet<String>;

/// What is known of the folded texts that a part matches.
#[derive(Clone)]
enum Part {
    /// They are these.
    Exact(Texts),
    /// Each begins with one of these, ends with one of those, and has these grams.
    Open {
        starts: Texts,
        ends: Texts,
        grams: GramQuery,
    },
}

impl Part {
    fn anything() -> Self {
        Self::Open {
            starts: Texts::from([String::new()]),
            ends: Texts::from([String::new()]),
            grams: GramQuery::anything(),
        }
    }

    fn text(text: &str) -> Self {
        Self::Exact(Texts::from([fold(text)])).bounded()
    }

    fn of(part: &Hir, depth: usize) -> Self {
        if depth == 0 {
            return Self::anything();
        }
        match part.kind() {
            // They stand between two characters and take none.
            HirKind::Empty | HirKind::Look(_) => Self::text(""),
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => Self::text(text),
                Err(_) => Self::anything(),
            },
            HirKind::Class(class) => Self::of_class(class),
            HirKind::Capture(capture) => Self::of(&capture.sub, depth - 1),
            HirKind::Repetition(repetition) => {
                let once = || Self::of(&repetition.sub, depth - 1);
                match (repetition.min, repetition.max) {
                    (0, Some(0)) => Self::text(""),
                    (0, Some(1)) => Self::text("").or(once()),
                    (0, _) => Self::anything(),
                    (least, most) => {
                        let once = once();
                        let copies = least.min(COPIES_MAX);
                        let mut all = once.clone();
                        for _ in 1..copies {
                            all = all.then(once.clone());
                        }
                        if most != Some(copies) {
                            // More of them in the middle: the last one ends it.
                            all = all.then(Self::anything()).then(once.opened());
                        }
                        all
                    }
                }
            }
            HirKind::Concat(parts) => parts.iter().fold(Self::text(""), |all, part| {
                all.then(Self::of(part, depth - 1))
            }),
            HirKind::Alternation(parts) => parts
                .iter()
                .map(|part| Self::of(part, depth - 1))
                .reduce(Self::or)
                .unwrap_or_else(Self::anything),
        }
    }

    fn of_class(class: &Class) -> Self {
        let Class::Unicode(class) = class else {
            return Self::anything();
        };
        let counts = class
            .ranges()
            .iter()
            .map(regex_syntax::hir::ClassUnicodeRange::len);
        if counts.sum::<usize>() > CLASS_CHARACTERS_MAX {
            return Self::anything();
        }
        let characters = class.ranges().iter();
        let characters = characters.flat_map(|range| range.start()..=range.end());
        let folded: Texts = characters
            .map(|character| fold(character.encode_utf8(&mut [0; 4])))
            .collect();
        Self::Exact(folded).bounded()
    }

    /// One behind the other.
    fn then(self, next: Self) -> Self {
        let (one, other) = match (self, next) {
            (Self::Exact(one), Self::Exact(other)) if one.len() * other.len() <= TEXTS_MAX => {
                return Self::Exact(product(&one, &other)).bounded();
            }
            parts => parts,
        };
        let (one_starts, one_ends, one_grams) = one.facts();
        let (other_starts, other_ends, other_grams) = other.facts();
        let grams = one_grams
            .and(other_grams)
            .and(grams_across(&one_ends, &other_starts));
        let starts = match &one {
            Self::Exact(texts) => product(texts, &other_starts),
            Self::Open { .. } => one_starts,
        };
        let ends = match &other {
            Self::Exact(texts) => product(&one_ends, texts),
            Self::Open { .. } => other_ends,
        };
        Self::Open {
            starts,
            ends,
            grams,
        }
        .bounded()
    }

    /// One or the other.
    fn or(self, other: Self) -> Self {
        if let (Self::Exact(one), Self::Exact(other)) = (&self, &other)
            && one.len() + other.len() <= TEXTS_MAX
        {
            return Self::Exact(one.union(other).cloned().collect());
        }
        let (one_starts, one_ends, one_grams) = self.facts();
        let (other_starts, other_ends, other_grams) = other.facts();
        Self::Open {
            starts: one_starts.union(&other_starts).cloned().collect(),
            ends: one_ends.union(&other_ends).cloned().collect(),
            grams: GramQuery::any([one_grams, other_grams]),
        }
        .bounded()
    }

    /// The same, as beginnings and ends.
    fn opened(self) -> Self {
        match self {
            Self::Exact(texts) => Self::Open {
                grams: any_of(&texts),
                starts: cut(&texts, first),
                ends: cut(&texts, last),
            },
            open @ Self::Open { .. } => open,
        }
    }

    /// Beginnings, ends and all grams.
    fn facts(&self) -> (Texts, Texts, GramQuery) {
        match self {
            Self::Exact(texts) => (texts.clone(), texts.clone(), any_of(texts)),
            Self::Open {
                starts,
                ends,
                grams,
            } => (starts.clone(), ends.clone(), grams.clone()),
        }
    }

    /// With texts that are not too many or too long.
    fn bounded(self) -> Self {
        match self {
            Self::Exact(texts) if are_few(&texts) => Self::Exact(texts),
            exact @ Self::Exact(_) => exact.opened().bounded(),
            Self::Open {
                mut starts,
                mut ends,
                mut grams,
            } => {
                if !are_few(&starts) {
                    grams = grams.and(any_of(&starts));
                    starts = cut(&starts, first);
                }
                if !are_few(&ends) {
                    grams = grams.and(any_of(&ends));
                    ends = cut(&ends, last);
                }
                Self::Open {
                    starts,
                    ends,
                    grams,
                }
            }
        }
    }

    fn into_grams(self) -> GramQuery {
        let (starts, ends, grams) = self.facts();
        grams.and(any_of(&starts)).and(any_of(&ends))
    }
}

fn are_few(texts: &Texts) -> bool {
    texts.len() <= TEXTS_MAX && texts.iter().all(|text| text.len() <= TEXT_BYTES_MAX)
}

/// The few characters that make a gram with others; none where these are too many, too.
fn cut(texts: &Texts, piece: fn(&str) -> &str) -> Texts {
    let cut: Texts = texts.iter().map(|text| piece(text).to_owned()).collect();
    match cut.len() <= TEXTS_MAX {
        true => cut,
        false => Texts::from([String::new()]),
    }
}

/// The first characters of a text.
fn first(text: &str) -> &str {
    let end = text.char_indices().nth(END_CHARACTERS);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The last characters of a text.
fn last(text: &str) -> &str {
    let start = text.char_indices().rev().nth(END_CHARACTERS - 1);
    &text[start.map_or(0, |(at, _)| at)..]
}

/// Each of these behind each of those.
fn product(before: &Texts, behind: &Texts) -> Texts {
    let pairs = before
        .iter()
        .flat_map(|one| behind.iter().map(move |other| [&**one, other].concat()));
    pairs.collect()
}

/// The grams where ends meet beginnings.
fn grams_across(ends: &Texts, starts: &Texts) -> GramQuery {
    any_of(&product(&cut(ends, last), &cut(starts, first)))
}

/// The grams of one of these.
fn any_of(texts: &Texts) -> GramQuery {
    GramQuery::any(texts.iter().map(|text| GramQuery::of_folded(text)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::RegexCache;
    use super::*;

    fn shown(query: &GramQuery) -> String {
        let joined = |of: &[GramQuery], between: &str| {
            let shown: Vec<String> = of.iter().map(shown).collect();
            format!("({})", shown.join(between))
        };
        match query {
            GramQuery::Gram(gram) => gram.clone(),
            GramQuery::All(all) => joined(all, " "),
            GramQuery::Any(any) => joined(any, "|"),
        }
    }

    #[test]
    fn what_a_pattern_needs() {
        for (pattern, flags, expected) in [
            ("abc", "", "abc"),
            ("ab", "", "()"),
            ("^Abcd$", "", "(abc bcd)"),
            ("ing.*ed", "", "ing"),
            ("ing.*ed s", "", "(ing (ed d s))"),
            ("a[bc]d", "", "(abd|acd)"),
            ("KIS", "i", "kis"),
            ("(abc|bcd)", "", "(abc|bcd)"),
            ("(abc|bcd)?e", "", "((abc bce)|(bcd cde)|())"),
            ("x(ab)+y", "", "(xab aby)"),
            ("(abc)*d", "", "()"),
            ("(abc){2}", "", "(abc bca cab)"),
            (r"\d{4}", "", "()"),
            ("a.c", "q", "a.c"),
            ("abc|", "", "()"),
            (".*", "", "()"),
        ] {
            let grams = regex_grams(pattern, flags).unwrap();
            let is_unknown = expected.contains("()");
            match is_unknown {
                true => assert!(grams.is_anything(), "{pattern}: {}", shown(&grams)),
                false => {
                    for part in expected.split(['(', ')', ' ', '|']) {
                        let is_there = part.chars().count() != 3 || shown(&grams).contains(part);
                        assert!(is_there, "{pattern}: {} without {part}", shown(&grams));
                    }
                }
            }
        }
        assert_eq!(regex_grams("(", ""), None);
        assert_eq!(regex_grams("a", "?"), None);
        assert_eq!(regex_grams(&"abc".repeat(10_000), ""), None);
    }

    #[test]
    fn large_patterns_stay_small() {
        for pattern in [
            "[ab][cd][ef][gh][ij][kl][mn][op]".repeat(200),
            "(abc|def|ghi|jkl)".repeat(200),
            "a{1,1000}b{500}".to_owned(),
            "abcdefghij.".repeat(1_000),
            (0..500)
                .map(|n| format!("word{n}"))
                .collect::<Vec<_>>()
                .join("|"),
        ] {
            for flags in ["", "i"] {
                assert!(regex_grams(&pattern, flags).is_some());
            }
        }
    }

    /// Patterns of few letters, so that much matches.
    fn pattern() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            6 => "[abkßſ]{1,4}",
            2 => prop::sample::select(&["[ab]", "[^a]", ".", "[a-k]", "K", "S", "\\.", "İ", "\\p{Lu}"][..]).prop_map(str::to_owned),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.concat()),
                2 => prop::collection::vec(inner.clone(), 1..4).prop_map(|any| format!("({})", any.join("|"))),
                1 => (inner, prop::sample::select(&["*", "+", "?", "{2}", "{2,3}", "{0,2}", "{3,}"][..]))
                    .prop_map(|(one, times)| format!("({one}){times}")),
            ]
        })
    }

    fn changed_case(text: &str, seed: u64) -> String {
        let changed = text.chars().enumerate().map(|(at, character)| {
            let text = character.to_string();
            match seed >> (at % 32 * 2) & 3 {
                0 => text.to_uppercase(),
                1 => text.to_lowercase(),
                _ => text,
            }
        });
        changed.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// What the function itself matches has the grams: texts made by the pattern, with others
        /// around them, in changed case, and any texts.
        #[test]
        fn texts_that_match_have_the_grams(
            (pattern, made) in pattern().prop_flat_map(|pattern| {
                let made = proptest::string::string_regex(&pattern).unwrap();
                (Just(pattern), prop::collection::vec(made, 8))
            }),
            around in ["[abkS .]{0,3}", "[abkS .]{0,3}"],
            seed in any::<u64>(),
            others in prop::collection::vec("[abkKsSßſ\u{212a}.]{0,8}", 8),
        ) {
            for flags in ["", "i", "s", "x", "m"] {
                let compiled = RegexCache::default().get(&pattern, flags).unwrap();
                let compiled = compiled.expect("a right pattern");
                let grams = regex_grams(&pattern, flags).unwrap();
                let made = made.iter().flat_map(|text| {
                    let text = [&*around[0], text, &*around[1]].concat();
                    [changed_case(&text, seed), text]
                });
                for text in made.chain(others.iter().cloned()) {
                    for text in [text.to_lowercase(), text.to_uppercase(), text] {
                        prop_assert!(
                            !compiled.is_match(&text) || grams.finds(&text),
                            "{:?} {:?} matches {:?}, which has not {}", pattern, flags, text, shown(&grams)
                        );
                    }
                }
            }
        }
    }
}
