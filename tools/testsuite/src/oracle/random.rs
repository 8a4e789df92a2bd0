//! A seeded random generator.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The generator of one thing among many of a seed.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut random = Self { state: seed };
        let start = random.next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { state: start }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let number = self.next() % (bound.max(1) as u64);
        usize::try_from(number).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of a list, which is not empty.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A place in a list of weights, each with the probability of its weight.
    pub(crate) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut rest = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            match rest.checked_sub(*weight) {
                Some(less) => rest = less,
                None => return at,
            }
        }
        0
    }
}
