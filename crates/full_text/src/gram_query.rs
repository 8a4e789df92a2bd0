//! Trigram queries: AND and OR of the trigrams that a text must have.

use std::collections::BTreeSet;

use crate::fold::fold;
use crate::grams::GRAM_CHARACTERS;

/// Grams of a query. More say little more.
const GRAMS_MAX: usize = 128;

/// The trigrams that a text must have. Whatever is left out of it finds more, never less.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GramQuery {
    /// This one: three folded characters.
    Gram(String),
    /// What all of these say; none of them: nothing is known.
    All(Vec<GramQuery>),
    /// What one of these says; none of them: no text matches.
    Any(Vec<GramQuery>),
}

impl GramQuery {
    /// Every text.
    pub const fn anything() -> Self {
        Self::All(Vec::new())
    }

    /// Whether nothing is asked of a text.
    pub fn is_anything(&self) -> bool {
        matches!(self, Self::All(all) if all.is_empty())
    }

    /// Texts that a text is a part of, in either case.
    pub fn of_text(text: &str) -> Self {
        Self::of_folded(&fold(text))
    }

    /// Texts whose folded form has a part.
    pub fn of_folded(folded: &str) -> Self {
        let characters: Vec<char> = folded.chars().collect();
        let grams = characters.windows(GRAM_CHARACTERS);
        // The first of a long text; each by itself is asked for once.
        let grams: BTreeSet<String> = grams
            .take(GRAMS_MAX)
            .map(|gram| gram.iter().collect())
            .collect();
        let mut all: Vec<Self> = grams.into_iter().map(Self::Gram).collect();
        match all.len() {
            1 => all.remove(0),
            _ => Self::All(all),
        }
    }

    /// Texts of both; what would make it too large is left out of the second.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut all = self.into_all();
        let mut grams: usize = all.iter().map(Self::grams).sum();
        for one in other.into_all() {
            grams += one.grams();
            if grams > GRAMS_MAX {
                break;
            }
            if !all.contains(&one) {
                all.push(one);
            }
        }
        match all.len() {
            1 => all.remove(0),
            _ => Self::All(all),
        }
    }

    /// Texts of one of them. Where one says nothing, or they are too many, nothing is known.
    pub fn any(of: impl IntoIterator<Item = Self>) -> Self {
        let mut any = Vec::new();
        let mut grams = 0;
        for one in of {
            grams += one.grams();
            if one.is_anything() || grams > GRAMS_MAX {
                return Self::anything();
            }
            match one {
                Self::Any(more) => any.extend(more),
                one => any.push(one),
            }
        }
        any.sort_unstable();
        any.dedup();
        match any.len() {
            1 => any.remove(0),
            _ => Self::Any(any),
        }
    }

    /// Whether a text has what is asked: the model of what a search finds.
    pub fn finds(&self, text: &str) -> bool {
        self.finds_folded(&fold(text))
    }

    fn finds_folded(&self, folded: &str) -> bool {
        match self {
            Self::Gram(gram) => folded.contains(gram.as_str()),
            Self::All(all) => all.iter().all(|one| one.finds_folded(folded)),
            Self::Any(any) => any.iter().any(|one| one.finds_folded(folded)),
        }
    }

    /// How many grams it names.
    fn grams(&self) -> usize {
        match self {
            Self::Gram(_) => 1,
            Self::All(of) | Self::Any(of) => of.iter().map(Self::grams).sum(),
        }
    }

    fn into_all(self) -> Vec<Self> {
        match self {
            Self::All(all) => all,
            one => vec![one],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gram(text: &str) -> GramQuery {
        GramQuery::Gram(text.to_owned())
    }

    #[test]
    fn needles_are_cut_into_grams() {
        assert_eq!(GramQuery::of_text("Abc"), gram("abc"));
        assert_eq!(
            GramQuery::of_text("aßb"),
            GramQuery::All(vec![gram("ass"), gram("ssb")])
        );
        assert!(GramQuery::of_text("ab").is_anything());
        assert_eq!(GramQuery::of_text("aaaaa"), gram("aaa"));
    }

    #[test]
    fn what_says_nothing_is_left_out_of_and_and_spoils_or() {
        let nothing_known = GramQuery::anything;
        assert_eq!(nothing_known().and(gram("abc")), gram("abc"));
        assert!(GramQuery::any([gram("abc"), nothing_known()]).is_anything());
        assert_eq!(GramQuery::any([gram("abc"), gram("abc")]), gram("abc"));
        let none = GramQuery::any([]);
        assert!(!none.finds("abc") && !none.clone().and(gram("abc")).finds("abc"));
        assert_eq!(GramQuery::any([none, gram("abc")]), gram("abc"));
    }

    #[test]
    fn a_query_is_bounded() {
        let text: String = ('a'..='z').cycle().take(100_000).collect();
        let long = |start: usize| {
            let letters = ('\u{4e00}'..).skip(start).take(1_000);
            GramQuery::of_text(&letters.collect::<String>())
        };
        assert!(GramQuery::of_text(&text).grams() <= 26);
        assert_eq!(long(0).grams(), GRAMS_MAX);
        assert_eq!(long(0).and(long(5_000)), long(0));
        assert!(GramQuery::any([long(0), long(5_000)]).is_anything());
    }
}
