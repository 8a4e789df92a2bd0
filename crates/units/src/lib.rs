//! Quantities as people write and read them: `8G`, `512M`; `30s`, `500ms`, `2m`; 1,000 quads.
//!
//! The command line, `timeout=` of requests and the benchmarks share them.

mod times;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use times::{NotATime, parse_time};

/// A number of bytes. `K`, `M`, `G`, `T` count in powers of 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl Bytes {
    /// As the length of something in memory.
    pub fn in_memory(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text
            .trim_end_matches(['b', 'B'])
            .trim_end_matches("i")
            .trim_end();
        let (digits, factor) = match trimmed.char_indices().last() {
            Some((at, unit)) if unit.is_ascii_alphabetic() => {
                let power = match unit.to_ascii_uppercase() {
                    'K' => 1,
                    'M' => 2,
                    'G' => 3,
                    'T' => 4,
                    _ => return Err(format!("unknown unit {unit:?}; use K, M, G or T")),
                };
                (&trimmed[..at], 1024u64.pow(power))
            }
            _ => (trimmed, 1),
        };
        let number: f64 = digits
            .trim()
            .parse()
            .map_err(|_| "expected a number of bytes such as 512M or 8G".to_owned())?;
        let bytes = number * factor as f64;
        if !(bytes >= 0.0 && bytes < u64::MAX as f64) {
            return Err("out of range".to_owned());
        }
        Ok(Self(bytes as u64))
    }
}

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_time(text)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

/// A count with commas between groups of three digits.
pub struct ShowCount(pub u64);

impl fmt::Display for ShowCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

/// A count with its noun: `1 quad`, `1,000 quads`.
pub struct Counted(pub u64, pub &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = self;
        write!(f, "{} {}", ShowCount(*count), plural(*count, noun))
    }
}

/// A noun as it follows a count.
pub fn plural(count: u64, noun: &'static str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_units() {
        let cases = [
            ("0", 0),
            ("100", 100),
            ("8G", 8 << 30),
            ("512MiB", 512 << 20),
            ("1.5k", 1536),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "G", "-1", "8X", "1e99"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_take_units() {
        let cases = [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("2min", 120_000),
            ("1.5", 1500),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(
                text.parse(),
                Ok(Seconds(Duration::from_millis(milliseconds))),
                "{text}"
            );
        }
        for text in ["", "s", "-1s", "inf", "x", "0", "1e3"] {
            assert!(text.parse::<Seconds>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_is_no_plural() {
        let text = |count| Counted(count, "quad").to_string();
        assert_eq!(
            [0, 1, 2, 1000].map(text),
            ["0 quads", "1 quad", "2 quads", "1,000 quads"]
        );
    }

    #[test]
    fn counts_have_commas() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_000_312, "1,000,312"),
        ];
        for (count, text) in cases {
            assert_eq!(ShowCount(count).to_string(), text);
        }
    }
}
