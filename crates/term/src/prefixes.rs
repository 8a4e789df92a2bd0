//! IRI prefixes: well-known ones, those of a database, and the shortening of IRIs.
//!
//! ```text
//! declared in the text itself        always wins
//! given to the database              `orrery prefix add`
//! well known                         [`WELL_KNOWN`]
//! of loaded files                    the first file that declares a name
//! ```
//!
//! What is further down never changes what is further up, so a load makes at most an error into an
//! answer, never an answer into another. Only who gives a prefix to a database another IRI on
//! purpose changes what queries mean.
//!
//! All of it is bounded: a file may declare what it likes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use oxiri::Iri;

use crate::names::{is_name_character, is_name_start};

/// Prefixes that are assumed without being declared, by name.
///
/// Where stores differ: `geo:` is GeoSPARQL's, as the OGC writes it, with RDF4J and GraphDB
/// (Virtuoso has the W3C's `wgs84_pos#`); `dc:` are the elements, as Virtuoso and prefix.cc have it
/// (the RDFa context, so RDF4J, has the terms); `schema:` is `http`, as the RDFa context, Virtuoso
/// and RDF4J have it, though schema.org itself writes `https` today.
pub const WELL_KNOWN: [(&str, &str); 17] = [
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("geo", "http://www.opengis.net/ont/geosparql#"),
    ("geof", "http://www.opengis.net/def/function/geosparql/"),
    ("list", "http://jena.apache.org/ARQ/list#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("schema", "http://schema.org/"),
    ("sh", "http://www.w3.org/ns/shacl#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("text", "https://orrery-db.org/text#"),
    ("uom", "http://www.opengis.net/def/uom/OGC/1.0/"),
    ("void", "http://rdfs.org/ns/void#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
];

/// Further prefixes that many know, for messages about those that are not declared. They are not
/// assumed.
pub const OFTEN_MEANT: [(&str, &str); 16] = [
    ("dbo", "http://dbpedia.org/ontology/"),
    ("dbr", "http://dbpedia.org/resource/"),
    ("dcat", "http://www.w3.org/ns/dcat#"),
    ("dct", "http://purl.org/dc/terms/"),
    ("doap", "http://usefulinc.com/ns/doap#"),
    ("gr", "http://purl.org/goodrelations/v1#"),
    ("org", "http://www.w3.org/ns/org#"),
    ("p", "http://www.wikidata.org/prop/"),
    ("qb", "http://purl.org/linked-data/cube#"),
    ("sdo", "https://schema.org/"),
    ("sioc", "http://rdfs.org/sioc/ns#"),
    ("time", "http://www.w3.org/2006/time#"),
    ("vcard", "http://www.w3.org/2006/vcard/ns#"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("wgs", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
];

/// Prefixes that one database keeps at most; further ones of files are passed over.
pub const PREFIXES_MAX: usize = 1_024;
/// Longest name of a prefix, in bytes.
pub const PREFIX_NAME_BYTES_MAX: usize = 64;
/// Longest IRI of a prefix, in bytes.
pub const PREFIX_IRI_BYTES_MAX: usize = 512;

/// The IRI of a well-known prefix.
pub fn well_known(name: &str) -> Option<&'static str> {
    find(&WELL_KNOWN, name)
}

/// The IRI that somebody probably means by a prefix: a well-known one, or another that many know.
pub fn probably_meant(name: &str) -> Option<&'static str> {
    well_known(name).or_else(|| find(&OFTEN_MEANT, name))
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let found = table.binary_search_by(|(known, _)| (*known).cmp(name));
    found.ok().map(|at| table[at].1)
}

/// Where a prefix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixOrigin {
    /// Everybody assumes it.
    WellKnown,
    /// A loaded file declares it.
    Loaded,
    /// Somebody gave it to the database.
    Given,
}

impl PrefixOrigin {
    /// Its name, for lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::WellKnown => "well known",
            Self::Loaded => "loaded",
            Self::Given => "given",
        }
    }
}

/// A change of a database's prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixChange {
    /// A loaded file declares it.
    Loaded {
        /// Its name, without the colon.
        name: String,
        /// What it stands for.
        iri: String,
    },
    /// Somebody gave it.
    Given {
        /// Its name, without the colon.
        name: String,
        /// What it stands for.
        iri: String,
    },
    /// It is no more.
    Removed {
        /// Its name, without the colon.
        name: String,
    },
}

