//! Databases in object stores: every command gives the same answers as on a directory; servers
//! follow a writing server; faults of the store and kills of the writer lose no acknowledged
//! change.
//!
//! The store is a directory that processes share (`file:///dir`), and an S3 server where there is
//! one (see `s3_server`).

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::common::{check_failure, succeed, text};
use crate::killed_server::{kill_again_and_again, kills};
use crate::serve::wait_until;
use crate::stores::s3_faults::{Fault, Faults, Proxy};
use crate::stores::s3_server::{Place, S3};

const TURTLE: &str = "@prefix : <http://e/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .\n\
     :a foaf:name \"red wine\"@en ; :next :b . :b foaf:name \"white wines\"@en ; :next :c . :c foaf:name \"Rotwein\"@de ; :n 1, 2.5 .\n";
const MAPPING: &str = r#"
@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix e: <http://e/> . @base <http://e/> .
<#I> rr:logicalTable [ rr:tableName "item" ]; rr:subjectMap [ rr:template "http://e/item/{id}" ];
  rr:predicateObjectMap [ rr:predicate e:name; rr:objectMap [ rr:column "name" ] ] .
"#;
const SEARCH: &str =
    "SELECT ?e { SERVICE text:search { [] text:query \"wine\" ; text:entity ?e } } ORDER BY ?e";

fn quads(numbers: std::ops::Range<u32>) -> String {
    let line = |number| {
        format!(
            "<http://e/s{number}> <http://e/p{}> \"the value {number}\" <http://e/g{}> .\n",
            number % 7,
            number % 3
        )
    };
    numbers.map(line).collect()
}

/// A database in a directory, and one that has to be the same in an object store.
struct Both<'p> {
    place: &'p Place,
    directory: String,
    address: String,
}

impl Both<'_> {
    /// Runs a command on both, which has `DB` where the database is named; both answers.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> (String, String) {
        let on = |database: &str| -> Vec<String> {
            let filled = arguments.iter().map(|it| match *it {
                "DB" => database.to_owned(),
                other => other.to_owned(),
            });
            filled.collect()
        };
        let (here, there) = (on(&self.directory), on(&self.address));
        let here: Vec<&str> = here.iter().map(String::as_str).collect();
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        (succeed(&here), self.place.succeed(&there))
    }

    /// Runs a command on both, whose answers have to be equal.
    #[track_caller]
    fn same(&self, arguments: &[&str]) -> String {
        let (here, there) = self.run(arguments);
        assert_eq!(here, there, "{arguments:?}");
        here
    }

    /// Runs a command on both, whose JSON answers have to be equal except for these members.
    #[track_caller]
    fn same_but(&self, arguments: &[&str], members: &[&str]) -> Value {
        let without = |text: String| {
            let mut value: Value = serde_json::from_str(&text).unwrap();
            remove(&mut value, members);
            value
        };
        let (here, there) = self.run(arguments);
        let (here, there) = (without(here), without(there));
        assert_eq!(here, there, "{arguments:?}");
        here
    }

    #[track_caller]
    fn ask(&self, query: &str) -> String {
        self.same(&["query", "--db", "DB", "--format", "csv", query])
    }
}

