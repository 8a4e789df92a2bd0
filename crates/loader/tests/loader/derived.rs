//! Tests of a derived index over compactions and loads: its ids stay right.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use orrery_loader::{
    CompactOptions, Format, LoadOptions, SilentProgress, Source, compact, load_into,
};
use orrery_storage::{
    BaseChange, CommitOptions, Database, DerivedIndex, Snapshot, Writer, WriterOptions,
};
use orrery_term::{Term, TermId};

/// A toy index of texts: the ids of literals by the words in them, over one base.
#[derive(Debug, Default)]
struct Words(Mutex<Postings>);

#[derive(Debug, Default)]
struct Postings {
    base: String,
    by_word: BTreeMap<String, BTreeSet<TermId>>,
    bases_seen: usize,
}

impl Words {
    /// An index over a state, which hears of the bases that come.
    fn over(database: &Database) -> Arc<Self> {
        let words = Arc::new(Self::default());
        words.0.lock().unwrap().base = database.snapshot().base_name().to_owned();
        let derived = Arc::downgrade(&words);
        assert!(database.derive(derived));
        words
    }

    fn add(&self, text: &str, id: TermId) {
        let mut postings = self.0.lock().unwrap();
        for word in text.split(' ') {
            let ids = postings.by_word.entry(word.to_owned()).or_default();
            ids.insert(id);
        }
    }

    /// The texts with a word, by the ids that the index has.
    fn texts(&self, word: &str, snapshot: &Snapshot) -> BTreeSet<String> {
        let postings = self.0.lock().unwrap();
        assert_eq!(postings.base, snapshot.base_name());
        let ids = postings.by_word.get(word).into_iter().flatten();
        ids.map(|&id| match snapshot.term(id).unwrap() {
            Term::Literal(literal) => literal.lexical.into_owned(),
            other => panic!("{other} is no literal"),
        })
        .collect()
    }
}

impl DerivedIndex for Words {
    fn base_changed(&self, change: &mut BaseChange) {
        let mut listed = BTreeMap::new();
        let mut last = None;
        change
            .for_each_id(|old, new| {
                assert!(Some(old) > last.replace(old), "the old ids ascend");
                listed.insert(old, new);
                Ok(())
            })
            .unwrap();
        let mut postings = self.0.lock().unwrap();
        assert_eq!(postings.base, change.old().base_name());
        for ids in postings.by_word.values_mut() {
            let of_base: Vec<TermId> = ids
                .iter()
                .copied()
                .filter(|id| id.is_dictionary())
                .collect();
            let translated = of_base.iter().filter_map(|&id| change.id(id).unwrap());
            assert!(translated.is_sorted(), "an ascending list ascends");
            for id in of_base {
                assert_eq!(change.id(id).unwrap(), listed.get(&id).copied());
            }
            *ids = ids
                .iter()
                .filter_map(|&id| change.id(id).unwrap())
                .collect();
        }
        postings.base = change.new_state().base_name().to_owned();
        postings.bases_seen += 1;
    }
}

/// Long enough for the dictionary.
fn text(number: usize) -> String {
    format!(
        "{} text number {number} of some length",
        ["an old", "a new"][number % 2]
    )
}

/// Inserts texts, and deletes others; enters those that are new into the index.
fn turn(writer: &Writer, words: &Words, inserted: &[usize], deleted: &[usize]) {
    let mut transaction = writer.begin().unwrap();
    for (numbers, is_insertion) in [(inserted, true), (deleted, false)] {
        let mut rows = Vec::new();
        for &number in numbers {
            let subject = transaction
                .intern(&Term::iri(format!("http://e/{number}")))
                .unwrap();
            let predicate = transaction.intern(&Term::iri("http://e/text")).unwrap();
            let object = transaction.intern(&Term::string(text(number))).unwrap();
            rows.push([subject, predicate, object, TermId::DEFAULT_GRAPH]);
            if is_insertion {
                words.add(&text(number), object);
            }
        }
        let count = rows.len() as u64;
        let changed = match is_insertion {
            true => transaction.insert(&mut rows).unwrap(),
            false => transaction.delete(&mut rows).unwrap(),
        };
        assert_eq!(changed, count);
    }
    let committed = transaction.commit(CommitOptions::default()).unwrap();
    committed.wait().unwrap();
}

/// What the index must say right after a base was written: all texts that are there, and no others.
fn assert_right(words: &Words, snapshot: &Snapshot, numbers: &BTreeSet<usize>) {
    let all: BTreeSet<String> = numbers.iter().map(|&number| text(number)).collect();
    let mut known: BTreeSet<String> = all
        .iter()
        .flat_map(|text| text.split(' '))
        .map(str::to_owned)
        .collect();
    known.insert("never".to_owned());
    for word in known {
        let expected: BTreeSet<String> = all
            .iter()
            .filter(|text| text.split(' ').any(|found| found == word))
            .cloned()
            .collect();
        assert_eq!(words.texts(&word, snapshot), expected, "{word}");
    }
}

fn compacted(writer: &Writer, directory: &Path) {
    let options = CompactOptions {
        memory_bytes: 64 << 20,
        threads: 2,
    };
    compact(writer, &options, &SilentProgress).unwrap();
    assert!(directory.join("MANIFEST").exists());
}

#[test]
fn an_index_of_ids_is_right_after_two_compactions_and_a_load() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let database = Arc::new(Database::create_or_open(&path).unwrap());
    let words = Words::over(&database);
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut numbers: BTreeSet<usize> = (100..160).collect();
    turn(&writer, &words, &(100..160).collect::<Vec<_>>(), &[]);
    let reader = Database::open(&path).unwrap();
    let words_of_reader = Words::over(&reader);
    for number in &numbers {
        let id = reader
            .snapshot()
            .term_id(&Term::string(text(*number)))
            .unwrap();
        words_of_reader.add(&text(*number), id.unwrap());
    }
    compacted(&writer, &path);
    assert_right(&words, &database.snapshot(), &numbers);
    assert!(reader.refresh().unwrap());
    assert_right(&words_of_reader, &reader.snapshot(), &numbers);

    // Terms before, between and behind those of the base; some of the base are gone, one of them
    // comes again.
    let inserted: Vec<usize> = (10..40).chain(300..330).collect();
    let deleted: Vec<usize> = (100..160).step_by(3).collect();
    turn(&writer, &words, &inserted, &deleted);
    turn(&writer, &words, &[103], &[]);
    numbers.extend(inserted);
    numbers.retain(|number| !deleted.contains(number));
    numbers.insert(103);
    compacted(&writer, &path);
    assert_right(&words, &database.snapshot(), &numbers);

    // Beside a commit that is carried over, and a load that brings terms which nobody entered.
    turn(&writer, &words, &[7], &[]);
    numbers.insert(7);
    let loaded = directory.path().join("more.nt");
    std::fs::write(
        &loaded,
        "<http://e/a> <http://e/b> \"0 a text that comes first of all\" .\n",
    )
    .unwrap();
    let options = LoadOptions {
        memory_bytes: 64 << 20,
        format: Some(Format::NTriples),
        ..LoadOptions::default()
    };
    load_into(&writer, &[Source::File(loaded)], &options, &SilentProgress).unwrap();
    assert_right(&words, &database.snapshot(), &numbers);
    assert_eq!(words.0.lock().unwrap().bases_seen, 3);
    assert_eq!(words_of_reader.0.lock().unwrap().bases_seen, 1);
}
