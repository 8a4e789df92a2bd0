//! The scale factor.

use std::fmt;
use std::str::FromStr;

use super::TpchError;

/// Below it a refresh set has no order any more.
pub(super) const MIN: f64 = 0.001;
/// Beyond it order keys and row numbers of the generator have not been looked at.
pub(super) const MAX: f64 = 3_000.0;

/// A scale factor: 1 stands for about 1 GB of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale(f64);

impl Scale {
    /// This scale.
    ///
    /// # Errors
    /// When it is no number, or one for which there is no such database.
    pub fn new(factor: f64) -> Result<Self, TpchError> {
        if (MIN..=MAX).contains(&factor) {
            Ok(Self(factor))
        } else {
            Err(TpchError::Scale {
                given: factor.to_string(),
            })
        }
    }

    /// As a number.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// So many rows at scale 1 are so many here; as the generator rounds them.
    pub(super) fn rows(self, at_one: u32) -> u64 {
        (f64::from(at_one) * self.0) as u64
    }
}

impl FromStr for Scale {
    type Err = TpchError;

    fn from_str(text: &str) -> Result<Self, TpchError> {
        let factor = text.parse().map_err(|_| TpchError::Scale {
            given: format!("{text:?}"),
        })?;
        Self::new(factor)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_without_a_database_is_refused() {
        for text in ["0", "-1", "NaN", "inf", "0.0001", "many", ""] {
            let error = text.parse::<Scale>().unwrap_err().to_string();
            assert!(error.contains("from 0.001 to 3000"), "{text}: {error}");
        }
        let scale: Scale = "0.01".parse().unwrap();
        assert_eq!(scale.rows(1_500_000), 15_000);
        assert_eq!(scale.to_string(), "0.01");
    }
}
