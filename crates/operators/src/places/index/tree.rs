//! A packed Hilbert R-tree: rectangles sorted along a Hilbert curve, sixteen to a node.
//!
//! ```text
//! level 0   rectangle and number of each entry, in the curve's order     20 bytes each
//! level 1   for every 16 of the level below, what covers them            16 bytes each
//! ...       up to one level of at most 16
//! ```
//!
//! Nothing changes once it is made. Coordinates are `f32`, rounded outward, so that what is found
//! is never too little. To make it takes a sort; to look something up, the nodes whose rectangles
//! meet the one that is looked for.

/// Entries or nodes of a node.
const NODE: usize = 16;
/// Steps of each axis along the curve: 2^16.
const CURVE_BITS: u32 = 16;

/// West, south, east, north; each outward of what it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds([f32; 4]);

impl Bounds {
    /// What is in nothing.
    const NONE: Self = Self([
        f32::INFINITY,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NEG_INFINITY,
    ]);

    pub(super) fn new(west: f64, south: f64, east: f64, north: f64) -> Self {
        Self([below(west), below(south), above(east), above(north)])
    }

    pub(super) fn is_everywhere(self) -> bool {
        self.0[0] == f32::NEG_INFINITY && self.0[2] == f32::INFINITY
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0[0] <= other.0[2]
            && other.0[0] <= self.0[2]
            && self.0[1] <= other.0[3]
            && other.0[1] <= self.0[3]
    }

    fn with(self, other: Self) -> Self {
        Self([
            self.0[0].min(other.0[0]),
            self.0[1].min(other.0[1]),
            self.0[2].max(other.0[2]),
            self.0[3].max(other.0[3]),
        ])
    }
}

/// The nearest `f32` that is not above.
fn below(number: f64) -> f32 {
    let near = number as f32;
    match f64::from(near) > number {
        true => near.next_down(),
        false => near,
    }
}

