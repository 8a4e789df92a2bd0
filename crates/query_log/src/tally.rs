//! The tally of log entries, within memory bounds. Whatever is in them, memory has a bound: days,
//! names, distinct things and texts that are kept each have theirs.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::rc::Rc;

use crate::counts::{Distinct, Durations, Names};
use crate::entry::{Entry, Line, cut};
use crate::figures::{DayFigures, KindFigures, LogFigures, ReadingFigures, Report, SlowQuery};
use crate::kind::{Kind, Outcome};
use crate::log_files::Period;
use crate::shape::Shape;
use crate::time::Day;
use crate::used::{Used, used_in};

/// Slow queries in the report.
const SLOWEST_MAX: usize = 20;
/// How much of their texts it shows.
const SLOW_TEXT_BYTES_MAX: usize = 1000;
/// Texts that are not read again when they come again; with more, all are forgotten.
const READ_MAX: usize = 20_000;
/// What these may name together.
const READ_BYTES_MAX: usize = 64 << 20;

/// What was added up so far.
#[derive(Default)]
pub(crate) struct Tally {
    period: Period,
    days: BTreeMap<Day, DayFigures>,
    kinds: BTreeMap<(Kind, Outcome), u64>,
    clients: Distinct<IpAddr>,
    /// By hashes: 64 bits tell a million apart well enough.
    texts: Distinct<u64>,
    shapes: Distinct<Shape>,
    durations: Durations,
    agents: Names,
    without_agent: u64,
    users: Names,
    predicates: Names,
    classes: Names,
    read: HashMap<(u64, u64), Option<Rc<Used>>>,
    read_bytes: usize,
    reading: ReadingFigures,
    /// The slowest of each shape.
    slowest: Vec<SlowQuery>,
    log: LogFigures,
    /// Not to be foreseen by those who send queries.
    hashes: (RandomState, RandomState),
}

impl Tally {
    pub(crate) fn new(period: Period) -> Self {
        Self {
            period,
            ..Self::default()
        }
    }

    pub(crate) fn add_file(&mut self) {
        self.log.files += 1;
    }

    /// Adds a line of a file; `None` for one that was too long.
    pub(crate) fn add_line(&mut self, line: Option<&[u8]>) {
        match line.map(Line::parse) {
            Some(Ok(Line::Entry(entry))) => self.add(&entry),
            Some(Ok(Line::Dropped(count))) => {
                self.log.dropped = self.log.dropped.saturating_add(count);
            }
            Some(Err(_)) | None => self.log.damaged_lines += 1,
        }
    }

    fn add(&mut self, entry: &Entry) {
        let day = entry.time.day();
        if !self.period.has(day) {
            return;
        }
        let figures = self.days.entry(day).or_insert(DayFigures {
            day,
            queries: 0,
            failed: 0,
            rows: 0,
            bytes: 0,
        });
        figures.queries += 1;
        figures.failed += u64::from(entry.outcome != Outcome::Ok);
        figures.rows = figures.rows.saturating_add(entry.rows);
        figures.bytes = figures.bytes.saturating_add(entry.bytes);
        *self.kinds.entry((entry.kind, entry.outcome)).or_default() += 1;
        if let Some(client) = entry.client {
            self.clients.add(client);
        }
        self.texts.add(self.hashes.0.hash_one(&entry.text));
        self.shapes.add(entry.shape);
        self.durations.add(entry.ms);
        match &entry.agent {
            Some(agent) => self.agents.add(agent),
            None => self.without_agent += 1,
        }
        if let Some(user) = &entry.user {
            self.users.add(user);
        }
        self.add_slow(entry);
        self.add_used(entry);
    }

    fn add_slow(&mut self, entry: &Entry) {
        let same = self
            .slowest
            .iter()
            .position(|slow| slow.shape == entry.shape);
        let least = self.slowest.last().map_or(0.0, |slow| slow.ms);
        let is_slow = match same {
            Some(at) => entry.ms > self.slowest[at].ms,
            None => self.slowest.len() < SLOWEST_MAX || entry.ms > least,
        };
        if !is_slow {
            return;
        }
        if let Some(at) = same {
            self.slowest.remove(at);
        }
        let at = self.slowest.partition_point(|slow| slow.ms >= entry.ms);
        let mut text = cut(&entry.text, SLOW_TEXT_BYTES_MAX).to_owned();
        if text.len() < entry.text.len() || entry.text_bytes.is_some() {
            text.push('…');
        }
        let slow = SlowQuery {
            ms: entry.ms,
            time: entry.time,
            kind: entry.kind,
            outcome: entry.outcome,
            shape: entry.shape,
            text,
        };
        self.slowest.insert(at, slow);
        self.slowest.truncate(SLOWEST_MAX);
    }

    fn add_used(&mut self, entry: &Entry) {
        if entry.kind == Kind::Sql {
            return;
        }
        if entry.text_bytes.is_some() {
            self.reading.cut += 1;
            return;
        }
        let Some(used) = self.used(entry) else {
            self.reading.not_parsed += 1;
            return;
        };
        self.reading.parsed += 1;
        for predicate in &used.predicates {
            self.predicates.add(predicate);
        }
        for class in &used.classes {
            self.classes.add(class);
        }
    }

    /// What a text names; most texts come again and again.
    fn used(&mut self, entry: &Entry) -> Option<Rc<Used>> {
        let text = (entry.kind == Kind::Update, &entry.text);
        let key = (self.hashes.0.hash_one(text), self.hashes.1.hash_one(text));
        if let Some(known) = self.read.get(&key) {
            return known.clone();
        }
        let used = used_in(entry.kind, &entry.text).map(Rc::new);
        let names = used
            .iter()
            .flat_map(|used| used.predicates.iter().chain(&used.classes));
        self.read_bytes += names.map(String::len).sum::<usize>();
        if self.read.len() >= READ_MAX || self.read_bytes > READ_BYTES_MAX {
            self.read.clear();
            self.read_bytes = 0;
        }
        self.read.insert(key, used.clone());
        used
    }

    pub(crate) fn report(self) -> Report {
        let days: Vec<DayFigures> = self.days.into_values().collect();
        let sum =
            |figure: fn(&DayFigures) -> u64| days.iter().map(figure).fold(0, u64::saturating_add);
        Report {
            first_day: days.first().map(|day| day.day),
            last_day: days.last().map(|day| day.day),
            queries: sum(|day| day.queries),
            failed: sum(|day| day.failed),
            rows: sum(|day| day.rows),
            bytes: sum(|day| day.bytes),
            clients: self.clients.count(),
            texts: self.texts.count(),
            shapes: self.shapes.count(),
            durations: self.durations.figures(),
            kinds: self
                .kinds
                .into_iter()
                .map(|((kind, outcome), queries)| KindFigures {
                    kind,
                    outcome,
                    queries,
                })
                .collect(),
            days,
            agents: self.agents.top(),
            without_agent: self.without_agent,
            users: self.users.top(),
            predicates: self.predicates.top(),
            classes: self.classes.top(),
            reading: self.reading,
            slowest: self.slowest,
            log: self.log,
        }
    }
}
