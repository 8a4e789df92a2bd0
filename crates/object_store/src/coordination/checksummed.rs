//! The format of catalog and leases: JSON, then a line with its checksum.
//!
//! ```text
//! { ... }
//! crc32c 0a1b2c3d
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

const LINE_BYTES: usize = "crc32c 01234567\n".len();

/// The bytes of a value.
pub(crate) fn to_bytes(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    let line = line(&bytes);
    bytes.extend_from_slice(line.as_bytes());
    Ok(bytes)
}

/// The value of such bytes; what is wrong with them otherwise.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let (json, found) = bytes.split_at(bytes.len().saturating_sub(LINE_BYTES));
    if found != line(json).as_bytes() {
        return Err("its content does not match its last line, the checksum".to_owned());
    }
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

fn line(bytes: &[u8]) -> String {
    format!("crc32c {:08x}\n", crc32c::crc32c(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_and_no_flipped_bit_is_believed() {
        let value = vec!["one".to_owned(), "two".to_owned()];
        let bytes = to_bytes(&value).unwrap();
        assert_eq!(from_bytes::<Vec<String>>(&bytes).unwrap(), value);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(from_bytes::<Vec<String>>(&damaged).is_err(), "bit {bit}");
        }
        assert!(from_bytes::<Vec<String>>(b"").is_err());
    }
}
