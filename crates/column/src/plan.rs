//! The choice of the codec that stores a vector in the fewest bytes.
//!
//! Nothing is encoded on trial: one pass gathers a [`Sketch`], and each codec that the sketch makes
//! promising is sized from a histogram of bit lengths.

use crate::bits::bit_length;
use crate::piece::PiecePlan;

/// Rows may fall this often in a column that is still stored as differences: where two sorted parts
/// meet.
const DESCENTS_MAX: usize = 16;
/// Runs must be at least this long on average to be looked at.
const RUN_ROWS_MIN: usize = 2;
/// Number of entries a dictionary may have; a code is one byte at most.
pub(crate) const DICTIONARY_ENTRIES_MAX: usize = 256;
/// Number of groups there can be: the kinds of the top four bits.
pub(crate) const GROUPS_MAX: usize = 16;

/// What one pass over the values tells.
#[derive(Debug)]
struct Sketch {
    min: u64,
    max: u64,
    /// Bits in which any value differs from the first.
    differing: u64,
    /// Rows that are smaller than the row before.
    descents: usize,
    /// Rows that differ from the row before, plus one.
    runs: usize,
    min_delta: u64,
    /// Bits in which any difference to the row before differs from the first such difference.
    differing_delta: u64,
}

impl Sketch {
    fn of(values: &[u64]) -> Self {
        let first = values[0];
        let first_delta = values.get(1).map_or(0, |second| second.wrapping_sub(first));
        let mut sketch = Self {
            min: first,
            max: first,
            differing: 0,
            descents: 0,
            runs: 1,
            min_delta: first_delta,
            differing_delta: 0,
        };
        let mut previous = first;
        for &value in &values[1..] {
            let delta = value.wrapping_sub(previous);
            sketch.min = sketch.min.min(value);
            sketch.max = sketch.max.max(value);
            sketch.differing |= value ^ first;
            sketch.descents += usize::from(value < previous);
            sketch.runs += usize::from(delta != 0);
            sketch.min_delta = sketch.min_delta.min(delta);
            sketch.differing_delta |= delta ^ first_delta;
            previous = value;
        }
        sketch
    }
}

/// The chosen codec with all that is needed to write it.
#[derive(Debug)]
pub(crate) enum Plan {
    Constant,
    Frame(PiecePlan),
    Delta(PiecePlan),
    Runs(RunsPlan),
    Dictionary(DictionaryPlan),
    Groups(GroupsPlan),
}

impl Plan {
    /// The plan with the fewest bytes; of equals the one that decodes faster.
    pub(crate) fn choose(values: &[u64]) -> Self {
        let sketch = Sketch::of(values);
        if sketch.min == sketch.max {
            return Self::Constant;
        }
        let is_sorted = sketch.descents == 0;
        let mut best = Best::default();
        if !is_sorted || values.len() == 2 {
            let shift = sketch.differing.trailing_zeros();
            let plan = PiecePlan::new(values.iter().copied(), sketch.min, shift);
            best.offer(plan.bytes, || Self::Frame(plan));
        }
        if sketch.descents <= DESCENTS_MAX {
            let shift = sketch.differing_delta.trailing_zeros();
            let plan = PiecePlan::new(deltas(values), sketch.min_delta, shift);
            best.offer(8 + plan.bytes, || Self::Delta(plan));
        }
        if sketch.runs * RUN_ROWS_MIN <= values.len() {
            let plan = RunsPlan::new(values, sketch.runs);
            best.offer(plan.bytes, || Self::Runs(plan));
        }
        if !is_sorted {
            if let Some(plan) = DictionaryPlan::new(values, best.bytes) {
                best.offer(plan.bytes, || Self::Dictionary(plan));
            }
            if let Some(plan) = GroupsPlan::new(values, &sketch) {
                best.offer(plan.bytes, || Self::Groups(plan));
            }
        }
        best.plan
    }
}

struct Best {
    bytes: usize,
    plan: Plan,
}

impl Default for Best {
    fn default() -> Self {
        Self {
            bytes: usize::MAX,
            plan: Plan::Constant,
        }
    }
}

