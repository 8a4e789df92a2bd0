//! Tests of filtered snapshots over many states, against a filter by name, with their cost.

use proptest::collection::vec;

use super::updates::{open, options};
use super::*;
use crate::quads::statistics::Figures;
use crate::snapshots::shown_states::shown_to;
use crate::{Asker, Durability, GraphNames, ReadScope};

/// The default graph, and named ones: three of one kind and three of another.
const GRAPHS: u8 = 7;

fn graph(number: u8) -> Option<Term<'static>> {
    match number % GRAPHS {
        0 => None,
        number @ 1..=3 => Some(iri(&format!("g{number}"))),
        number => Some(iri(&format!("h{number}"))),
    }
}

fn quad(number: u8, of: u8) -> SmallQuad {
    (
        iri(&format!("s{}", number % 4)),
        iri(&format!("p{}", number % 3)),
        iri(&format!("o{}", number % 12)),
        graph(of),
    )
}

/// Graphs by their bits, and perhaps all of one kind.
fn names(chosen: u8, has_kind: bool) -> GraphNames {
    let mut names = GraphNames::default();
    for number in (0..GRAPHS).filter(|number| chosen & (1 << number) != 0) {
        match graph(number) {
            Some(name) => drop(names.named.insert(name)),
            None => names.has_default = true,
        }
    }
    if has_kind {
        names.below.insert("http://example.org/h".to_owned());
    }
    names
}

fn scope(names: GraphNames) -> ReadScope {
    ReadScope::only(Asker::Anonymous, names)
}

/// Changes of a transaction: number and graph of a quad, and whether it is inserted.
type Changes = Vec<(u8, u8, bool)>;

#[derive(Debug, Clone)]
enum Step {
    Commit(Changes),
    /// Changes are looked at and given up; their ids go to the terms that come next.
    GiveUp(Changes),
    /// A graph is cleared as a whole in a transaction with further changes, which are looked at.
    Clear(u8, Changes),
    Checkpoint,
    /// A state is looked at, perhaps as it is opened anew.
    Look(u8, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let changes = || vec((0..24u8, 0..GRAPHS, any::<bool>()), 1..6);
    let step = prop_oneof![
        4 => changes().prop_map(Step::Commit),
        2 => changes().prop_map(Step::GiveUp),
        1 => (0..GRAPHS, changes()).prop_map(|(graph, changes)| Step::Clear(graph, changes)),
        1 => Just(Step::Checkpoint),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(state, is_anew)| Step::Look(state, is_anew)),
    ];
    vec(step, 1..40)
}

type Model = BTreeSet<SmallQuad>;

/// Makes changes, and looks at them after each.
fn change(transaction: &mut Transaction, changes: &Changes, model: &mut Model, look: &Look) {
    for &(number, of, is_insertion) in changes {
        let quad = quad(number, of);
        let mut id = |term: &Term<'static>| transaction.intern(term).unwrap();
        let ids = [id(&quad.0), id(&quad.1), id(&quad.2)];
        let graph = quad.3.as_ref().map_or(TermId::DEFAULT_GRAPH, id);
        let mut rows = vec![[ids[0], ids[1], ids[2], graph]];
        match is_insertion {
            true => {
                transaction.insert(&mut rows).unwrap();
                model.insert(quad);
            }
            false => {
                transaction.delete(&mut rows).unwrap();
                model.remove(&quad);
            }
        }
        look.at(&transaction.snapshot().unwrap(), model);
    }
}

/// Who looks.
struct Look(Vec<ReadScope>);

impl Look {
    fn at(&self, state: &Arc<Snapshot>, model: &Model) {
        for scope in &self.0 {
            check(state, scope, model);
        }
    }
}

