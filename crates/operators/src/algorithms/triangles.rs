//! Counts of triangles: three nodes with edges between each two, in any direction.
//!
//! Each edge is kept at the node with fewer neighbours, so that lists are short (at most the square
//! root of twice the edges); two lists that are joined by an edge are intersected, and each common
//! node is a triangle, found once. (N. Chiba and T. Nishizeki, Arboricity and Subgraph Listing
//! Algorithms, 1985.)

use std::sync::atomic::{AtomicU64, Ordering};

use super::csr::Csr;
use super::parallel::Crew;

/// How many triangles each node is a corner of.
pub(super) fn triangles(nodes: usize, edges: Vec<u64>, crew: &Crew) -> Vec<u64> {
    let all = Csr::undirected(nodes, edges);
    let rank = |node: u32| (all.of(node).len(), node);
    let upward = all.filtered(|node, neighbour| rank(node) < rank(neighbour));
    let counts: Vec<AtomicU64> = (0..nodes).map(|_| AtomicU64::new(0)).collect();
    let count = |node: u32, found: u64| {
        if found > 0 {
            counts[node as usize].fetch_add(found, Ordering::Relaxed);
        }
    };
    crew.each(upward.pieces(crew.pieces()), |piece| {
        for node in piece {
            if crew.is_stopped() {
                return;
            }
            let node = node as u32;
            let own = upward.of(node);
            let mut of_node = 0;
            for &neighbour in own {
                let mut of_edge = 0;
                common(own, upward.of(neighbour), |third| {
                    count(third, 1);
                    of_edge += 1;
                });
                count(neighbour, of_edge);
                of_node += of_edge;
            }
            count(node, of_node);
        }
    });
    counts.into_iter().map(AtomicU64::into_inner).collect()
}

/// What two ascending lists have in common.
fn common(mut a: &[u32], mut b: &[u32], mut found: impl FnMut(u32)) {
    while let (Some(&first), Some(&second)) = (a.first(), b.first()) {
        if first == second {
            found(first);
        }
        if first <= second {
            a = &a[1..];
        }
        if second <= first {
            b = &b[1..];
        }
    }
}
