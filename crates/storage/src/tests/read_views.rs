//! Tests of read views: a scope reads as if the database held nothing else.

use super::updates::commit;
use super::*;
use crate::quads::statistics::Figures;
use crate::{Asker, GraphNames, ReadScope};

/// The default graph, two named ones, and a graph that there is not.
fn graphs() -> [Option<Term<'static>>; 4] {
    [None, Some(iri("g1")), Some(iri("g2")), Some(iri("g9"))]
}

fn quad(number: usize, graph: &Option<Term<'static>>) -> SmallQuad {
    (
        iri(&format!("s{}", number % 7)),
        iri(&format!("p{}", number % 3)),
        iri(&format!("o{number}")),
        graph.clone(),
    )
}

fn scope_of(chosen: usize) -> ReadScope {
    let mut names = GraphNames::default();
    for (number, graph) in graphs().into_iter().enumerate() {
        if chosen & (1 << number) == 0 {
            continue;
        }
        match graph {
            Some(name) => {
                names.named.insert(name);
            }
            None => names.has_default = true,
        }
    }
    ReadScope::only(Asker::Anonymous, names)
}

/// Counts of all prefixes of the rows, in every permutation.
fn counts(view: &Arc<ReadView>) -> BTreeSet<(Permutation, Vec<Option<Term<'static>>>, u64)> {
    let mut counts = BTreeSet::new();
    for index in view.indexes() {
        let mut cursor = index.cursor();
        for row in 0..index.rows() {
            let row = cursor.row(row).unwrap().unwrap().map(TermId::from_bits);
            for columns in 1..=row.len() {
                let prefix = &row[..columns];
                let term = |&id: &TermId| {
                    (id != TermId::DEFAULT_GRAPH).then(|| view.snapshot().term(id).unwrap())
                };
                let count = index.range(prefix).unwrap().len();
                let names = prefix.iter().map(term).collect();
                counts.insert((index.permutation(), names, count));
            }
        }
    }
    counts
}

#[test]
fn a_view_of_some_graphs_is_that_of_a_database_with_nothing_else() {
    let (directory, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [default, first, second, _] = graphs();
    let of = |numbers: std::ops::Range<usize>, graph: &Option<Term<'static>>| -> Vec<SmallQuad> {
        numbers.map(|number| quad(number, graph)).collect()
    };
    // Some in the base, some flushed, some in memory; some of the base deleted.
    let base = [of(0..40, &default), of(20..60, &first), of(30..50, &second)].concat();
    drop(build_small(directory.path(), &base).unwrap());
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    commit(&writer, &of(0..5, &default), &of(60..80, &second));
    writer.checkpoint().unwrap();
    commit(&writer, &of(25..30, &first), &of(80..90, &first));
    let whole = dump(&database.snapshot()).unwrap();
    assert_eq!(whole.len(), 40 + 40 + 20 - 5 + 20 - 5 + 10);

    for chosen in 0..16 {
        let scope = scope_of(chosen);
        let seen: Vec<SmallQuad> = whole
            .iter()
            .filter(|quad| scope.sees(quad.3.as_ref()))
            .cloned()
            .collect();
        let alone = build_small(others.path().join(chosen.to_string()), &seen).unwrap();
        let alone = alone.view_of_process();
        let view = ReadView::new(database.snapshot(), scope.clone()).unwrap();
        assert_eq!(view.scope(), &scope);
        assert_eq!(view.quad_count(), seen.len() as u64);
        assert_eq!(counts(&view), counts(&alone), "{chosen:b}");

        let mut quads = view.quads().unwrap();
        let mut dumped = 0;
        while let Some(batch) = quads.next_batch().unwrap() {
            assert!(batch.iter().all(|quad| scope.sees(quad.graph)));
            dumped += batch.len();
        }
        assert_eq!(dumped, seen.len());

        // The changes tell no more.
        let mut told = 0;
        database
            .changes(&scope, database.snapshot().commit() - 2, |changes| {
                let mut see = |quad: QuadRef<'_>| {
                    assert!(scope.sees(quad.graph));
                    told += 1;
                    Ok(())
                };
                changes.removed(&mut see)?;
                changes.added(&mut see)
            })
            .unwrap();
        let sees = |graph: &Option<Term<'static>>| usize::from(scope.sees(graph.as_ref()));
        assert_eq!(
            told,
            5 * sees(&default) + 20 * sees(&second) + 15 * sees(&first)
        );
    }
}

#[test]
fn what_is_read_through_a_view_is_counted_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let quads: Vec<SmallQuad> = (0..100).map(|number| quad(number, &None)).collect();
    let database = build_small(directory.path(), &quads).unwrap();
    let view = database.view_of_process();
    let spog = view.index(Permutation::Spog).unwrap();
    let mut cursor = spog.cursor();
    let id = view.snapshot().term_id(&iri("s3")).unwrap().unwrap();
    let range = cursor.seek(&[id]).unwrap();
    let mut values = Vec::new();
    for column in 1..3 {
        cursor.read(range, column, &mut values).unwrap();
    }
    drop(cursor);
    let read = view.cost();
    assert_eq!((read.look_ups, read.rows), (1, range.len()));
    let mut scan = spog.scan(spog.all(), [true; 4]);
    scan.next_vector().unwrap();
    drop(scan);
    assert_eq!((view.cost() - read).rows, 100);
    assert_eq!(database.view_of_process().cost().rows, 0, "another view");
}

/// Figures of small data are exact, those of large data near, and neither depends on what is
/// hidden.
#[test]
fn figures_of_a_view_are_of_what_it_shows() {
    let [default, first, second, _] = graphs();
    let scope = scope_of(0b001);
    let figures_of = |quads: &[SmallQuad]| {
        let directory = tempfile::tempdir().unwrap();
        let database = build_small(directory.path(), quads).unwrap();
        let view = ReadView::new(database.snapshot(), scope.clone()).unwrap();
        let Figures::Sampled(figures) = view.figures() else {
            panic!("what was counted among all is told who does not see all");
        };
        let id = |name: &str| view.snapshot().term_id(&iri(name)).unwrap().unwrap();
        let predicates = ["p0", "p1"].map(id);
        assert!(!view.has_named_graphs(), "no named graph is seen");
        assert_eq!(figures.predicate_count().unwrap(), 3);
        assert_eq!(figures.graph_count().unwrap(), 0);
        let star = figures.star(&predicates).unwrap().unwrap();
        let star: Vec<_> = star.groups_with(0b11).cloned().collect();
        let of_predicate = figures.predicate(predicates[0]).unwrap();
        (of_predicate, figures.all().unwrap(), star)
    };
    for count in [30, 3_000] {
        let seen: Vec<SmallQuad> = (0..count).map(|number| quad(number, &default)).collect();
        let alone = figures_of(&seen);
        let hidden = (0..count * 3).map(|number| quad(number / 2, &first));
        let hidden = hidden.chain((0..9_000).map(|number| quad(number, &second)));
        let all: Vec<SmallQuad> = seen.iter().cloned().chain(hidden).collect();
        assert_eq!(figures_of(&all), alone);
        let (predicate, all, star) = alone;
        assert_eq!(
            (predicate.quads, all.quads),
            (count as u64 / 3, count as u64)
        );
        assert_eq!((predicate.distinct_subjects, all.distinct_subjects), (7, 7));
        assert_eq!(all.distinct_objects, count as u64);
        // All subjects have both.
        let subjects: f64 = star.iter().map(|group| group.subjects).sum();
        assert!((subjects - 7.0).abs() < 0.5, "{star:?}");
    }
}
