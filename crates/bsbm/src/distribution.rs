//! The generator's random numbers: a stream per entity, and the specification's distributions.
//!
//! Every entity draws from a stream of its own, seeded by (data set seed, class,
//! number). So any product can be computed again without generating those
//! before it, which is how query parameters are drawn from the generator's
//! knowledge. The generator is SplitMix64 (Steele, Lea, Flood: Fast splittable
//! pseudorandom number generators, 2014) and not the `rand` crate's, whose
//! fast generators may change with its versions; a data set must not.

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a stream of random numbers is for; streams of different classes are
/// independent. The numbers are part of what a seed means: they stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The list of words.
    Words = 1,
    /// The tree of product types.
    ProductTypes = 2,
    /// Features of a product type.
    ProductFeatures = 3,
    /// How many products each producer has.
    ProducerSizes = 4,
    /// A producer.
    Producer = 5,
    /// A product.
    Product = 6,
    /// How many offers each vendor has.
    VendorSizes = 7,
    /// A vendor.
    Vendor = 8,
    /// An offer.
    Offer = 9,
    /// How many reviews each reviewer has.
    ReviewerSizes = 10,
    /// How many reviewers each rating site has.
    RatingSiteSizes = 11,
    /// A reviewer.
    Reviewer = 12,
    /// A review.
    Review = 13,
    /// Parameters of queries.
    Parameters = 14,
    /// Places, tags and organizations of the Social Network Benchmark.
    SnbWorld = 15,
    /// A person of it.
    SnbPerson = 16,
    /// The friends of a person.
    SnbFriends = 17,
    /// A forum.
    SnbForum = 18,
    /// Parameters of its queries.
    SnbParameters = 19,
    /// A creative work of the Semantic Publishing Benchmark.
    SpbWork = 20,
    /// What its works are about.
    SpbWorld = 21,
    /// Events that its works report.
    SpbEvents = 22,
}

/// A deterministic stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A stream for callers outside the generator, e.g. to draw query parameters.
    pub fn new(seed: u64) -> Self {
        Self::for_entity(seed, Stream::Parameters, 0)
    }

    /// The stream of one entity: data set seed, class, number.
    pub fn for_entity(seed: u64, stream: Stream, number: u64) -> Self {
        let class = mix(seed.wrapping_add((stream as u64).wrapping_mul(GOLDEN_GAMMA)));
        Self {
            state: mix(class ^ number.wrapping_mul(GOLDEN_GAMMA)),
        }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix(self.state)
    }

    /// A number in `0..bound`, all equally likely (to within 2^-32).
    ///
    /// # Panics
    /// When `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "no number is below 0");
        ((u64::from(self.next_u64() as u32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        debug_assert!(low <= high);
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    #[inline]
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of the items, all equally likely.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        match u32::try_from(items.len()) {
            Ok(0) => None,
            Ok(length) => items.get(self.below(length) as usize),
            Err(_) => items.get((self.next_u64() % items.len() as u64) as usize),
        }
    }

    /// A normally distributed number, as the sum of twelve uniform ones: exact
    /// arithmetic only, so every machine draws the same, and tails beyond six
    /// standard deviations are of no use here.
    #[inline]
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let mut sum = 0_u64;
        for _ in 0..6 {
            let bits = self.next_u64();
            sum += (bits & 0xffff_ffff) + (bits >> 32);
        }
        let standard = sum as f64 / 4_294_967_296.0 - 6.0;
        mean + deviation * standard
    }

    /// A normal number cut to `0..limit` (drawn again when outside), scaled to
    /// the integers `1..=maximum`.
    #[inline]
    pub(crate) fn normal_rank(&mut self, shape: NormalShape, maximum: u32) -> u32 {
        loop {
            let value = self.normal(shape.mean, shape.deviation);
            if (0.0..shape.limit).contains(&value) {
                // The product can round up to the maximum itself.
                return ((value / shape.limit * f64::from(maximum)) as u32).min(maximum - 1) + 1;
            }
        }
    }

    /// How many things one owner has (offers of a vendor and the like): normal
    /// with a third of the mean as deviation, at least one.
    pub(crate) fn group_size(&mut self, mean: u32) -> u32 {
        let mean = f64::from(mean);
        (self.normal(mean, mean / 3.0) as i64).clamp(1, i64::from(u32::MAX)) as u32
    }
}

/// A normal distribution cut to `0..limit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NormalShape {
    mean: f64,
    deviation: f64,
    limit: f64,
}

/// Numbers in the middle are drawn most often: which product an offer or a
/// review is about.
pub(crate) const MIDDLE_FIRST: NormalShape = NormalShape {
    mean: 2.0,
    deviation: 1.0,
    limit: 4.0,
};

/// Small numbers are drawn most often, two deviations cover the range: numeric
/// properties, the type of a product.
pub(crate) const SMALL_FIRST: NormalShape = NormalShape {
    mean: 0.0,
    deviation: 1.0,
    limit: 2.0,
};

/// Delivery days, 1 to 10, mostly 3 and 4.
pub(crate) const DELIVERY: NormalShape = NormalShape {
    mean: 2.0,
    deviation: 1.0,
    limit: 20.0 / 3.0,
};

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_an_entity_never_changes() {
        let mut random = Random::for_entity(7, Stream::Offer, 12);
        let again = Random::for_entity(7, Stream::Offer, 12).next_u64();
        assert_eq!(random.next_u64(), again);
        assert_ne!(again, Random::for_entity(7, Stream::Review, 12).next_u64());
        assert_ne!(again, Random::for_entity(8, Stream::Offer, 12).next_u64());
    }

    #[test]
    fn normal_has_its_mean_and_deviation() {
        let mut random = Random::new(1);
        let values: Vec<f64> = (0..20_000).map(|_| random.normal(50.0, 10.0)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!((mean - 50.0).abs() < 0.5, "{mean}");
        assert!((variance.sqrt() - 10.0).abs() < 0.3, "{variance}");
    }

    #[test]
    fn ranks_stay_within_their_range() {
        let mut random = Random::new(2);
        for maximum in [1, 2, 7, 2_000] {
            for _ in 0..2_000 {
                let rank = random.normal_rank(MIDDLE_FIRST, maximum);
                assert!((1..=maximum).contains(&rank));
            }
        }
    }
}