/// The nearest `f32` that is not below.
fn above(number: f64) -> f32 {
    -below(-number)
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct PackedTree {
    /// All levels, one after the other.
    bounds: Box<[Bounds]>,
    /// Where each level ends.
    ends: Vec<usize>,
    numbers: Box<[u32]>,
}

impl PackedTree {
    /// Of rectangles without infinite edges, and the numbers of what they stand for, fewer than
    /// 2^32.
    pub(super) fn new(entries: &[(Bounds, u32)]) -> Self {
        if entries.is_empty() {
            return Self::default();
        }
        let all = entries.iter().fold(Bounds::NONE, |all, it| all.with(it.0));
        let mut order: Vec<u64> = entries
            .iter()
            .zip(0_u64..)
            .map(|(entry, place)| u64::from(on_curve(entry.0, all)) << 32 | place)
            .collect();
        order.sort_unstable();
        let in_order = || order.iter().map(|it| &entries[(it & 0xFFFF_FFFF) as usize]);
        let mut bounds = Vec::with_capacity(entries.len() + entries.len() / (NODE - 1) + NODE);
        bounds.extend(in_order().map(|entry| entry.0));
        let numbers = in_order().map(|entry| entry.1).collect();
        let mut ends = vec![bounds.len()];
        let mut start = 0;
        while bounds.len() - start > NODE {
            let level = start..bounds.len();
            start = bounds.len();
            for first in level.clone().step_by(NODE) {
                let node = &bounds[first..level.end.min(first + NODE)];
                bounds.push(node.iter().fold(Bounds::NONE, |all, it| all.with(*it)));
            }
            ends.push(bounds.len());
        }
        Self {
            bounds: bounds.into(),
            ends,
            numbers,
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.bounds) + size_of_val(&*self.numbers)
    }

    /// The numbers of entries that meet a rectangle, in no order; `false` once `found` says that it
    /// has enough.
    pub(super) fn meeting(&self, wanted: Bounds, found: &mut dyn FnMut(u32) -> bool) -> bool {
        let Some(top) = self.ends.len().checked_sub(1) else {
            return true;
        };
        let start = |level: usize| if level == 0 { 0 } else { self.ends[level - 1] };
        // A level of the tree adds 16 at most, and there are eight at most.
        let mut nodes: Vec<(usize, usize)> = vec![(top, start(top))];
        while let Some((level, first)) = nodes.pop() {
            let end = self.ends[level].min(first + NODE);
            for place in first..end {
                if !self.bounds[place].meets(wanted) {
                    continue;
                }
                match level {
                    0 => {
                        if !found(self.numbers[place]) {
                            return false;
                        }
                    }
                    _ => {
                        let child = start(level - 1) + (place - start(level)) * NODE;
                        nodes.push((level - 1, child));
                    }
                }
            }
        }
        true
    }
}

/// Where the middle of a rectangle lies on the curve through all of them.
fn on_curve(bounds: Bounds, all: Bounds) -> u32 {
    let step = |axis: usize| {
        let middle = f64::midpoint(f64::from(bounds.0[axis]), f64::from(bounds.0[axis + 2]));
        let (low, high) = (f64::from(all.0[axis]), f64::from(all.0[axis + 2]));
        let steps = f64::from((1_u32 << CURVE_BITS) - 1);
        let part = (middle - low) / (high - low).max(f64::MIN_POSITIVE);
        (part.clamp(0.0, 1.0) * steps) as u32
    };
    hilbert(step(0), step(1))
}

/// The number of a place along the Hilbert curve ("Programming the Hilbert curve", Skilling, 2004,
/// for two axes).
fn hilbert(mut x: u32, mut y: u32) -> u32 {
    let mut number = 0;
    let mut step = 1_u32 << (CURVE_BITS - 1);
    while step > 0 {
        let right = u32::from(x & step > 0);
        let upper = u32::from(y & step > 0);
        number += step.wrapping_mul(step).wrapping_mul((3 * right) ^ upper);
        // The quarter is turned so that the curve goes on where it left the one before.
        if upper == 0 {
            if right == 1 {
                let most = (1_u32 << CURVE_BITS) - 1;
                (x, y) = (most - x, most - y);
            }
            (x, y) = (y, x);
        }
        step >>= 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds() -> impl Strategy<Value = Bounds> {
        let side = || prop_oneof![3 => Just(0.0), 1 => 0.0..40.0_f64];
        (-180.0..180.0_f64, -90.0..90.0_f64, side(), side())
            .prop_map(|(x, y, width, height)| Bounds::new(x, y, x + width, y + height))
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_a_look_at_each_finds(
            all in prop::collection::vec(bounds(), 0..900), wanted in bounds(),
        ) {
            let entries: Vec<(Bounds, u32)> = all.iter().copied().zip(0..).collect();
            let tree = PackedTree::new(&entries);
            prop_assert_eq!(tree.len(), all.len());
            let mut found = Vec::new();
            let is_whole = tree.meeting(wanted, &mut |number| { found.push(number); true });
            prop_assert!(is_whole);
            found.sort_unstable();
            let expected = entries.iter().filter(|it| it.0.meets(wanted)).map(|it| it.1);
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }

        #[test]
        fn rounding_goes_outward(number in -1e12..1e12_f64) {
            prop_assert!(f64::from(below(number)) <= number && number <= f64::from(above(number)));
            prop_assert!(f64::from(above(number)) - f64::from(below(number)) <= number.abs() * 1e-6);
        }
    }

    #[test]
    fn a_search_ends_when_there_is_enough() {
        let entries: Vec<(Bounds, u32)> = (0..1_000)
            .map(|number| (Bounds::new(0.0, 0.0, 1.0, 1.0), number))
            .collect();
        let tree = PackedTree::new(&entries);
        let mut seen = 0;
        let is_whole = tree.meeting(Bounds::new(0.5, 0.5, 0.5, 0.5), &mut |_| {
            seen += 1;
            seen < 10
        });
        assert!(!is_whole);
        assert_eq!(seen, 10);
    }

    #[test]
    fn neighbours_on_the_curve_are_neighbours() {
        let mut places = std::collections::BTreeMap::new();
        for x in 0..64 {
            for y in 0..64 {
                places.insert(hilbert(x, y), (x as i32, y as i32));
            }
        }
        assert_eq!(places.len(), 64 * 64);
        let places: Vec<_> = places.into_values().collect();
        for pair in places.windows(2) {
            let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
            assert_eq!((x - to_x).abs() + (y - to_y).abs(), 1, "{pair:?}");
        }
    }
}
