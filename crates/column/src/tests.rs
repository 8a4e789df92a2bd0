use std::ops::Range;

use proptest::prelude::*;

use super::*;

fn round_trip(values: &[u64]) -> Codec {
    let mut bytes = vec![0xAA];
    let codec = encode(values, &mut bytes);
    let bytes = &bytes[1..];
    let mut out = [7; VECTOR_ROWS];
    assert_eq!(decode(bytes, &mut out).unwrap(), values.len());
    assert_eq!(&out[..values.len()], values);
    let vector = EncodedVector::read(bytes).unwrap();
    assert_eq!(vector.codec(), codec);
    for (row, &value) in values.iter().enumerate() {
        let got = vector.get(row);
        assert_eq!(got.is_some(), vector.has_random_access());
        assert!(got.is_none_or(|got| got == value));
    }
    few_rows_are_read_as_they_are(&vector, values);
    for range in ascending_ranges(values) {
        keys_are_found(&vector, values, range);
    }
    codec
}

/// The first few longest ranges in which the values ascend, as those of a sorted column's keys do,
/// and parts of them.
fn ascending_ranges(values: &[u64]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for end in 1..=values.len() {
        if (end == values.len() || values[end] < values[end - 1]) && ranges.len() < 20 {
            let part = (end - start) / 3;
            ranges.extend([start..end, start + part..end - part, start..start + 1]);
            start = end;
        }
    }
    ranges
}

fn few_rows_are_read_as_they_are(vector: &EncodedVector<'_>, values: &[u64]) {
    for start in (0..values.len()).step_by(1 + values.len() / 50) {
        for end in [start, start + 1, start + 7] {
            let range = start..end.min(values.len());
            let mut out = vec![3];
            assert!(vector.read_few(range.clone(), &mut out));
            assert_eq!(out[1..], values[range]);
        }
    }
}

/// By binary search over the values, of keys that are there and of those beside them.
fn keys_are_found(vector: &EncodedVector<'_>, values: &[u64], range: Range<usize>) {
    let within = &values[range.clone()];
    let some = within.iter().step_by(1 + within.len() / 40);
    let beside = some.flat_map(|&value| [value, value.wrapping_add(1), value.wrapping_sub(1)]);
    for key in beside.chain([0, u64::MAX]) {
        let start = range.start + within.partition_point(|&value| value < key);
        let end = range.start + within.partition_point(|&value| value <= key);
        let found = vector.search(range.clone(), key);
        let is_groups = vector.codec() == Codec::Groups;
        assert_eq!(found.is_none(), is_groups && !range.is_empty());
        assert!(
            found.is_none_or(|found| found == (start..end)),
            "{key} in {range:?}"
        );
    }
}

fn numbers(count: u64, number: impl Fn(u64) -> u64) -> Vec<u64> {
    (0..count).map(number).collect()
}

fn scrambled(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7
}

#[test]
fn each_shape_of_data_gets_its_codec() {
    assert_eq!(round_trip(&numbers(1024, |_| u64::MAX)), Codec::Constant);
    assert_eq!(
        round_trip(&numbers(1024, |n| scrambled(n) % 5000)),
        Codec::Frame
    );
    assert_eq!(round_trip(&numbers(1024, |n| n * n + 7)), Codec::Delta);
    assert_eq!(round_trip(&numbers(1024, |n| n / 20 * 3)), Codec::Runs);
    assert_eq!(
        round_trip(&numbers(1024, |n| scrambled(n % 9))),
        Codec::Dictionary
    );
    let mixed = |n| match n % 3 {
        0 => (2 << 60) | (scrambled(n) % 1_000_000),
        1 => (6 << 60) | ((n << 4) + 1),
        _ => (13 << 60) | scrambled(n),
    };
    assert_eq!(round_trip(&numbers(1024, mixed)), Codec::Groups);
}

#[test]
fn extreme_values_come_back() {
    round_trip(&[0]);
    round_trip(&[u64::MAX]);
    round_trip(&[0, u64::MAX]);
    round_trip(&[u64::MAX, 0]);
    round_trip(&[u64::MAX, 0, 1 << 63, 1, u64::MAX - 1]);
    round_trip(&numbers(1024, |n| if n % 2 == 0 { 0 } else { u64::MAX }));
    round_trip(&numbers(1000, |n| n << 54));
    // Differences that take no bits but for some of them.
    round_trip(&numbers(1024, |n| 9 * n + n / 300 * 1_000_000));
    round_trip(&numbers(1024, |n| (n + n / 64) << 20));
    // And sorted ones with long repetitions among others that have none.
    round_trip(&numbers(1024, |n| if n < 500 { 7 } else { 3 * n * n }));
    round_trip(&numbers(1000, |n| (n / 130) << 17 | n.saturating_sub(900)));
    round_trip(&numbers(1024, |n| scrambled(n).rotate_left(n as u32)));
}

