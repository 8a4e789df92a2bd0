//! SQL statements with extreme arguments: each fails alone, and the process goes on within its
//! memory.

use std::sync::atomic::Ordering;

use orrery_sql::{OfferedFunctions, offered_functions};

use crate::common::{succeed, text};
use crate::limits::server_memory::{most_held, send};
use crate::serve::Server;

const MEMORY: &str = "256M";
const MEMORY_BYTES: u64 = 256 << 20;
/// Statements of functions and arguments by chance.
const STATEMENTS: usize = 400;

/// A server of little memory, whose anonymous memory is looked at all the time.
struct Watched {
    server: Server,
    _home: tempfile::TempDir,
}

impl Watched {
    /// `timeout`: of each statement.
    fn start(timeout: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (database, data) = (home.path().join("db"), home.path().join("1.nt"));
        std::fs::write(&data, "<a:s> <a:p> <a:o> .\n").unwrap();
        succeed(&["load", "--db", text(&database), text(&data)]);
        let options = ["--memory", MEMORY, "--timeout", timeout];
        let server = Server::start_with(text(&database), &options);
        Self {
            server,
            _home: home,
        }
    }

    /// Asks for each; then the server is there, and has never held more than it may. The answers.
    fn ask<'s>(&mut self, statements: impl IntoIterator<Item = &'s str>) -> Vec<String> {
        let mut answers = Vec::new();
        most_held(self.server.process.id(), |most| {
            let head = "POST /sql HTTP/1.1\r\nContent-Type: application/sql";
            for statement in statements {
                let answer = send(&self.server.address, head, statement.as_bytes());
                let shown: String = statement.chars().take(300).collect();
                let held = most.load(Ordering::Relaxed);
                assert!(answer.starts_with("HTTP/1.1 "), "no answer to {shown}");
                let is_well = held < MEMORY_BYTES + MEMORY_BYTES / 10;
                assert!(is_well, "{} MiB after {shown}", held >> 20);
                answers.push(answer);
            }
        });
        assert!(matches!(self.server.process.try_wait(), Ok(None)));
        answers
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
#[cfg(target_os = "linux")]
fn sizes_that_a_statement_names_are_errors_of_that_statement_alone() {
    let deep = format!(
        "select arrow_cast(1, '{}Int8{}')",
        "List(".repeat(100_000),
        ")".repeat(100_000)
    );
    let signs = format!("select null::int{}", "[]".repeat(1_500));
    let refused = [
        &deep,
        "select approx_percentile_cont(1.0, 0.5, 9000000000000)",
        "select arrow_cast(null, 'FixedSizeList(2147483647, Int64)')",
        "select array_length(range(0, 250000000))",
        "select array_to_string(array_repeat('xxxxxxxx', 100000000), '')",
        "select length(repeat('x', 1000000000))",
        "select levenshtein(repeat('a', 60000), repeat('b', 60000))",
        "select regexp_count(repeat('a', 1000000), 'a*b|a')",
        "select regexp_replace(repeat('a', 300000), 'a*b|a', '', 'g')",
        "select strpos(repeat('a', 10000000), repeat('a', 100000) || 'b')",
        "select btrim(repeat('a', 5000000), repeat('bcd', 100000) || 'a')",
        "select regexp_like('a', repeat('é', 3000000))",
        "select 'a' ~ repeat('ab', 3000000)",
        "select 'a' like repeat('%a', 3000000)",
        "select count(*) from generate_series(1, 5000) t(v) where 'a' ~ ('\\pL{50}' || v)",
        "select count(regexp_count('a', '\\pL{50}' || v)) from generate_series(1, 5000) t(v)",
        "select lpad('x', 2147483647)",
        "select array_resize(array[1], 2000000000)",
        "select array_resize(array[1], 9223372036854775807, 1)",
        "select array_length(array_repeat(array_repeat(1, 100000), 100000))",
        "select array_length(generate_series(timestamp '1700-01-01', timestamp '2200-01-01', interval '1 microsecond'))",
        "select replace(repeat('a', 1000000), 'a', repeat('b', 1000000))",
        "select regexp_replace(repeat('a', 1000000), 'a', repeat('b', 10000), 'g')",
        "select concat_ws(repeat('x', 10000000), 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w')",
        "select to_char(timestamp '2020-01-01', repeat('%Y', 50000000))",
        "select string_agg(repeat('x', 100000), '') from generate_series(1, 100000)",
        "select repeat('x', 1000000) from generate_series(1, 100000)",
        "select case when value > 3 then repeat('x', 1000000) end from generate_series(1, 100000) t(value)",
        "select max(repeat('x', 1000000)) from generate_series(1, 100000)",
        "select length(a || a) from (select a || a as a from (select a || a as a from (select repeat('x', 30000000) as a)))",
        "select abs(-9223372036854775808)",
        "select lcm(-9223372036854775808, 3)",
        "select date '9999-12-31' + interval '178956970 years'",
        "select 'a' ~ '(((a{100}){100}){100})'",
    ];
    let answered = [
        "select 1e-9223372036854775808",
        "select 0e9223372036854775807",
        "select array_length(null::int[2147483647])",
        &signs,
        "select length(repeat('x', 10000000))",
        "select count(*) from generate_series(1, 100000) where repeat('x', 100) = 'y'",
        "select arrow_cast(7, 'UInt64')",
        "select levenshtein('kitten', 'sitting')",
        "select length('a' || 'b' || repeat('c', 1000))",
    ];
    // Long enough for a machine that reads the program from its disk meanwhile.
    let mut server = Watched::start("10s");
    for (statement, answer) in refused.iter().zip(server.ask(refused)) {
        let shown: String = statement.chars().take(200).collect();
        assert!(
            ["400", "501", "507"].contains(&status(&answer)),
            "{shown}: {answer}"
        );
    }
    for (statement, answer) in answered.iter().zip(server.ask(answered)) {
        let shown: String = statement.chars().take(200).collect();
        let is_answered = status(&answer) == "200" || statement.contains("[][]");
        assert!(is_answered, "{shown}: {answer}");
    }
}

/// A number that goes on the same way each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // Knuth, MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const EXTREMES: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "2147483647",
    "-2147483648",
    "4294967296",
    "-1",
    "0",
    "1",
    "3",
    "100000",
    "1e308",
    "-1e-300",
    "1e-9223372036854775808",
    "'NaN'::double precision",
    "'infinity'::double precision",
    "99999999999999999999999999999999999999",
    "0.00000000000000000000000000000000000001",
    "''",
    "'x'",
    "'%'",
    "'g'",
    "'hex'",
    "'month'",
    "'(a{100}){100}'",
    "'1e-32760'",
    "repeat('a', 100000)",
    "repeat('é', 3000000)",
    "repeat('%Y', 100000)",
    "repeat('ab', 500000)::bytea",
    "array[1, 2, 3]",
    "array['a', null]",
    "range(0, 100000)",
    "array_repeat(repeat('x', 1000), 1000)",
    "null",
    "true",
    "date '9999-12-31'",
    "date '0001-01-01'",
    "timestamp '0001-01-01 00:00:00'",
    "timestamp '2262-01-01 00:00:00'",
    "interval '178956970 years'",
    "interval '1 microsecond'",
    "interval '-1 month'",
    "value",
    "repeat('v', value)",
];