/// Why a prefix cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The name is none.
    #[error(
        "'{0}' cannot be the name of a prefix: it begins with a letter, and has letters, digits, `-`, `_` and `.` (64 bytes at most)"
    )]
    Name(String),
    /// The IRI is not absolute, too long, or has characters that no IRI has.
    #[error(
        "'{0}' cannot be the IRI of a prefix: it must be absolute, without spaces, and 512 bytes at most"
    )]
    Iri(String),
    /// Another IRI has the name.
    #[error("{name}: stands for <{iri}> already ({}), and queries may rely on it", origin.name())]
    Taken {
        /// The name.
        name: String,
        /// What it stands for.
        iri: String,
        /// Since when.
        origin: PrefixOrigin,
    },
    /// There is no place for more.
    #[error("the database has {PREFIXES_MAX} prefixes, which is the limit")]
    TooMany,
    /// There is none to be removed.
    #[error("the database has no prefix {0}:")]
    Unknown(String),
    /// It is assumed whatever the database has.
    #[error("{0}: is assumed everywhere and cannot be removed")]
    WellKnown(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    iri: Box<str>,
    is_given: bool,
}

/// The prefixes of a database, beside the well-known ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes {
    entries: BTreeMap<Box<str>, Entry>,
    shortener: KeptShortener,
}

/// What IRIs are shortened with, once somebody has asked for it; no part of what a table is.
#[derive(Debug, Default)]
struct KeptShortener(OnceLock<Arc<Shortener>>);

impl Clone for KeptShortener {
    /// None: a copy is made to be changed.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for KeptShortener {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for KeptShortener {}

impl Prefixes {
    /// What a prefix stands for.
    pub fn iri(&self, name: &str) -> Option<&str> {
        match self.entries.get(name) {
            Some(entry) => Some(&entry.iri),
            None => well_known(name),
        }
    }

    /// All, with the well-known ones, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, PrefixOrigin)> {
        let own = self.entries.iter().map(|(name, entry)| {
            let origin = match entry.is_given {
                true => PrefixOrigin::Given,
                false => PrefixOrigin::Loaded,
            };
            (&**name, &*entry.iri, origin)
        });
        let assumed = WELL_KNOWN
            .iter()
            .filter(|(name, _)| !self.entries.contains_key(*name))
            .map(|&(name, iri)| (name, iri, PrefixOrigin::WellKnown));
        let mut all: Vec<_> = own.chain(assumed).collect();
        all.sort_unstable_by_key(|(name, ..)| *name);
        all.into_iter()
    }

    /// Those that the database has beside the well-known ones, as changes of nothing.
    pub fn own(&self) -> impl Iterator<Item = PrefixChange> {
        self.entries.iter().map(|(name, entry)| change(name, entry))
    }

    /// What shortens IRIs with these and the well-known ones. Made once, until the table changes.
    pub fn shortener(&self) -> Arc<Shortener> {
        let kept = self
            .shortener
            .0
            .get_or_init(|| Arc::new(Shortener::new(self)));
        Arc::clone(kept)
    }

    /// The entries, to be changed.
    fn entries_mut(&mut self) -> &mut BTreeMap<Box<str>, Entry> {
        self.shortener = KeptShortener::default();
        &mut self.entries
    }

    /// Whether the database has none of its own.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Notes what a loaded file declares, if the name is free, is one, and there is a place;
    /// whether anything changed.
    pub fn note_loaded(&mut self, name: &str, iri: &str) -> bool {
        let is_kept = self.iri(name).is_none()
            && self.entries.len() < PREFIXES_MAX
            && is_prefix_name(name)
            && is_prefix_iri(iri);
        if is_kept {
            let entry = Entry {
                iri: iri.into(),
                is_given: false,
            };
            self.entries_mut().insert(name.into(), entry);
        }
        is_kept
    }

