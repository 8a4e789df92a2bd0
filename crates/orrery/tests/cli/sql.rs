//! `orrery sql`: tables beside the quads, from the command line.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{orrery, quads, run, succeed, text};
use crate::serve::Server;

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
    // Their changes are brought into files, as those of quads into a base.
    let compact = || succeed(&["compact", "--db", text(&database)]);
    let compacted = compact();
    assert!(compacted.contains("1 table written anew"), "{compacted}");
    assert_eq!(compact(), "there are no changes to be compacted\n");
    assert_eq!(
        done(&["--format", "csv", "-c", "select count(*) as n from item"]),
        "n\n3\n"
    );
}

#[test]
fn a_server_is_asked_as_a_database_is() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    succeed(&[
        "sql",
        "--db",
        text(&database),
        "-c",
        "create table item (id int primary key, name text)",
    ]);
    let server = Server::start(text(&database));
    let url = format!("http://{}", server.address);
    let sql = |more: &[&str]| {
        let mut arguments = vec!["sql", "--server", url.as_str()];
        arguments.extend(more);
        run(&arguments)
    };
    let done = |more: &[&str]| {
        let output = sql(more);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{more:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let inserted = done(&[
        "-c",
        "insert into item values (1, 'lamp; red'), (2, null) returning id; -- and\nselect 3",
    ]);
    assert_eq!(
        inserted,
        " id\n----\n  1\n  2\n(2 rows)\nINSERT 0 2\n ?column?\n----------\n        3\n(1 row)\n"
    );
    let query = "select * from item order by id";
    assert_eq!(
        done(&["--format", "csv", "-c", query]),
        "id,name\n1,lamp; red\n2,\n"
    );
    // Each by itself, so what was done before stays; with the place in all of the text.
    let failing = "insert into item values (3, 'c');\nselect nme\n  from item;";
    let failed = sql(&["-c", failing]);
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        said.contains("select nme") && said.contains("42703"),
        "{said}"
    );
    let counted = ["--format", "csv", "-c", "select count(*) as n from item"];
    assert_eq!(done(&counted), "n\n3\n");
    let whole = "insert into item values (4, 'd'); insert into item values (4, 'e')";
    assert_eq!(sql(&["-1", "-c", whole]).status.code(), Some(1));
    assert_eq!(done(&counted), "n\n3\n");
    done(&[
        "-1",
        "-c",
        "insert into item values (4, 'd'); delete from item where id = 1",
    ]);
    assert_eq!(done(&counted), "n\n3\n");
}

#[test]
fn one_transaction_here_is_all_or_nothing() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let sql = |more: &[&str]| {
        let mut arguments = vec!["sql", "--db", text(&database)];
        arguments.extend(more);
        run(&arguments)
    };
    let whole =
        "create table t (a int primary key); insert into t values (1); insert into t values (1)";
    assert_eq!(sql(&["-1", "-c", whole]).status.code(), Some(1));
    let said = String::from_utf8(sql(&["-c", "select * from t"]).stderr).unwrap();
    assert!(said.contains("42P01"), "{said}");
}

#[test]
fn a_command_of_the_shell_runs_without_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let sql = |text_of: &str| run(&["sql", "--db", text(&database), "-c", text_of]);
    assert!(
        sql("create table item (id int primary key)")
            .status
            .success()
    );
    let listed = String::from_utf8(sql("\\d").stdout).unwrap();
    assert!(listed.contains("public | item | table"), "{listed}");
    let described = String::from_utf8(sql("\\d item;").stdout).unwrap();
    assert!(described.contains("PRIMARY KEY (id)"), "{described}");
    for (wrong, message) in [
        ("\\d nothing", "there is no table or view of that name"),
        ("\\nonsense", "\\nonsense is no command"),
    ] {
        let failed = sql(wrong);
        assert_eq!(failed.status.code(), Some(1), "{wrong}");
        let said = String::from_utf8(failed.stderr).unwrap();
        assert!(said.contains(message), "{said}");
    }
}

/// What a command shows when these lines are typed at a terminal. `None` without `script` of
/// util-linux, which makes the terminal.
fn typed(command: &str, state: &Path, lines: &str) -> Option<String> {
    let child = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .env("XDG_STATE_HOME", state)
        .env("TERM", "dumb")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: there is no `script` that makes a terminal");
        return None;
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_terminal_gets_a_shell() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let command = format!(
        "{} sql --db {}",
        env!("CARGO_BIN_EXE_orrery"),
        text(&database)
    );
    let lines = "create table item (\n  id int primary key,\n  name text not null default 'x');\n\
                 create index by_name on item (name) include (id);\n\
                 begin; insert into item values (1, 'lamp');\n\
                 select nme from item;\n\
                 rollback;\n\
                 \\d item\n\\di\n\\x on\nselect 2 as two, 'a' as b;\n\\nonsense\n\\q\n";
    let Some(shown) = typed(&command, home.path(), lines) else {
        return;
    };
    for expected in [
        "orrery=> ",
        "orrery(> ",
        "orrery=*> ",
        "orrery=!> ",
        "ERROR 42703",
        "Columns of item",
        "PRIMARY KEY (id)",
        "(name) INCLUDE (id)",
        "-[ 1 ]",
        "two | 2",
        "\\nonsense is no command",
    ] {
        assert!(shown.contains(expected), "{expected:?} is not in\n{shown}");
    }
    let history = fs::read_to_string(home.path().join("orrery/sql_history")).unwrap();
    assert!(history.contains("\\d item"), "{history}");
}

#[test]
fn copy_reads_standard_input_and_writes_standard_output_and_files() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let sql = |command: &str, input: &str| {
        let mut child = orrery()
            .args(["sql", "--db", text(&database), "-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Where it fails before it has read all, nobody takes the rest.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (String::from_utf8(output.stdout).unwrap(), said)
    };
    let (done, said) = sql(
        "create table t (id int primary key, s text); copy t from stdin csv",
        "2,b\n1,a\n",
    );
    assert_eq!(done, "CREATE TABLE\nCOPY 2\n", "{said}");
    let (done, _) = sql("copy t to stdout (format csv, header)", "");
    assert_eq!(done, "id,s\n1,a\n2,b\n");
    let (_, said) = sql("copy t from stdin csv", "3,c\nx,d\n");
    assert!(
        said.contains("ERROR 22P02: invalid input syntax for type integer: \"x\"; COPY t, line 2, column id: \"x\""),
        "{said}"
    );
    let file = home.path().join("t.parquet");
    let (done, said) = sql(&format!("copy t to '{}' (format parquet)", text(&file)), "");
    assert_eq!(done, "COPY 2\n", "{said}");
    let (done, said) = sql(&format!("select count(*) as n from '{}'", text(&file)), "");
    assert!(done.contains("2\n(1 row)"), "{done}{said}");
}
