//! `orrery sql`: tables beside the quads, from the command line.

use std::fs;

use crate::common::{quads, run, succeed, text};

#[test]
fn statements_are_committed_one_by_one_and_the_first_failure_ends_them() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let sql = |more: &[&str]| {
        let mut arguments = vec!["sql", "--db", text(&database)];
        arguments.extend(more);
        arguments
            .iter()
            .map(|it| (*it).to_owned())
            .collect::<Vec<_>>()
    };
    let done = |more: &[&str]| {
        let arguments = sql(more);
        succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let answer = done(&[
        "-c",
        "create table item (id int primary key, name text); insert into item values (1, 'lamp'), (2, null) returning id",
    ]);
    assert_eq!(
        answer,
        "CREATE TABLE\n id\n----\n  1\n  2\n(2 rows)\nINSERT 0 2\n"
    );
    succeed(&[
        "update",
        "--db",
        text(&database),
        "INSERT DATA { <a:a> <a:b> <a:c> }",
    ]);
    let file = home.path().join("more.sql");
    fs::write(
        &file,
        "insert into item values (3, 'chair');\nselect nme\n  from item;\ninsert into item values (4, 'x')",
    )
    .unwrap();
    let arguments = sql(&["-f", text(&file)]);
    let failed = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(
        said.contains("select nme")
            && said.contains("orrery: ERROR 42703: column \"nme\" does not exist"),
        "{said}"
    );
    let asked = "select * from item order by id";
    assert_eq!(
        done(&["--read-only", "--format", "csv", "-c", asked]),
        "id,name\n1,lamp\n2,\n3,chair\n"
    );
    assert_eq!(
        done(&[
            "--format",
            "json",
            "-c",
            "select true as b, 1.50 as n, null as z"
        ]),
        "[\n{\"b\":true,\"n\":1.50,\"z\":null}\n]\n"
    );
    let arguments = sql(&["--read-only", "-c", "delete from item"]);
    let failed = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(said.contains("25006"), "{said}");
    // A transaction that is not committed leaves nothing.
    done(&["-c", "begin; delete from item"]);
    assert_eq!(
        done(&["--format", "csv", "-c", "select count(*) as n from item"]),
        "n\n3\n"
    );
    assert_eq!(quads(&database), 1);
}