    /// What documents declare; of several IRIs for one name, the first.
    pub fn declared<'d>(declared: impl Iterator<Item = (&'d str, &'d str)>) -> Self {
        let mut prefixes = Self::default();
        for (name, iri) in declared {
            prefixes.note_loaded(name, iri);
        }
        prefixes
    }

    /// Notes what other tables of a load have.
    pub fn note_all_loaded(&mut self, others: &Self) -> bool {
        let mut is_changed = false;
        for (name, entry) in &others.entries {
            is_changed |= self.note_loaded(name, &entry.iri);
        }
        is_changed
    }

    /// Gives a prefix an IRI; another one than it has only with `is_replaced`. Returns whether
    /// anything changed.
    pub fn give(&mut self, name: &str, iri: &str, is_replaced: bool) -> Result<bool, PrefixError> {
        if !is_prefix_name(name) {
            return Err(PrefixError::Name(name.to_owned()));
        }
        if !is_prefix_iri(iri) {
            return Err(PrefixError::Iri(iri.to_owned()));
        }
        if let Some((_, known, origin)) = self.iter().find(|(known, ..)| *known == name) {
            if known == iri && origin != PrefixOrigin::Loaded {
                return Ok(false);
            }
            if known != iri && !is_replaced {
                return Err(PrefixError::Taken {
                    name: name.to_owned(),
                    iri: known.to_owned(),
                    origin,
                });
            }
        }
        // A well-known one has no entry yet.
        if self.entries.len() >= PREFIXES_MAX && !self.entries.contains_key(name) {
            return Err(PrefixError::TooMany);
        }
        self.apply(&PrefixChange::Given {
            name: name.to_owned(),
            iri: iri.to_owned(),
        });
        Ok(true)
    }

    /// Removes a prefix; a well-known one that had another IRI has its own again.
    pub fn remove(&mut self, name: &str) -> Result<(), PrefixError> {
        match self.entries_mut().remove(name) {
            Some(_) => Ok(()),
            None if well_known(name).is_some() => Err(PrefixError::WellKnown(name.to_owned())),
            None => Err(PrefixError::Unknown(name.to_owned())),
        }
    }

    /// Takes over a change that was made elsewhere: from a log, or a manifest.
    pub fn apply(&mut self, change: &PrefixChange) {
        let (name, iri, is_given) = match change {
            PrefixChange::Loaded { name, iri } => (name, iri, false),
            PrefixChange::Given { name, iri } => (name, iri, true),
            PrefixChange::Removed { name } => {
                self.entries_mut().remove(&**name);
                return;
            }
        };
        if self.entries.len() < PREFIXES_MAX || self.entries.contains_key(&**name) {
            let entry = Entry {
                iri: iri.as_str().into(),
                is_given,
            };
            self.entries_mut().insert(name.as_str().into(), entry);
        }
    }

    /// What changed since an earlier state.
    pub fn changes_since(&self, earlier: &Self) -> Vec<PrefixChange> {
        let gone = earlier
            .entries
            .keys()
            .filter(|name| !self.entries.contains_key(*name))
            .map(|name| PrefixChange::Removed {
                name: name.to_string(),
            });
        let new = self
            .entries
            .iter()
            .filter(|(name, entry)| earlier.entries.get(*name) != Some(entry))
            .map(|(name, entry)| change(name, entry));
        gone.chain(new).collect()
    }
}

impl FromIterator<PrefixChange> for Prefixes {
    fn from_iter<I: IntoIterator<Item = PrefixChange>>(changes: I) -> Self {
        let mut all = Self::default();
        for change in changes {
            all.apply(&change);
        }
        all
    }
}

fn change(name: &str, entry: &Entry) -> PrefixChange {
    let (name, iri) = (name.to_owned(), entry.iri.to_string());
    match entry.is_given {
        true => PrefixChange::Given { name, iri },
        false => PrefixChange::Loaded { name, iri },
    }
}

/// Whether a name is that of a prefix, or empty: `PN_PREFIX` of Turtle and SPARQL.
pub fn is_prefix_name(name: &str) -> bool {
    if name.len() > PREFIX_NAME_BYTES_MAX {
        return false;
    }
    let mut characters = name.chars();
    match characters.next() {
        None => true,
        Some(first) => {
            is_pn_chars_base(first)
                && !name.ends_with('.')
                && characters.all(|character| is_name_character(character) || character == '.')
        }
    }
}

/// By the rule of those who read texts with it: what they would pass over is not taken.
fn is_prefix_iri(iri: &str) -> bool {
    iri.len() <= PREFIX_IRI_BYTES_MAX && Iri::parse(iri).is_ok()
}

/// `PN_CHARS_BASE` of Turtle and SPARQL.
fn is_pn_chars_base(character: char) -> bool {
    character != '_' && is_name_start(character)
}

/// Whether a text may stand behind a prefix as it is: `PN_LOCAL` of Turtle and SPARQL without
/// escapes, or nothing.
pub fn is_local_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut characters = text.char_indices();
    let Some((_, first)) = characters.next() else {
        return true;
    };
    let is_escaped = |at: usize| {
        let digits = bytes.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_first = is_pn_chars_base(first)
        || matches!(first, '_' | ':' | '0'..='9')
        || (first == '%' && is_escaped(0));
    is_first
        && !text.ends_with('.')
        && characters.all(|(at, character)| match character {
            '.' | ':' => true,
            '%' => is_escaped(at),
            other => is_name_character(other),
        })
}