fn remove(value: &mut Value, members: &[&str]) {
    match value {
        Value::Object(object) => {
            object.retain(|name, _| !members.contains(&name.as_str()));
            object.values_mut().for_each(|it| remove(it, members));
        }
        Value::Array(array) => array.iter_mut().for_each(|it| remove(it, members)),
        _ => {}
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// What a load tells that is of this run alone.
const OF_A_RUN: &[&str] = &[
    "seconds",
    "cpu_seconds",
    "peak_memory_bytes",
    "stages",
    "database_bytes",
    "identity",
    "time",
];

fn every_command_does_the_same(place: &Place) {
    let directory = place.local("db");
    let both = Both {
        place,
        directory: text(&directory).to_owned(),
        address: place.database("shop"),
    };
    let file = |name: &str, content: &str| {
        let path = place.local(name);
        fs::write(&path, content).unwrap();
        path
    };
    let (first, second) = (file("1.ttl", TURTLE), file("2.nq", &quads(0..3000)));
    let mapping = file("mapping.ttl", MAPPING);

    // Loads, changes, reads.
    let load = |path: &Path| {
        both.same_but(
            &["load", "--report", "json", "--db", "DB", text(path)],
            OF_A_RUN,
        )
    };
    assert_eq!(load(&first)["quads_added"], 7);
    assert_eq!(load(&second)["quads_added"], 3000);
    assert_eq!(load(&second)["quads_added"], 0);
    both.same(&[
        "update",
        "--db",
        "DB",
        "PREFIX : <http://e/> INSERT DATA { :d :next :a . GRAPH :g0 { :d :n 3 } }",
    ]);
    both.same(&[
        "update",
        "--db",
        "DB",
        "DELETE WHERE { GRAPH <http://e/g1> { ?s <http://e/p2> ?o } }",
    ]);
    let count = "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ORDER BY ?g";
    assert_eq!(both.ask(count).lines().count(), 4);
    both.ask("PREFIX : <http://e/> SELECT ?x { :a :next+ ?x } ORDER BY ?x");
    both.ask("SELECT ?s { GRAPH ?g { ?s ?p \"the value 1234\" } }");
    both.same(&[
        "query",
        "--db",
        "DB",
        "--format",
        "nt",
        "CONSTRUCT WHERE { ?s <http://e/next> ?o }",
    ]);
    both.same(&[
        "explain",
        "--db",
        "DB",
        "SELECT * { ?s <http://e/next> ?o . ?o foaf:name ?n }",
    ]);
    let (here, there) = both.run(&["dump", "--db", "DB"]);
    assert_eq!(sorted(&here), sorted(&there));
    let (here, there) = both.run(&["dump", "--db", "DB", "--at", "2", "--canonical"]);
    assert_eq!(sorted(&here), sorted(&there));
    both.same_but(&["log", "--db", "DB", "--format", "json"], OF_A_RUN);
    both.same_but(&["stats", "--db", "DB", "--format", "json"], OF_A_RUN);
    let (here, there) = both.run(&["verify", "--db", "DB"]);
    assert!(here.ends_with(": no damage found\n"), "{here}");
    assert_eq!(there, format!("{}: no damage found\n", both.address));
    let (_, warmed) = both.run(&["warm", "--db", "DB"]);
    assert!(
        warmed.contains(" read in ") && !warmed.contains("the rest"),
        "{warmed}"
    );

    // What a database has beside its data.
    both.run(&[
        "text",
        "create",
        "--db",
        "DB",
        "--language",
        "en",
        "--grams",
    ]);
    assert_eq!(both.ask(SEARCH).lines().count(), 3);
    both.same_but(
        &["text", "list", "--db", "DB", "--format", "json"],
        &["bytes"],
    );
    both.same(&["prefix", "add", "--db", "DB", "ex", "http://e/"]);
    both.same(&["prefix", "list", "--db", "DB"]);
    both.ask("SELECT ?n { ex:a foaf:name ?n }");
    both.same(&["sql", "--db", "DB", "-c", "create table item (id int primary key, name text); insert into item values (1, 'lamp'), (2, 'it''s')"]);
    both.same(&[
        "sql",
        "--read-only",
        "--db",
        "DB",
        "--format",
        "csv",
        "-c",
        "select name, id from item order by id",
    ]);
    both.same(&[
        "mapping",
        "add",
        "--db",
        "DB",
        "http://e/items",
        "--file",
        text(&mapping),
    ]);
    both.same(&["mapping", "list", "--db", "DB"]);
    both.ask("SELECT ?n { GRAPH <http://e/items> { ?i <http://e/name> ?n } } ORDER BY ?n");
    both.same(&[
        "mapping",
        "materialize",
        "--db",
        "DB",
        "http://e/items",
        "--into",
        "http://e/copy",
    ]);
    both.same(&["mapping", "drop", "--db", "DB", "http://e/items"]);
    both.run(&["compact", "--db", "DB"]);
    both.ask(count);
    both.run(&["text", "rebuild", "--db", "DB"]);
    assert_eq!(both.ask(SEARCH).lines().count(), 3);
    both.same(&["text", "drop", "--db", "DB"]);
    both.same(&["compact", "--db", "DB", "--forget-history"]);
    both.same_but(&["stats", "--db", "DB", "--format", "json"], OF_A_RUN);

    // There and back: a backup of either is the database of the other.
    let (of_directory, of_address) = (place.local("backup-1"), place.local("backup-2"));
    succeed(&[
        "backup",
        "--db",
        &both.directory,
        "--to",
        text(&of_directory),
    ]);
    place.succeed(&["backup", "--db", &both.address, "--to", text(&of_address)]);
    let other = place.database("deeper/other");
    place.succeed(&["restore", "--from", text(&of_directory), "--db", &other]);
    place.fail(
        &["restore", "--from", text(&of_directory), "--db", &other],
        &["holds a database already"],
    );
    let back = place.local("back");
    succeed(&["restore", "--from", text(&of_address), "--db", text(&back)]);
    let crossed = Both {
        place,
        directory: text(&back).to_owned(),
        address: other,
    };
    let (here, there) = crossed.run(&["dump", "--db", "DB"]);
    assert_eq!(sorted(&here), sorted(&there));
    crossed.same(&[
        "sql",
        "--read-only",
        "--db",
        "DB",
        "--format",
        "csv",
        "-c",
        "select * from item order by id",
    ]);
    crossed.run(&["verify", "--db", "DB"]);
    place.succeed(&[
        "backup",
        "--db",
        &both.address,
        "--to",
        text(&of_address),
        "--keep",
        "1",
    ]);

    // Who may do what; from now on a server asks who asks.
    both.same(&[
        "user",
        "add",
        "--db",
        "DB",
        "--administrator",
        "--no-password",
        "ann",
    ]);
    both.same(&["group", "add", "--db", "DB", "cooks"]);
    both.same(&[
        "grant",
        "add",
        "--db",
        "DB",
        "--group",
        "cooks",
        "--default-graph",
        "read",
    ]);
    both.same(&[
        "limit", "set", "--db", "DB", "--user", "ann", "--rows", "10",
    ]);
    for what in ["user", "group", "grant", "limit"] {
        both.same_but(&[what, "list", "--db", "DB", "--format", "json"], OF_A_RUN);
    }
    let (_, verified) = both.run(&["verify", "--db", "DB"]);
    assert!(verified.ends_with("no damage found\n"), "{verified}");
    // Another machine, which has nothing of it, sees the same.
    let elsewhere = place.seen_elsewhere();
    let dumped = elsewhere.succeed(&["dump", "--db", &both.address]);
    assert_eq!(
        sorted(&dumped),
        sorted(&succeed(&["dump", "--db", &both.directory]))
    );
}

#[test]
fn every_command_does_in_a_shared_directory_what_it_does_on_a_database_of_its_own() {
    every_command_does_the_same(&Place::in_directory());
}

#[test]
fn every_command_does_in_s3_what_it_does_in_a_directory() {
    if let Some(server) = S3::get() {
        every_command_does_the_same(&Place::in_s3(server));
    }
}

#[test]
fn what_is_no_place_for_a_database_is_said_in_one_line() {
    let place = Place::in_directory();
    for wrong in ["gopher://x/y", "s3://", "s3:///x"] {
        place.fail(&["query", "--db", wrong, "ASK {}"], &[wrong, "s3://"]);
    }
    let database = place.database("none");
    place.fail(&["query", "--db", &database, "ASK {}"], &["none"]);
    place.fail(
        &[
            "update",
            "--db",
            text(&place.local("db")),
            "--cache",
            "x",
            "INSERT DATA { <urn:a> <urn:b> 1 }",
        ],
        &["--cache", "s3://bucket/prefix"],
    );
    assert!(!place.local("db").exists());
    for command in [
        &["demo", "--db", &database][..],
        &["bench", "cold", "--db", &database],
        &["bench", "floor", "--db", &database],
        &["bench", "estimates", "--db", &database],
    ] {
        place.fail(command, &["takes a directory of this machine", &database]);
    }
    let wrong_size = place
        .orrery()
        .env("ORRERY_CACHE_SIZE", "much")
        .args(["query", "--db", &database, "ASK {}"])
        .output()
        .unwrap();
    check_failure(&wrong_size, &["ORRERY_CACHE_SIZE"]);
}

/// One sample of `/metrics`.
fn figure(page: &str, name: &str) -> u64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {page}"));
    line.trim().parse().unwrap()
}

fn one_writes_and_others_follow(place: &Place) {
    let database = place.database("followed");
    let insert = |number: u32| format!("INSERT DATA {{ <http://e/s> <http://e/p> {number} }}");
    place.succeed(&["update", "--db", &database, &insert(0)]);
    let writer = place.serve(&database, &[]);
    let elsewhere = place.seen_elsewhere();
    let reader = elsewhere.serve(&database, &["--read-only"]);
    let second = place.seen_elsewhere();
    // It wants to write, and there is one who does: it sends changes on to that one.
    let beside = second.serve(&database, &[]);
    let through = |server: &crate::serve::Server, number: u32| {
        let url = format!("http://{}", server.address);
        place.run(&["update", "--server", &url, &insert(number)])
    };
    for number in 1..20 {
        assert!(through(&writer, number).status.success());
    }
    wait_until("the updates are seen", || reader.count() == 20);
    wait_until("the updates are seen there, too", || beside.count() == 20);
    check_failure(&through(&reader, 99), &[]);
    assert!(through(&beside, 98).status.success());
    elsewhere.fail(
        &["update", "--db", &database, &insert(99)],
        &["is locked: a server or another writer"],
    );
    // A whole new base, and the old one goes: readers take it up.
    let data = place.local("more.nq");
    fs::write(&data, quads(0..2000)).unwrap();
    let url = format!("http://{}", writer.address);
    place.succeed(&["load", "--server", &url, text(&data)]);
    place.succeed(&["compact", "--server", &url]);
    place.succeed(&["update", "--server", &url, &insert(20)]);
    wait_until("the new base is seen", || reader.count() == 22);
    let all = "/sparql?query=SELECT%20%28COUNT%28%2A%29%20AS%20%3Fc%29%20%7BGRAPH%20%3Fg%20%7B%3Fs%20%3Fp%20%3Fo%7D%7D";
    assert!(
        reader.get(all).trim_end().ends_with("2000"),
        "{}",
        reader.get(all)
    );

    let page = reader.get("/metrics");
    assert!(figure(&page, "orrery_object_requests_total{kind=\"get\"}") > 0);
    assert!(figure(&page, "orrery_object_bytes_total{direction=\"received\"}") > 0);
    assert!(figure(&page, "orrery_object_cache_bytes ") > 0);
    assert_eq!(figure(&page, "orrery_object_cache_limit_bytes "), 8 << 30);
    assert!(
        figure(
            &writer.get("/metrics"),
            "orrery_object_requests_total{kind=\"put_if\"}"
        ) > 20
    );

    drop((writer, beside));
    // The writer was killed. The next writer need not wait for its lease, as it ran on this
    // machine.
    place.succeed(&["update", "--db", &database, &insert(21)]);
    wait_until("another writer is followed", || reader.count() == 23);
    place.succeed(&["verify", "--db", &database]);
}

#[test]
fn servers_follow_the_one_that_writes_in_a_shared_directory() {
    one_writes_and_others_follow(&Place::in_directory());
}

#[test]
fn servers_follow_the_one_that_writes_in_s3() {
    if let Some(server) = S3::get() {
        one_writes_and_others_follow(&Place::in_s3(server));
    }
}

fn kills_lose_nothing(place: &Place) {
    let database = place.database("killed");
    let file = place.local("data.nt");
    fs::write(&file, "<http://x/s> <http://x/p> \"loaded\" .\n").unwrap();
    place.succeed(&["load", "--db", &database, text(&file)]);
    // Checkpoints come in between.
    let options = ["--checkpoint-quads", "50"];
    kill_again_and_again(kills(3), || place.serve(&database, &options));
    place.succeed(&["verify", "--db", &database]);
}

#[test]
fn every_acknowledged_update_is_in_the_shared_directory_after_the_server_was_killed() {
    kills_lose_nothing(&Place::in_directory());
}

#[test]
fn every_acknowledged_update_is_in_s3_after_the_server_was_killed() {
    if let Some(server) = S3::get() {
        kills_lose_nothing(&Place::in_s3(server));
    }
}

#[test]
fn whatever_fails_at_its_first_try_is_done_at_the_next() {
    let Some(server) = S3::get() else { return };
    let faults = [
        Fault::Unavailable,
        Fault::DoneButError,
        Fault::CutOff,
        Fault::DoneWithoutAnswer,
        Fault::Dropped,
        Fault::Slow(Duration::from_millis(20)),
    ];
    for fault in faults {
        let place = Place::in_s3(server);
        let proxy = Proxy::start(&server.endpoint, Faults::FirstTries(fault));
        let faulty = place.through(&proxy.endpoint);
        let database = place.database("db");
        let data = place.local("data.nq");
        fs::write(&data, quads(0..500)).unwrap();
        faulty.succeed(&["load", "--db", &database, text(&data)]);
        faulty.succeed(&[
            "update",
            "--db",
            &database,
            "INSERT DATA { <urn:a> <urn:b> 1 }",
        ]);
        faulty.succeed(&[
            "update",
            "--db",
            &database,
            "INSERT DATA { <urn:a> <urn:b> 2 }",
        ]);
        faulty.succeed(&["compact", "--db", &database]);
        faulty.succeed(&["verify", "--db", &database]);
        let dumped = faulty.succeed(&["dump", "--db", &database]);
        assert_eq!(dumped.lines().count(), 502, "{fault:?}");
        assert!(proxy.injected() > 10, "{fault:?}: {}", proxy.injected());
        // And what is there is what those see who have no trouble.
        let straight = place.succeed(&["dump", "--db", &database]);
        assert_eq!(sorted(&dumped), sorted(&straight), "{fault:?}");
        place.succeed(&["verify", "--db", &database]);
    }
}

#[test]
fn what_was_acknowledged_by_a_faulty_store_is_there() {
    let Some(server) = S3::get() else { return };
    let place = Place::in_s3(server);
    let proxy = Proxy::start(&server.endpoint, Faults::OneOf(4));
    let faulty = place.through(&proxy.endpoint);
    let database = place.database("db");
    place.succeed(&[
        "update",
        "--db",
        &database,
        "INSERT DATA { <urn:s> <urn:p> 0 }",
    ]);
    let mut acknowledged = 1;
    for number in 1..25 {
        let insert = format!("INSERT DATA {{ <urn:s> <urn:p> {number} }}");
        let done = faulty.run(&["update", "--db", &database, &insert]);
        match done.status.success() {
            true => acknowledged += 1,
            false => check_failure(&done, &[]),
        }
    }
    let count = "SELECT (COUNT(*) AS ?n) { <urn:s> <urn:p> ?o }";
    let found = place.succeed(&["query", "--db", &database, "--format", "csv", count]);
    let found: usize = found.lines().last().unwrap().trim().parse().unwrap();
    // What was not acknowledged may be there or not.
    assert!(
        (acknowledged..=25).contains(&found),
        "{acknowledged} acknowledged, {found} found"
    );
    assert!(acknowledged > 20, "most get through: {acknowledged}");
    assert!(proxy.injected() > 20);
    place.succeed(&["verify", "--db", &database]);
}

#[test]
fn a_store_that_is_down_is_said_in_one_line_and_a_server_answers_again_when_it_is_back() {
    let Some(server) = S3::get() else { return };
    let place = Place::in_s3(server);
    let database = place.database("db");
    place.succeed(&[
        "update",
        "--db",
        &database,
        "INSERT DATA { <urn:s> <urn:p> 1 }",
    ]);
    let proxy = Proxy::start(&server.endpoint, Faults::No);
    let faulty = place.through(&proxy.endpoint);
    let reader = faulty.serve(&database, &["--read-only"]);
    assert_eq!(reader.count(), 1);
    proxy.set(Faults::All(Fault::Unavailable));
    // What it has, it still answers.
    assert_eq!(reader.count(), 1);
    let elsewhere = place.through(&proxy.endpoint);
    elsewhere.fail(&["query", "--db", &database, "ASK {}"], &[&database]);
    proxy.set(Faults::No);
    place.succeed(&[
        "update",
        "--db",
        &database,
        "INSERT DATA { <urn:s> <urn:p> 2 }",
    ]);
    wait_until("the store is asked again", || reader.count() == 2);
}

#[test]
fn the_next_process_reads_from_the_cache_what_the_last_one_fetched() {
    let Some(server) = S3::get() else { return };
    let place = Place::in_s3(server);
    let database = place.database("db");
    let data = place.local("data.nq");
    fs::write(&data, quads(0..50_000)).unwrap();
    place.succeed(&["load", "--db", &database, text(&data)]);
    let proxy = Proxy::start(&server.endpoint, Faults::No);
    let cold = place.through(&proxy.endpoint);
    let query = "SELECT ?s { GRAPH ?g { ?s <http://e/p3> \"the value 31006\" } }";
    let asked = || {
        let before = (proxy.bytes(), proxy.requests());
        let answer = cold.succeed(&["query", "--db", &database, "--format", "csv", query]);
        assert_eq!(answer.lines().last(), Some("http://e/s31006"));
        (proxy.bytes() - before.0, proxy.requests() - before.1)
    };
    let (cold_bytes, cold_requests) = asked();
    let (warm_bytes, warm_requests) = asked();
    println!(
        "cold: {cold_bytes} bytes, {cold_requests} requests; warm: {warm_bytes}, {warm_requests}"
    );
    assert!(warm_bytes < cold_bytes / 4, "{warm_bytes} of {cold_bytes}");
    assert!(
        warm_requests <= 4 && warm_requests < cold_requests,
        "{warm_requests} of {cold_requests}"
    );
    // What is in the cache goes, too, and is fetched again.
    let small = [
        "query",
        "--db",
        &database,
        "--cache-size",
        "64K",
        "--format",
        "csv",
        query,
    ];
    assert!(cold.succeed(&small).contains("s31006"));
}
