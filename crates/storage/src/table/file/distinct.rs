//! Estimates of distinct values of a column: HyperLogLog (Flajolet and others, 2007) with 4,096
//! registers, off by 1.6 % on average.

const REGISTER_BITS: u32 = 12;
const REGISTERS: usize = 1 << REGISTER_BITS;

/// Values that were seen, in 4 KiB.
#[derive(Debug)]
pub(super) struct Distinct(Box<[u8; REGISTERS]>);

impl Default for Distinct {
    fn default() -> Self {
        Self(Box::new([0; REGISTERS]))
    }
}

/// Spreads the bits of a lane.
#[inline]
pub(super) fn hash_lane(lane: u64) -> u64 {
    let product = u128::from(lane ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
    let mixed = (product >> 64) as u64 ^ product as u64;
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// A hash of bytes.
#[inline]
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut hash = bytes.len() as u64;
    for word in words {
        let product = u128::from(hash ^ u64::from_le_bytes(*word)) * 0xA5CB_9243_F2CE_ED4D;
        hash = (product >> 64) as u64 ^ product as u64;
    }
    let last = tail
        .iter()
        .fold(1, |last, &byte| last << 8 | u64::from(byte));
    hash_lane(hash.rotate_left(23) ^ last)
}

impl Distinct {
    #[inline]
    pub(super) fn insert(&mut self, hash: u64) {
        let register = &mut self.0[(hash >> (64 - REGISTER_BITS)) as usize];
        // The bit that is set bounds the rank.
        let rank = ((hash << REGISTER_BITS) | 1 << (REGISTER_BITS - 1)).leading_zeros() as u8 + 1;
        if rank > *register {
            *register = rank;
        }
    }

    /// How many different hashes there were, about.
    pub(super) fn estimate(&self) -> u64 {
        let count = REGISTERS as f64;
        let sum: f64 = self.0.iter().map(|&rank| (-f64::from(rank)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.0.iter().filter(|&&rank| rank == 0).count();
        let estimate = match empty {
            // Few values: counting empty registers is more exact.
            1.. if raw <= 2.5 * count => count * (count / empty as f64).ln(),
            _ => raw,
        };
        estimate.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_near_from_none_to_millions() {
        for count in [0u64, 1, 10, 1000, 5000, 20_000, 1_000_000] {
            let (mut lanes, mut texts) = (Distinct::default(), Distinct::default());
            for number in 0..count {
                lanes.insert(hash_lane((1 << 63) + number * 4));
                texts.insert(hash_bytes(format!("Customer#{number:09}").as_bytes()));
            }
            for found in [lanes.estimate(), texts.estimate()] {
                assert!(found.abs_diff(count) * 20 <= count, "{found} of {count}");
            }
        }
    }
}
