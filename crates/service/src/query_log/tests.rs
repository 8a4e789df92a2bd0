//! Tests of rotated files, failing disks, and a full channel.

use super::files::{LogFile, LogFiles};
use super::*;
use orrery_query_log::{FileName, Kind, Line, Outcome, Series, Shape};
use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};

/// A disk in memory, which may be full, and a clock.
#[derive(Debug, Clone, Default)]
struct Disk {
    files: Arc<Mutex<BTreeMap<FileName, Vec<u8>>>>,
    is_full: Arc<AtomicBool>,
    failures: Arc<AtomicUsize>,
    now_ms: Arc<AtomicI64>,
}

impl Disk {
    fn files(&self) -> MutexGuard<'_, BTreeMap<FileName, Vec<u8>>> {
        self.files.lock().unwrap()
    }

    fn log(&self, options: &QueryLogOptions) -> QueryLog {
        let now_ms = Arc::clone(&self.now_ms);
        let clock = Box::new(move || Time::from_ms(now_ms.load(Ordering::Relaxed)));
        let writer = Writer::new(Box::new(self.clone()), clock, options).unwrap();
        let writer = writer.retrying_after(Duration::ZERO);
        QueryLog::with_writer(writer, options.slow).unwrap()
    }

    /// Counts the entries of a log, and those reported as lost.
    fn lines(&self, series: Series) -> (usize, u64) {
        let (mut entries, mut lost) = (0, 0);
        for (_, bytes) in self
            .files()
            .iter()
            .filter(|(name, _)| name.series == series)
        {
            for line in bytes
                .split(|&byte| byte == b'\n')
                .filter(|it| !it.is_empty())
            {
                match Line::parse(line).unwrap() {
                    Line::Entry(_) => entries += 1,
                    Line::Dropped(count) => lost += count,
                }
            }
        }
        (entries, lost)
    }
}

impl LogFiles for Disk {
    fn list(&self) -> io::Result<Vec<(FileName, u64)>> {
        let files = self.files();
        Ok(files
            .iter()
            .map(|(&name, bytes)| (name, bytes.len() as u64))
            .collect())
    }

    fn create(&self, name: FileName) -> io::Result<Box<dyn LogFile>> {
        let mut files = self.files();
        if files.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        files.insert(name, Vec::new());
        Ok(Box::new(OnDisk(self.clone(), name)))
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        self.files()
            .remove(&name)
            .map(drop)
            .ok_or(io::ErrorKind::NotFound.into())
    }
}

#[derive(Debug)]
struct OnDisk(Disk, FileName);

