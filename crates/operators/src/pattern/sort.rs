//! Sorting keys with their row numbers.
//!
//! The keys of one step are mostly ids of one kind from a narrow range, so few bits differ and a radix sort
//! with two or three passes beats the comparison sort: 131,072 offers in about 4 instead of 21 ns each.

use arrow::buffer::ScalarBuffer;

/// Bits per pass: the counters of a pass fit the first level of the cache.
const DIGIT_BITS: u32 = 11;
/// With more passes than this the comparison sort is as fast.
const PASSES_MAX: u32 = 4;
/// Fewer keys are not worth the counters.
const RADIX_KEYS_MIN: usize = if cfg!(test) { 8 } else { 512 };

/// Keys in ascending order, one after the other, and the rows they came from; equal keys in the order of
/// their rows.
pub(super) fn sort_rows<const N: usize>(
    columns: [&[u64]; N],
) -> (ScalarBuffer<u64>, Option<Vec<u32>>) {
    if let [only] = columns[..]
        && let Some((keys, order)) = radix_sort(only)
    {
        return (keys.into(), Some(order));
    }
    let rows = columns.first().map_or(0, |column| column.len());
    let mut keyed: Vec<([u64; N], u32)> = (0..rows)
        .map(|row| (columns.map(|column| column[row]), row as u32))
        .collect();
    if !keyed.is_sorted() {
        keyed.sort_unstable();
    }
    let order = keyed.iter().map(|(_, row)| *row).collect();
    let values: Vec<u64> = keyed.iter().flat_map(|(key, _)| *key).collect();
    (values.into(), Some(order))
}

/// Sorts by the digits in which the keys differ, from the least significant on; nothing if there are too
/// many of them.
fn radix_sort(keys: &[u64]) -> Option<(Vec<u64>, Vec<u32>)> {
    let (min, max) = (*keys.iter().min()?, *keys.iter().max()?);
    let bits = u64::BITS - (max - min).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS);
    if keys.len() < RADIX_KEYS_MIN || passes > PASSES_MAX {
        return None;
    }
    let mut from: Vec<(u64, u32)> = (0..)
        .zip(keys)
        .map(|(row, &key)| (key - min, row))
        .collect();
    let mut to = vec![(0, 0); from.len()];
    for pass in 0..passes {
        let digit = |key: u64| (key >> (pass * DIGIT_BITS)) as usize & ((1 << DIGIT_BITS) - 1);
        let mut places = [0u32; 1 << DIGIT_BITS];
        for &(key, _) in &from {
            places[digit(key)] += 1;
        }
        let mut place = 0;
        for count in &mut places {
            place += std::mem::replace(count, place);
        }
        for &entry in &from {
            let place = &mut places[digit(entry.0)];
            to[*place as usize] = entry;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    Some(from.into_iter().map(|(key, row)| (key + min, row)).unzip())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sort_rows;

    proptest! {
        #[test]
        fn keys_ascend_and_equal_ones_keep_their_order(
            low in any::<u64>(),
            spread in prop_oneof![Just(0u32), 1..64u32],
            seeds in proptest::collection::vec(any::<u64>(), 0..300),
        ) {
            let keys: Vec<u64> = seeds
                .iter()
                .map(|seed| low.saturating_add(seed.checked_shr(64 - spread).unwrap_or(0)))
                .collect();
            let mut expected: Vec<(u64, u32)> = (0..).zip(&keys).map(|(row, &key)| (key, row)).collect();
            expected.sort();
            let (sorted, order) = sort_rows([&keys]);
            let actual: Vec<(u64, u32)> = sorted.iter().copied().zip(order.unwrap()).collect();
            prop_assert_eq!(actual, expected);
        }
    }
}