/// Prefixes by their IRIs, to shorten IRIs with.
#[derive(Clone, Debug, Default)]
pub struct Shortener {
    /// IRIs in ascending order, each once, with the first of its names.
    by_iri: Vec<(Box<str>, Box<str>)>,
}

impl Shortener {
    /// Shortens with all prefixes of a database, and the well-known ones.
    pub fn new(prefixes: &Prefixes) -> Self {
        let mut by_iri: Vec<(Box<str>, Box<str>)> = prefixes
            .iter()
            .map(|(name, iri, _)| (iri.into(), name.into()))
            .collect();
        by_iri.sort_unstable();
        by_iri.dedup_by(|later, first| later.0 == first.0);
        Self { by_iri }
    }

    /// The number of the prefix with the longest IRI that an IRI begins with, and the rest of it,
    /// if that may stand behind a prefix.
    pub fn shorten<'i>(&self, iri: &'i str) -> Option<(usize, &'i str)> {
        let mut beginning = iri;
        loop {
            let after = self
                .by_iri
                .partition_point(|(known, _)| **known <= *beginning);
            let known = &*self.by_iri.get(after.checked_sub(1)?)?.0;
            if let Some(local) = iri.strip_prefix(known) {
                return is_local_name(local).then_some((after - 1, local));
            }
            // Whatever else it begins with, is no longer than what it has in common with this one.
            let common = beginning
                .bytes()
                .zip(known.bytes())
                .take_while(|(one, other)| one == other)
                .count();
            let mut end = common.min(beginning.len());
            while !beginning.is_char_boundary(end) {
                end -= 1;
            }
            if end == 0 {
                return None;
            }
            beginning = &beginning[..end];
        }
    }

    /// Name and IRI of a prefix by its number.
    pub fn prefix(&self, number: usize) -> (&str, &str) {
        let (iri, name) = &self.by_iri[number];
        (name, iri)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_iri.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_iri.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tables_are_in_order_and_usable() {
        for table in [&WELL_KNOWN[..], &OFTEN_MEANT[..]] {
            assert!(table.is_sorted());
            for (name, iri) in table {
                assert!(is_prefix_name(name) && is_prefix_iri(iri), "{name}");
            }
        }
        assert_eq!(well_known("sh"), Some("http://www.w3.org/ns/shacl#"));
        assert_eq!(well_known("dct"), None);
        assert_eq!(probably_meant("dct"), well_known("dcterms"));
    }

    #[test]
    fn a_loaded_prefix_never_changes_what_is_known() {
        let mut prefixes = Prefixes::default();
        assert!(prefixes.note_loaded("ex", "http://a/"));
        assert!(!prefixes.note_loaded("ex", "http://b/"));
        assert!(!prefixes.note_loaded("schema", "https://schema.org/"));
        assert!(!prefixes.note_loaded("1", "http://a/"));
        assert!(!prefixes.note_loaded("relative", "a/"));
        assert_eq!(prefixes.iri("ex"), Some("http://a/"));
        assert_eq!(prefixes.iri("schema"), Some("http://schema.org/"));
        for number in 0..2 * PREFIXES_MAX {
            prefixes.note_loaded(&format!("p{number}"), "http://a/");
        }
        assert_eq!(prefixes.own().count(), PREFIXES_MAX);
        assert_eq!(
            prefixes.give("more", "http://a/", false),
            Err(PrefixError::TooMany)
        );
        // A well-known one needs a place as soon as it is given.
        assert_eq!(
            prefixes.give("schema", "https://schema.org/", true),
            Err(PrefixError::TooMany)
        );
        assert_eq!(
            prefixes.give("schema", "http://schema.org/", true),
            Ok(false)
        );
        assert_eq!(prefixes.give("p1", "http://b/", true), Ok(true));
        assert_eq!(prefixes.iri("p1"), Some("http://b/"));
    }

    #[test]
    fn another_iri_is_given_on_purpose_only() {
        let mut prefixes = Prefixes::default();
        assert_eq!(prefixes.give("ex", "http://a/", false), Ok(true));
        assert_eq!(prefixes.give("ex", "http://a/", false), Ok(false));
        assert!(prefixes.give("ex", "http://b/", false).is_err());
        assert!(
            prefixes
                .give("schema", "https://schema.org/", false)
                .is_err()
        );
        assert_eq!(
            prefixes.give("schema", "https://schema.org/", true),
            Ok(true)
        );
        assert_eq!(prefixes.iri("schema"), Some("https://schema.org/"));
        assert_eq!(prefixes.remove("schema"), Ok(()));
        assert_eq!(prefixes.iri("schema"), Some("http://schema.org/"));
        assert!(prefixes.remove("schema").is_err());
        assert!(prefixes.remove("none").is_err());
        for iri in ["", "e", "e/", "http://e/ x", "http://[x/", "http://e/%zz#"] {
            let refused = prefixes.give("wrong", iri, true);
            assert_eq!(refused, Err(PrefixError::Iri(iri.to_owned())));
        }
    }

    #[test]
    fn changes_lead_from_one_state_to_the_next() {
        let mut before = Prefixes::default();
        before.note_loaded("a", "http://a/");
        before.note_loaded("b", "http://b/");
        let mut after = before.clone();
        after.remove("a").unwrap();
        after.give("b", "http://b/", false).unwrap();
        after.note_loaded("c", "http://c/");
        let changes = after.changes_since(&before);
        assert_eq!(changes.len(), 3);
        changes.iter().for_each(|change| before.apply(change));
        assert_eq!(before, after);
        assert_eq!(after.own().collect::<Prefixes>(), after);
    }

    #[test]
    fn the_longest_iri_that_fits_shortens() {
        let mut prefixes = Prefixes::default();
        for (name, iri) in [
            ("a", "http://e/"),
            ("b", "http://e/x/"),
            ("c", "http://e/x/y#"),
            ("d", "http://e/x/yy"),
        ] {
            prefixes.note_loaded(name, iri);
        }
        let shortener = Shortener::new(&prefixes);
        let short = |iri| {
            let (number, local) = shortener.shorten(iri)?;
            Some(format!("{}:{local}", shortener.prefix(number).0))
        };
        assert_eq!(short("http://e/x/y#z").as_deref(), Some("c:z"));
        assert_eq!(short("http://e/x/y").as_deref(), Some("b:y"));
        assert_eq!(short("http://e/x/zz").as_deref(), Some("b:zz"));
        assert_eq!(short("http://e/w").as_deref(), Some("a:w"));
        assert_eq!(short("http://e/").as_deref(), Some("a:"));
        // What may not stand there is written in full, not with a shorter IRI.
        assert_eq!(short("http://e/x/y/z"), None);
        assert_eq!(short("http://f/"), None);
        assert_eq!(short(""), None);
        assert_eq!(short("é"), None);
    }

    #[test]
    fn the_shortener_is_made_once_until_the_table_changes() {
        let mut prefixes = Prefixes::default();
        let first = prefixes.shortener();
        assert!(Arc::ptr_eq(&first, &prefixes.shortener()));
        let short = |prefixes: &Prefixes| {
            let shortener = prefixes.shortener();
            let (number, _) = shortener.shorten("http://e/a")?;
            Some(shortener.prefix(number).0.to_owned())
        };
        assert_eq!(short(&prefixes), None);
        prefixes.note_loaded("a", "http://e/");
        assert_eq!(short(&prefixes).as_deref(), Some("a"));
        let mut copy = prefixes.clone();
        assert_eq!(copy, prefixes);
        copy.give("a", "http://f/", true).unwrap();
        assert_eq!(short(&copy), None);
        assert_eq!(short(&prefixes).as_deref(), Some("a"));
        prefixes.remove("a").unwrap();
        assert_eq!(short(&prefixes), None);
    }

    #[test]
    fn local_names_are_those_of_the_grammar() {
        for name in [
            "", "a", "1", "_", ":", "a.b", "a-b", "a:b", "%20", "é", "a\u{B7}",
        ] {
            assert!(is_local_name(name), "{name}");
        }
        for name in [
            ".", "-", "a.", "a/b", "a b", "%2", "%", "a#b", "~", "a,b", "\u{B7}", "a\u{D7}",
        ] {
            assert!(!is_local_name(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn the_walk_finds_what_a_look_at_all_finds(
            iris in proptest::collection::vec("[ab/]{0,4}", 0..12),
            rest in "[ab/]{0,6}",
        ) {
            let mut prefixes = Prefixes::default();
            for (number, iri) in iris.iter().enumerate() {
                prefixes.note_loaded(&format!("p{number}"), &format!("x:{iri}"));
            }
            let iri = format!("x:{rest}");
            let shortener = Shortener::new(&prefixes);
            let longest = prefixes
                .iter()
                .filter(|(_, known, _)| iri.starts_with(known))
                .max_by_key(|(_, known, _)| known.len())
                .map(|(_, known, _)| &iri[known.len()..])
                .filter(|local| is_local_name(local));
            prop_assert_eq!(shortener.shorten(&iri).map(|(_, local)| local), longest);
        }
    }
}
