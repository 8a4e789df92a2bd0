//! What bad input gets: one line that says what, where and what to do, exit status 1,
//! and nothing lost.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::{check_failure, fail, orrery, quads, run, succeed, text};
use crate::serve::Server;
use tempfile::TempDir;

struct Home {
    directory: TempDir,
}

impl Home {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// A database of two triples.
    fn database(&self) -> PathBuf {
        let data = self.file("good.nt", "<a:s> <a:p> <a:o> .\n<a:s> <a:p> \"text\" .\n");
        let database = self.path("db");
        succeed(&["load", "--db", text(&database), text(&data)]);
        assert_eq!(quads(&database), 2);
        database
    }
}

/// Loading this file into a database fails so, and leaves the database as it was.
#[track_caller]
fn refuse(home: &Home, file: &Path, parts: &[&str]) {
    let database = home.database();
    fail(&["load", "--db", text(&database), text(file)], parts);
    assert_eq!(quads(&database), 2);
    succeed(&["verify", "--db", text(&database)]);
}

#[test]
fn what_is_not_there_or_in_the_wrong_place_is_named() {
    let home = Home::new();
    let database = home.database();
    let (database, missing) = (text(&database), home.path("missing"));
    let missing = text(&missing);
    fail(
        &["query", "--db", database, "-f", missing],
        &[missing, "check the path"],
    );
    fail(
        &["query", "--db", database, "DELETE WHERE { ?s ?p ?o }"],
        &["this is an update", "`orrery update`"],
    );
    let query = home.file("q.rq", "SELECT * { ?s ?p ?o }");
    for name in ["q.rq", text(&query)] {
        let use_it = format!("use -f {name}");
        fail(
            &["query", "--db", database, name],
            &["looks like a file", &use_it],
        );
    }
    fail(
        &["backup", "--db", database, "--to", database],
        &[database, "it is a database itself", "give a directory"],
    );
    fail(
        &["serve", "--db", database, "--load-dir", missing],
        &[missing, "--load-dir"],
    );
    let update = "INSERT DATA { <a:a> <a:b> <a:c> }";
    fail(
        &["update", "--server", "http://127.0.0.1:1", update],
        &["127.0.0.1:1", "refused", "is a server listening there?"],
    );
    let broken = home.file("broken.nt", "<a:a> <a:b> .\n");
    let server = Server::start(database);
    let url = format!("http://{}", server.address);
    fail(
        &["load", "--server", &url, text(&broken)],
        &["the request's body:1:", "expected an object"],
    );
    for command in [["user", "list"], ["queries", "list"]] {
        fail(
            &[&command[..], &["--server", &url]].concat(),
            &["this is not the admin socket", "--admin HOST:PORT"],
        );
    }
    let pid = format!("(pid {})", server.process.id());
    fail(
        &["update", "--db", database, update],
        &["LOCK", &pid, "--server URL"],
    );
    let wrong = "# one\nINSERT DATA { <a:a> <a:b> }";
    let output = run(&["update", "--server", &url, wrong]);
    check_failure(
        &output,
        &["400 Bad Request", "line 2", "an object is missing"],
    );
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "   2 | INSERT DATA { <a:a> <a:b> }",
            "     |                           ^"
        ],
        "{shown}"
    );
}

#[test]
fn a_syntax_error_names_file_line_column_and_text() {
    let home = Home::new();
    let mut data = "<a:s> <a:p> <a:o> .\n".repeat(5000);
    data.push_str("<a:s> <a:p> oops .\n");
    let file = home.file("bad.nt", data);
    refuse(&home, &file, &["bad.nt:5001:13", "oops"]);
}

#[test]
fn the_line_of_an_error_is_shown_with_a_caret_above_the_message() {
    let home = Home::new();
    let file = home.file("bad.ttl", "# one\n<a:s> foaf:name 1 .\n");
    let database = home.path("db");
    let output = run(&["load", "--db", text(&database), text(&file)]);
    check_failure(
        &output,
        &[
            "bad.ttl:2:7",
            "foaf: is not declared",
            "xmlns.com/foaf/0.1/",
        ],
    );
    let message = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = message.lines().rev().skip(1).take(2).collect();
    assert_eq!(
        lines,
        ["     |       ^^^^^^^^^", "   2 | <a:s> foaf:name 1 ."],
        "{message}"
    );
}

