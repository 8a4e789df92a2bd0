//! The index of texts: made, asked, backed up, verified and given up; and beside a server.

use std::fs;

use crate::common::{fail, succeed, text};
use crate::serve::Server;

const TURTLE: &str = "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
     :a rdfs:label \"red wine\"@en . :b rdfs:label \"white wines\"@en ; :note \"red wine\" . :c rdfs:label \"Rotwein\"@de .\n";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
const SEARCH: &str =
    "SELECT ?e { SERVICE text:search { [] text:query \"wine\" ; text:entity ?e } } ORDER BY ?e";

#[test]
fn an_index_of_texts_lives_with_its_database() {
    let home = tempfile::tempdir().unwrap();
    let (database, file) = (home.path().join("db"), home.path().join("wines.ttl"));
    fs::write(&file, TURTLE).unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    for command in ["list", "rebuild", "drop"] {
        fail(
            &["text", command, "--db", text(&database)],
            &["orrery text create"],
        );
    }
    let nothing = ["query", "--db", text(&database), SEARCH];
    fail(&nothing, &["orrery text create"]);
    let no_iri = [
        "text",
        "create",
        "--db",
        text(&database),
        "--property",
        "label",
    ];
    fail(&no_iri, &["\"label\"", "absolute IRI"]);
    let create = [
        "text",
        "create",
        "--db",
        text(&database),
        "--property",
        LABEL,
        "--language",
        "en",
    ];
    let made = succeed(&create);
    assert!(made.starts_with("2 texts in "), "{made}");

    let ask = |database: &std::path::Path| {
        let answer = succeed(&["query", "--db", text(database), "--format", "csv", SEARCH]);
        answer
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(ask(&database), ["http://e/a", "http://e/b"]);
    let update = "PREFIX : <http://e/> INSERT DATA { :d rdfs:label \"a wine that came later\"@en } ; DELETE WHERE { :a rdfs:label ?l }";
    succeed(&["update", "--db", text(&database), update]);
    assert_eq!(ask(&database), ["http://e/b", "http://e/d"]);
    let list = succeed(&["text", "list", "--db", text(&database), "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["texts"], 2);
    assert_eq!(list["texts_since"], 1);
    assert_eq!(list["properties"][0], LABEL);
    assert_eq!(list["languages"][0], "en");

    let (copy, restored) = (home.path().join("copy"), home.path().join("restored"));
    succeed(&["backup", "--db", text(&database), "--to", text(&copy)]);
    succeed(&["restore", "--from", text(&copy), "--db", text(&restored)]);
    assert_eq!(ask(&restored), ["http://e/b", "http://e/d"]);
    succeed(&["verify", "--db", text(&restored)]);
    succeed(&["compact", "--db", text(&restored)]);
    let list = succeed(&["text", "list", "--db", text(&restored)]);
    assert!(
        list.contains("2 texts, ") && list.contains("; 0 since"),
        "{list}"
    );
    assert_eq!(ask(&restored), ["http://e/b", "http://e/d"]);

    let server = Server::start(text(&database));
    // Whoever writes it must not be there.
    fail(&["text", "rebuild", "--db", text(&database)], &["db"]);
    let address = format!("http://{}", server.address);
    let sql = ["sql", "--server", &address, "--format", "csv", "-c"];
    let query = "select entity from text_search('wine', 10) order by entity";
    let rows = succeed(&[&sql[..], &[query]].concat());
    assert_eq!(
        rows.lines().skip(1).collect::<Vec<_>>(),
        ["http://e/b", "http://e/d"]
    );
    // But the server makes it, and gives it up.
    let place = ["--server", address.as_str()];
    let of_server = |command: &[&str]| succeed(&[&["text"], command, &place].concat());
    let made = of_server(&["rebuild"]);
    assert!(made.starts_with("2 texts in "), "{made}");
    let made = of_server(&["create", "--graph", "", "--grams"]);
    assert!(made.starts_with("4 texts in "), "{made}");
    let list = of_server(&["list"]);
    assert!(list.contains("graphs     default\n"), "{list}");
    assert!(list.contains("grams      yes\n"), "{list}");
    of_server(&["drop"]);
    fail(
        &[&["text", "list"], &place[..]].concat(),
        &["orrery text create"],
    );
    of_server(&["create", "--property", LABEL, "--class", "http://e/None"]);
    drop(server);

    succeed(&["text", "drop", "--db", text(&database)]);
    fail(&nothing, &["orrery text create"]);
    succeed(&["verify", "--db", text(&database)]);
}
