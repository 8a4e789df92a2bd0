//! Tests that statements with slow functions end when they are canceled.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use orrery_sql::{Error, Outcome, Session, offered_functions};

use crate::common::House;

/// How long who asks waits.
const TIME_MAX: Duration = Duration::from_millis(300);
/// And what a row may take, on a busy machine.
const ROW_MAX: Duration = Duration::from_secs(2);

async fn rows(session: &Session, text: &str) -> Result<usize, Error> {
    let statement = session.statements(text)?.remove(0);
    match session.execute(&statement).await? {
        Outcome::Query(rows) => {
            let rows = rows.try_collect::<Vec<_>>().await;
            let rows = rows.map_err(|error| Error::of_run(&error))?;
            Ok(rows.iter().map(|batch| batch.num_rows()).sum())
        }
        _ => Ok(0),
    }
}

/// Waits until no task is there but those that were.
fn require_end(house: &House, tasks: usize, text: &str) {
    let began = Instant::now();
    while house.threads.metrics().num_alive_tasks() > tasks {
        if began.elapsed() > ROW_MAX {
            panic!("{text}: it goes on");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Asks, and waits no longer than that; what came of it, if it was answered.
fn ask(house: &House, text: &str) -> Option<Result<usize, Error>> {
    let tasks = house.threads.metrics().num_alive_tasks();
    let session = house.session();
    let began = Instant::now();
    let done = house.threads.block_on(async {
        let done = tokio::time::timeout(TIME_MAX, rows(&session, text)).await;
        done.ok()
    });
    let took = began.elapsed();
    assert!(took < TIME_MAX + ROW_MAX, "{text}: {took:?}");
    require_end(house, tasks, text);
    done
}

/// Texts of a thousand letters, in a file or not yet.
fn texts(is_written: bool) -> House {
    let house = House::with_memory(1 << 30);
    house.done(
        &house.session(),
        "create table texts (i int primary key, a text not null); create table other (i int primary key, d int);
         create table checked (i int primary key, a text check (levenshtein(a, reverse(a)) > 0));
         insert into texts select value, repeat('abcdefghij', 100) || value from generate_series(1, 20000)",
    );
    if is_written {
        house.compact();
    }
    house
}

/// Statements that take most of a minute, with the function in each place where there may be one.
const LONG: &[&str] = &[
    "select levenshtein(a, reverse(a)) from texts",
    "select count(*) from texts where levenshtein(a, reverse(a)) = -1",
    "select i from texts order by levenshtein(a, reverse(a))",
    "select i from texts order by levenshtein(a, reverse(a)) limit 3",
    "select levenshtein(a, reverse(a)), count(*) from texts group by 1",
    "select sum(levenshtein(a, reverse(a))) from texts",
    "select i, row_number() over (partition by levenshtein(a, reverse(a)) order by i) from texts",
    "select sum(levenshtein(a, reverse(a))) over (order by i) from texts",
    "select count(*) from texts x join texts y on x.i % 10 = y.i % 10 and levenshtein(x.a, y.a) = -1",
    "select count(*) from texts x join texts y on levenshtein(x.a, reverse(x.a)) = levenshtein(y.a, reverse(y.a))",
    "select (select max(levenshtein(a, reverse(a))) from texts) from texts limit 1",
    "update texts set a = levenshtein(a, reverse(a))::text",
    "delete from texts where levenshtein(a, reverse(a)) = -1",
    "insert into other select i, levenshtein(a, reverse(a)) from texts",
    "explain analyze select sum(levenshtein(a, reverse(a))) from texts",
    "select sum(regexp_count(a, '[a-j]*z|[a-j]')) from texts",
    "select count(regexp_replace(a, '[a-j]*z|[a-j]', 'x', 'g')) from texts",
    "select count(*) from texts where array_has_any(range(0, 1500), range(i + 1500, i + 3000))",
    "select count(*) from texts where array_has_all(range(0, 400), range(i % 7, 400))",
    "select sum(character_length(btrim(a, 'klmnopqrstuvwxyz' || repeat(a, 100)))) from texts",
    "select sum(strpos(repeat('\u{e9}', 3000000), a)) from texts",
    "select count(*) from texts where a ~ repeat('[a-j]?', 300)",
    "select count(*) from texts where not regexp_like(a, 'x' || repeat(a, 3))",
    "insert into checked select i, a from texts",
    // Short patterns, which stay operators.
    "select count(*) from texts where repeat(a || '\u{e9}', 10) ~ '\\b[a-k]+k\\b'",
    "select i, repeat(a || '\u{e9}', 10) !~ '\\b[a-k]+k\\b' from texts",
];

#[test]
fn functions_end_when_the_time_of_their_statement_is_up_wherever_they_stand() {
    let house = texts(true);
    for text in LONG {
        let done = ask(&house, text);
        assert!(done.is_none(), "{text}: it is too short: {done:?}");
    }
}

#[test]
fn functions_end_when_their_client_has_gone() {
    for is_written in [true, false] {
        let house = texts(is_written);
        for text in LONG {
            let tasks = house.threads.metrics().num_alive_tasks();
            let session = house.session();
            let running = house
                .threads
                .spawn(async move { rows(&session, text).await });
            std::thread::sleep(TIME_MAX);
            assert!(!running.is_finished(), "{text}: it is too short");
            running.abort();
            require_end(&house, tasks, text);
        }
    }
}

/// What the optimizer computes, on threads that the runtime waits for when it ends.
#[test]
fn constants_end_when_the_time_of_their_statement_is_up() {
    let house = House::new();
    let calls = (0..60).map(|number| {
        format!(
            "levenshtein(repeat('ab{number}', 3500), repeat('ba', {}))",
            7000 + number
        )
    });
    let sum = calls.collect::<Vec<_>>().join(" + ");
    for text in [
        format!("select {sum}"),
        format!("select value from generate_series(1, 3) where value > {sum}"),
    ] {
        let done = ask(&house, &text);
        assert!(done.is_none(), "it is too short: {done:?}");
    }
    let began = Instant::now();
    drop(house);
    assert!(began.elapsed() < 2 * ROW_MAX, "{:?}", began.elapsed());
}

#[test]
fn work_limits_of_functions_hold_per_row_and_not_per_batch() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table texts as select value, repeat('ab', 900) || value as a from generate_series(1, 300) t(value)",
    );
    // 900 million pairs of letters, most of them in one batch.
    let text = "select max(levenshtein(a, reverse(a))) > 0, count(*) from texts";
    assert_eq!(house.rows(&session, text), ["true 300"]);
    for (text, what) in [
        (
            "select levenshtein(repeat('a', 20000), repeat('b', 20000))",
            "levenshtein of texts of 20000 and 20000 bytes",
        ),
        (
            "select levenshtein(a, repeat('b', 500000)) from texts",
            "bytes may take more than half a second for one row: give it shorter texts",
        ),
        (
            "select array_has_any(range(0, 100000), range(100000, 200000))",
            "array_has_any of arrays of",
        ),
        (
            "select regexp_count(repeat('a', 50000), 'a*b|a')",
            "a pattern with * and + at its end alone",
        ),
    ] {
        let (code, message) = house.refused(&session, text);
        assert_eq!(code, "54000", "{message}");
        assert!(message.contains(what), "{message}");
    }
    // Its matches end where they are looked for.
    let text =
        "select character_length(regexp_replace(repeat('a <b>', 60000), '<[^>]*>', '', 'g'))";
    assert_eq!(house.rows(&session, text), ["120000"]);
}

/// Arguments of functions: `t` and `u` are long texts, `l` and `m` long arrays, `b` long bytes, `d`
/// a time, `f` a number, `v` a number of the row, `n` one that is large.
const CALLS: &[(&str, &[&str])] = &[
    (
        "f",
        &[
            "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos",
            "cosh", "cot", "degrees", "exp", "floor", "isnan", "iszero", "ln", "log10", "log2",
            "radians", "round", "signum", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
        ],
    ),
    ("f, f", &["atan2", "log", "nanvl", "power"]),
    ("v, v", &["gcd", "lcm"]),
    ("v", &["chr", "factorial", "from_unixtime", "to_hex"]),
    (
        "",
        &[
            "current_date",
            "current_time",
            "now",
            "pi",
            "random",
            "uuid",
            "version",
        ],
    ),
    (
        "t",
        &[
            "ascii",
            "bit_length",
            "btrim",
            "character_length",
            "initcap",
            "lower",
            "ltrim",
            "octet_length",
            "reverse",
            "rtrim",
            "to_date",
            "to_time",
            "to_timestamp",
            "to_timestamp_micros",
            "to_timestamp_millis",
            "to_timestamp_nanos",
            "to_timestamp_seconds",
            "to_unixtime",
            "upper",
        ],
    ),
    (
        "t, u",
        &[
            "btrim",
            "coalesce",
            "concat",
            "contains",
            "ends_with",
            "find_in_set",
            "greatest",
            "least",
            "levenshtein",
            "ltrim",
            "nullif",
            "nvl",
            "regexp_like",
            "rtrim",
            "starts_with",
            "strpos",
            "string_to_array",
            "struct",
            "to_date",
            "to_timestamp",
            "to_timestamp_seconds",
            "concat_ws",
        ],
    ),
    ("t, u, t", &["concat_ws", "nvl2", "replace", "translate"]),
    ("t, u, v", &["overlay", "split_part", "substr_index"]),
    ("t, v", &["left", "repeat", "right", "substr"]),
    ("t, n", &["lpad", "repeat", "rpad"]),
    ("t, 'b'", &["string_to_array"]),
    (
        "t, '[a-j]*z|[a-j]'",
        &[
            "regexp_count",
            "regexp_instr",
            "regexp_like",
            "regexp_match",
        ],
    ),
    (
        "t, '(a?){50}(a|b)*c'",
        &[
            "regexp_count",
            "regexp_instr",
            "regexp_like",
            "regexp_match",
        ],
    ),
    ("t, '[a-j]*z|[a-j]', 'xy', 'g'", &["regexp_replace"]),
    ("t, 'a', 'bc'", &["replace", "translate"]),
    ("b, 'hex'", &["encode"]),
    ("encode(b, 'hex'), 'hex'", &["decode"]),
    (
        "'2020-01-02' || left(t, 0)",
        &[
            "to_date",
            "to_timestamp",
            "to_timestamp_micros",
            "to_timestamp_millis",
            "to_timestamp_nanos",
            "to_timestamp_seconds",
            "to_unixtime",
        ],
    ),
    ("'10:00:00' || left(t, 0)", &["to_time"]),
    (
        "l",
        &[
            "array_any_value",
            "array_avg",
            "array_compact",
            "array_dims",
            "array_distinct",
            "array_length",
            "array_max",
            "array_min",
            "array_ndims",
            "array_pop_back",
            "array_pop_front",
            "array_product",
            "array_reverse",
            "array_sort",
            "array_sum",
            "cardinality",
            "empty",
        ],
    ),
    (
        "l, v",
        &[
            "array_append",
            "array_element",
            "array_has",
            "array_position",
            "array_positions",
            "array_remove",
            "array_remove_all",
            "array_resize",
        ],
    ),
    ("l, n", &["array_has", "array_repeat", "array_resize"]),
    (
        "l, m",
        &[
            "array_concat",
            "array_except",
            "array_has_all",
            "array_has_any",
            "array_intersect",
            "array_union",
            "arrays_zip",
            "make_array",
            "map",
        ],
    ),
    ("v, l", &["array_prepend"]),
    (
        "l, v, v",
        &[
            "array_remove_n",
            "array_replace",
            "array_replace_all",
            "array_slice",
        ],
    ),
    ("l, v, v, n", &["array_replace_n"]),
    ("l, t", &["array_to_string"]),
    ("array[l, m]", &["flatten"]),
    ("map(l, m)", &["map_entries", "map_keys", "map_values"]),
    ("map(l, m), v", &["map_extract"]),
    ("'a', t", &["named_struct"]),
    ("named_struct('a', t), 'a'", &["get_field"]),
    ("0, n", &["generate_series", "range"]),
    (
        "d, timestamp '2021-01-01', interval '1 second'",
        &["generate_series"],
    ),
    ("d, repeat('%Y', n)", &["to_char"]),
    ("v, 'Int8'", &["arrow_cast"]),
    ("'hour', d", &["date_part", "date_trunc"]),
    (
        "interval '1 hour', d, timestamp '2020-01-01'",
        &["date_bin"],
    ),
    ("d", &["to_local_time"]),
    ("2020 + v, 2, 1", &["make_date"]),
    ("1, v, v", &["make_time"]),
];

/// Each function, in one batch of rows with what is short, about as long as may be, and too long.
#[test]
fn each_function_ends_in_time_with_long_arguments_or_is_refused() {
    let called: BTreeSet<&str> = CALLS
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    let offered: BTreeSet<&str> = offered_functions().scalars.into_iter().collect();
    assert_eq!(called, offered);
    let house = House::new();
    let (mut answered, mut refused) = (BTreeSet::new(), Vec::new());
    for length in [30, 2_000, 15_000, 1_000_000] {
        let (elements, half) = (length / 4, length / 2);
        for (arguments, names) in CALLS {
            for name in *names {
                let text = format!(
                    "select {name}({arguments}) from (
                       select v, 0.5::double precision as f, timestamp '2020-01-01' as d, {length} as n,
                              repeat('a', {length} + v) as t, repeat('a', {half} + v) || 'b' as u,
                              repeat('ab', {half} + v)::bytea as b,
                              range(0, {elements} + v) as l, range({elements}, 2 * {elements} + v) as m
                       from (select value::int as v from generate_series(1, 16) g(value)) w) x"
                );
                match ask(&house, &text) {
                    None => {}
                    Some(Ok(count)) => {
                        assert_eq!(count, 16, "{text}");
                        answered.insert(*name);
                    }
                    Some(Err(error)) => {
                        let code = error.state.code();
                        // Too much work or memory, or no number or time; but a call of it.
                        let is_of_call = ["54", "53", "22"].iter().any(|of| code.starts_with(of))
                            || error.message.to_lowercase().contains("pars");
                        if !is_of_call {
                            let text = text.replace('\n', " ");
                            refused.push(format!("{text}: {code} {error}"));
                        }
                    }
                }
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    let never: Vec<_> = offered.difference(&answered).collect();
    assert!(never.is_empty(), "{never:?}");
}

/// The engine reads the digits of a text by calls within calls: a long one overflowed the stack,
/// which ended the server.
#[test]
fn long_texts_are_no_numbers_wherever_they_become_some() {
    let house = House::with_memory(1 << 30);
    let session = house.session();
    house.done(
        &session,
        "create table numbers (i int primary key, n numeric(10, 2)); insert into numbers values (8, 1);
         create table texts (i int primary key, a text);
         insert into texts values (1, repeat('1', 10000000)), (2, '2.50'), (3, null);
         prepare put as insert into numbers values (9, $1::text::numeric);
         prepare given (numeric(38, 2)) as select $1",
    );
    for text in [
        "select cast(repeat('1', 10000000) as numeric)",
        "select cast('1e' || repeat('0', 10000000) as numeric)",
        "select 1.5 + repeat('0', 10000000)::numeric",
        "select repeat('1', 10000000)::numeric(10, 2)",
        "select a::numeric from texts",
        "select array[a]::numeric[] from texts",
        "select sum(a::numeric) from texts group by i",
        "select count(*) from texts where a::numeric > 1",
        "insert into numbers select i, a from texts",
        "insert into numbers values (7, repeat('1', 10000000))",
        "update numbers set n = (select a from texts where i = 1)",
        "execute put(repeat('1', 10000000))",
        "execute given(repeat('1', 10000000))",
        "select a.i from texts a join texts b on a.a::numeric = b.a::numeric",
        "select coalesce(a::numeric, 1) from texts order by 1",
    ] {
        let (code, message) = house.refused(&session, text);
        assert!(
            matches!(code, "22003" | "22P02" | "54000"),
            "{text}: {code} {message}"
        );
    }
    let lenient = "select i, try_cast(a as numeric(10, 2)) from texts order by i";
    assert_eq!(
        house.rows(&session, lenient),
        ["1 NULL", "2 2.50", "3 NULL"]
    );
    let zeros = "select (repeat('0', 3000) || '1.5')::numeric(3, 1)";
    assert_eq!(house.rows(&session, zeros), ["1.5"]);
}
