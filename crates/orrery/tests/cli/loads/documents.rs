//! Documents with faults, odd IRIs and odd encodings, as `orrery load` takes them.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use crate::common::{fail, run, succeed, text};
use crate::serve::Server;

/// Loads a file with options. Gives what the report says, and what is said beside it.
fn load(
    directory: &Path,
    name: &str,
    content: impl AsRef<[u8]>,
    options: &[&str],
) -> (serde_json::Value, String) {
    let file = directory.join(name);
    fs::write(&file, content).unwrap();
    let database = directory.join("db");
    let _ = fs::remove_dir_all(&database);
    let arguments = [
        "load",
        "--report",
        "json",
        "--db",
        text(&database),
        text(&file),
    ];
    let output = run(&[&arguments[..], options].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

fn lines(directory: &Path) -> Vec<String> {
    let dumped = succeed(&["dump", "--db", text(&directory.join("db"))]);
    let mut lines: Vec<String> = dumped.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn skip_errors_drops_whole_statements_and_reports_unread_parts() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let trig = "@prefix : <http://e/> .\n:g1 { :a :p <http://e/x y> . :b :q :r . }\n:g2 { :c :d ( 1 \"x\"@toolonglanguagetag ) ; :m 5 .\n :h :i :j }\n:j :k :l .\n";
    let (report, _) = load(home, "a.trig", trig, &["--skip-errors"]);
    assert_eq!(report["errors_skipped"], 2);
    assert_eq!(
        lines(home),
        [
            "<http://e/b> <http://e/q> <http://e/r> <http://e/g1> .",
            "<http://e/h> <http://e/i> <http://e/j> <http://e/g2> .",
            "<http://e/j> <http://e/k> <http://e/l> .",
        ]
    );
    // Nobody knows where the text was to end.
    let turtle =
        "<a:s> <a:p> <a:o> .\n<a:s> <a:p> \"x .\n<a:s> <a:p> <a:q> .\n<a:s> <a:p> \"y\" .\n";
    let (report, said) = load(home, "a.ttl", turtle, &["--skip-errors"]);
    assert_eq!(lines(home), ["<a:s> <a:p> <a:o> ."]);
    assert!(
        said.contains("all from line 2 to its end was left out"),
        "{said}"
    );
    assert!(report["warnings"][0].as_str().unwrap().contains("line 2"));
    let json = "[{\"@id\": \"a:s\", \"a:p\": 1}, {\"@id\": 5}]";
    let (report, said) = load(home, "a.jsonld", json, &["--skip-errors"]);
    assert_eq!(report["quads_added"], 0);
    assert!(said.contains("all of it was left out"), "{said}");
}

#[test]
fn iris_of_dumps_are_taken_as_they_are_where_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let odd = ["http://x/a#b#c", "http://x/a[1]", "http://x/100%"];
    let nt: String = odd
        .iter()
        .map(|iri| format!("<a:s> <a:p> <{iri}> .\n"))
        .collect();
    let ttl = format!("@prefix : <a:> .\n{}", nt.replace("<a:p>", ":p"));
    let properties: String = odd
        .iter()
        .map(|iri| format!("<e:p rdf:resource='{iri}'/>"))
        .collect();
    let xml = format!(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='a:'><rdf:Description rdf:about='a:s'>{properties}</rdf:Description></rdf:RDF>"
    );
    let mut expected: Vec<&str> = nt.lines().collect();
    expected.sort_unstable();
    for (name, content) in [
        ("a.nt", &nt),
        ("a.nq", &nt),
        ("a.ttl", &ttl),
        ("a.trig", &ttl),
        ("a.rdf", &xml),
    ] {
        let (report, said) = load(home, name, content, &["--lenient-iris"]);
        assert_eq!(lines(home), expected, "{name}");
        assert!(
            said.contains("3 IRIs were taken as they are written"),
            "{name}: {said}"
        );
        assert_eq!(report["warnings"].as_array().unwrap().len(), 1, "{name}");
        let database = home.join("db");
        fs::remove_dir_all(&database).unwrap();
        fail(
            &["load", "--db", text(&database), text(&home.join(name))],
            &[name],
        );
        // What nothing can write stays an error, and so does all else.
        for (from, to) in [
            ("100%", "1 0"),
            ("<a:s>", "s"),
            (" .", ""),
            ("</e:p>", "</e:q>"),
            ("'/>", "'>"),
            ("a:p", "a b:p"),
        ] {
            let wrong = content.replace(from, to);
            if wrong == **content || !name.ends_with("nt") && from == "<a:s>" {
                continue;
            }
            fs::write(home.join(name), wrong).unwrap();
            fail(
                &[
                    "load",
                    "--lenient-iris",
                    "--db",
                    text(&database),
                    text(&home.join(name)),
                ],
                &[name],
            );
        }
    }
}

#[test]
fn rdf_xml_is_read_in_the_encoding_that_it_is_in() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let body = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='a:'><rdf:Description rdf:about='a:s'><e:p>caf\u{e9}</e:p></rdf:Description></rdf:RDF>";
    let latin = format!("<?xml version='1.0' encoding='ISO-8859-1'?>{body}");
    let latin: Vec<u8> = latin
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    let wide = format!("\u{feff}<?xml version='1.0' encoding='UTF-16'?>{body}");
    let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for content in [latin, wide, body.as_bytes().to_vec()] {
        load(home, "a.rdf", content, &[]);
        assert_eq!(lines(home), ["<a:s> <a:p> \"caf\u{e9}\" ."]);
    }
}

