//! The rate limit of diagnoses of empty answers.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Empty answers of one second that are looked into.
const LOOKS_PER_SECOND_MAX: u32 = 8;

/// How many empty answers were looked into lately.
#[derive(Debug, Default)]
pub(crate) struct Looks(Mutex<Option<(Instant, u32)>>);

impl Looks {
    /// Whether one more may be.
    pub(crate) fn may_look(&self) -> bool {
        let mut looks = self.0.lock();
        match &mut *looks {
            Some((since, count)) if since.elapsed() < Duration::from_secs(1) => {
                *count += 1;
                *count <= LOOKS_PER_SECOND_MAX
            }
            _ => {
                *looks = Some((Instant::now(), 1));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_empty_answers_in_a_second_are_not_all_looked_into() {
        let looks = Looks::default();
        let looked = (0..1_000).filter(|_| looks.may_look()).count();
        // The test may itself take more than a second.
        assert!((8..500).contains(&looked), "{looked}");
    }
}
