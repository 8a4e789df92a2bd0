//! Cost paths of storage: permutations, dictionary, deltas, log, and the loader's parser.

use std::path::Path;
use std::sync::Arc;

use orrery_loader::{DocumentBounds, Format, read_document};
use orrery_storage::io::LocalFileSystem;
use orrery_storage::log::{Keys, LogHeader, LogRecord, LogWriter};
use orrery_storage::{DeltaEntry, DeltaIndex, Permutation, ReadView};
use orrery_term::{LanguageTags, Term, TermId, write_key};

use super::Fixture;
use super::columns::{ensure, scrambled};
use super::path::CostPath;
use crate::Error;

const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
const PRODUCT_FEATURE: &str =
    "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/productFeature";
/// How much one run of a path does: enough to show above the call, little enough to be quick under
/// valgrind.
const LOOK_UPS: u64 = 200;
const TERMS: usize = 500;
const LOGGED_QUADS: u64 = 100;
const PARSED_BYTES: usize = 64 << 10;
const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// One row in so many is deleted, and another has a neighbour inserted.
const ROWS_PER_CHANGE: usize = 100;

pub(super) fn paths(fixture: &Fixture) -> Result<Vec<CostPath<'_>>, Error> {
    let mut paths = index_paths(fixture)?;
    paths.extend(dictionary_paths(fixture)?);
    paths.push(log_path(&fixture.directory)?);
    let mut text = fixture.text()?;
    text.truncate(PARSED_BYTES);
    text.truncate(
        text.iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1),
    );
    paths.push(CostPath::new("read N-Triples, 64 KiB", move || {
        let input = std::io::Cursor::new(text.clone());
        let bounds = DocumentBounds {
            memory_bytes: DOCUMENT_BYTES_MAX,
            hold: &mut |_| true,
            waiting: None,
        };
        let document = read_document(input, "data.nt", Format::NTriples, None, bounds);
        let document = document.map_err(|error| Error::Syntax(error.to_string()))?;
        ensure(document.quads().next().is_some(), "a document is empty")
    }));
    Ok(paths)
}

fn index_paths(fixture: &Fixture) -> Result<Vec<CostPath<'_>>, Error> {
    let snapshot = fixture.snapshot();
    let find = |iri: &str| -> Result<TermId, Error> {
        let id = snapshot.term_id(&Term::iri(iri))?;
        id.ok_or_else(|| Error::Syntax(format!("<{iri}> is not in the data")))
    };
    let (label, feature) = (find(LABEL)?, find(PRODUCT_FEATURE)?);
    let base = ReadView::of_process(Arc::clone(&snapshot)).index(Permutation::Psog);
    let base = base.ok_or_else(|| Error::Syntax("there is no PSOG".to_owned()))?;
    let range = base.range(&[feature])?;
    let mut subjects = Vec::new();
    let mut cursor = base.cursor();
    cursor.read(range, 1, &mut subjects)?;
    subjects.dedup();
    let subjects: Arc<[u64]> = subjects.into();
    let mut rows = Vec::new();
    for row in (range.start..range.end).step_by(ROWS_PER_CHANGE) {
        rows.extend(cursor.row(row)?);
    }
    let changed = DeltaIndex::new(Permutation::Psog).apply(&changes(&rows))?;
    let changed = base.with_changes(changed)?;

    let counted = base.clone();
    let mut paths = vec![CostPath::new("index range count", move || {
        let rows = counted.range(&[label])?.len() + counted.range(&[feature])?.len();
        ensure(rows > 0, "ranges are empty")
    })];
    let names = [
        ("index look-ups, random", "index scan", base),
        (
            "index look-ups, random, changes",
            "index scan, changes",
            changed,
        ),
    ];
    for (look_ups, scan, index) in names {
        let (searched, subjects) = (index.clone(), Arc::clone(&subjects));
        let mut objects = Vec::new();
        paths.push(CostPath::new(look_ups, move || {
            objects.clear();
            let mut cursor = searched.cursor();
            for n in 0..LOOK_UPS {
                let subject = subjects[scrambled(n) as usize % subjects.len()];
                let range = cursor.seek(&[feature, TermId::from_bits(subject)])?;
                cursor.read(range, 2, &mut objects)?;
            }
            ensure(objects.len() as u64 >= LOOK_UPS, "look-ups found nothing")
        }));
        let mut objects = Vec::new();
        paths.push(CostPath::new(scan, move || {
            objects.clear();
            let mut cursor = index.cursor();
            let range = cursor.seek(&[feature])?;
            cursor.read(range, 2, &mut objects)?;
            ensure(objects.len() as u64 == range.len(), "a scan is incomplete")
        }));
    }
    Ok(paths)
}

