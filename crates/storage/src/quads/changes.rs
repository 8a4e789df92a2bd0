//! A list of quad insertions and deletions in order, and its net effect.

use orrery_term::TermId;

use crate::quads::delta::DeltaEntry;
use crate::quads::graph_set::GraphSet;
use crate::quads::index::{COLUMNS, QuadRow};

/// A change of a quad, given as subject, predicate, object, graph: the order of SPOG.
pub(crate) fn change(quad: QuadRow, is_insertion: bool) -> DeltaEntry {
    DeltaEntry {
        row: quad,
        is_insertion,
    }
}

/// What changes come to that stand in the order in which they were made; ascending. Each change of
/// a row reverses the one before it, so an odd number of them is the last one, and an even number
/// nothing.
pub(crate) fn net_changes(mut changes: Vec<DeltaEntry>) -> Vec<DeltaEntry> {
    changes.sort_by_key(|change| change.row); // stable: the last stays last
    let mut kept = 0;
    let mut next = 0;
    while next < changes.len() {
        let row = changes[next].row;
        let same = changes[next..].iter().take_while(|other| other.row == row);
        let count = same.count();
        next += count;
        if count % 2 == 1 {
            changes[kept] = changes[next - 1];
            kept += 1;
        }
    }
    changes.truncate(kept);
    changes
}

/// Takes out the rows of SPOG that are in some graphs.
pub(crate) fn drop_graphs(changes: &mut Vec<DeltaEntry>, graphs: &GraphSet) {
    changes.retain(|change| !graphs.contains_bits(change.row[COLUMNS - 1]));
}

/// Whether one of the rows of SPOG is in a named graph.
pub(crate) fn has_named_graph(changes: &[DeltaEntry]) -> bool {
    let default_graph = TermId::DEFAULT_GRAPH.bits();
    changes
        .iter()
        .any(|change| change.row[COLUMNS - 1] != default_graph)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_even_number_of_changes_is_none(rows in proptest::collection::vec(0u64..6, 0..40)) {
            let mut visible = [false, true, false, true, false, true];
            let before = visible;
            let mut changes = Vec::new();
            for row in rows {
                let is_visible = &mut visible[row as usize];
                *is_visible = !*is_visible;
                changes.push(change([row; COLUMNS], *is_visible));
            }
            let expected: Vec<DeltaEntry> = (0..6)
                .filter(|&row| before[row] != visible[row])
                .map(|row| change([row as u64; COLUMNS], visible[row]))
                .collect();
            prop_assert_eq!(net_changes(changes), expected);
        }
    }
}
