//! Tests of full-text indexes built with little memory.

use super::*;
use crate::text::{RecentTexts, TextMemory, TextReader, TextRules};
use orrery_full_text::Query;

/// Each with words of its own.
fn texts(numbers: std::ops::Range<u64>) -> Vec<SmallQuad> {
    numbers
        .map(|number| {
            let text = format!(
                "word{number} another{} of a wine, number {number}",
                number * 7
            );
            (
                iri(&format!("s{number}")),
                iri("label"),
                Term::language(text, "en"),
                None,
            )
        })
        .collect()
}

fn found(reader: &TextReader, words: &str) -> usize {
    let query = Query::parse(words).unwrap();
    let mut count = 0;
    reader
        .search(&query, &mut || true, &mut |_, _| count += 1)
        .unwrap();
    count
}

#[test]
fn with_little_memory_an_index_of_texts_has_fewer_threads_and_not_more_parts() {
    const TEXTS: u64 = 30_000;
    let directory = tempfile::tempdir().unwrap();
    let database = build_small(directory.path(), &texts(0..TEXTS)).unwrap();
    for (memory_mib, grams) in [
        (0, false),
        (64, false),
        (64, true),
        (128, true),
        (512, true),
    ] {
        let rules = TextRules {
            grams,
            ..TextRules::default()
        };
        let made = database.set_text_rules(Some(rules), Some(memory_mib << 20));
        let view = ReadView::of_process(made.unwrap());
        let parts = view.snapshot().base().text_parts().unwrap();
        assert!(parts <= 8, "{parts} parts with {memory_mib} MiB");
        let reader = TextReader::new(&view).unwrap().unwrap();
        assert_eq!(reader.documents().unwrap(), (TEXTS, 0));
        assert_eq!(found(&reader, "wine") as u64, TEXTS);
        assert_eq!(found(&reader, "word17"), 1);
    }
}

/// What a server with 256 MiB has for texts in memory, and for adjacencies.
struct Few(u64);

impl TextMemory for Few {
    fn hold(&self, _: &Arc<RecentTexts>, bytes: u64) -> bool {
        bytes <= self.0
    }
}

#[test]
fn texts_that_came_are_searched_with_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(build_small(directory.path(), &texts(0..10)).unwrap());
    database
        .set_text_rules(Some(TextRules::default()), None)
        .unwrap();
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    for part in 0..10 {
        let mut transaction = writer.begin().unwrap();
        let mut quads =
            updates::intern(&mut transaction, &texts(10 + part * 500..510 + part * 500));
        transaction.insert(&mut quads).unwrap();
        let pending = transaction.commit(CommitOptions::default()).unwrap();
        pending.wait().unwrap();
        let view = ReadView::of_process(database.snapshot());
        let reader = TextReader::within(&view, &Few(32 << 20)).unwrap().unwrap();
        assert_eq!(found(&reader, "wine") as u64, 510 + part * 500);
    }
}
