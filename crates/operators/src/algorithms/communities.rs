//! Communities by label propagation.
//!
//! Each node begins with a label of its own. Round after round, in the order of the nodes, a node
//! takes the label that most of its neighbours have at that moment; it keeps its own where that is
//! one of the most frequent, and takes the smallest of several. It ends when a round changes
//! nothing. (U. N. Raghavan and others, Near Linear Time Algorithm to Detect Community Structures,
//! 2007, whose order and choice are random; a fixed one gives the same answer each time.) One node
//! after the other is what keeps two sides from changing labels for ever, so that this runs on one
//! thread.

use super::csr::Csr;
use super::parallel::Crew;

/// Nodes between two looks at whether anybody still waits.
const NODES_PER_LOOK: usize = 1_024;

/// The first node of each node's community.
pub(super) fn communities(nodes: usize, edges: Vec<u64>, iterations: u32, crew: &Crew) -> Vec<u32> {
    let neighbours = Csr::undirected(nodes, edges);
    let mut labels: Vec<u32> = (0..nodes as u32).collect();
    let mut seen = Vec::new();
    for _ in 0..iterations {
        let mut has_changed = false;
        for node in 0..nodes {
            if node % NODES_PER_LOOK == 0 && crew.is_stopped() {
                return labels;
            }
            seen.clear();
            let of_neighbours = neighbours.of(node as u32).iter();
            seen.extend(of_neighbours.map(|&it| labels[it as usize]));
            let label = most_frequent(&mut seen, labels[node]);
            has_changed |= label != labels[node];
            labels[node] = label;
        }
        if !has_changed {
            break;
        }
    }
    // A label is the number of a node that may have another one by now.
    let mut first = vec![u32::MAX; nodes];
    for (node, &label) in labels.iter().enumerate() {
        let first = &mut first[label as usize];
        *first = (*first).min(node as u32);
    }
    for label in &mut labels {
        *label = first[*label as usize];
    }
    labels
}

/// The most frequent label: the own one, if it is one of them, else the smallest.
fn most_frequent(labels: &mut [u32], own: u32) -> u32 {
    labels.sort_unstable();
    let (mut best, mut best_count) = (own, 0);
    for run in labels.chunk_by(|a, b| a == b) {
        if run.len() > best_count || (run.len() == best_count && run[0] == own) {
            (best, best_count) = (run[0], run.len());
        }
    }
    best
}
