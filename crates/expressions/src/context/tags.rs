//! The spelling of language tags that a query brings: constants, computed terms, answers of
//! endpoints.
//!
//! The database's table decides first and is never locked. Tags that it does not know have a table
//! of the query. A tag stays there as it was written first, in lower case too: rows may have gone
//! out already. Whoever reads many terms shares the table as it stands; it is copied only if a tag
//! is added meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orrery_term::{LanguageTags, Term};
use parking_lot::RwLock;

/// The query's table.
#[derive(Default)]
pub(super) struct OwnTags {
    table: RwLock<Arc<LanguageTags>>,
    /// Whether one of its tags has capitals: if not, nobody has to look.
    has_capitals: AtomicBool,
}

impl OwnTags {
    /// Takes the tags that neither the database nor the query knows.
    pub(super) fn add(&self, known: &LanguageTags, tags: &LanguageTags) {
        let further = || tags.entries().filter(|(lower, _)| !known.is_known(lower));
        let is_known = |table: &LanguageTags| further().all(|(lower, _)| !table.has_place(lower));
        if further().next().is_none() || is_known(&self.table.read()) {
            return;
        }
        let mut table = self.table.write();
        if is_known(&table) {
            return;
        }
        let table = Arc::make_mut(&mut table);
        for (lower, tag) in further() {
            if table.has_place(lower) {
                table.note(tag);
            }
        }
        self.has_capitals
            .store(!table.is_lower_case(), Ordering::Relaxed);
    }

    /// The same for one tag: nothing is locked if the database knows it, and nothing is written if
    /// the query does.
    pub(super) fn add_tag(&self, known: &LanguageTags, lower: &str, tag: &str) {
        if known.is_known(lower) || !self.table.read().has_place(lower) {
            return;
        }
        let mut table = self.table.write();
        if table.has_place(lower) {
            let table = Arc::make_mut(&mut table);
            table.note(tag);
            self.has_capitals
                .store(!table.is_lower_case(), Ordering::Relaxed);
        }
    }

    /// The table as it stands.
    pub(super) fn all(&self) -> Arc<LanguageTags> {
        Arc::clone(&self.table.read())
    }

    /// The table as it stands, if one of its tags has capitals.
    pub(super) fn with_capitals(&self) -> Option<Arc<LanguageTags>> {
        let has_capitals = self.has_capitals.load(Ordering::Relaxed);
        has_capitals.then(|| Arc::clone(&self.table.read()))
    }
}

/// The spelling of language tags in a query's results.
pub struct WrittenTags<'c> {
    pub(super) known: &'c LanguageTags,
    /// Has none of the known ones.
    pub(super) own: Option<Arc<LanguageTags>>,
}

impl WrittenTags<'_> {
    /// A term as it is written: to be shown, not to be compared.
    #[inline]
    pub fn in_term<'t>(&self, term: Term<'t>) -> Term<'t> {
        let term = self.known.in_term(term);
        match &self.own {
            None => term,
            // It has no tag that the database decided.
            Some(own) => own.in_term(term),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags<const N: usize>(tags: [&str; N]) -> LanguageTags {
        tags.into_iter().collect()
    }

    #[test]
    fn the_first_spelling_stays_and_the_database_decides() {
        let (known, own) = (tags(["DE", "it"]), OwnTags::default());
        own.add(&known, &tags(["en-GB", "de", "IT"]));
        own.add(&known, &tags(["en-gb", "fr"]));
        own.add_tag(&known, "en-gb", "EN-GB");
        own.add_tag(&known, "de", "De");
        // Also what was in lower case first.
        own.add_tag(&known, "es", "es");
        own.add_tag(&known, "es", "ES");
        let table = own.with_capitals().unwrap();
        assert_eq!(table.iter().collect::<Vec<_>>(), ["en-GB", "es", "fr"]);
        assert_eq!(table.written("en-gb"), Some("en-GB"));
        assert_eq!(table.written("es"), None);
        let written = WrittenTags {
            known: &known,
            own: Some(table),
        };
        let shown = |tag: &str| written.in_term(Term::language("x", tag)).to_string();
        assert_eq!(
            ["de", "en-gb", "it", "es"].map(shown),
            ["\"x\"@DE", "\"x\"@en-GB", "\"x\"@it", "\"x\"@es"]
        );
    }

    #[test]
    fn the_table_is_shared_until_a_tag_is_added() {
        let (known, own) = (tags(["DE"]), OwnTags::default());
        own.add(&known, &tags(["en"]));
        assert!(own.with_capitals().is_none());
        own.add_tag(&known, "pt-br", "pt-BR");
        let table = own.with_capitals().unwrap();
        own.add(&known, &tags(["PT-br", "De", "EN"]));
        own.add_tag(&known, "pt-br", "PT-BR");
        assert!(Arc::ptr_eq(&table, &own.with_capitals().unwrap()));
        own.add_tag(&known, "fr-ca", "fr-CA");
        let later = own.with_capitals().unwrap();
        assert!(!Arc::ptr_eq(&table, &later) && !table.is_known("fr-ca"));
        assert_eq!(later.written("fr-ca"), Some("fr-CA"));
    }

    #[test]
    fn a_full_table_is_left_alone() {
        let (known, own) = (LanguageTags::default(), OwnTags::default());
        for number in 0..orrery_term::language::LANGUAGE_TAGS_MAX {
            let tag = format!("X-{number}");
            own.add_tag(&known, &tag.to_ascii_lowercase(), &tag);
        }
        let table = own.with_capitals().unwrap();
        own.add_tag(&known, "fr-ca", "fr-CA");
        own.add(&known, &tags(["en-GB"]));
        assert!(Arc::ptr_eq(&table, &own.with_capitals().unwrap()));
    }
}
