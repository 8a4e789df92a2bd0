//! The final report of a load.

use serde::Serialize;
use std::fs;

/// What a load did, and what it took.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LoadReport {
    /// Statements read from the sources.
    pub quads_read: u64,
    /// Quads that the database has now and had not before.
    pub quads_added: u64,
    /// Statements read that were there already or came several times.
    pub duplicates: u64,
    /// Wrong statements that were left out.
    pub errors_skipped: u64,
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
    /// Seconds of each stage, in order.
    pub stages: Vec<(String, f64)>,
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
    fn the_peak_memory_of_a_process_is_known() {
        assert!(peak_memory_bytes() > 100_000);
    }
}