impl Best {
    fn offer(&mut self, bytes: usize, plan: impl FnOnce() -> Plan) {
        if bytes < self.bytes {
            self.bytes = bytes;
            self.plan = plan();
        }
    }
}

/// Differences of each value to the one before; one fewer than the values.
pub(crate) fn deltas(values: &[u64]) -> impl ExactSizeIterator<Item = u64> + Clone {
    values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]))
}

/// Numbers within a codec's body, stored as they are or as differences.
#[derive(Debug)]
pub(crate) struct ListPlan {
    pub(crate) is_delta: bool,
    pub(crate) piece: PiecePlan,
    bytes: usize,
}

impl ListPlan {
    fn new(values: &[u64]) -> Self {
        let sketch = Sketch::of(values);
        if sketch.descents <= DESCENTS_MAX && values.len() > 1 {
            let shift = sketch.differing_delta.trailing_zeros();
            let piece = PiecePlan::new(deltas(values), sketch.min_delta, shift);
            Self {
                is_delta: true,
                piece,
                bytes: 9 + piece.bytes,
            }
        } else {
            let shift = sketch.differing.trailing_zeros();
            let piece = PiecePlan::new(values.iter().copied(), sketch.min, shift);
            Self {
                is_delta: false,
                piece,
                bytes: 1 + piece.bytes,
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct RunsPlan {
    pub(crate) values: Vec<u64>,
    /// Length of each run minus one.
    pub(crate) lengths: Vec<u64>,
    pub(crate) values_plan: ListPlan,
    pub(crate) lengths_plan: PiecePlan,
    bytes: usize,
}

impl RunsPlan {
    fn new(values: &[u64], runs: usize) -> Self {
        let mut run_values = Vec::with_capacity(runs);
        let mut lengths = Vec::with_capacity(runs);
        for run in values.chunk_by(|a, b| a == b) {
            run_values.push(run[0]);
            lengths.push(run.len() as u64 - 1);
        }
        let values_plan = ListPlan::new(&run_values);
        let min_length = lengths.iter().copied().min().unwrap_or(0);
        let lengths_plan = PiecePlan::new(lengths.iter().copied(), min_length, 0);
        Self {
            bytes: 2 + values_plan.bytes + lengths_plan.bytes,
            values: run_values,
            lengths,
            values_plan,
            lengths_plan,
        }
    }
}

#[derive(Debug)]
pub(crate) struct DictionaryPlan {
    /// The distinct values, ascending.
    pub(crate) entries: Vec<u64>,
    /// Per row the position in `entries`.
    pub(crate) codes: Vec<u8>,
    pub(crate) entries_plan: PiecePlan,
    pub(crate) codes_plan: PiecePlan,
    bytes: usize,
}

impl DictionaryPlan {
    /// `None` when the values are too many, or the codes alone take `bytes_max` or more.
    fn new(values: &[u64], bytes_max: usize) -> Option<Self> {
        // Codes of as many distinct values would not be smaller than the best plan so far.
        let width_max = (bytes_max * 8 / values.len()).min(8) as u32;
        let entries_max = DICTIONARY_ENTRIES_MAX.min(1 << width_max);
        let (mut entries, mut codes) = number_distinct(values, entries_max)?;
        let mut order: Vec<u8> = (0..entries.len()).map(|code| code as u8).collect();
        order.sort_unstable_by_key(|&code| entries[usize::from(code)]);
        let mut new_codes = [0u8; DICTIONARY_ENTRIES_MAX];
        for (new_code, &code) in order.iter().enumerate() {
            new_codes[usize::from(code)] = new_code as u8;
        }
        entries.sort_unstable();
        for code in &mut codes {
            *code = new_codes[usize::from(*code)];
        }
        let shift = entries
            .iter()
            .fold(0, |bits, entry| bits | (entry ^ entries[0]))
            .trailing_zeros();
        let entries_plan = PiecePlan::new(entries.iter().copied(), entries[0], shift);
        let codes_plan = PiecePlan::new(codes.iter().map(|&code| u64::from(code)), 0, 0);
        Some(Self {
            bytes: 1 + entries_plan.bytes + codes_plan.bytes,
            entries,
            codes,
            entries_plan,
            codes_plan,
        })
    }
}

/// The distinct values in order of appearance, and per row which it is; `None` when they are more
/// than `limit`.
fn number_distinct(values: &[u64], limit: usize) -> Option<(Vec<u64>, Vec<u8>)> {
    const SLOTS: usize = 4 * DICTIONARY_ENTRIES_MAX;
    const EMPTY: u16 = u16::MAX;
    let mut slots = [EMPTY; SLOTS];
    let mut entries: Vec<u64> = Vec::with_capacity(limit.min(64));
    let mut codes = Vec::with_capacity(values.len());
    for &value in values {
        // Fibonacci hashing: the top bits of the product depend on all bits of the value.
        let hash = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut slot = (hash >> (64 - SLOTS.trailing_zeros())) as usize;
        let code = loop {
            match slots[slot] {
                EMPTY => {
                    if entries.len() == limit {
                        return None;
                    }
                    slots[slot] = entries.len() as u16;
                    entries.push(value);
                    break entries.len() - 1;
                }
                code if entries[usize::from(code)] == value => break usize::from(code),
                _ => slot = (slot + 1) % SLOTS,
            }
        };
        codes.push(code as u8);
    }
    Some((entries, codes))
}

#[derive(Debug)]
pub(crate) struct GroupsPlan {
    /// The values, group after group, in row order within a group.
    pub(crate) values: Vec<u64>,
    /// Per row the number of its group.
    pub(crate) numbers: Vec<u8>,
    pub(crate) numbers_plan: PiecePlan,
    /// Per group its number of rows and its plan.
    pub(crate) groups: Vec<(usize, PiecePlan)>,
    bytes: usize,
}

impl GroupsPlan {
    /// `None` when all values are of one kind.
    fn new(values: &[u64], sketch: &Sketch) -> Option<Self> {
        if kind_of(sketch.differing) == 0 {
            return None;
        }
        let mut counts = [0usize; GROUPS_MAX];
        for &value in values {
            counts[kind_of(value)] += 1;
        }
        let mut numbers_of_kinds = [0u8; GROUPS_MAX];
        let mut starts = [0usize; GROUPS_MAX];
        let (mut group_count, mut start) = (0, 0);
        for kind in 0..GROUPS_MAX {
            numbers_of_kinds[kind] = group_count;
            group_count += u8::from(counts[kind] > 0);
            starts[kind] = start;
            start += counts[kind];
        }
        let mut grouped = vec![0; values.len()];
        let mut numbers = Vec::with_capacity(values.len());
        for &value in values {
            let kind = kind_of(value);
            grouped[starts[kind]] = value;
            starts[kind] += 1;
            numbers.push(numbers_of_kinds[kind]);
        }
        let mut rest = &grouped[..];
        let mut groups = Vec::with_capacity(usize::from(group_count));
        for count in counts.into_iter().filter(|&count| count > 0) {
            let (group, after) = rest.split_at(count);
            rest = after;
            groups.push((count, group_plan(group)));
        }
        let group_width = bit_length(u64::from(group_count) - 1);
        let numbers_plan = PiecePlan::new(numbers.iter().map(|&number| u64::from(number)), 0, 0);
        debug_assert!(numbers_plan.width <= group_width);
        let bytes =
            1 + numbers_plan.bytes + groups.iter().map(|(_, plan)| 2 + plan.bytes).sum::<usize>();
        Some(Self {
            values: grouped,
            numbers,
            numbers_plan,
            groups,
            bytes,
        })
    }
}

fn kind_of(value: u64) -> usize {
    (value >> 60) as usize
}

fn group_plan(group: &[u64]) -> PiecePlan {
    let (mut min, mut differing) = (group[0], 0);
    for &value in group {
        min = min.min(value);
        differing |= value ^ group[0];
    }
    PiecePlan::new(group.iter().copied(), min, differing.trailing_zeros())
}
