//! The generator's skewed distributions, in exact arithmetic.

use orrery_bsbm::Random;

/// A number from 0 to below 1, in steps of 2^-24.
pub(super) fn unit(random: &mut Random) -> f64 {
    f64::from(random.below(1 << 24)) / f64::from(1 << 24)
}

/// A size of at least `least` whose density falls with its third power: a power law, twice `least`
/// on average, no more than `most`. Square roots are exact everywhere.
pub(super) fn power_law(random: &mut Random, least: f64, most: u32) -> u32 {
    let size = least / (1.0 - unit(random)).sqrt();
    (size as u32).min(most)
}

/// A rank below `count`, low ones far more likely.
pub(super) fn skewed(random: &mut Random, count: usize) -> usize {
    let one = unit(random);
    ((one * one * one * count as f64) as usize).min(count.saturating_sub(1))
}

/// A time from `from` to before `to`, soon after `from` more likely.
pub(super) fn soon(random: &mut Random, from: i64, to: i64) -> i64 {
    let one = unit(random);
    from + (one * one * (to - from).max(1) as f64) as i64
}

/// A time from `from` to before `to`.
pub(super) fn any_time(random: &mut Random, from: i64, to: i64) -> i64 {
    from + (unit(random) * (to - from).max(1) as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_has_its_mean_and_a_long_tail() {
        let mut random = Random::new(1);
        let sizes: Vec<u32> = (0..100_000)
            .map(|_| power_law(&mut random, 10.0, 100_000))
            .collect();
        let mean = sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / sizes.len() as f64;
        assert!((17.0..22.0).contains(&mean), "{mean}");
        assert!(sizes.iter().all(|size| *size >= 10));
        assert!(sizes.iter().any(|size| *size > 500));
    }

    #[test]
    fn low_ranks_come_first() {
        let mut random = Random::new(2);
        let low = (0..10_000)
            .filter(|_| skewed(&mut random, 100) < 13)
            .count();
        assert!((4_500..5_600).contains(&low), "{low}");
        assert_eq!(skewed(&mut random, 1), 0);
    }
}
