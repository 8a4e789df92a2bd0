//! A soak client: draws a request, sends it, and checks the answer against the model.

use std::time::{Duration, Instant};

use super::changes::{Change, of_graph, of_table, sql, update};
use super::places::{GRAPHS, PREFIXES, Place, Role, TABLE};
use super::questions::{HEAVY, Question, Static, TIME_MAX, query};
use super::shared::Soak;
use super::verdict::{Allowed, Ended, Kind, commit_of, judge};
use crate::drivers::N_TRIPLES;
use crate::http_client::{Answer, HttpClient, Request};
use orrery_bsbm::Random;

/// A connection that was not used for so long is not used again: the server closes it after 30 s.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// Who is told to come back waits at most so long.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Old states that a server keeps.
const STATES_KEPT: u64 = 100;
/// How much of a request and of an answer a fault shows.
const SHOWN_MAX: usize = 2_000;

pub(super) struct Client<'s> {
    soak: &'s Soak,
    number: usize,
    role: Role,
    http: HttpClient,
    used: Instant,
    random: Random,
}

impl<'s> Client<'s> {
    pub(super) fn new(soak: &'s Soak, number: usize) -> Result<Self, String> {
        let role = match number < soak.heavy {
            // Without limits of its own.
            true => Role::Administrator,
            false => Role::of(number),
        };
        Ok(Self {
            http: soak.connect(role).map_err(|error| error.to_string())?,
            soak,
            number,
            role,
            used: Instant::now(),
            random: Random::new(number as u64 + 1),
        })
    }

