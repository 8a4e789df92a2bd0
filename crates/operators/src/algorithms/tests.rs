//! Tests of graph algorithms against naive models over random graphs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use orrery_runtime::Workers;
use proptest::prelude::*;

use super::communities::communities;
use super::components::components;
use super::csr::Csr;
use super::pairs::{Pairs, pair};
use super::parallel::Crew;
use super::ranks::ranks;
use super::triangles::triangles;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};

fn crew(threads: usize) -> Crew {
    Crew {
        workers: Workers::new(threads),
        is_stopped: Arc::new(AtomicBool::new(false)),
    }
}

/// Edges between some nodes, as pairs in order.
fn graph() -> impl Strategy<Value = (usize, Vec<u64>)> {
    (1_u32..12).prop_flat_map(|nodes| {
        let edges = prop::collection::btree_set((0..nodes, 0..nodes), 0..40);
        edges.prop_map(move |edges| {
            let pairs = edges.into_iter().map(|(start, end)| pair(start, end));
            (nodes as usize, pairs.collect())
        })
    })
}

fn has(edges: &[u64], start: usize, end: usize) -> bool {
    edges.contains(&pair(start as u32, end as u32))
}

fn are_neighbours(edges: &[u64], a: usize, b: usize) -> bool {
    a != b && (has(edges, a, b) || has(edges, b, a))
}

/// By the definition: a matrix of chances, multiplied again and again.
fn naive_ranks(nodes: usize, edges: &[u64], iterations: u32, damping: f64) -> Vec<f64> {
    let count = nodes as f64;
    let mut ranks = vec![1.0 / count; nodes];
    for _ in 0..iterations {
        let mut next = vec![0.0; nodes];
        for (from, rank_before) in ranks.iter().enumerate() {
            let out = (0..nodes).filter(|&to| has(edges, from, to)).count();
            for (to, rank) in next.iter_mut().enumerate() {
                let follows = match out {
                    0 => 1.0 / count,
                    out => f64::from(u8::from(has(edges, from, to))) / out as f64,
                };
                *rank += rank_before * (damping * follows + (1.0 - damping) / count);
            }
        }
        ranks = next;
    }
    ranks
}

fn naive_components(nodes: usize, edges: &[u64]) -> Vec<u32> {
    let mut first: Vec<u32> = (0..nodes as u32).collect();
    for _ in 0..nodes {
        for a in 0..nodes {
            for b in 0..nodes {
                if are_neighbours(edges, a, b) {
                    first[a] = first[a].min(first[b]);
                }
            }
        }
    }
    first
}

fn naive_triangles(nodes: usize, edges: &[u64]) -> Vec<u64> {
    let of = |a: usize| {
        let mut count = 0;
        for b in 0..nodes {
            for c in b + 1..nodes {
                let pairs = [(a, b), (b, c), (c, a)];
                count += u64::from(pairs.iter().all(|&(x, y)| are_neighbours(edges, x, y)));
            }
        }
        count
    };
    (0..nodes).map(of).collect()
}

fn naive_communities(nodes: usize, edges: &[u64], iterations: u32) -> Vec<u32> {
    let mut labels: Vec<usize> = (0..nodes).collect();
    for _ in 0..iterations {
        for node in 0..nodes {
            let count = |label: usize| {
                let mut others = 0..nodes;
                others
                    .by_ref()
                    .filter(|&it| are_neighbours(edges, node, it) && labels[it] == label)
                    .count()
            };
            let most = (0..nodes).map(count).max().unwrap_or(0);
            if most > 0 && count(labels[node]) < most {
                labels[node] = (0..nodes).find(|&label| count(label) == most).unwrap();
            }
        }
    }
    let first = |label| (0..nodes).find(|&node| labels[node] == label).unwrap() as u32;
    labels.iter().map(|&label| first(label)).collect()
}

proptest! {
    #[test]
    fn algorithms_agree_with_naive_ones((nodes, edges) in graph(), threads in 1_usize..4, rounds in 0_u32..12) {
        let crew = crew(threads);
        let found = ranks(nodes, edges.clone(), (rounds, 0.85), &crew);
        for (found, expected) in found.iter().zip(naive_ranks(nodes, &edges, rounds, 0.85)) {
            prop_assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        prop_assert_eq!(components(nodes, &edges, &crew), naive_components(nodes, &edges));
        prop_assert_eq!(triangles(nodes, edges.clone(), &crew), naive_triangles(nodes, &edges));
        let expected = naive_communities(nodes, &edges, rounds);
        prop_assert_eq!(communities(nodes, edges, rounds, &crew), expected);
    }

    #[test]
    fn pairs_are_numbered_by_their_ids_and_lists_have_each_neighbour_once(
        edges in prop::collection::vec((0_u64..9, 0_u64..9), 0..60),
        pieces in 1_usize..9,
        // Ids that are near each other, and ids that are not.
        distance in prop::sample::select(vec![1_u64, 7, 100_000]),
    ) {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let mut pairs = Pairs::new(MemoryConsumer::new("test").register(&pool));
        pairs.reserve(edges.len()).unwrap();
        for &(start, end) in &edges {
            pairs.add(start * distance, end * distance);
        }
        let sorted = pairs.sorted().unwrap();
        let distinct: BTreeSet<(u64, u64)> = edges.iter().map(|&(a, b)| (a * distance, b * distance)).collect();
        let ids = &sorted.ids;
        prop_assert!(ids.is_sorted());
        let found = sorted.edges.iter().map(|&it| {
            let (start, end) = super::pairs::ends(it);
            (ids[start as usize], ids[end as usize])
        });
        prop_assert!(found.eq(distinct.iter().copied()));
        let nodes = ids.len();
        let incoming = Csr::incoming(nodes, &sorted.edges);
        let degrees: usize = (0..nodes as u32).map(|node| incoming.of(node).len()).sum();
        prop_assert_eq!(degrees, distinct.len());
        let pieces = incoming.pieces(pieces);
        prop_assert!(pieces.iter().flat_map(Clone::clone).eq(0..nodes));
    }
}