#[test]
fn a_comment_of_sql_is_told_from_an_option() {
    let output = run(&["query", "--db", "db", "-- all of it\nSELECT * { ?s ?p ?o }"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("comments begin with `#`"), "{message}");
    let output = run(&["query", "--db", "db", "--unknown"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("--unknown"), "{message}");
}

#[test]
fn a_wrong_pattern_is_no_error_but_a_warning_with_its_line() {
    let home = Home::new();
    let database = home.database();
    let query = "SELECT * {\n  ?s ?p ?o FILTER regex(str(?o), '(') }";
    let output = run(&["query", "--db", text(&database), "--format", "csv", query]);
    assert!(output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = message.lines().collect();
    let [line, carets, warning] = lines.as_slice() else {
        panic!("{message}");
    };
    assert_eq!(*line, "   2 |   ?s ?p ?o FILTER regex(str(?o), '(') }");
    assert_eq!(carets.find('^'), line.find("'('"), "{message}");
    assert!(
        warning.starts_with("warning: line 2, column 34: "),
        "{message}"
    );
    assert!(warning.contains("`(` of REGEX"), "{message}");
}

#[test]
fn the_line_of_a_wrong_query_is_shown() {
    let home = Home::new();
    let database = home.database();
    let query = "SELECT *\nWHERE {\n  ?s foo:bar ?o }";
    for command in ["query", "explain", "update"] {
        let output = run(&[command, "--db", text(&database), query]);
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = message.lines().collect();
        let [.., line, carets, last] = lines.as_slice() else {
            panic!("{message}");
        };
        assert!(last.starts_with("orrery: "), "{message}");
        assert!(carets.contains('^'), "{message}");
        assert!(
            query.lines().any(|of_query| line.ends_with(of_query)),
            "{message}"
        );
    }
}

#[test]
fn a_syntax_error_in_turtle_names_file_and_line() {
    let home = Home::new();
    let file = home.file(
        "bad.ttl",
        "@prefix a: <a:> .\na:s a:p a:o .\na:s a:p ; ; ] .\n",
    );
    refuse(&home, &file, &["bad.ttl:3:"]);
}

#[test]
fn skip_errors_counts_and_goes_on() {
    let home = Home::new();
    let file = home.file(
        "bad.nt",
        "<a:s> <a:p> <a:o> .\nnonsense\n<a:s> <a:p> <a:q> .\n",
    );
    let database = home.path("db");
    let output = run(&[
        "load",
        "--skip-errors",
        "--report",
        "json",
        "--db",
        text(&database),
        text(&file),
    ]);
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["errors_skipped"], 1);
    assert_eq!(quads(&database), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.nt:2:1"));
}

#[test]
fn a_first_load_that_fails_leaves_no_database() {
    let home = Home::new();
    let file = home.file("bad.nt", "<a:s> <a:p> <a:o>\n");
    let database = home.path("new");
    fail(
        &["load", "--db", text(&database), text(&file)],
        &["bad.nt:1:"],
    );
    fail(&["stats", "--db", text(&database)], &[text(&database)]);
}

#[test]
fn compressed_files_that_are_cut_or_damaged_are_refused() {
    let home = Home::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for number in 0..20_000 {
        writeln!(gzip, "<a:s{number}> <a:p> \"{}\" .", number * 7919 % 10_007).unwrap();
    }
    let whole = gzip.finish().unwrap();
    let cut = home.file("cut.nt.gz", &whole[..whole.len() / 2]);
    refuse(&home, &cut, &["cut.nt.gz"]);
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x10;
    let damaged = home.file("damaged.nt.gz", damaged);
    refuse(&home, &damaged, &["damaged.nt.gz"]);
    let no_gzip = home.file("no.nt.gz", "<a:s> <a:p> <a:o> .\n");
    refuse(&home, &no_gzip, &["no.nt.gz"]);
}

#[test]
fn directories_missing_files_and_unknown_formats_are_refused() {
    let home = Home::new();
    let directory = home.path("dir.nt");
    fs::create_dir(&directory).unwrap();
    refuse(&home, &directory, &["dir.nt", "directory"]);
    refuse(&home, &home.path("absent.nt"), &["absent.nt"]);
    let unknown = home.file("data.xyz", "<a:s> <a:p> <a:o> .\n");
    refuse(&home, &unknown, &["data.xyz", "--format"]);
}

#[test]
fn what_is_no_database_is_refused() {
    let home = Home::new();
    let empty = home.path("empty");
    fs::create_dir(&empty).unwrap();
    let file = home.file("file", "x");
    for path in [&empty, &file, &home.path("absent")] {
        for command in ["stats", "verify", "dump", "warm", "query"] {
            let mut arguments = vec![command, "--db", text(path)];
            if command == "query" {
                arguments.push("ASK {}");
            }
            fail(&arguments, &[text(path)]);
        }
    }
    let foreign = home.path("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("important.txt"), "mine").unwrap();
    let data = home.file("good.nt", "<a:s> <a:p> <a:o> .\n");
    fail(
        &["load", "--db", text(&foreign), text(&data)],
        &[text(&foreign)],
    );
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
}

#[test]
fn a_database_of_another_version_is_refused() {
    let home = Home::new();
    let database = home.database();
    let manifest = fs::read_to_string(database.join("MANIFEST")).unwrap();
    let (json, _checksum) = manifest.rsplit_once("crc32c ").unwrap();
    let newer = json.replacen("\"format_version\": 4", "\"format_version\": 999", 1);
    assert_ne!(json, newer);
    let checksum = crc32c::crc32c(newer.as_bytes());
    fs::write(
        database.join("MANIFEST"),
        format!("{newer}crc32c {checksum:08x}\n"),
    )
    .unwrap();
    fail(&["stats", "--db", text(&database)], &["version"]);
}

#[test]
fn a_second_writer_is_refused() {
    let home = Home::new();
    let database = home.database();
    let mut first = orrery()
        .args(["load", "--format", "nt", "--db", text(&database), "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut input = first.stdin.take().unwrap();
    // More than a pipe holds: when it is written, the first load reads, and has the lock.
    let statements = "<a:s> <a:p> <a:new> .\n".repeat(100_000);
    input.write_all(statements.as_bytes()).unwrap();
    let good = home.path("good.nt");
    let output = run(&["load", "--db", text(&database), text(&good)]);
    check_failure(&output, &["another"]);
    drop(input);
    assert!(first.wait().unwrap().success());
    assert_eq!(quads(&database), 3);
}

#[test]
fn wrong_usage_is_exit_status_2() {
    for arguments in [
        &["load"][..],
        &["query", "--db"],
        &["frobnicate"],
        &["load", "--memory", "lots", "--db", "x", "y"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_server_with_too_little_memory_is_refused() {
    let home = Home::new();
    let database = home.database();
    let listen = ["--listen", "127.0.0.1:0"];
    let arguments = ["serve", "--db", text(&database), "--memory", "255M"];
    fail(&[&arguments[..], &listen].concat(), &["--memory 256M"]);
}

#[test]
fn a_load_or_compaction_with_little_memory_says_so() {
    let home = Home::new();
    let data = home.path("x.nt");
    fs::write(&data, "<http://a> <http://b> <http://c> .\n").unwrap();
    let database = home.path("db");
    for (memory, is_little) in [("127M", true), ("128M", false)] {
        for (work, more) in [("load", vec![text(&data)]), ("compact", Vec::new())] {
            let arguments = [work, "--db", text(&database), "--memory", memory];
            let output = run(&[&arguments[..], &more].concat());
            assert!(output.status.success(), "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            let note = format!("note: to {work} may take more than");
            assert_eq!(said.contains(&note), is_little, "{said}");
        }
    }
}

#[test]
fn a_query_error_has_line_and_column() {
    let home = Home::new();
    let database = home.database();
    fail(
        &[
            "query",
            "--db",
            text(&database),
            "SELECT *\nWHERE { ?s ?p }",
        ],
        &["line 2", "column"],
    );
    fail(
        &[
            "query",
            "--db",
            text(&database),
            "--format",
            "docx",
            "ASK {}",
        ],
        &["docx"],
    );
}

#[test]
fn a_flipped_bit_is_found_and_its_file_named() {
    let home = Home::new();
    let database = home.database();
    let segment = fs::read_dir(&database)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    for entry in fs::read_dir(&segment).unwrap() {
        let path = entry.unwrap().path();
        let original = fs::read(&path).unwrap();
        if original.is_empty() {
            continue;
        }
        for at in [0, original.len() / 2, original.len() - 1] {
            let mut damaged = original.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            fail(&["verify", "--db", text(&database)], &[name]);
        }
        fs::write(&path, &original).unwrap();
    }
    succeed(&["verify", "--db", text(&database)]);
}
