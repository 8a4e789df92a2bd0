//! Metrics of the process, read from `/proc`, under the names of Prometheus' own clients. Without
//! `/proc` they are left out.

use super::text::{Page, Type};
use std::fs;

/// The process figures that the system reports.
#[derive(Debug, Default, PartialEq)]
pub struct ProcessFigures {
    cpu_seconds: Option<f64>,
    start_time_s: Option<f64>,
    resident_bytes: Option<u64>,
    virtual_bytes: Option<u64>,
    threads: Option<u64>,
    open_fds: Option<u64>,
    max_fds: Option<u64>,
}

impl ProcessFigures {
    /// Reads the current figures from some small files of the system.
    pub fn read() -> Self {
        let file = |path: &str| fs::read_to_string(path).ok();
        let stat = file("/proc/self/stat").unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let of_stat = Self::of_stat(&stat, ticks, rustix::param::page_size() as u64);
        let boot_time = file("/proc/stat").and_then(|stat| boot_time_s(&stat));
        let fds = fs::read_dir("/proc/self/fd").ok();
        let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self {
            start_time_s: of_stat
                .start_time_s
                .zip(boot_time)
                .map(|(start, boot)| start + boot),
            // One descriptor is that of the directory being read.
            open_fds: fds.map(|fds| (fds.count() as u64).saturating_sub(1)),
            max_fds: limits.current,
            ..of_stat
        }
    }

    /// Parses `/proc/self/stat` (proc(5)); the start time counts from the machine's boot.
    fn of_stat(stat: &str, ticks_per_second: f64, page_bytes: u64) -> Self {
        // The second field is the program's name in parentheses, which may contain any character.
        let Some((_, rest)) = stat.rsplit_once(')') else {
            return Self::default();
        };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first field here is field 3 of the manual.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second;
        Self {
            cpu_seconds: number(14)
                .zip(number(15))
                .map(|(user, system)| seconds(user + system)),
            threads: number(20),
            start_time_s: number(22).map(seconds),
            virtual_bytes: number(23),
            resident_bytes: number(24).map(|pages| pages * page_bytes),
            ..Self::default()
        }
    }

    /// Writes the figures that are known.
    pub fn write(&self, page: &mut Page) {
        let mut family = |name, of_type, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                page.family(name, of_type, help).value(value);
            }
        };
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        family(
            "process_cpu_seconds_total",
            Type::Counter,
            "Time of the processors that this process has used.",
            self.cpu_seconds,
        );
        family(
            "process_start_time_seconds",
            Type::Gauge,
            "When this process began, in seconds since 1970.",
            self.start_time_s,
        );
        family(
            "process_resident_memory_bytes",
            Type::Gauge,
            "Resident memory, with pages of mapped files.",
            whole(self.resident_bytes),
        );
        family(
            "process_virtual_memory_bytes",
            Type::Gauge,
            "Address space, with all of the mapped files.",
            whole(self.virtual_bytes),
        );
        family(
            "process_threads",
            Type::Gauge,
            "Threads.",
            whole(self.threads),
        );
        family(
            "process_open_fds",
            Type::Gauge,
            "Open file descriptors.",
            whole(self.open_fds),
        );
        family(
            "process_max_fds",
            Type::Gauge,
            "File descriptors that may be open.",
            whole(self.max_fds),
        );
    }
}

/// The machine's boot time.
fn boot_time_s(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_moves_no_field() {
        let stat = "123 (a b) c) S 1 123 123 0 -1 4194304 900 0 1 0 250 50 0 0 20 0 7 0 1000 104857600 2560 18446744073709551615 1 1";
        let figures = ProcessFigures::of_stat(stat, 100.0, 4096);
        assert_eq!(
            figures,
            ProcessFigures {
                cpu_seconds: Some(3.0),
                start_time_s: Some(10.0),
                virtual_bytes: Some(104_857_600),
                resident_bytes: Some(2560 * 4096),
                threads: Some(7),
                ..ProcessFigures::default()
            }
        );
        assert_eq!(
            ProcessFigures::of_stat("", 100.0, 4096),
            ProcessFigures::default()
        );
        assert_eq!(
            boot_time_s("cpu  1 2\nbtime 1700000000\n"),
            Some(1_700_000_000.0)
        );
    }
}