impl LogFile for OnDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0.is_full.load(Ordering::Relaxed) {
            self.0.failures.fetch_add(1, Ordering::Relaxed);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0
            .files()
            .entry(self.1)
            .or_default()
            .extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn entry(text: String, plan: Option<&str>) -> Box<Entry> {
    Box::new(Entry {
        time: Time::from_ms(0),
        kind: Kind::Select,
        text,
        text_bytes: None,
        shape: Shape::default(),
        user: None,
        client: None,
        agent: None,
        status: Some(200),
        outcome: Outcome::Ok,
        ms: 1.0,
        first_byte_ms: None,
        rows: 0,
        bytes: 0,
        commit: None,
        touches: None,
        plan: plan.map(str::to_owned),
    })
}

fn wait_until(what: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !what() {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
}

#[test]
fn a_new_day_and_a_new_start_begin_new_files() {
    let disk = Disk::default();
    let options = QueryLogOptions::new("");
    let log = disk.log(&options);
    log.add(entry("SELECT 1".to_owned(), None));
    wait_until(|| disk.lines(Series::Queries).0 == 1);
    disk.now_ms.store(24 * 60 * 60 * 1000, Ordering::Relaxed);
    log.add(entry(
        "SELECT <http://a:b@e/>".to_owned(),
        Some("plan <http://a:b@e/>"),
    ));
    log.finish();
    let log = disk.log(&options);
    log.add(entry("SELECT 3".to_owned(), None));
    log.finish();
    // A second end does nothing.
    log.finish();
    let names: Vec<String> = disk.files().keys().map(FileName::to_string).collect();
    assert_eq!(
        names,
        [
            "queries-1970-01-01-0001.jsonl",
            "queries-1970-01-02-0001.jsonl",
            "slow-1970-01-02-0001.jsonl",
            "queries-1970-01-02-0002.jsonl",
        ]
    );
    let text = |name: &str| {
        let files = disk.files();
        String::from_utf8(files[&name.parse::<FileName>().unwrap()].clone()).unwrap()
    };
    assert!(!text("queries-1970-01-02-0001.jsonl").contains("plan"));
    let slow = text("slow-1970-01-02-0001.jsonl");
    assert!(
        slow.contains("plan <http://***@e/>") && !slow.contains("a:b"),
        "{slow}"
    );
}

#[test]
fn all_files_together_stay_within_their_bound_and_the_oldest_go() {
    let disk = Disk::default();
    let options = QueryLogOptions {
        bytes_max: QUERY_LOG_BYTES_MIN,
        ..QueryLogOptions::new("")
    };
    let log = disk.log(&options);
    let count = 200;
    for number in 0..count {
        let plan = (number % 2 == 0).then_some("a plan");
        log.add(entry(format!("{number} {}", "x".repeat(60 << 10)), plan));
        if number % 50 == 49 {
            // So that the channel does not fill up.
            wait_until(|| log.counts.waiting_bytes.load(Ordering::Relaxed) == 0);
        }
    }
    log.finish();
    let files = disk.files().clone();
    let total: usize = files.values().map(Vec::len).sum();
    assert!(total as u64 <= QUERY_LOG_BYTES_MIN, "{total}");
    assert!(total as u64 > QUERY_LOG_BYTES_MIN / 2, "{total}");
    let largest = files.values().map(Vec::len).max().unwrap();
    assert!(largest as u64 <= QUERY_LOG_BYTES_MIN / 4, "{largest}");
    let last = files
        .iter()
        .rfind(|(name, _)| name.series == Series::Queries);
    let last = String::from_utf8(last.unwrap().1.clone()).unwrap();
    assert!(last.lines().last().unwrap().contains("\"199 xxx"));
    assert_eq!(disk.lines(Series::Queries).1, 0);
}

#[test]
fn a_full_disk_costs_entries_that_are_counted_until_it_is_written_again() {
    let disk = Disk::default();
    let log = disk.log(&QueryLogOptions::new(""));
    disk.is_full.store(true, Ordering::Relaxed);
    for round in 1..=3 {
        log.add(entry("lost".to_owned(), Some("")));
        // One failure for each of the two logs.
        wait_until(|| disk.failures.load(Ordering::Relaxed) == 2 * round);
    }
    // Failed attempts leave no files behind.
    wait_until(|| disk.files().is_empty());
    disk.is_full.store(false, Ordering::Relaxed);
    log.add(entry("there".to_owned(), Some("")));
    log.finish();
    assert_eq!(disk.lines(Series::Queries), (1, 3));
    assert_eq!(disk.lines(Series::Slow), (1, 3));
}

#[test]
fn entries_that_find_no_room_are_counted_and_nobody_waits() {
    let disk = Disk::default();
    let log = disk.log(&QueryLogOptions::new(""));
    let count = 2 * WAITING_MAX;
    let mut added = 0;
    for _ in 0..count {
        log.add(entry("x".repeat(16 << 10), None));
        added += 1;
    }
    assert!(log.counts.waiting_bytes.load(Ordering::Relaxed) <= WAITING_BYTES_MAX);
    log.finish();
    let (entries, lost) = disk.lines(Series::Queries);
    assert!(lost > 0);
    assert_eq!(entries as u64 + lost, added);
}
