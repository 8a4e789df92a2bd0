//! Tests of written solutions: the same bytes by several threads as from terms.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::common::Fixture;
use orrery_sparql::{EngineOptions, SolutionWriter, WrittenCells};
use orrery_term::Term;

/// Rows as lines; notes who writes them, and how much was written.
#[derive(Default)]
struct Lines {
    threads: Mutex<BTreeSet<String>>,
    bytes: AtomicUsize,
}

fn name_of(thread: ThreadId) -> String {
    format!("{thread:?}")
}

impl SolutionWriter for Lines {
    fn write_term(&self, term: &Term<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(term.to_string().as_bytes());
    }

    fn write_rows(
        &self,
        cells: &WrittenCells,
        rows: Range<usize>,
        is_first: bool,
        out: &mut Vec<u8>,
    ) {
        let thread = name_of(thread::current().id());
        let threads = self.threads.lock();
        threads
            .unwrap_or_else(PoisonError::into_inner)
            .insert(thread);
        let (first, before) = (rows.start, out.len());
        for row in rows {
            if !(is_first && row == first) {
                out.push(b'\n');
            }
            for column in 0..cells.columns() {
                out.push(b'|');
                out.extend_from_slice(cells.cell(row, column).unwrap_or(b"-"));
            }
        }
        self.bytes.fetch_add(out.len() - before, Relaxed);
    }
}

fn line(terms: &[Option<&Term<'_>>], out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b'\n');
    }
    for term in terms {
        let term = term.map_or_else(|| "-".to_owned(), ToString::to_string);
        out.extend_from_slice(format!("|{term}").as_bytes());
    }
}

fn data(subjects: usize) -> String {
    let mut trig = String::from("@prefix : <http://example.org/> .\n");
    for number in 0..subjects {
        let object = number * 7919 % subjects;
        let _ = writeln!(trig, ":s{number} :p :s{object} ; :n {} .", number % 10);
        if number % 3 == 0 {
            let _ = writeln!(trig, ":s{number} :label \"{number}\"@en-GB .");
        }
    }
    trig
}

const QUERY: &str = "PREFIX : <http://example.org/>
SELECT ?s ?o ?never ?n ?label { ?s :p ?o ; :n ?n OPTIONAL { ?s :label ?label } } ORDER BY ?s";

#[test]
fn long_answers_are_written_by_several_threads_in_their_order() {
    let options = EngineOptions {
        threads: 4,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&data(30_000), options);
    let writer = Arc::new(Lines::default());
    let [from_terms, written] = fixture.written_both_ways(QUERY, &writer, line).unwrap();
    assert_eq!(
        from_terms.iter().filter(|byte| **byte == b'\n').count(),
        29_999
    );
    assert!(from_terms == written, "other bytes");
    let mut threads = writer.threads.lock().unwrap().clone();
    assert!(
        threads.remove(&name_of(thread::current().id())),
        "the first slices"
    );
    assert!(!threads.is_empty(), "nobody else wrote");
}

/// The same terms again and again in no order are kept from slice to slice.
#[test]
fn terms_that_come_again_are_written_as_they_are() {
    let mut data = String::from("@prefix : <http://example.org/> .\n");
    for number in 0..40_000 {
        let _ = writeln!(data, ":s{number} :p :o{} .", number * 7919 % 2_503);
    }
    for threads in [1, 4] {
        let options = EngineOptions {
            threads,
            ..EngineOptions::default()
        };
        let fixture = Fixture::with_options(&data, options);
        let writer = Arc::new(Lines::default());
        let query = "PREFIX : <http://example.org/> SELECT ?s ?o ?s2 { ?s :p ?o OPTIONAL { ?o :p ?s2 } } ORDER BY ?s";
        let [from_terms, written] = fixture.written_both_ways(query, &writer, line).unwrap();
        assert!(from_terms == written, "other bytes");
    }
}

#[test]
fn small_answers_and_those_of_one_thread_are_written_where_they_are_polled() {
    for (subjects, threads) in [(0, 4), (1, 4), (700, 4), (30_000, 1)] {
        let options = EngineOptions {
            threads,
            ..EngineOptions::default()
        };
        let fixture = Fixture::with_options(&data(subjects), options);
        let writer = Arc::new(Lines::default());
        let [from_terms, written] = fixture.written_both_ways(QUERY, &writer, line).unwrap();
        assert!(from_terms == written, "other bytes");
        let threads = writer.threads.lock().unwrap().clone();
        let here = BTreeSet::from([name_of(thread::current().id())]);
        assert_eq!(threads.is_empty(), subjects == 0);
        assert!(threads.is_subset(&here));
    }
}

#[test]
fn rows_that_repeat_a_long_text_are_put_together_as_they_are_taken() {
    let text = "long".repeat(20_000);
    let data = format!("{} <http://example.org/doc> :text '{text}' .", data(3_000));
    let options = EngineOptions {
        threads: 4,
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(&data, options);
    let writer = Arc::new(Lines::default());
    let query = "PREFIX : <http://example.org/> SELECT ?t ?n { :doc :text ?t . ?s :n ?n }";
    let (mut taken, mut ahead) = (0, 0);
    let [from_terms, written] = fixture
        .written_piece_by_piece(query, &writer, line, |bytes| {
            taken += bytes;
            ahead = ahead.max(writer.bytes.load(Relaxed) - taken);
        })
        .unwrap();
    assert!(from_terms == written, "other bytes");
    assert!(taken > 3_000 * text.len());
    assert!(ahead < 32 << 20, "{ahead} bytes were written and waited");
}