fn gzip(content: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(content.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_directory_that_is_loaded_through_a_server_is_one_commit_with_the_quads_of_a_load_here() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("in \"it\"");
    fs::create_dir_all(directory.join("below")).unwrap();
    fs::write(directory.join("a.ttl"), "<a:s> <a:p> 1 . <a:s> <a:q> 1 .").unwrap();
    fs::write(directory.join("b.nt"), "<a:t> <a:p> <a:u> .\n").unwrap();
    let quads = "<a:q> <a:p> <a:r> <a:g> .\n<a:q> <a:p> <a:d> .\n";
    fs::write(directory.join("q.nq"), quads).unwrap();
    let many: String = (0..20_000)
        .map(|n| format!("<a:m{n}> <a:p> \"{n}\" .\n"))
        .collect();
    fs::write(directory.join("below/c.nt.gz"), gzip(&many)).unwrap();
    let begun = home.path().join("0.nt");
    fs::write(&begun, "<a:begun> <a:p> <a:o> .\n").unwrap();
    let databases = ["here", "there"].map(|name| home.path().join(name));
    for database in &databases {
        succeed(&["load", "--db", text(database), text(&begun)]);
    }
    succeed(&["load", "--db", text(&databases[0]), "-r", text(&directory)]);
    let server = Server::start(text(&databases[1]));
    let url = format!("http://{}", server.address);
    let load = ["load", "--server", &url, "-r", text(&directory)];
    // One wrong file, and none of them is taken.
    let wrong = directory.join("d.ttl");
    fs::write(&wrong, "<a:new> <a:p> <a:new> . <a:s> <a:p> .").unwrap();
    fail(&load, &["in \"it\"/d.ttl:1:"]);
    fs::remove_file(&wrong).unwrap();
    let report = |told: &str, files: usize| -> serde_json::Value {
        let report = told.strip_prefix(&format!("{files} files: "));
        serde_json::from_str(report.unwrap_or_else(|| panic!("{told}"))).unwrap()
    };
    let told = report(&succeed(&load), 4);
    assert_eq!(
        (&told["commit"], &told["added"]),
        (&2.into(), &20_005.into())
    );
    let dumped = |arguments: &[&str]| {
        let dumped = succeed(arguments);
        let mut lines: Vec<String> = dumped.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let [here, there] = databases
        .each_ref()
        .map(|it| dumped(&["dump", "--db", text(it)]));
    assert!(here == there, "{} {}", here.len(), there.len());
    // Longer than what goes through the memory: by way of the disk, into a graph.
    let comments = "# nothing is said here\n".repeat(3 << 20);
    fs::write(directory.join("e.nt"), comments).unwrap();
    fs::remove_file(directory.join("q.nq")).unwrap();
    let into_graph = [&load[..], &["--graph", "a:own"]].concat();
    let told = report(&succeed(&into_graph), 4);
    assert_eq!(
        (&told["commit"], &told["added"]),
        (&3.into(), &20_003.into())
    );
    // A file that is not there, before anything is sent.
    let missing = text(&home.path().join("missing.nt")).to_owned();
    let nowhere = [
        "load",
        "--server",
        "http://127.0.0.1:1",
        text(&begun),
        &missing,
    ];
    fail(&nowhere, &["missing.nt"]);
    // One file is what it was.
    let one = succeed(&["load", "--server", &url, text(&begun)]);
    assert!(one.starts_with(&format!("{}: {{", text(&begun))), "{one}");
}

#[test]
fn a_server_that_is_older_and_takes_no_such_form_is_told_apart_from_a_wrong_file() {
    let home = tempfile::tempdir().unwrap();
    let files = ["a.nt", "b.nq"].map(|name| home.path().join(name));
    for file in &files {
        fs::write(file, "<a:s> <a:p> <a:o> .\n").unwrap();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let old = "neither the Content-Type nor the name of `default` tells its format";
    let new = "a.nt:1:1: wrong";
    let answers = [(415, old), (400, new)];
    let serving = std::thread::spawn(move || {
        for (status, text) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n0\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let length = text.len();
            let answer = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let load = ["load", "--server", &url, text(&files[0]), text(&files[1])];
    fail(&load, &[old, "older than this program", "one at a time"]);
    let refused = run(&load);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains(new) && !said.contains("older"), "{said}");
    serving.join().unwrap();
}
