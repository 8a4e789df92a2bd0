//! LEB128 variable-length integers: seven bits per byte, the lowest first.

/// Appends `value`.
#[inline]
pub(crate) fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a value from the front of `bytes` and moves on; `None` when they end too early.
#[inline]
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a length.
#[inline]
pub(crate) fn read_length(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(read(bytes)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_value_round_trips(value: u64) {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(read(&mut rest).unwrap(), value);
            prop_assert!(rest.is_empty());
        }
    }
}
