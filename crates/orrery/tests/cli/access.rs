//! Tests of `orrery user`, `group`, `key` and `grant`, on a database and through a server's admin
//! socket, and of `serve --auth`.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{check_failure, fail, orrery, quads, run, succeed, text};
use crate::serve::Server;

pub(crate) const PASSWORD: &str = "correct horse";

/// A database with a quad in the default graph and in two others, an administrator `root`, and
/// `ann` who may write below <x:own/>.
pub(crate) fn database(home: &Path) -> String {
    let database = text(&home.join("db")).to_owned();
    let file = home.join("password");
    std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let file = text(&file);
    let db = ["--db", &database];
    let command = |arguments: &[&str]| succeed(&[arguments, &db].concat());
    command(&[
        "update",
        "INSERT DATA { <x:a> <x:p> 1 . GRAPH <x:own/1> { <x:b> <x:p> 2 } GRAPH <x:other> { <x:c> <x:p> 3 } }",
    ]);
    command(&[
        "user",
        "add",
        "root",
        "--administrator",
        "--password-file",
        file,
    ]);
    command(&["group", "add", "editors"]);
    command(&[
        "user",
        "add",
        "ann",
        "--group",
        "editors",
        "--password-file",
        file,
    ]);
    command(&[
        "grant",
        "add",
        "write",
        "--group",
        "editors",
        "--graphs-below",
        "x:own/",
    ]);
    database
}

/// An admin address that is free.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

pub(crate) fn as_user(name: &str, arguments: &[&str]) -> Command {
    let mut command = orrery();
    command
        .env("ORRERY_USER", name)
        .env("ORRERY_PASSWORD", PASSWORD);
    command.args(arguments);
    command
}

