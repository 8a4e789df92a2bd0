//! Tests of random operations, compared after each with sets of quads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use orrery_storage::io::testing::RecordingFileSystem;
use orrery_storage::{Permutation, QuadPosition, ReadView, Snapshot, verify_with};
use orrery_term::{Term, TermId};

use crate::crash::setting;
use crate::crash::workload::Workload;
use crate::crash::world::{DIRECTORY, QUADS, Random, State, content, quad};

const STEPS: usize = 40;
/// Snapshots that readers hold on to while others write.
const HELD: usize = 5;

/// A term of a quad by its position; `None` for the default graph.
fn term(number: u32, position: QuadPosition) -> Option<Term<'static>> {
    let (subject, predicate, object, graph) = quad(number);
    match position {
        QuadPosition::Subject => Some(subject),
        QuadPosition::Predicate => Some(predicate),
        QuadPosition::Object => Some(object),
        QuadPosition::Graph => graph,
    }
}

/// Counts a random pattern in every permutation, by ranges.
fn check_ranges(snapshot: &Arc<Snapshot>, state: &State, random: &mut Random) {
    let like = random.numbers(1)[0];
    let view = ReadView::of_process(Arc::clone(snapshot));
    for index in view.indexes() {
        let permutation: Permutation = index.permutation();
        let positions = permutation.columns();
        let bound = random.below(5);
        let mut prefix = Vec::new();
        for &position in &positions[..bound] {
            let id = match term(like, position) {
                Some(term) => snapshot.term_id(&term).unwrap(),
                None => Some(TermId::DEFAULT_GRAPH),
            };
            let Some(id) = id else { break };
            prefix.push(id);
        }
        let bound = &positions[..prefix.len()];
        let is_like = |&&number: &&u32| {
            if number >= QUADS {
                return false;
            }
            let mut same = bound
                .iter()
                .map(|&place| term(number, place) == term(like, place));
            same.all(|same| same)
        };
        let expected = state.iter().filter(is_like).count() as u64;
        assert_eq!(index.range(&prefix).unwrap().len(), expected);
    }
}

fn run(seed: u64) {
    let disk = RecordingFileSystem::new();
    let mut workload =
        Workload::create(Arc::new(disk.clone()), seed, seed.is_multiple_of(8)).unwrap();
    let mut random = Random(seed ^ 0xABCD);
    let mut held: BTreeMap<u64, Arc<Snapshot>> = BTreeMap::new();
    for number in 0..STEPS {
        let step = workload.step().unwrap();
        let database = &workload.session.as_ref().unwrap().database;
        let snapshot = database.snapshot();
        assert_eq!(&content(&snapshot).unwrap(), workload.state(), "{step:?}");
        check_ranges(&snapshot, workload.state(), &mut random);
        held.insert(snapshot.commit(), snapshot);
        if held.len() > HELD {
            held.pop_first();
        }
        for (commit, old) in &held {
            assert_eq!(content(old).unwrap(), workload.states[commit], "{step:?}");
        }
        let commits: Vec<u64> = workload.states.keys().copied().collect();
        let older = commits[random.below(commits.len())];
        workload.check_older(database, older).unwrap();
        if number.is_multiple_of(8) {
            let damage = verify_with(&disk, Path::new(DIRECTORY), |_| {}).unwrap();
            assert!(damage.is_empty(), "{damage:?}");
        }
    }
    workload.reopen().unwrap();
}

#[test]
fn any_sequence_of_writes_answers_as_plain_sets_do() {
    let runs = setting("ORRERY_MODEL_RUNS", 60) as u64;
    for seed in 0..runs {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
