//! PageRank by power iteration.
//!
//! Each round a node's rank is what those give that have an edge to it, each its rank by the number
//! of its edges. Who has none gives to all alike. (L. Page and others, The PageRank Citation
//! Ranking, 1999; dangling nodes as in networkx.) Sums are taken in the order of the nodes, so that
//! they are the same on any number of threads.

use super::csr::Csr;
use super::pairs::ends;
use super::parallel::Crew;

/// The rank of each node; the sum of all is 1.
#[expect(clippy::cast_precision_loss, reason = "fewer nodes than 2^53")]
pub(super) fn ranks(
    nodes: usize,
    edges: Vec<u64>,
    (iterations, damping): (u32, f64),
    crew: &Crew,
) -> Vec<f64> {
    let mut given = vec![0_u32; nodes];
    for &edge in &edges {
        given[ends(edge).0 as usize] += 1;
    }
    let incoming = Csr::incoming(nodes, &edges);
    drop(edges);
    let dangling: Vec<usize> = (0..nodes).filter(|&node| given[node] == 0).collect();
    let pieces = incoming.pieces(crew.pieces());
    let mut ranks = vec![1.0 / nodes as f64; nodes];
    let mut shares = vec![0.0; nodes];
    for _ in 0..iterations {
        if crew.is_stopped() {
            break;
        }
        for (node, share) in shares.iter_mut().enumerate() {
            *share = ranks[node] / f64::from(given[node].max(1));
        }
        let lost: f64 = dangling.iter().map(|&node| ranks[node]).sum();
        let of_all = (1.0 - damping + damping * lost) / nodes as f64;
        let mut rest = ranks.as_mut_slice();
        let mut work = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let (part, behind) = rest.split_at_mut(piece.len());
            work.push((piece.start, part));
            rest = behind;
        }
        crew.each(work, |(first, part)| {
            for (at, rank) in part.iter_mut().enumerate() {
                let from = incoming.of((first + at) as u32).iter();
                let sum: f64 = from.map(|&node| shares[node as usize]).sum();
                *rank = of_all + damping * sum;
            }
        });
    }
    ranks
}
