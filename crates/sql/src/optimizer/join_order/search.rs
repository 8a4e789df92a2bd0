//! The join order search by dynamic programming over sets of relations.
//!
//! A join costs its rows, those of its left side (which are kept in a table) twice, and those of
//! its right side (which look there) once. A semi join costs the rows that look, and those that it
//! keeps.

use super::estimate::Estimates;
use super::graph::Graph;

/// How relations are put together.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    /// A relation.
    Part(usize),
    /// Joined, the side with fewer rows on the left.
    Joined(Box<Tree>, Box<Tree>),
    /// The semi join with this number among the parts.
    Filtered(Box<Tree>, usize),
}

/// A row of a table costs so many that look into it.
const KEPT_ROW: f64 = 2.0;

/// The best for a set: what it costs, and the set on its left (`0` of a relation alone).
#[derive(Clone, Copy)]
struct Best {
    cost: f64,
    left: u32,
}

/// The cheapest tree of all parts; `None` if they are not all connected.
pub(super) fn cheapest(graph: &Graph, estimates: &Estimates) -> Option<Tree> {
    let parts = graph.parts();
    let relations = graph.relations.len();
    let all = (1_u32 << parts) - 1;
    let mut best: Vec<Option<Best>> = vec![None; all as usize + 1];
    for relation in 0..relations {
        let cost = 0.0;
        best[1 << relation] = Some(Best { cost, left: 0 });
    }
    for set in 1..=all {
        if set.count_ones() < 2 {
            continue;
        }
        let rows = estimates.rows(set);
        let mut found: Option<Best> = None;
        let mut consider = |cost: f64, left: u32| {
            if found.is_none_or(|it| cost < it.cost) {
                found = Some(Best { cost, left });
            }
        };
        for (place, semi) in graph.semis.iter().enumerate() {
            let part = 1 << (relations + place);
            let of = set & !part;
            if set & part == 0 || semi.needs & of != semi.needs {
                continue;
            }
            if let Some(below) = best[of as usize] {
                let looked = estimates.rows(of) + estimates.semi_rows(place);
                consider(below.cost + looked + rows, of);
            }
        }
        // Each pair of sets once: the one with the least part is `left`.
        let least = set & set.wrapping_neg();
        let mut left = (set - 1) & set;
        while left != 0 {
            let right = set & !left;
            if left & least != 0
                && let (Some(one), Some(other)) = (best[left as usize], best[right as usize])
                && graph.is_connected(left, right)
            {
                let (few, many) = in_order(estimates.rows(left), estimates.rows(right));
                consider(one.cost + other.cost + few * KEPT_ROW + many + rows, left);
            }
            left = (left - 1) & set;
        }
        best[set as usize] = found;
    }
    best[all as usize]?;
    tree(graph, estimates, &best, all)
}

fn in_order(one: f64, other: f64) -> (f64, f64) {
    (one.min(other), one.max(other))
}

fn tree(graph: &Graph, estimates: &Estimates, best: &[Option<Best>], set: u32) -> Option<Tree> {
    let relations = graph.relations.len();
    let left = best[set as usize]?.left;
    if left == 0 {
        return Some(Tree::Part(set.trailing_zeros() as usize));
    }
    let right = set & !left;
    let of_left = Box::new(tree(graph, estimates, best, left)?);
    let first_right = right.trailing_zeros() as usize;
    if right.count_ones() == 1 && first_right >= relations {
        return Some(Tree::Filtered(of_left, first_right));
    }
    let of_right = Box::new(tree(graph, estimates, best, right)?);
    Some(match estimates.rows(left) <= estimates.rows(right) {
        true => Tree::Joined(of_left, of_right),
        false => Tree::Joined(of_right, of_left),
    })
}