fn check(state: &Arc<Snapshot>, scope: &ReadScope, model: &Model) {
    let view = ReadView::new(Arc::clone(state), scope.clone()).unwrap();
    let seen = model.iter().filter(|quad| scope.sees(quad.3.as_ref()));
    let seen: Model = seen.cloned().collect();
    assert_eq!(view.quad_count(), seen.len() as u64);
    let has_named = seen.iter().any(|quad| quad.3.is_some());
    assert_eq!(view.has_named_graphs(), has_named);
    for index in view.indexes() {
        let permutation = index.permutation();
        let mut cursor = index.cursor();
        let mut rows = Vec::new();
        for row in 0..index.rows() {
            let row = permutation.quad(cursor.row(row).unwrap().unwrap());
            let [subject, predicate, object, graph] = row.map(|id| {
                let id = TermId::from_bits(id);
                (id != TermId::DEFAULT_GRAPH).then(|| view.snapshot().term(id).unwrap())
            });
            rows.push((subject.unwrap(), predicate.unwrap(), object.unwrap(), graph));
        }
        assert_eq!(rows.len(), seen.len(), "{permutation} has rows twice");
        assert_eq!(rows.into_iter().collect::<Model>(), seen, "{permutation}");
        let of_state = view.snapshot().index(permutation).unwrap();
        of_state.verify_deltas().unwrap();
    }
    let Figures::Sampled(figures) = view.figures() else {
        panic!("what was counted among all is told who does not see all");
    };
    // Of so few rows they are exact.
    if seen.len() <= 64 {
        let all = figures.all().unwrap();
        let subjects: BTreeSet<_> = seen.iter().map(|quad| &quad.0).collect();
        let objects: BTreeSet<_> = seen.iter().map(|quad| &quad.2).collect();
        assert_eq!(all.quads, seen.len() as u64);
        assert_eq!(all.distinct_subjects, subjects.len() as u64);
        assert_eq!(all.distinct_objects, objects.len() as u64);
    }
    let predicates: BTreeSet<_> = seen.iter().map(|quad| &quad.1).collect();
    assert_eq!(figures.predicate_count().unwrap(), predicates.len() as u64);
}

