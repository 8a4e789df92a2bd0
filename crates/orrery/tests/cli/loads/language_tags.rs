//! Language tags come back as they were written, by any way in and out, and are compared without
//! regard to case.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{succeed, text};

const XML: &str = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="http://e/xml"><e:p xml:lang="de-AT">Jänner</e:p></rdf:Description>
</rdf:RDF>"#;
const JSON: &str = r#"{"@context": {"p": {"@id": "http://e/p", "@container": "@language"}, "q": "http://e/q", "lang": "@language"},
"@id": "http://e/json", "q": [{"@value": "trem", "@language": "pt-PT"}, {"@value": "tren", "lang": "es-AR"}], "p": {"pt-BR": "ônibus"}}"#;

/// A file of each syntax, each with tags of its own.
fn files() -> [(&'static str, &'static str); 6] {
    [
        ("a.nt", "<http://e/nt> <http://e/p> \"colour\"@en-GB .\n"),
        (
            "b.nq",
            "<http://e/nq> <http://e/p> \"color\"@en-US <http://e/g> .\n",
        ),
        // Strings and comments are no tags.
        (
            "c.ttl",
            "# 'x'@FR\n<http://e/ttl> <http://e/p> '\"@FR'@fr, '''漢'''@zh-Hant .\n",
        ),
        (
            "d.trig",
            "<http://e/g> { <http://e/trig> <http://e/p> \"fr\" @fr-CA }\n",
        ),
        ("e.rdf", XML),
        ("f.jsonld", JSON),
    ]
}

const LITERALS: [&str; 9] = [
    "\"colour\"@en-GB",
    "\"color\"@en-US",
    "\"\\\"@FR\"@fr",
    "\"漢\"@zh-Hant",
    "\"fr\"@fr-CA",
    "\"Jänner\"@de-AT",
    "\"trem\"@pt-PT",
    "\"tren\"@es-AR",
    "\"ônibus\"@pt-BR",
];

