//! The quads that the tests write, and what a database should hold after each commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};

use orrery_storage::io::{Clock, FileSystem};
use orrery_storage::{
    Database, ReadView, Result, Retention, SmallQuad, Snapshot, Transaction, WriterOptions,
};
use orrery_term::{Term, TermId};

/// Where the database is on its disk.
pub(crate) const DIRECTORY: &str = "/db";

/// How many different quads there are.
pub(crate) const QUADS: u32 = 300;

/// The quads of a state, by number.
pub(crate) type State = BTreeSet<u32>;

static ALL: LazyLock<BTreeMap<SmallQuad, u32>> =
    LazyLock::new(|| (0..QUADS).map(|number| (quad(number), number)).collect());

fn iri(text: String) -> Term<'static> {
    Term::iri(format!("http://example.org/{text}"))
}

/// Quads with terms of every kind: inside the id, short and long, in the default graph and in others.
pub(crate) fn quad(number: u32) -> SmallQuad {
    let object = match number % 5 {
        0 => Term::string(format!(
            "a text that is too long for an id, number {number}"
        )),
        1 => Term::typed(
            number.to_string(),
            "http://www.w3.org/2001/XMLSchema#integer",
        ),
        2 => Term::language(format!("ein Text mit der Nummer {number}"), "de"),
        3 => iri(format!("object/{}", number / 7)),
        _ => Term::string("long ".repeat(1 + number as usize * 5)),
    };
    let graph = (number % 4 == 3).then(|| iri(format!("graph/{}", number % 3)));
    let subject = iri(format!("subject/{}", number / 6));
    (
        subject,
        iri(format!("predicate/{}", number % 6)),
        object,
        graph,
    )
}

/// The same as a line of N-Quads.
pub(crate) fn line(number: u32) -> String {
    let (subject, predicate, object, graph) = quad(number);
    let graph = graph.map_or(String::new(), |graph| format!(" {graph}"));
    format!("{subject} {predicate} {object}{graph} .\n")
}

/// The ids of quads within a transaction.
pub(crate) fn rows(
    transaction: &mut Transaction,
    numbers: impl IntoIterator<Item = u32>,
) -> Result<Vec<[TermId; 4]>> {
    numbers
        .into_iter()
        .map(|number| {
            let (subject, predicate, object, graph) = quad(number);
            Ok([
                transaction.intern(&subject)?,
                transaction.intern(&predicate)?,
                transaction.intern(&object)?,
                match graph {
                    Some(graph) => transaction.intern(&graph)?,
                    None => TermId::DEFAULT_GRAPH,
                },
            ])
        })
        .collect()
}

/// All quads of a snapshot, by number.
pub(crate) fn content(snapshot: &Arc<Snapshot>) -> Result<State> {
    let mut state = State::new();
    let view = ReadView::of_process(Arc::clone(snapshot));
    let mut quads = view.quads()?;
    while let Some(batch) = quads.next_batch()? {
        for quad in batch.iter() {
            let owned: SmallQuad = (
                quad.subject.clone(),
                quad.predicate.clone(),
                quad.object.into_owned().into_owned(),
                quad.graph.cloned(),
            );
            let number = ALL.get(&owned);
            let number = number.unwrap_or_else(|| panic!("nobody wrote {owned:?}"));
            assert!(state.insert(*number), "{owned:?} is there twice");
        }
    }
    assert_eq!(state.len() as u64, view.quad_count());
    Ok(state)
}

/// Opens the database for reading.
pub(crate) fn open(file_system: &Arc<dyn FileSystem>) -> Result<Arc<Database>> {
    let opened = Database::open_with(Arc::clone(file_system), Path::new(DIRECTORY));
    opened.map(Arc::new)
}

/// Goes on by a second with each look at it.
#[derive(Debug)]
struct SteppingClock(AtomicI64);

impl Clock for SteppingClock {
    fn now_us(&self) -> i64 {
        self.0.fetch_add(1_000_000, Ordering::Relaxed)
    }
}

/// A writer's settings that depend on nothing outside.
pub(crate) fn options() -> WriterOptions {
    WriterOptions {
        // Later than what the machine's clock says, and after all that was committed before.
        clock: Arc::new(SteppingClock(AtomicI64::new(1 << 52))),
        // So few that most workloads give up some.
        retention: Retention {
            commits_max: 12,
            ..Retention::default()
        },
        // Both ways of clearing a graph.
        whole_graph_quads: 12,
        ..WriterOptions::default()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same sequence for the same seed, for ever.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Some quads near each other, so that insertions and deletions meet.
    pub(crate) fn numbers(&mut self, count_max: usize) -> Vec<u32> {
        let count = 1 + self.below(count_max);
        let start = self.below(QUADS as usize);
        let numbers = (0..count).map(|_| (start + self.below(40)) as u32 % QUADS);
        numbers.collect()
    }
}