#[test]
fn a_few_outliers_do_not_widen_the_others() {
    let mut values = numbers(1024, |n| scrambled(n) % 1000);
    values[17] = u64::MAX;
    values[900] = 1 << 40;
    let mut bytes = Vec::new();
    encode(&values, &mut bytes);
    assert!(bytes.len() < 1024 * 10 / 8 + 60, "{} bytes", bytes.len());
    round_trip(&values);
}

#[test]
fn two_sorted_parts_are_stored_as_differences() {
    let values = numbers(1024, |n| if n < 500 { 1_000_000 + 7 * n } else { 3 * n });
    assert_eq!(round_trip(&values), Codec::Delta);
}

#[test]
fn common_low_bits_take_no_room() {
    let mut bytes = Vec::new();
    encode(
        &numbers(1024, |n| ((scrambled(n) % 16) << 32) + 9),
        &mut bytes,
    );
    assert!(bytes.len() < 1024 / 2 + 200, "{} bytes", bytes.len());
}

/// Vectors of all shapes: sorted or not, of few or many values, of any range and mixture of kinds.
fn vectors() -> impl Strategy<Value = Vec<u64>> {
    let value = (0u32..=64, any::<u64>(), 0u64..4)
        .prop_map(|(bits, random, kind)| (random & bits::mask(bits)) ^ (kind << 60));
    let narrow = (any::<u64>(), 0u32..64, 0u32..40).prop_flat_map(|(base, shift, bits)| {
        prop::collection::vec(0..=bits::mask(bits), 1..=VECTOR_ROWS).prop_map(move |distances| {
            distances
                .iter()
                .map(|distance| base.wrapping_add(distance << shift))
                .collect()
        })
    });
    let repeated = (
        prop::collection::vec(value.clone(), 1..40),
        prop::collection::vec((0usize..40, 1usize..60), 1..60),
    )
        .prop_map(|(entries, picks)| {
            let mut values: Vec<u64> = picks
                .iter()
                .flat_map(|&(pick, count)| {
                    std::iter::repeat_n(entries[pick % entries.len()], count)
                })
                .collect();
            values.truncate(VECTOR_ROWS);
            values
        });
    // As the second column of a sorted table: ascending anew under each value of the first.
    let parts =
        (1usize..400, any::<u64>(), 0u32..60, 1u64..5).prop_map(|(length, seed, bits, repeats)| {
            let mut values: Vec<u64> = (0..VECTOR_ROWS as u64)
                .map(|n| scrambled(seed ^ (n / repeats)) & bits::mask(bits))
                .collect();
            values.chunks_mut(length).for_each(<[u64]>::sort_unstable);
            values
        });
    let any_vector = prop_oneof![
        parts,
        prop::collection::vec(value, 1..=VECTOR_ROWS),
        narrow,
        repeated,
    ];
    (any_vector, any::<bool>()).prop_map(|(mut values, is_sorted)| {
        if is_sorted {
            values.sort_unstable();
        }
        values
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_vector_comes_back(values in vectors()) {
        round_trip(&values);
    }

    #[test]
    fn damaged_bytes_never_panic(
        values in vectors(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        for (position, byte) in damage {
            let position = position.index(bytes.len().min(40));
            bytes[position] = byte;
        }
        if is_cut {
            bytes.truncate(length.index(bytes.len()));
        }
        let mut out = [0; VECTOR_ROWS];
        if let Ok(rows) = decode(&bytes, &mut out) {
            let vector = EncodedVector::read(&bytes).unwrap();
            for row in 0..rows + 2 {
                vector.get(row);
            }
        }
        if let Ok(vector) = EncodedVector::read(&bytes) {
            for key in values.iter().step_by(100) {
                let found = vector.search(0..vector.rows(), *key).unwrap_or(0..0);
                assert!(found.start <= found.end && found.end <= vector.rows());
            }
            let read = vector.read_few(vector.rows() / 2..vector.rows(), &mut Vec::new());
            assert!(read || vector.codec() != Codec::Frame);
        }
    }

    #[test]
    fn any_bytes_at_all_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..600), tag in 0u8..7) {
        if let Some(first) = bytes.first_mut() {
            *first = tag;
        }
        if let Some(high) = bytes.get_mut(2) {
            *high %= 4;
        }
        let mut out = [0; VECTOR_ROWS];
        let _either = decode(&bytes, &mut out);
    }
}
