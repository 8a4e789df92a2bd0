//! Weakly connected components by union-find, with halved paths.

use super::pairs::ends;
use super::parallel::Crew;

/// Edges between two looks at whether anybody still waits.
const EDGES_PER_LOOK: usize = 65_536;

/// The first node of each node's component.
pub(super) fn components(nodes: usize, edges: &[u64], crew: &Crew) -> Vec<u32> {
    let mut above: Vec<u32> = (0..nodes as u32).collect();
    for some in edges.chunks(EDGES_PER_LOOK) {
        if crew.is_stopped() {
            break;
        }
        for &edge in some {
            let (start, end) = ends(edge);
            let (start, end) = (top(&mut above, start), top(&mut above, end));
            // The smaller number stays, so that a component is known by its first node.
            above[start.max(end) as usize] = start.min(end);
        }
    }
    (0..nodes as u32)
        .map(|node| top(&mut above, node))
        .collect()
}

fn top(above: &mut [u32], mut node: u32) -> u32 {
    while above[node as usize] != node {
        above[node as usize] = above[above[node as usize] as usize];
        node = above[node as usize];
    }
    node
}