fn call(dice: &mut Dice, functions: &[&str], depth: usize) -> String {
    let name = dice.one_of(functions);
    let arguments: Vec<String> = (0..dice.below(4))
        .map(|_| argument(dice, functions, depth))
        .collect();
    format!("{name}({})", arguments.join(", "))
}

fn argument(dice: &mut Dice, functions: &[&str], depth: usize) -> String {
    match dice.below(4) {
        0 if depth > 0 => call(dice, functions, depth - 1),
        _ => dice.one_of(EXTREMES).to_owned(),
    }
}

fn statement(dice: &mut Dice, offered: &OfferedFunctions) -> String {
    let rows = dice.one_of(&["1", "3", "20000"]);
    let scalar = call(dice, &offered.scalars, 2);
    let of = argument(dice, &offered.scalars, 1);
    let end = dice.one_of(&["9223372036854775807", "0", "3"]);
    match dice.below(8) {
        0 => format!(
            "select {} from generate_series(1, {rows}) t(value)",
            call(dice, &offered.aggregates, 1)
        ),
        1 => format!(
            "select {} over (order by value rows between {end} preceding and {end} following) from generate_series(1, {rows}) t(value)",
            call(
                dice,
                &[offered.windows.as_slice(), &offered.aggregates].concat(),
                1
            )
        ),
        2 => format!(
            "select count(*) from {} limit {end} offset {end}",
            call(dice, &offered.tables, 1)
        ),
        3 => format!(
            "select value from generate_series(1, {rows}) t(value) order by {scalar} limit 3"
        ),
        4 => format!(
            "select count(*) from generate_series(1, {rows}) t(value) where {scalar} = {of}"
        ),
        5 => format!(
            "select {scalar} || {of}, cast({of} as text) from generate_series(1, {rows}) t(value)"
        ),
        _ => format!("select {scalar} from generate_series(1, {rows}) t(value)"),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn no_function_with_extreme_arguments_ends_the_process_or_outgrows_its_memory() {
    let offered = offered_functions();
    let seed = std::env::var("ORRERY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let mut dice = Dice(seed.unwrap_or(1));
    let statements: Vec<String> = (0..STATEMENTS)
        .map(|_| statement(&mut dice, &offered))
        .collect();
    let answers = Watched::start("2s").ask(statements.iter().map(String::as_str));
    let good = answers
        .iter()
        .filter(|answer| status(answer) == "200")
        .count();
    assert!(good > STATEMENTS / 20, "only {good} are answered");
}
