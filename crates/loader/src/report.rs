//! The final report of a load.

use crate::workers::members::WorkerCounts;
use serde::Serialize;
use std::fs;
use std::time::Instant;

/// The report of a load.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LoadReport {
    /// The last commit now; the load is that commit, if it added any quad or prefix.
    pub commit: u64,
    /// Statements read from the sources.
    pub quads_read: u64,
    /// Quads that the database has now and had not before.
    pub quads_added: u64,
    /// Statements read that were there already or came several times.
    pub duplicates: u64,
    /// Wrong statements that were left out.
    pub errors_skipped: u64,
    /// Statements of JSON-LD that are none of RDF, and were left out as its standard says.
    pub left_out: u64,
    /// All quads of the database now.
    pub quads: u64,
    /// Terms in the dictionary now.
    pub terms: u64,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Size of the database on disk now.
    pub database_bytes: u64,
    /// Largest resident memory of the process so far, 0 where it cannot be told.
    pub peak_memory_bytes: u64,
    /// Seconds of the processor, those of all threads of the process: on a busy machine they tell
    /// more than the others.
    pub cpu_seconds: f64,
    /// What each stage took, in order.
    pub stages: Vec<StageReport>,
    /// What people should know, a sentence each; the first few.
    pub warnings: Vec<String>,
    /// What passed between this process and those that helped it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerCounts>,
}

/// The report of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageReport {
    /// Its name.
    pub stage: &'static str,
    /// What it took.
    #[serde(flatten)]
    pub effort: Effort,
}

/// Time that something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Effort {
    /// From its start to its end.
    pub seconds: f64,
    /// Of the processor, in all threads of the process; 0 where it cannot be told.
    pub cpu_seconds: f64,
}

impl std::ops::Add for Effort {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
        }
    }
}

impl std::ops::Sub for Effort {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            seconds: self.seconds - other.seconds,
            cpu_seconds: self.cpu_seconds - other.cpu_seconds,
        }
    }
}

/// Measures efforts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    start: Instant,
    cpu_seconds: f64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            cpu_seconds: cpu_seconds(),
        }
    }

    /// What it took since the start.
    pub(crate) fn effort(self) -> Effort {
        Effort {
            seconds: self.start.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - self.cpu_seconds,
        }
    }
}

/// Seconds of the processor that this process has used, from `/proc`; 0 on systems without it.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in parentheses, may have spaces; user and system time are the 12th and
    // 13th field after it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

impl LoadReport {
    /// Statements read per second.
    pub fn quads_per_second(&self) -> f64 {
        if self.seconds > 0.0 {
            self.quads_read as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// Bytes on disk per quad of the database.
    pub fn bytes_per_quad(&self) -> f64 {
        if self.quads == 0 {
            0.0
        } else {
            self.database_bytes as f64 / self.quads as f64
        }
    }
}

/// The largest resident memory of this process, from `/proc`; 0 on systems without it.
pub(crate) fn peak_memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_an_empty_load_are_zero() {
        let report = LoadReport::default();
        assert_eq!(report.quads_per_second(), 0.0);
        assert_eq!(report.bytes_per_quad(), 0.0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_takes_time_of_the_processor() {
        let watch = Stopwatch::start();
        let mut number = 1_u64;
        // At least one tick of the system's clock.
        while watch.effort().cpu_seconds < 0.02 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .rotate_left(7);
        }
        assert_ne!(number, 0);
        assert!(watch.effort().cpu_seconds < 10.0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_memory_of_a_process_is_known() {
        assert!(peak_memory_bytes() > 100_000);
    }
}