#[test]
fn users_groups_keys_and_rules_of_a_database() {
    let home = tempfile::tempdir().unwrap();
    let database = database(home.path());
    let db = ["--db", database.as_str()];
    let command = |arguments: &[&str]| succeed(&[arguments, &db].concat());
    assert_eq!(
        command(&["user", "list"]),
        "root  administrator\nann                  editors\n"
    );
    assert_eq!(command(&["group", "list"]), "editors  ann\n");
    assert_eq!(
        command(&["grant", "list"]),
        "3  group editors  write  graphs below <x:own/>\n"
    );
    let json = command(&["grant", "list", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["on"]["graphs_below"], "x:own/");

    // What is seen once is alone on a line.
    let made = command(&["user", "password", "ann"]);
    assert_eq!((made.lines().count(), made.trim().len()), (1, 20));
    let key = command(&["key", "add", "ann", "--days", "30", "--note", "nightly"]);
    assert!(key.starts_with("orr_") && key.lines().count() == 1, "{key}");
    let listed = command(&["key", "list"]);
    assert!(listed.contains("nightly") && !listed.contains(key.trim()));
    let number = listed.split_whitespace().next().unwrap();
    command(&["key", "remove", number]);
    assert_eq!(command(&["key", "list"]), "");

    let limits = ["--concurrent", "4", "--time", "1m", "--rows", "1000"];
    command(&[&["limit", "set", "--group", "editors"], &limits[..]].concat());
    let cost = ["--cost", "5000000/1h", "--bytes", "1M"];
    command(&[&["limit", "set", "--anyone"], &cost[..]].concat());
    assert_eq!(
        command(&["limit", "list"]),
        "anyone         1048576 bytes, 5000000 touches in 3600 s\n\
         group editors  4 at a time, 60 s, 1000 rows\n"
    );
    let json = command(&["limit", "list", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["limits"]["cost"]["touches"], 5_000_000);
    command(&["limit", "remove", "--anyone"]);
    fail(
        &["limit", "remove", "--anyone", "--db", &database],
        &["there are no limits"],
    );
    for wrong in [&["--cost", "5/soon"][..], &["--cost", "5"], &[]] {
        let arguments = [&["limit", "set", "--anyone"], wrong, &db[..]].concat();
        assert_eq!(run(&arguments).status.code(), Some(2), "{wrong:?}");
    }

    command(&["user", "lock", "ann"]);
    assert!(command(&["user", "list"]).contains("locked"));
    command(&["user", "unlock", "ann"]);
    command(&["user", "promote", "ann"]);
    command(&["user", "demote", "root"]);
    let refused = |arguments: &[&str], says: &[&str]| fail(&[arguments, &db].concat(), says);
    refused(
        &["user", "remove", "ann"],
        &["`ann` is the last administrator"],
    );
    refused(&["user", "add", "a b"], &["`a b` is no name"]);
    refused(&["grant", "remove", "77"], &["there is no rule 77"]);
    refused(
        &["grant", "add", "read", "--anyone", "--graph", "nonsense"],
        &["at `nonsense`"],
    );
    refused(
        &["grant", "add", "read", "--user", "nobody", "--all-graphs"],
        &["there is no user `nobody`"],
    );
    let unknown = run(&[
        &["grant", "add", "own", "--anyone", "--all-graphs"],
        &db[..],
    ]
    .concat());
    assert_eq!(unknown.status.code(), Some(2));

    // It is no data: neither counted nor dumped, and in a backup all the same.
    assert_eq!(quads(Path::new(&database)), 3);
    let dump = command(&["dump"]);
    assert!(
        !dump.contains("editors") && !dump.contains("argon2"),
        "{dump}"
    );
    let tables = succeed(&[
        "sql",
        "--db",
        &database,
        "-c",
        "select count(*) from information_schema.tables where table_name = 'access'",
        "--format",
        "csv",
    ]);
    assert!(tables.trim().ends_with('0'), "{tables}");
    fail(
        &["sql", "--db", &database, "-c", "select * from \"\".access"],
        &["ERROR"],
    );
    let (backup, restored) = (home.path().join("backup"), home.path().join("restored"));
    command(&["backup", "--to", text(&backup)]);
    succeed(&["restore", "--from", text(&backup), "--db", text(&restored)]);
    let of_restored = succeed(&["user", "list", "--db", text(&restored)]);
    assert_eq!(of_restored, command(&["user", "list"]));
    succeed(&["verify", "--db", text(&restored)]);
}

#[test]
fn a_server_with_users_is_administered_while_it_runs() {
    let home = tempfile::tempdir().unwrap();
    let database = database(home.path());
    let admin = free_address();
    let server = Server::start_with(&database, &["--admin", &admin]);
    let (public, admin) = (
        format!("http://{}", server.address),
        format!("http://{admin}"),
    );
    let done = |name: &str, arguments: &[&str]| -> String {
        let output = as_user(name, arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(
        server
            .get("/sparql?query=ASK%20%7B%7D")
            .starts_with("HTTP/1.1 401")
    );
    let insert = "INSERT DATA { GRAPH <x:own/2> { <x:b> <x:p> 2 } }";
    done("ann", &["update", "--server", &public, insert]);
    let other = "INSERT DATA { GRAPH <x:other> { <x:b> <x:p> 2 } }";
    let refused = as_user("ann", &["update", "--server", &public, other])
        .output()
        .unwrap();
    check_failure(&refused, &["403", "you may not change the graph <x:other>"]);
    let grant = [
        "grant", "add", "write", "--user", "ann", "--graph", "x:other", "--server", &admin,
    ];
    let refused = as_user("ann", &grant).output().unwrap();
    check_failure(
        &refused,
        &["403", "`ann` may not grant write on graph <x:other>"],
    );
    done("root", &grant);
    done("ann", &["update", "--server", &public, other]);
    // Commits name who made them, not by number.
    let log = succeed(&["log", "--db", &database]);
    assert!(
        log.contains("root: grant write on graph <x:other>"),
        "{log}"
    );
    assert!(!log.contains("user 0"), "{log}");

    // In an address it is not repeated in messages.
    let key = done("ann", &["key", "add", "ann", "--server", &admin]);
    let with_key = orrery()
        .env("ORRERY_KEY", key.trim())
        .args(["update", "--server", &public, insert])
        .output()
        .unwrap();
    assert!(with_key.status.success());
    let secret = format!("http://ann:not-this-one@{}", server.address);
    let wrong = run(&["update", "--server", &secret, insert]);
    check_failure(
        &wrong,
        &["401", "the name, the password or the key is wrong"],
    );
    assert!(!String::from_utf8_lossy(&wrong.stderr).contains("not-this-one"));
    let listed = done("root", &["user", "list", "--server", &admin]);
    assert!(listed.starts_with("root  administrator\n"), "{listed}");
    // In SQL, too, she sees her graphs and no tables of others.
    let count = "select count(*) as n from quads";
    let counted = |name: &str| {
        done(
            name,
            &["sql", "--server", &public, "-c", count, "--format", "csv"],
        )
    };
    assert_eq!(counted("ann"), "n\n4\n");
    assert_eq!(counted("root"), "n\n5\n");
    // Nothing runs beside what asks.
    assert_eq!(done("root", &["queries", "list", "--server", &admin]), "");
    for (name, why) in [("ann", "403"), ("root", "no query 17 runs now")] {
        let kill = ["queries", "kill", "17", "--server", &admin];
        check_failure(&as_user(name, &kill).output().unwrap(), &[why]);
    }
}

#[test]
fn the_first_start_with_auth_makes_an_administrator_once() {
    let home = tempfile::tempdir().unwrap();
    let database = text(&home.path().join("db")).to_owned();
    succeed(&["update", "--db", &database, "INSERT DATA { <x:a> <x:p> 1 }"]);
    let start = || {
        let (address, admin) = (free_address(), free_address());
        let mut process = orrery()
            .env("ORRERY_LOG", "info")
            .args([
                "serve", "--auth", "--db", &database, "--listen", &address, "--admin", &admin,
            ])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        for line in &mut lines {
            let line = line.unwrap();
            let is_up = line.contains("listening on");
            said.push(line);
            if is_up {
                break;
            }
        }
        (Server { process, address }, admin, said.join("\n"))
    };
    let (server, admin, said) = start();
    let made = "made the user administrator with the password ";
    let (_, password) = said.split_once(made).unwrap();
    let password = password.split(';').next().unwrap();
    let url = format!("http://administrator:{password}@{admin}");
    assert_eq!(
        succeed(&["user", "list", "--server", &url]),
        "administrator  administrator\n"
    );
    drop(server);
    let (_server, _admin, said) = start();
    assert!(!said.contains(made), "{said}");
}