fn relaxed() -> CommitOptions {
    CommitOptions {
        durability: Durability::Relaxed,
        ..CommitOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_list_is_shown_what_a_filter_leaves_of_any_state(
        base in vec((0..24u8, 0..GRAPHS), 0..30),
        base_has_graphs in any::<bool>(),
        lists in vec((any::<u8>(), any::<bool>()), 1..4),
        steps in steps(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let of = |graph| if base_has_graphs { graph } else { 0 };
        let mut model: Model = base.iter().map(|&(number, graph)| quad(number, of(graph))).collect();
        let quads: Vec<SmallQuad> = model.iter().cloned().collect();
        drop(build_small(directory.path(), &quads).unwrap());
        let database = Arc::new(Database::open(directory.path()).unwrap());
        let writer = database.open_writer(WriterOptions {
            whole_graph_quads: 2,
            ..options()
        });
        let writer = writer.unwrap();
        let lists = lists.iter().map(|&(chosen, has_kind)| scope(names(chosen, has_kind)));
        let look = Look(lists.collect());
        let mut states = vec![(database.snapshot(), model.clone())];
        for step in &steps {
            match step {
                Step::Commit(changes) => {
                    let mut transaction = writer.begin().unwrap();
                    let nobody = Look(Vec::new());
                    change(&mut transaction, changes, &mut model, &nobody);
                    transaction.commit(relaxed()).unwrap().wait().unwrap();
                    states.push((database.snapshot(), model.clone()));
                }
                Step::GiveUp(changes) => {
                    let mut transaction = writer.begin().unwrap();
                    change(&mut transaction, changes, &mut model.clone(), &look);
                }
                Step::Clear(number, changes) => {
                    let mut transaction = writer.begin().unwrap();
                    let name = graph(*number);
                    let id = match &name {
                        Some(name) => transaction.term_id(name).unwrap(),
                        None => Some(TermId::DEFAULT_GRAPH),
                    };
                    if let Some(id) = id {
                        transaction.clear(&GraphSet::one(id)).unwrap();
                    }
                    model.retain(|quad| quad.3 != name);
                    look.at(&transaction.snapshot().unwrap(), &model);
                    change(&mut transaction, changes, &mut model, &look);
                    transaction.commit(relaxed()).unwrap().wait().unwrap();
                    states.push((database.snapshot(), model.clone()));
                }
                Step::Checkpoint => {
                    writer.checkpoint().unwrap();
                    states.push((database.snapshot(), model.clone()));
                }
                Step::Look(number, is_anew) => {
                    // The newest more often than any other.
                    let place = states.len().saturating_sub(1 + usize::from(*number % 16) / 2);
                    let (state, model) = &states[place];
                    look.at(state, model);
                    if *is_anew {
                        let anew = database.snapshot_at(At::Commit(state.commit())).unwrap();
                        look.at(&anew, model);
                    }
                }
            }
        }
        for (state, model) in states.iter().rev() {
            look.at(state, model);
        }
    }
}

/// A quad with a number of its own.
fn numbered(number: usize, of: u8) -> SmallQuad {
    let object = iri(&format!("object{number}"));
    (
        iri(&format!("s{}", number % 100)),
        iri("p"),
        object,
        graph(of),
    )
}

/// How many chunks of the changes in memory a state has, and how many of these an earlier one has
/// not.
fn chunks(state: &Snapshot, earlier: &Snapshot, permutation: Permutation) -> (usize, usize) {
    let of = |state: &Snapshot| -> Vec<_> {
        let delta = state.deltas().get(permutation).unwrap();
        let chunks = (0..delta.chunk_count()).map(|number| delta.chunk(number).unwrap());
        chunks.collect()
    };
    let (now, before) = (of(state), of(earlier));
    let is_new = |chunk: &&Arc<_>| !before.iter().any(|other| Arc::ptr_eq(chunk, other));
    (now.len(), now.iter().filter(is_new).count())
}

#[test]
fn a_state_costs_a_list_what_was_committed_since_the_last_one() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    // In the files something is hidden, or nothing.
    for (hidden_in_files, shown) in [(Vec::new(), 1), (vec![numbered(1, 2)], 3)] {
        updates::commit(&writer, &[], &hidden_in_files);
        writer.checkpoint().unwrap();
        let many: Vec<_> = (0..20_000).map(|number| numbered(number, shown)).collect();
        updates::commit(&writer, &[], &many);
        updates::commit(&writer, &[], &[numbered(2, 2)]);
        let names = names(1 << shown, false);
        let look = || {
            let scope = scope(names.clone());
            let view = ReadView::new(database.snapshot(), scope).unwrap();
            Arc::clone(view.snapshot())
        };
        let before = look();
        updates::commit(&writer, &[], &[numbered(20_000, shown), numbered(3, 2)]);
        let after = look();
        assert_eq!(after.quad_count(), before.quad_count() + 1);
        for permutation in Permutation::ALL {
            let (all, new) = chunks(&after, &before, permutation);
            assert!(all > 50 && new <= 2, "{permutation}: {new} of {all}");
        }
    }
}

#[test]
fn figures_stay_as_long_as_nothing_changes_that_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    let graphs = Arc::new(names(0b10, false));
    let figures = || {
        let state = database.snapshot();
        shown_to(&graphs, &state).unwrap();
        let list = state.shown_files().find(&graphs).unwrap();
        Arc::clone(&list.last().sampled)
    };
    updates::commit(&writer, &[], &[numbered(0, 1)]);
    let first = figures();
    updates::commit(&writer, &[], &[numbered(1, 2)]);
    assert!(Arc::ptr_eq(&first, &figures()));
    updates::commit(&writer, &[], &[numbered(2, 1)]);
    assert!(!Arc::ptr_eq(&first, &figures()));
}

#[test]
fn lists_of_the_same_graphs_share_a_state_and_none_is_held_by_what_is_shown_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    updates::commit(
        &writer,
        &[],
        &[numbered(0, 0), numbered(1, 1), numbered(2, 2)],
    );
    writer.checkpoint().unwrap();
    updates::commit(
        &writer,
        &[],
        &[numbered(3, 0), numbered(4, 1), numbered(5, 2)],
    );
    let look = |state: &Arc<Snapshot>, chosen| {
        let scope = scope(names(chosen, false));
        let view = ReadView::new(Arc::clone(state), scope).unwrap();
        Arc::clone(view.snapshot())
    };
    let state = database.snapshot();
    // Without some of the files and with all.
    for chosen in [0b11, 0b111] {
        let shown = look(&state, chosen);
        assert!(Arc::ptr_eq(&shown, &look(&state, chosen)));
        assert!(!Arc::ptr_eq(&shown, &look(&state, 0b1)));
    }
    let (old, files) = (Arc::downgrade(&state), Arc::downgrade(state.stored()));
    drop(state);
    updates::commit(&writer, &[], &[numbered(6, 0)]);
    look(&database.snapshot(), 0b11);
    assert!(old.upgrade().is_none());
    assert!(files.upgrade().is_some());
    writer.checkpoint().unwrap();
    look(&database.snapshot(), 0b11);
    assert!(files.upgrade().is_none());
}
