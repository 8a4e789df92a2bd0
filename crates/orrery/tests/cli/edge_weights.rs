//! Tests of edge weights through the programs: a server that is killed, a compaction, a backup, and
//! old states.

use std::fs;
use std::path::Path;

use crate::common::{fail, succeed, text};
use crate::serve::Server;

const PREFIXES: &str = "PREFIX e: <http://e/> PREFIX weight: <https://orrery-db.org/weight#> ";

fn csv(database: &Path, options: &[&str], query: &str) -> Vec<String> {
    let query = format!("{PREFIXES}{query}");
    let mut arguments = vec!["query", "--db", text(database), "--format", "csv"];
    arguments.extend(options);
    arguments.push(&query);
    let mut rows: Vec<String> = succeed(&arguments)
        .lines()
        .skip(1)
        .map(str::to_owned)
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn edge_weights_survive_kills_compactions_and_backups() {
    const WEIGHTS: &str = "SELECT ?x ?y ?w { SERVICE weight:read { [] weight:name e:w ; weight:start ?x ; weight:end ?y ; weight:value ?w } }";
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let file = home.path().join("data.ttl");
    let data = "@prefix e: <http://e/> . e:a e:to e:b, e:c ; e:n 1 . e:b e:to e:c ; e:n 5 .";
    fs::write(&file, data).unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    {
        let server = Server::start(text(&database));
        let url = format!("http://{}", server.address);
        let update = |operation: &str| {
            let operation = format!("{PREFIXES}{operation}");
            succeed(&["update", "--server", &url, &operation])
        };
        update("CREATE EDGE WEIGHT e:w FROM { ?x e:to ?y ; e:n ?n } AS SUM(?n)");
        // Asked twice, so that it is in the server's memory, and changed behind that.
        let query = "/sparql?query=PATHS%20START%20%3Fx%20%3D%20%3Chttp%3A%2F%2Fe%2Fa%3E%20END%20%3Fy%20%3D%20%3Chttp%3A%2F%2Fe%2Fc%3E%20WEIGHT%20%3Chttp%3A%2F%2Fe%2Fw%3E";
        for _ in 0..3 {
            let answer = server.get(query);
            assert!(
                answer.contains("http://e/a,1,http://e/c,0,0,1,1"),
                "{answer}"
            );
        }
        update("DELETE DATA { e:a e:n 1 } ; INSERT DATA { e:a e:n 2 }");
        let answer = server.get(query);
        assert!(
            answer.contains("http://e/a,2,http://e/c,0,0,1,2"),
            "{answer}"
        );
        // Killed when it goes out of scope.
    }
    let expected = [
        "http://e/a,http://e/b,2",
        "http://e/a,http://e/c,2",
        "http://e/b,http://e/c,5",
    ];
    assert_eq!(csv(&database, &[], WEIGHTS), expected);
    // The state after the definition, and before it.
    assert!(csv(&database, &["--at", "2"], WEIGHTS)[0].ends_with(",1"));
    let of_old = format!("{PREFIXES}{WEIGHTS}");
    fail(
        &["query", "--db", text(&database), "--at", "1", &of_old],
        &["there is no edge weight <http://e/w>"],
    );
    succeed(&["compact", "--db", text(&database)]);
    assert_eq!(csv(&database, &[], WEIGHTS), expected);
    let (backups, restored) = (home.path().join("backups"), home.path().join("restored"));
    succeed(&["backup", "--db", text(&database), "--to", text(&backups)]);
    succeed(&["restore", "--from", text(&backups), "--db", text(&restored)]);
    assert_eq!(csv(&restored, &[], WEIGHTS), expected);
    let listed = csv(
        &restored,
        &[],
        "SELECT ?name { GRAPH weight:definitions { ?name weight:definition ?is } }",
    );
    assert_eq!(listed, ["http://e/w"]);
}