fn loaded(home: &Path) -> std::path::PathBuf {
    let database = home.join("db");
    let mut arguments = vec!["load".to_owned(), "--db".to_owned()];
    arguments.push(text(&database).to_owned());
    for (name, content) in files() {
        let file = home.join(name);
        fs::write(&file, content).unwrap();
        arguments.push(text(&file).to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    succeed(&arguments);
    database
}

/// The literals that a dump has.
#[track_caller]
fn literals(database: &Path) -> BTreeSet<String> {
    let dumped = succeed(&["dump", "--db", text(database)]);
    let literals = dumped.lines().map(|line| {
        let (from, to) = (line.find('"').unwrap(), line.rfind("\"@").unwrap());
        let tag = line[to..].split_once(' ').unwrap().0;
        format!("{}{tag}", &line[from..to])
    });
    literals.collect()
}

fn expected() -> BTreeSet<String> {
    LITERALS.map(str::to_owned).into()
}

#[test]
fn every_syntax_brings_tags_and_every_format_gives_them_as_they_are_written() {
    let home = tempfile::tempdir().unwrap();
    let database = loaded(home.path());
    assert_eq!(literals(&database), expected());
    let query = |format: &str, query: &str| {
        let arguments = ["query", "--union-default-graph", "--format", format, "--db"];
        succeed(&[&arguments[..], &[text(&database), query]].concat())
    };
    let tags = [
        "en-GB", "en-US", "fr", "zh-Hant", "fr-CA", "de-AT", "pt-PT", "es-AR", "pt-BR",
    ];
    let all = "{ ?s ?p ?o }";
    for format in ["json", "xml", "tsv", "turtle", "nt", "rdf", "jsonld"] {
        let is_graph = matches!(format, "turtle" | "nt" | "rdf" | "jsonld");
        let form = if is_graph { "CONSTRUCT" } else { "SELECT *" };
        let text = match is_graph {
            true => format!("CONSTRUCT {all} WHERE {all}"),
            false => format!("{form} {all}"),
        };
        let answer = query(format, &text);
        for tag in tags {
            let is_there = [format!("@{tag}"), format!("\"{tag}\""), format!("'{tag}'")]
                .iter()
                .any(|written| answer.contains(written));
            assert!(is_there, "{tag} in {format}: {answer}");
        }
    }
    for format in ["nq", "trig"] {
        let dumped = succeed(&["dump", "--format", format, "--db", text(&database)]);
        let file = home.path().join(format!("dump.{format}"));
        fs::write(&file, dumped).unwrap();
        let copy = home.path().join(format!("copy-{format}"));
        succeed(&["load", "--db", text(&copy), text(&file)]);
        assert_eq!(literals(&copy), expected(), "{format}");
    }
    let csv = query("csv", &format!("SELECT DISTINCT (LANG(?o) AS ?l) {all}"));
    let found: BTreeSet<&str> = csv.lines().skip(1).map(str::trim_end).collect();
    // As they are compared.
    let lower = tags.map(str::to_ascii_lowercase);
    assert_eq!(found, lower.iter().map(String::as_str).collect());
    let british = "SELECT ?s { ?s ?p ?o FILTER(LANG(?o) = \"en-GB\") }";
    assert_eq!(
        query("csv", british),
        query("csv", &british.replace("en-GB", "en-gb"))
    );
    assert!(query("csv", british).lines().count() > 1);
    // Equal whatever the case, and one term.
    for constant in ["colour\"@en-GB", "colour\"@EN-gb", "colour\"@en-gb"] {
        let found = query("csv", &format!("SELECT ?s {{ ?s ?p \"{constant} }}"));
        assert_eq!(found.replace('\r', ""), "s\nhttp://e/nt\n");
    }
    // What only the query has is written as it is there.
    let own = "SELECT (STRLANG('x', 'sr-Latn') AS ?a) ('y'@sr-Cyrl AS ?b) (STRLANG('z', 'EN-gb') AS ?c) {}";
    let row = query("tsv", own);
    assert_eq!(
        row.lines().last().unwrap(),
        "\"x\"@sr-Latn\t\"y\"@sr-Cyrl\t\"z\"@en-GB"
    );
    // And the same in all its rows, however they write it: as it was met first.
    let own =
        "SELECT (STRLANG('x', ?l) AS ?a) { VALUES ?l { 'sr' 'SR' 'sr-Latn' 'SR-LATN' 'sr-latn' } }";
    let rows = query("tsv", own);
    let rows: BTreeSet<&str> = rows.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    let lower: BTreeSet<String> = rows.iter().map(|row| row.to_ascii_lowercase()).collect();
    assert_eq!(
        lower,
        ["\"x\"@sr", "\"x\"@sr-latn"].map(String::from).into()
    );
}

#[test]
fn updates_loads_compactions_and_backups_keep_how_a_tag_was_written_first() {
    let home = tempfile::tempdir().unwrap();
    let database = loaded(home.path());
    let update = |update: &str| succeed(&["update", "--db", text(&database), update]);
    update("INSERT DATA { <http://e/u> <http://e/p> 'bus'@nl-BE, 'lorry'@EN-gb, 'x'@it }");
    let mut now = expected();
    now.extend(["\"bus\"@nl-BE", "\"lorry\"@en-GB", "\"x\"@it"].map(str::to_owned));
    assert_eq!(literals(&database), now);
    // A tag that was in lower case first stays so.
    update("INSERT DATA { <http://e/u> <http://e/p> 'y'@IT, 'colour'@EN-GB, 'z'@fr-ca }");
    now.extend(["\"y\"@it", "\"z\"@fr-CA"].map(str::to_owned));
    assert_eq!(literals(&database), now);
    update(
        "INSERT { ?s <http://e/q> ?l } WHERE { ?s <http://e/p> 'bus'@NL-be BIND(STRLANG('w', 'es-MX') AS ?l) }",
    );
    now.insert("\"w\"@es-MX".to_owned());
    assert_eq!(literals(&database), now);

    let target = home.path().join("backups");
    let restored = home.path().join("restored");
    succeed(&["backup", "--db", text(&database), "--to", text(&target)]);
    succeed(&["restore", "--from", text(&target), "--db", text(&restored)]);
    assert_eq!(literals(&restored), now);

    succeed(&["compact", "--db", text(&database)]);
    assert_eq!(literals(&database), now);
    let old = succeed(&["dump", "--db", text(&database), "--at", "2"]);
    assert!(
        old.contains("\"bus\"@nl-BE") && !old.contains("es-MX"),
        "{old}"
    );
    let more = home.path().join("more.nt");
    fs::write(&more, "<http://e/m> <http://e/p> \"v\"@ES-mx .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&more)]);
    now.insert("\"v\"@es-MX".to_owned());
    assert_eq!(literals(&database), now);
    succeed(&["verify", "--db", text(&database)]);
}
