//! Random queries, answered as spareval answers them.
//!
//! `RANDOM_QUERIES=100000 RANDOM_SEED=7 cargo test -p orrery-sparql --test random` looks further.

mod common;

use std::fmt::Write;

use common::{Fixture, PREFIXES};

const DATA: &str = "
@prefix : <http://example.org/> .
:a :p :b, :c ; :q 1 ; :r :a .
:b :p :c ; :q 2 ; :r :c .
:c :p :a ; :q 3, 1 .
:d :q 2 ; :r :b, :d .
:e :p :e ; :s 1, 2 .
:g1 { :a :p :b ; :q 3 . :b :r :d . }
:g2 { :a :p :c . :c :q 1 ; :s 2 . }
";

/// SplitMix64: small, and the same everywhere.
struct Random {
    state: u64,
    /// No MINUS inside of EXISTS: to spareval, the outer row's variables count as shared there,
    /// to the specification they were replaced by terms.
    is_in_exists: bool,
}

impl Random {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap_or(0)]
    }
}

const VARIABLES: [&str; 5] = ["?v", "?w", "?x", "?y", "?z"];

fn subject(random: &mut Random) -> &'static str {
    if random.below(5) == 0 {
        random.pick(&[":a", ":b", ":c"])
    } else {
        random.pick(&VARIABLES)
    }
}

fn object(random: &mut Random) -> &'static str {
    if random.below(5) == 0 {
        random.pick(&[":a", ":b", ":c", "1", "2"])
    } else {
        random.pick(&VARIABLES)
    }
}

fn triple(random: &mut Random, text: &mut String) {
    let predicate = random.pick(&[":p", ":q", ":r", ":s"]);
    let (subject, object) = (subject(random), object(random));
    let _ = write!(text, "{subject} {predicate} {object} . ");
}

fn condition(random: &mut Random, depth: u32, text: &mut String) {
    let (a, b) = (random.pick(&VARIABLES), random.pick(&VARIABLES));
    match random.below(9) {
        0 => _ = write!(text, "{a} = {b}"),
        1 => _ = write!(text, "{a} != {b}"),
        2 => _ = write!(text, "{a} < 3"),
        3 => _ = write!(text, "bound({a})"),
        4 => _ = write!(text, "!bound({a})"),
        5 => _ = write!(text, "{a} = {b} || bound({a})"),
        6 => _ = write!(text, "isIRI({a}) && {b} >= 1"),
        _ if depth == 0 => _ = write!(text, "{a} > 1"),
        7 => {
            text.push_str("EXISTS { ");
            exists(random, depth, text);
        }
        _ => {
            text.push_str("NOT EXISTS { ");
            exists(random, depth, text);
        }
    }
}

fn exists(random: &mut Random, depth: u32, text: &mut String) {
    let was_in_exists = std::mem::replace(&mut random.is_in_exists, true);
    group(random, depth - 1, text);
    random.is_in_exists = was_in_exists;
    text.push('}');
}

fn group(random: &mut Random, depth: u32, text: &mut String) {
    if random.below(8) > 0 {
        triple(random, text);
    }
    for _ in 0..random.below(4) {
        element(random, depth, text);
    }
}

fn element(random: &mut Random, depth: u32, text: &mut String) {
    if depth == 0 {
        triple(random, text);
        return;
    }
    let inner = |random: &mut Random, text: &mut String, before: &str| {
        text.push_str(before);
        text.push_str("{ ");
        group(random, depth - 1, text);
        text.push_str("} ");
    };
    match random.below(11) {
        0..=2 => triple(random, text),
        3 | 4 => inner(random, text, "OPTIONAL "),
        5 => {
            inner(random, text, "");
            inner(random, text, "UNION ");
        }
        6 if random.is_in_exists => inner(random, text, ""),
        6 => inner(random, text, "MINUS "),
        7 => inner(random, text, ""),
        8 => {
            text.push_str("FILTER(");
            condition(random, depth, text);
            text.push_str(") ");
        }
        9 => {
            let (a, b) = (random.pick(&VARIABLES), random.pick(&VARIABLES));
            let values = random.pick(&[
                "{ (:a 1) (:b UNDEF) }",
                "{ (:c 1) (UNDEF 2) (:c 1) }",
                "{ (UNDEF :b) }",
            ]);
            if a != b {
                let _ = write!(text, "VALUES ({a} {b}) {values} ");
            }
        }
        _ => {
            let distinct = random.pick(&["", "DISTINCT "]);
            let (a, b) = (random.pick(&VARIABLES), random.pick(&VARIABLES));
            let _ = write!(text, "{{ SELECT {distinct}{a} {b} {{ ");
            group(random, depth - 1, text);
            text.push_str("} } ");
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn random_queries_answer_as_spareval() {
    // Loaded at once, and come by updates.
    let fixtures = [
        Fixture::new(DATA),
        Fixture::by_updates(DATA, 0),
        Fixture::by_updates(DATA, 5),
    ];
    let seed = number("RANDOM_SEED", 1);
    let mut failures = Vec::new();
    let (mut answered, mut rows) = (0, 0);
    for run in 0..number("RANDOM_QUERIES", 2_000) {
        let mut random = Random {
            state: seed << 32 | run,
            is_in_exists: false,
        };
        let fixture = &fixtures[(run % 3) as usize];
        let mut query = format!("{PREFIXES}SELECT * {{ ");
        group(&mut random, 2, &mut query);
        query.push('}');
        if spargebra::SparqlParser::new().parse_query(&query).is_err() {
            // A variable projected twice, or bound by VALUES and before.
            continue;
        }
        let oracle = fixture.oracle(&query).sorted();
        match fixture.ask(&query) {
            Ok(ours) => {
                answered += 1;
                let ours = ours.sorted();
                if let common::Answer::Solutions(solutions) = &ours {
                    rows += solutions.len();
                }
                if ours != oracle {
                    failures.push((run, query));
                }
            }
            Err(error) => panic!("{error} in {query}"),
        }
    }
    failures.sort_by_key(|(_, query)| query.len());
    let shortest: Vec<String> = failures
        .iter()
        .take(12)
        .map(|(run, query)| format!("{run}: {}", &query[PREFIXES.len()..]))
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {answered} differ ({rows} rows), the shortest:\n{}",
        failures.len(),
        shortest.join("\n")
    );
}
