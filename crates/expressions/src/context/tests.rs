//! Tests of local term ids: exact, shared by threads, bounded.

use std::sync::Arc;

use datafusion_common::DataFusionError;
use datafusion_execution::memory_pool::GreedyMemoryPool;
use orrery_storage::build_small;
use orrery_term::vocabulary::xsd;
use orrery_term::{Term, TermId, TermKind};

use super::{ExpressionContext, ExpressionOptions};
use crate::error::Error;
use crate::testing::context;

fn stored() -> Vec<Term<'static>> {
    vec![
        Term::iri("http://example.com/a"),
        Term::string("a string of the dictionary"),
        Term::language("a tagged one", "en"),
        Term::typed("01", xsd::INTEGER),
    ]
}

fn computed() -> Vec<Term<'static>> {
    vec![
        Term::iri("http://example.com/computed"),
        Term::string("a string that no dictionary has"),
        Term::language("another tagged one", "en"),
        Term::typed("02", xsd::INTEGER),
        Term::string(""),
        Term::typed("7", xsd::INTEGER),
        Term::BlankNode(9),
    ]
}

#[test]
fn every_term_has_one_id_and_comes_back() {
    let context = context(&stored());
    let mut ids = Vec::new();
    for term in stored().iter().chain(&computed()) {
        let id = context.intern(term).unwrap();
        assert_eq!(context.intern(term).unwrap(), id);
        assert_eq!(&context.term(id).unwrap(), term);
        ids.push(id);
    }
    assert!(ids[..4].iter().all(|id| id.is_dictionary()));
    assert!(ids[4..8].iter().all(|id| id.kind() == TermKind::QueryLocal));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), stored().len() + computed().len());
}

#[test]
fn many_terms_are_read_in_one_go() {
    let context = context(&stored());
    let mut ids: Vec<TermId> = stored()
        .iter()
        .chain(&computed())
        .map(|term| context.intern(term).unwrap())
        .collect();
    ids.sort_unstable();
    let mut found = vec![None; ids.len()];
    context
        .terms(&ids, |at, term| found[at] = Some(term.into_owned()))
        .unwrap();
    for (id, term) in ids.iter().zip(found) {
        assert_eq!(term, Some(context.term(*id).unwrap()));
    }
}

#[test]
fn an_id_of_nothing_is_an_error() {
    let context = context(&[]);
    for id in [TermId::DEFAULT_GRAPH, TermId::query_local(5), TermId::MAX] {
        assert!(matches!(context.term(id), Err(Error::NoSuchTerm { .. })));
    }
    assert!(context.term(TermId::literal(1_000_000)).is_err());
}

#[test]
fn threads_agree_on_ids() {
    let context = context(&stored());
    let intern_all = |context: &ExpressionContext| -> Vec<TermId> {
        (0..2000)
            .map(|number| {
                let term = Term::string(format!("computed string number {number}"));
                context.intern(&term).unwrap()
            })
            .collect()
    };
    let all: Vec<Vec<TermId>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| intern_all(&context)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn computed_terms_are_bounded_by_the_memory_pool() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = build_small(directory.path(), &[]).unwrap().snapshot();
    let options = ExpressionOptions {
        memory_pool: Arc::new(GreedyMemoryPool::new(1 << 20)),
        ..ExpressionOptions::default()
    };
    let pool = Arc::clone(&options.memory_pool);
    let context = ExpressionContext::new(snapshot, options).unwrap();
    let error = (0..1_000_000)
        .find_map(|number| {
            let term = Term::string(format!("computed string number {number}"));
            context.intern(&term).err()
        })
        .unwrap();
    let error = DataFusionError::from(error);
    assert!(
        matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)),
        "{error}"
    );
    assert!(pool.reserved() > 0);
    drop(context);
    assert_eq!(pool.reserved(), 0);
}

#[test]
fn a_wrong_base_iri_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = build_small(directory.path(), &[]).unwrap().snapshot();
    let options = ExpressionOptions {
        base_iri: Some("not absolute".to_owned()),
        ..ExpressionOptions::default()
    };
    let error = ExpressionContext::new(snapshot, options).unwrap_err();
    assert!(matches!(error, Error::BaseIri { .. }), "{error}");
}

#[test]
fn fresh_blank_nodes_are_not_those_of_the_database() {
    let context = context(&[Term::BlankNode(41)]);
    assert!(context.fresh_blank_node() > 41);
    assert_ne!(context.fresh_blank_node(), context.fresh_blank_node());
}
