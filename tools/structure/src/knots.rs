//! The search for import cycles among files and crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::arrows::Arrows;
use crate::house::House;

/// One knot, and the arrows within it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Knot {
    pub(crate) members: Vec<String>,
    /// From, to, and the names that tie them.
    pub(crate) arrows: Vec<(String, String, Vec<String>)>,
}

impl fmt::Display for Knot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "knot of {}: {}",
            self.members.len(),
            self.members.join(", ")
        )?;
        for (from, to, names) in &self.arrows {
            writeln!(f, "  {from} -> {to}: {}", names.join(", "))?;
        }
        Ok(())
    }
}

/// The knots of the files of one root.
pub(crate) fn of(arrows: &Arrows) -> Vec<Knot> {
    let labels: Vec<String> = arrows
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    among(&labels, &arrows.names)
}

/// The knots of crates.
pub(crate) fn of_crates(house: &House) -> Vec<Knot> {
    let labels: Vec<String> = house
        .packages
        .iter()
        .map(|package| package.name.clone())
        .collect();
    let mut names: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
    for (from, package) in house.packages.iter().enumerate() {
        for import in &package.imports {
            if let Some(to) = labels.iter().position(|label| label == import) {
                names.entry((from, to)).or_default().insert(import.clone());
            }
        }
    }
    among(&labels, &names)
}

fn among(labels: &[String], names: &BTreeMap<(usize, usize), BTreeSet<String>>) -> Vec<Knot> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); labels.len()];
    for (from, to) in names.keys() {
        next[*from].push(*to);
    }
    let mut knots = Vec::new();
    for members in components(&next) {
        if members.len() < 2 {
            continue;
        }
        let arrows = names
            .iter()
            .filter(|((from, to), _)| members.contains(from) && members.contains(to))
            .map(|((from, to), names)| {
                (
                    labels[*from].clone(),
                    labels[*to].clone(),
                    names.iter().cloned().collect(),
                )
            })
            .collect();
        knots.push(Knot {
            members: members
                .iter()
                .map(|member| labels[*member].clone())
                .collect(),
            arrows,
        });
    }
    knots.sort_by(|one, other| one.members.cmp(&other.members));
    knots
}

/// Strongly connected components, each sorted (Tarjan 1972, with a stack of its own).
fn components(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let mut found = Vec::new();
    let mut number = vec![UNSEEN; next.len()];
    let mut lowest = vec![UNSEEN; next.len()];
    let mut is_open = vec![false; next.len()];
    let mut open = Vec::new();
    let mut count = 0;
    for root in 0..next.len() {
        if number[root] != UNSEEN {
            continue;
        }
        let mut way = vec![(root, 0)];
        while let Some((node, edge)) = way.pop() {
            if edge == 0 {
                number[node] = count;
                lowest[node] = count;
                count += 1;
                open.push(node);
                is_open[node] = true;
            }
            if let Some(&to) = next[node].get(edge) {
                way.push((node, edge + 1));
                if number[to] == UNSEEN {
                    way.push((to, 0));
                } else if is_open[to] {
                    lowest[node] = lowest[node].min(number[to]);
                }
                continue;
            }
            if let Some((parent, _)) = way.last() {
                lowest[*parent] = lowest[*parent].min(lowest[node]);
            }
            if lowest[node] == number[node] {
                let mut members = Vec::new();
                while let Some(member) = open.pop() {
                    is_open[member] = false;
                    members.push(member);
                    if member == node {
                        break;
                    }
                }
                members.sort_unstable();
                found.push(members);
            }
        }
    }
    found
}