    /// Asks and changes until the run is over.
    pub(super) fn run(mut self) {
        while !self.soak.is_over() {
            if let Err(fault) = self.step() {
                self.soak.fail(fault);
            }
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.number < self.soak.heavy {
            return self.heavy();
        }
        if self.role == Role::Administrator && self.soak.takes_compaction() {
            return self.maintain(Kind::Compaction, "/compact");
        }
        let draw = self.random.below(100);
        match (self.role, draw) {
            (Role::Anonymous, 0..=69) | (Role::Limited, 0..=39) => self.explore(),
            (Role::Anonymous, 70..=84) | (Role::Limited, 40..=64) => self.question(None),
            (Role::Anonymous, 85..=94) => self.plain("/health"),
            (Role::Anonymous, _) => self.forbidden(),
            (Role::Limited, 65..=89) => self.long(draw.is_multiple_of(4)),
            (Role::Limited, _) | (_, 95..=97) => self.analytical(),
            (Role::Half, 0..=4) => self.forbidden(),
            (Role::Administrator, 0..=4) => match draw {
                0 if self.random.below(10) == 0 => self.maintain(Kind::Checkpoint, "/checkpoint"),
                0..=2 => self.plain("/health"),
                _ if self.soak.has_metrics => self.plain("/metrics"),
                _ => self.explore(),
            },
            (_, 0..=24) => self.change_graph(),
            (role, 25..=36) if role.changes_tables() => self.change_table(),
            (_, 25..=59) => self.explore(),
            (_, 60..=84) => self.question(None),
            (_, 85..=94) => {
                let place = self.random.below(1 << 16);
                let commit = self.soak.journal.recent(place);
                self.question(commit)
            }
            (role, _) if role.changes_tables() => {
                let soak = self.soak;
                self.of_static(Kind::SqlQuery, &soak.statics.sql)
            }
            _ => self.explore(),
        }
    }

    /// Sends a request; what is no stated limit is a fault, which shows the request.
    fn send(
        &mut self,
        kind: Kind,
        request: &Request,
        allowed: Allowed,
    ) -> Result<(Ended, Answer), String> {
        let failed = |what: String| self.fault(request, &what);
        if self.used.elapsed() > IDLE_MAX {
            self.http = self
                .soak
                .connect(self.role)
                .map_err(|error| failed(error.to_string()))?;
        }
        let start = Instant::now();
        let answer = self.http.send(request);
        self.used = Instant::now();
        let answer = answer.map_err(|error| self.fault(request, &error.to_string()))?;
        let took = start.elapsed();
        let has_limits = self.role.has_limits();
        let allowed = Allowed {
            exceeded: allowed.exceeded || has_limits,
            broken: allowed.broken || has_limits || took >= TIME_MAX,
            ..allowed
        };
        let ended = judge(&answer, allowed).map_err(|what| self.fault(request, &what))?;
        self.soak.count(kind, ended, took);
        if let Some(seconds) = answer.header("retry-after") {
            let seconds = seconds.parse().map(Duration::from_secs);
            std::thread::sleep(seconds.unwrap_or(PAUSE_MAX).min(PAUSE_MAX));
        }
        Ok((ended, answer))
    }

    fn fault(&self, request: &Request, what: &str) -> String {
        let mut shown = format!("{} {}", request.method, request.path);
        for (name, value) in &request.headers {
            shown.push_str(&format!("\n{name}: {value}"));
        }
        let body = &request.body[..request.body.floor_char_boundary(SHOWN_MAX)];
        let what = &what[..what.floor_char_boundary(SHOWN_MAX)];
        format!(
            "client {}, {}:\n{shown}\n\n{body}\n\n{what}",
            self.number,
            self.role.user()
        )
    }

    /// An answer must not be older than what was acknowledged before it was asked for.
    fn commit_since(&self, request: &Request, answer: &Answer, floor: u64) -> Result<u64, String> {
        let commit = commit_of(answer).map_err(|what| self.fault(request, &what))?;
        self.soak.journal.seen(commit);
        match commit >= floor {
            true => Ok(commit),
            false => Err(self.fault(
                request,
                &format!(
                    "it was read from commit {commit}; {floor} was acknowledged before it was asked"
                ),
            )),
        }
    }

    fn of_static(&mut self, kind: Kind, asked: &Static) -> Result<(), String> {
        let floor = self.soak.journal.floor();
        let (ended, answer) = self.send(kind, &asked.request, Allowed::default())?;
        if ended != Ended::Done {
            return Ok(());
        }
        self.commit_since(&asked.request, &answer, floor)?;
        self.check_static(asked, &asked.request, &answer, false)
    }

    fn check_static(
        &self,
        asked: &Static,
        request: &Request,
        answer: &Answer,
        is_partial: bool,
    ) -> Result<(), String> {
        let body = String::from_utf8_lossy(&answer.body);
        asked
            .check(&body, is_partial)
            .map_err(|what| self.fault(request, &what))?;
        self.soak.checked();
        Ok(())
    }

    fn explore(&mut self) -> Result<(), String> {
        let soak = self.soak;
        match self.random.pick(&soak.statics.explore) {
            Some(asked) => self.of_static(Kind::Explore, asked),
            None => Ok(()),
        }
    }

    fn analytical(&mut self) -> Result<(), String> {
        let soak = self.soak;
        match self.random.pick(&soak.statics.analytical) {
            Some(asked) => self.of_static(Kind::Analytical, asked),
            None => Ok(()),
        }
    }

    /// Who has limits takes a part of a long answer, or is refused.
    fn long(&mut self, takes_part: bool) -> Result<(), String> {
        let soak = self.soak;
        let asked = &soak.statics.long;
        let mut request = asked.request.clone();
        if takes_part {
            request.path.push_str("&partial=true");
        }
        let allowed = Allowed {
            broken: true,
            ..Allowed::default()
        };
        let (ended, answer) = self.send(Kind::Long, &request, allowed)?;
        if ended != Ended::Done {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&answer.body);
        let says_so = answer.header("orrery-partial").is_some() || body.contains("\n# partial: ");
        self.check_static(asked, &request, &answer, takes_part && says_so)
    }

    fn heavy(&mut self) -> Result<(), String> {
        let Some(text) = self.random.pick(&HEAVY) else {
            return Ok(());
        };
        let accept = if text.starts_with("CONSTRUCT") {
            N_TRIPLES
        } else {
            "text/csv"
        };
        let mut request = query(&format!("{PREFIXES}{text}"), accept, "");
        request.path = "/sparql?timeout=20".to_owned();
        let allowed = Allowed {
            memory: true,
            broken: true,
            ..Allowed::default()
        };
        self.send(Kind::Heavy, &request, allowed).map(drop)
    }

    /// Asks about rings, of the present state or of that after a commit, and compares.
    fn question(&mut self, at: Option<u64>) -> Result<(), String> {
        let (soak, role) = (self.soak, self.role);
        let mut question = Question::draw(&mut self.random, role, soak.clients, |ring| {
            soak.journal.now(ring)
        });
        if at.is_some() && !question.is_sparql() {
            question = Question::AllSums;
        }
        let request = question.request(&at.map(|at| format!("&at={at}")).unwrap_or_default());
        let (kind, not_there) = match (at, question) {
            (Some(_), _) => (Kind::OldState, true),
            (None, Question::Graph(_)) => (Kind::Question, true),
            _ if question.is_sparql() => (Kind::Question, false),
            _ => (Kind::SqlQuery, false),
        };
        let floor = soak.journal.floor();
        let allowed = Allowed {
            not_there,
            ..Allowed::default()
        };
        let (ended, answer) = self.send(kind, &request, allowed)?;
        match (ended, at, question) {
            (Ended::NotThere, Some(at), _) => {
                // Changes under way may have been made that nobody has heard of.
                let newest = soak.journal.newest() + soak.clients as u64 * 2;
                return match newest >= at + STATES_KEPT {
                    true => Ok(()),
                    false => Err(self.fault(
                        &request,
                        "that state is one of the last hundred, and is not there",
                    )),
                };
            }
            (Ended::NotThere, None, Question::Graph(place)) if role.sees(place) => {
                let over = || soak.is_over();
                let settled = soak.journal.at(place.ring(), u64::MAX, &over);
                let was_empty = soak.journal.was_empty_since(place.ring(), floor);
                if settled.is_some() && !was_empty {
                    return Err(
                        self.fault(&request, "404, and the graph was never empty meanwhile")
                    );
                }
                soak.checked();
                return Ok(());
            }
            (Ended::Done, ..) => {}
            _ => return Ok(()),
        }
        let commit = self.commit_since(&request, &answer, at.unwrap_or(floor))?;
        if at.is_some_and(|at| at != commit) {
            return Err(self.fault(&request, &format!("it was read from commit {commit}")));
        }
        self.compare(question, &request, &answer, commit)
    }

    fn compare(
        &self,
        question: Question,
        request: &Request,
        answer: &Answer,
        commit: u64,
    ) -> Result<(), String> {
        let soak = self.soak;
        let over = || soak.is_over();
        let graph_at = |ring: usize| soak.journal.at(ring, commit, &over);
        let table_at = |ring: usize| soak.journal.at(soak.clients + ring, commit, &over);
        let expected = question.expected(
            self.role,
            soak.clients,
            &soak.statics.products,
            &graph_at,
            &table_at,
        );
        let Some(expected) = expected else {
            return match soak.is_over() {
                true => Ok(()),
                false => Err(self.fault(
                    request,
                    &format!("it was read from commit {commit}, which is of long ago"),
                )),
            };
        };
        let body = String::from_utf8_lossy(&answer.body);
        let mut lines: Vec<&str> = body.lines().collect();
        lines.sort_unstable();
        if lines == expected {
            soak.checked();
            return Ok(());
        }
        let wrong = lines
            .iter()
            .find(|line| !expected.iter().any(|right| right == *line));
        let missing = expected
            .iter()
            .find(|right| !lines.contains(&right.as_str()));
        Err(self.fault(
            request,
            &format!(
                "wrong at commit {commit}: {} lines, {} expected; not right: {wrong:?}; missing: {missing:?}\n{body}",
                lines.len(),
                expected.len()
            ),
        ))
    }

    fn change_graph(&mut self) -> Result<(), String> {
        let soak = self.soak;
        let ring = self.number;
        let now = soak.journal.now(ring);
        let change = of_graph(
            Place::of(ring),
            &now,
            &mut self.random,
            &soak.statics.products,
        );
        match change {
            Some(change) => {
                let kind = match change.request.path.starts_with("/graphs") {
                    true => Kind::GraphStore,
                    false => Kind::Update,
                };
                self.change(ring, change, kind)
            }
            None => Ok(()),
        }
    }

    fn change_table(&mut self) -> Result<(), String> {
        let soak = self.soak;
        let ring = soak.clients + self.number;
        let now = soak.journal.now(ring);
        match of_table(self.number, &now, &mut self.random, &soak.statics.products) {
            Some(change) => self.change(ring, change, Kind::SqlChange),
            None => Ok(()),
        }
    }

    /// Makes a change, and notes in the journal what came of it.
    fn change(&mut self, ring: usize, mut change: Change, kind: Kind) -> Result<(), String> {
        let journal = &self.soak.journal;
        let (mut kind, mut is_durable, mut allowed) = (kind, true, Allowed::default());
        match self.random.below(12) {
            0 => {
                kind = Kind::Conditional;
                allowed.precondition = true;
                let newest = format!("\"{}\"", journal.newest());
                change.request.headers.push(("If-Match", newest));
            }
            1 => {
                (kind, is_durable) = (Kind::Relaxed, false);
                let sign = if change.request.path.contains('?') {
                    '&'
                } else {
                    '?'
                };
                change
                    .request
                    .path
                    .push_str(&format!("{sign}durability=relaxed"));
            }
            _ => {}
        }
        journal.begin(ring, change.next);
        let (ended, answer) = self.send(kind, &change.request, allowed)?;
        if ended != Ended::Done {
            journal.refuse(ring);
            return Ok(());
        }
        let commit = commit_of(&answer).map_err(|what| self.fault(&change.request, &what))?;
        let known = journal.acknowledge(ring, commit, is_durable);
        known.map_err(|what| self.fault(&change.request, &what))
    }

    /// What is not for who asks: to change a graph that is hidden, to write at all, to read a
    /// table.
    fn forbidden(&mut self) -> Result<(), String> {
        let request = match self.random.below(2) {
            0 => sql(format!("SELECT * FROM {TABLE}")),
            _ => update(&format!(
                "INSERT DATA {{ GRAPH <{GRAPHS}b/1> {{ <urn:s> <urn:p> <urn:o> }} }}"
            )),
        };
        let allowed = Allowed {
            denied: true,
            ..Allowed::default()
        };
        self.send(Kind::Forbidden, &request, allowed).map(drop)
    }

    fn plain(&mut self, path: &str) -> Result<(), String> {
        let request = Request {
            method: "GET",
            path: path.to_owned(),
            ..Request::default()
        };
        self.send(Kind::Plain, &request, Allowed::default())
            .map(drop)
    }

    /// What else the server does by itself.
    fn maintain(&mut self, kind: Kind, path: &str) -> Result<(), String> {
        let request = Request {
            method: "POST",
            path: path.to_owned(),
            ..Request::default()
        };
        self.send(kind, &request, Allowed::default()).map(drop)
    }
}
