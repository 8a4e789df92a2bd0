//! Probes of candidates, one by one or in stretches, in ranges too long to read.

use std::ops::Bound;

use datafusion_common::Result;
use orrery_storage::{Cursor, RowRange};
use orrery_term::TermId;

use super::super::program::SideProgram;
use super::super::steps::cursors::Cursors;
use super::lists::{ROWS_PER_CANDIDATE_MAX, SideKeys, read_values};
use super::matches::GRAPH_COLUMN;
use crate::solutions::storage_error;

/// With fewer candidates for a key no stretch is looked for.
const STRETCH_CANDIDATES_MIN: usize = if cfg!(test) { 2 } else { 8 };
/// The longest stretch that is read: 8 MB.
const STRETCH_ROWS_MAX: u64 = 1 << 20;

/// Values to be found in ranges of one side.
#[derive(Default)]
pub(super) struct Probes(Vec<Probe>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Probe {
    key: u32,
    value: u64,
    /// Which match it is about.
    place: u32,
}

impl Probes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Further values for a key; `place` is that of the first.
    pub(super) fn add(&mut self, key: u32, place: u32, values: &[u64]) {
        self.0.extend(
            (place..)
                .zip(values)
                .map(|(place, &value)| Probe { key, value, place }),
        );
    }

    /// Marks the places of values that are not there. The number of look-ups made.
    pub(super) fn settle(
        &mut self,
        side: &SideProgram,
        keys: &SideKeys,
        cursors: &mut Cursors,
        is_missing: &mut [bool],
    ) -> Result<usize> {
        self.0.retain(|probe| !is_missing[probe.place as usize]);
        self.0.sort_unstable();
        let mut seeks = 0;
        let mut stretch = Vec::new();
        for of_key in self.0.chunk_by(|a, b| a.key == b.key) {
            let (prefix, graph) = keys.prefix(side, of_key[0].key);
            if let Some(rows) = dense_stretch(of_key, prefix, &mut cursors.seeker)? {
                seeks += 1;
                stretch.clear();
                read_values(side, graph, &mut cursors.reader, rows, &mut stretch)?;
                let mut at = 0;
                for probe in of_key {
                    while stretch.get(at).is_some_and(|&value| value < probe.value) {
                        at += 1;
                    }
                    is_missing[probe.place as usize] |= stretch.get(at) != Some(&probe.value);
                }
                continue;
            }
            for equal in of_key.chunk_by(|a, b| a.value == b.value) {
                seeks += 1;
                let value = TermId::from_bits(equal[0].value);
                if !is_there(side, (prefix, value, graph), cursors)? {
                    for probe in equal {
                        is_missing[probe.place as usize] = true;
                    }
                }
            }
        }
        Ok(seeks)
    }
}

/// The rows between the first and the last of the values, if they lie so close together that
/// reading them is quicker than looking for each.
fn dense_stretch(
    probes: &[Probe],
    prefix: [TermId; 2],
    seeker: &mut Cursor,
) -> Result<Option<RowRange>> {
    let [first, .., last] = probes else {
        return Ok(None);
    };
    if probes.len() < STRETCH_CANDIDATES_MIN {
        return Ok(None);
    }
    let rows = seeker
        .seek_between(
            &prefix,
            Bound::Included(TermId::from_bits(first.value)),
            Bound::Included(TermId::from_bits(last.value)),
        )
        .map_err(storage_error)?;
    let rows_max = (probes.len() as u64 * ROWS_PER_CANDIDATE_MAX).min(STRETCH_ROWS_MAX);
    Ok((rows.len() <= rows_max).then_some(rows))
}

/// Whether one value is there, in the graphs asked for.
fn is_there(
    side: &SideProgram,
    (prefix, value, graph): ([TermId; 2], TermId, Option<TermId>),
    cursors: &mut Cursors,
) -> Result<bool> {
    let whole = [prefix[0], prefix[1], value];
    let rows = cursors.seeker.seek(&whole).map_err(storage_error)?;
    if rows.is_empty() || !side.checks_graph() {
        return Ok(!rows.is_empty());
    }
    let mut graphs = Vec::new();
    cursors
        .reader
        .read(rows, GRAPH_COLUMN, &mut graphs)
        .map_err(storage_error)?;
    Ok(graphs
        .into_iter()
        .any(|found| side.takes_graph(graph, TermId::from_bits(found))))
}