/// By turns a row deleted, and one inserted behind it.
fn changes(rows: &[[u64; 4]]) -> Vec<DeltaEntry> {
    let numbered = rows.iter().enumerate();
    numbered
        .map(|(number, &[p, s, o, g])| match number % 2 == 0 {
            true => DeltaEntry {
                row: [p, s, o, g],
                is_insertion: false,
            },
            false => DeltaEntry {
                row: [p, s, TermId::delta(number as u64).bits(), g],
                is_insertion: true,
            },
        })
        .collect()
}

fn dictionary_paths(fixture: &Fixture) -> Result<Vec<CostPath<'_>>, Error> {
    let snapshot = fixture.snapshot();
    let count = snapshot.dictionary().len();
    let mut ranks: Vec<u64> = (0..TERMS as u64).map(|n| scrambled(n) % count).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    snapshot
        .dictionary()
        .keys(&ranks, |_, key| keys.push(key.to_vec()))?;
    let found = Arc::clone(&snapshot);
    let mut key = Vec::new();
    let product = Term::iri(fixture.product.clone());
    Ok(vec![
        CostPath::new("dictionary find", move || {
            key.clear();
            write_key(&product, &mut key);
            let is_there = found.dictionary().find(&key)?.is_some();
            for key in &keys {
                ensure(
                    found.dictionary().find(key)?.is_some(),
                    "a term was not found",
                )?;
            }
            ensure(is_there, "the product was not found")
        }),
        CostPath::new("dictionary decode, batch", move || {
            let mut bytes = 0;
            snapshot
                .dictionary()
                .keys(&ranks, |_, key| bytes += key.len())?;
            ensure(bytes > 0, "nothing was decoded")
        }),
    ])
}

fn log_path<'f>(directory: &Path) -> Result<CostPath<'f>, Error> {
    let path = directory.join("costs.log");
    // Of an earlier run, if any.
    let _ = std::fs::remove_file(&path);
    let header = LogHeader {
        base_segment: "segment".to_owned(),
        base_generation: 1,
        first_commit: 1,
    };
    let log = LogWriter::create(&LocalFileSystem, &path, &header)?;
    let quad = |n: u64| {
        let graph = TermId::DEFAULT_GRAPH;
        [
            TermId::iri(n / 10),
            TermId::iri(n % 10),
            TermId::iri(scrambled(n) % 1000),
            graph,
        ]
    };
    let record = LogRecord {
        commit: 1,
        time_micros: 0,
        who: "costs".to_owned(),
        next_blank_node: 1,
        first_new_term: 0,
        new_terms: (0..LOGGED_QUADS)
            .map(|n| format!("Ihttp://example.com/{n}"))
            .collect::<Keys>(),
        insertions: (0..LOGGED_QUADS).map(quad).collect(),
        deletions: Vec::new(),
        cleared: None,
        language_tags: LanguageTags::default(),
        prefixes: Vec::new(),
        tables: Vec::new(),
    };
    Ok(CostPath::new("log append, 100 quads", move || {
        let appended = log.append(&record)?;
        ensure(appended.end > appended.start, "nothing was appended")
    }))
}
