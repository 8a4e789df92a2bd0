//! The memory samples of the server.
//!
//! Anonymous memory (`RssAnon` of `/proc/PID/status`): the process without the mapped pages of its
//! files, which are the system's cache.

use std::fs;

use serde::Serialize;

/// What was sampled, each second.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<(f64, f64)>);

/// What the samples say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MemoryReport {
    /// The most that there was.
    pub peak_bytes: u64,
    /// The mean of the last half of the run.
    pub mean_bytes: u64,
    /// How much more there is at the end of the last half than at its beginning, by the straight
    /// line with the least squares, in percent of the mean.
    pub growth_percent: f64,
}

impl Samples {
    /// Takes a sample, so many seconds after the beginning; none where the system does not tell, or
    /// the process is gone.
    pub(super) fn take(&mut self, process: u32, seconds: f64) {
        if let Some(bytes) = anonymous_bytes(process) {
            self.0.push((seconds, bytes as f64));
        }
    }

    pub(super) fn report(&self) -> MemoryReport {
        let peak = self.0.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
        let half = self.0.get(self.0.len() / 2..).unwrap_or_default();
        let (Some(first), Some(last)) = (half.first(), half.last()) else {
            return MemoryReport::default();
        };
        let count = half.len() as f64;
        let mean_of = |part: fn(&(f64, f64)) -> f64| half.iter().map(part).sum::<f64>() / count;
        let (middle, mean) = (mean_of(|sample| sample.0), mean_of(|sample| sample.1));
        let (mut products, mut squares) = (0.0, 0.0);
        for (seconds, bytes) in half {
            products += (seconds - middle) * (bytes - mean);
            squares += (seconds - middle) * (seconds - middle);
        }
        let slope = if squares > 0.0 {
            products / squares
        } else {
            0.0
        };
        MemoryReport {
            peak_bytes: peak as u64,
            mean_bytes: mean as u64,
            growth_percent: slope * (last.0 - first.0) / mean * 100.0,
        }
    }
}

fn anonymous_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines();
    let kibibytes =
        lines.find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix("kB"))?;
    Some(kibibytes.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_of_the_last_half() {
        let samples = |bytes: fn(u32) -> f64| {
            Samples((0..600).map(|at| (f64::from(at), bytes(at))).collect()).report()
        };
        let filled_first = samples(|at| if at < 300 { f64::from(at) } else { 300.0 });
        assert!(filled_first.growth_percent.abs() < 1e-9);
        assert_eq!(
            (filled_first.peak_bytes, filled_first.mean_bytes),
            (300, 300)
        );
        // From 1,300 to 1,599 over a mean of 1,449.5, with a wave over it.
        let grows = samples(|at| 1_000.0 + f64::from(at) + f64::from(at % 10));
        assert!((grows.growth_percent - 20.6).abs() < 0.3, "{grows:?}");
        assert_eq!(Samples::default().report(), MemoryReport::default());
    }

    #[test]
    fn a_process_has_anonymous_memory() {
        assert!(anonymous_bytes(std::process::id()).unwrap() > 1 << 16);
        assert!(anonymous_bytes(u32::MAX).is_none());
    }
}
