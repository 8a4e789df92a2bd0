//! Property tests of write rights: an update sees and changes what its asker may, and nothing else.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::store;
use std::collections::BTreeSet;

use orrery_sparql::{UpdateOptions, WriteScope};
use orrery_storage::{Asker, GraphNames, ReadScope, SmallQuad};
use orrery_term::Term;
use proptest::prelude::*;

use store::Store;

/// The default graph, and three others.
const GRAPHS: usize = 4;

fn iri(name: &str) -> Term<'static> {
    Term::iri(format!("http://e/{name}"))
}

fn graph(number: usize) -> Option<Term<'static>> {
    (number > 0).then(|| iri(&format!("g/{number}")))
}

/// Graphs of a bit set, by names or by how names begin.
fn names(graphs: u8, by_beginning: bool) -> GraphNames {
    let mut names = GraphNames::default();
    for number in (0..GRAPHS).filter(|number| graphs & (1 << number) != 0) {
        match graph(number) {
            None => names.has_default = true,
            Some(_) if by_beginning => names.below.insert(format!("http://e/g/{number}")),
            Some(name) => {
                names.named.insert(name);
            }
        }
    }
    names
}

impl Store {
    /// Quads with the numbers of their graphs.
    fn quads(&self) -> BTreeSet<(usize, String)> {
        let view = self.engine.database().view_of_process();
        let (mut found, mut quads) = (BTreeSet::new(), view.quads().unwrap());
        while let Some(batch) = quads.next_batch().unwrap() {
            for quad in batch.iter() {
                let number = quad.graph.map_or(0, |name| {
                    let name = name.to_string();
                    name.trim_end_matches('>')
                        .rsplit('/')
                        .next()
                        .unwrap()
                        .parse()
                        .unwrap()
                });
                let text = format!("{} {} {}", quad.subject, quad.predicate, quad.object);
                found.insert((number, text));
            }
        }
        found
    }
}

/// An update of one or two operations.
fn update() -> impl Strategy<Value = String> {
    let number = || 1..GRAPHS;
    let node = || prop::sample::select(vec!["<http://e/a>", "<http://e/b>", "<http://e/new>"]);
    let data = move || {
        (node(), node(), 0..GRAPHS).prop_map(|(s, o, graph)| match graph {
            0 => format!("{s} <http://e/p> {o}"),
            named => format!("GRAPH <http://e/g/{named}> {{ {s} <http://e/p> {o} }}"),
        })
    };
    let target = || {
        prop_oneof![
            Just("ALL".to_owned()),
            Just("NAMED".to_owned()),
            Just("DEFAULT".to_owned()),
            number().prop_map(|number| format!("GRAPH <http://e/g/{number}>")),
        ]
    };
    let operation = prop_oneof![
        data().prop_map(|data| format!("INSERT DATA {{ {data} }}")),
        data().prop_map(|data| format!("DELETE DATA {{ {data} }}")),
        target().prop_map(|target| format!("CLEAR {target}")),
        target().prop_map(|target| format!("DROP SILENT {target}")),
        number().prop_map(|number| format!("CREATE SILENT GRAPH <http://e/g/{number}>")),
        Just("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }".to_owned()),
        Just("DELETE WHERE { ?s ?p ?o }".to_owned()),
        node().prop_map(|node| format!("DELETE WHERE {{ GRAPH ?g {{ {node} ?p ?o }} }}")),
        Just("INSERT { GRAPH ?g { ?o ?p ?s } } WHERE { GRAPH ?g { ?s ?p ?o } }".to_owned()),
        (number(), number()).prop_map(|(from, to)| format!(
            "INSERT {{ GRAPH <http://e/g/{to}> {{ ?s ?p ?o }} }} WHERE {{ GRAPH <http://e/g/{from}> {{ ?s ?p ?o }} }}"
        )),
        (number(), number())
            .prop_map(|(from, to)| format!("MOVE SILENT <http://e/g/{from}> TO <http://e/g/{to}>")),
        number().prop_map(|number| format!(
            "WITH <http://e/g/{number}> DELETE {{ ?s ?p ?o }} INSERT {{ ?s ?p <http://e/new> }} WHERE {{ ?s ?p ?o }}"
        )),
        Just(
            "INSERT { ?g <http://e/has> ?n } WHERE { SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g }"
                .to_owned()
        ),
    ];
    prop::collection::vec(operation, 1..3).prop_map(|operations| operations.join(" ; "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_update_ends_as_over_the_graphs_that_its_author_sees(
        stored in prop::collection::btree_set((0..GRAPHS, 0..3_usize, 0..3_usize), 0..12),
        seen in 0..1_u8 << GRAPHS,
        written in 0..1_u8 << GRAPHS,
        by_beginning in any::<bool>(),
        text in update(),
    ) {
        // The right to write has the right to read with it.
        let written = seen & written;
        let is_in = |graphs: u8, number: usize| graphs & (1 << number) != 0;
        let quad = |&(number, s, o): &(usize, usize, usize)| {
            let node = |number: usize| iri(["a", "b", "c"][number]);
            (node(s), iri("p"), node(o), graph(number))
        };
        let all: Vec<SmallQuad> = stored.iter().map(quad).collect();
        let visible = stored.iter().filter(|(number, ..)| is_in(seen, *number));
        let visible: Vec<SmallQuad> = visible.map(quad).collect();
        let (whole, alone) = (Store::of(&all), Store::of(&visible));
        let scope = ReadScope::only(Asker::Anonymous, names(seen, by_beginning));
        let options = UpdateOptions {
            writes: WriteScope::only(names(written, by_beginning)),
            ..UpdateOptions::of(scope)
        };
        let of_alone = UpdateOptions {
            writes: options.writes.clone(),
            ..UpdateOptions::of_process()
        };
        let before = whole.quads();
        let ended = whole.apply(&text, &options);
        // Who may change nothing is told so in other words where all graphs are seen.
        if written != 0 {
            prop_assert_eq!(&ended, &alone.apply(&text, &of_alone));
        } else {
            prop_assert!(ended.is_err());
        }
        let after = whole.quads();
        if ended.is_err() {
            prop_assert_eq!(&after, &before);
        }
        let of_graphs = |quads: &BTreeSet<(usize, String)>, graphs: u8| -> Vec<(usize, String)> {
            quads.iter().filter(|(number, _)| is_in(graphs, *number)).cloned().collect()
        };
        prop_assert_eq!(of_graphs(&after, !written), of_graphs(&before, !written));
        prop_assert_eq!(of_graphs(&after, seen), of_graphs(&alone.quads(), seen));
    }
}
