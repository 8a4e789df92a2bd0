//! A bit set of wanted numbers.

use datafusion::arrow::buffer::{BooleanBuffer, Buffer};

/// Of each value whether something holds. Eight at once, so that each bit has its place in the
/// code: three times as fast as with a place that is counted.
#[inline]
pub(super) fn bits_of(values: &[i64], holds: impl Fn(i64) -> bool) -> BooleanBuffer {
    let byte = |values: &[i64]| {
        let bits = values.iter().enumerate();
        bits.fold(0, |byte, (bit, value)| {
            byte | u8::from(holds(*value)) << bit
        })
    };
    let (eights, rest) = values.as_chunks::<8>();
    let mut bytes: Vec<u8> = Vec::with_capacity(values.len().div_ceil(8));
    bytes.extend(eights.iter().map(|eight| byte(eight)));
    if !rest.is_empty() {
        bytes.push(byte(rest));
    }
    BooleanBuffer::new(Buffer::from_vec(bytes), 0, values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_bit() {
        for count in [0, 1, 7, 8, 9, 64, 1000] {
            let values: Vec<i64> = (0..count).map(|it| it * 7 % 13).collect();
            let bits = bits_of(&values, |value| value < 5);
            let expected: Vec<bool> = values.iter().map(|value| *value < 5).collect();
            assert_eq!(bits.iter().collect::<Vec<_>>(), expected);
        }
    }
}
