//! `orrery serve --pg` and the clients of PostgreSQL: psql (Debian's postgresql-client), psycopg 3 (PyPI), and the JDBC
//! driver (Maven). Those that are not on the machine
//! are left out, and it is said so; `make setup` brings them.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::{check_failure, fail, orrery, text};
use crate::serve::Server;

/// A server of an empty database, which both protocols reach.
pub(crate) struct PostgresServer {
    pub(crate) address: String,
    _server: Server,
    _directory: tempfile::TempDir,
}

impl PostgresServer {
    pub(crate) fn start(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("db");
        let empty = directory.path().join("one.ttl");
        std::fs::write(&empty, "<http://e/s> <http://e/p> 1 .\n").unwrap();
        crate::common::succeed(&["load", "--db", text(&database), text(&empty)]);
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .to_string();
        let mut all = vec!["--pg", &address];
        all.extend(options);
        let server = Server::start_with(text(&database), &all);
        // Both listen before either answers.
        TcpStream::connect(&address).unwrap();
        Self {
            address,
            _server: server,
            _directory: directory,
        }
    }

    /// psql with a text, as it comes out of a pipe.
    pub(crate) fn psql(&self, connection: &str, text: &str) -> Output {
        let (host, port) = self.address.rsplit_once(':').unwrap();
        let place = format!("host={host} port={port} user=tester dbname=orrery {connection}");
        Command::new("psql")
            .args(["-X", "-v", "ON_ERROR_STOP=1", "-d", &place, "-c", text])
            .env_remove("PGPASSWORD")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

/// Whether there is such a program; says so if not.
pub(crate) fn has(program: &str, arguments: &[&str]) -> bool {
    let run = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_there = run.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!(
            "left out: {program} {} does not work here; see `make setup`",
            arguments.join(" ")
        );
    }
    is_there
}

/// The Python that has the clients: of `make setup`, or the machine's own.
pub(crate) fn python() -> String {
    let own = std::env::var("ORRERY_CLIENTS_PYTHON").ok();
    let home = std::env::var("HOME").unwrap_or_default();
    let made = format!("{home}/.cache/orrery/clients/bin/python");
    own.or_else(|| PathBuf::from(&made).exists().then_some(made))
        .unwrap_or_else(|| "python3".to_owned())
}

pub(crate) fn client(name: &str) -> String {
    format!("{}/tests/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
pub(crate) fn good(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn psql_asks_changes_and_is_told_what_is_wrong() {
    if !has("psql", &["--version"]) {
        return;
    }
    let server = PostgresServer::start(&[]);
    let done = good(&server.psql(
        "",
        "create table t (a int primary key, b text); insert into t values (1, 'x'), (2, null)",
    ));
    assert_eq!(done, "CREATE TABLE\nINSERT 0 2\n");
    assert_eq!(
        good(&server.psql("", "select * from t order by a")),
        " a | b \n---+---\n 1 | x\n 2 | \n(2 rows)\n\n"
    );
    let wrong = server.psql("", "select a,\n  c from t");
    let message = String::from_utf8_lossy(&wrong.stderr);
    assert!(
        message.contains("ERROR:  column \"c\" does not exist"),
        "{message}"
    );
    assert!(message.contains("LINE 2:   c from t"), "{message}");
    let warned = server.psql("", "commit");
    let message = String::from_utf8_lossy(&warned.stderr);
    assert!(
        message.contains("WARNING:  there is no transaction in progress"),
        "{message}"
    );
    let refused = server.psql("dbname=other", "select 1");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("database \"other\" does not exist"));
}

#[test]
fn a_password_is_asked_for_and_a_wrong_one_refused() {
    if !has("psql", &["--version"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "secret word\n").unwrap();
    let server = PostgresServer::start(&["--pg-password-file", text(&file)]);
    let right = server.psql("password='secret word'", "select 1 as one");
    assert!(good(&right).contains("one"));
    for wrong in ["password=wrong", ""] {
        let refused = server.psql(wrong, "select 1");
        assert!(!refused.status.success(), "{wrong:?} was let in");
    }
}

#[test]
fn others_than_this_machine_need_a_password() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("db");
    let empty = directory.path().join("one.ttl");
    std::fs::write(&empty, "<http://e/s> <http://e/p> 1 .\n").unwrap();
    crate::common::succeed(&["load", "--db", text(&database), text(&empty)]);
    let serve = [
        "serve",
        "--db",
        text(&database),
        "--listen",
        "127.0.0.1:0",
        "--pg",
        "0.0.0.0:0",
    ];
    fail(&serve, &["0.0.0.0:0", "password", "--pg-password-file"]);
    let empty = directory.path().join("no-password");
    std::fs::write(&empty, "\n").unwrap();
    let mut with_file = orrery();
    with_file
        .args(serve)
        .args(["--pg-password-file", text(&empty)]);
    check_failure(&with_file.output().unwrap(), &["no-password", "empty"]);
}

#[test]
fn tls_is_spoken_with_those_who_ask_for_it() {
    if !has("psql", &["--version"]) || !has("openssl", &["version"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let certificate = directory.path().join("certificate.pem");
    let key = directory.path().join("key.pem");
    good(
        &Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ])
            .args(["-keyout", text(&key), "-out", text(&certificate)])
            .output()
            .unwrap(),
    );
    let password = directory.path().join("password");
    std::fs::write(&password, "secret\n").unwrap();
    let server = PostgresServer::start(&[
        "--pg-certificate",
        text(&certificate),
        "--pg-key",
        text(&key),
        "--pg-password-file",
        text(&password),
    ]);
    let told = good(&server.psql("sslmode=require password=secret", "\\conninfo"));
    assert!(told.contains("SSL connection"), "{told}");
    // The password is bound to the certificate.
    let bound = "sslmode=require channel_binding=require password=secret";
    assert!(good(&server.psql(bound, "select 7 as seven")).contains("seven"));
    assert!(
        good(&server.psql("sslmode=disable password=secret", "select 8 as eight"))
            .contains("eight")
    );
}

#[test]
fn psycopg_works() {
    let python = python();
    if !has(&python, &["-c", "import psycopg"]) {
        return;
    }
    let server = PostgresServer::start(&[]);
    let run = Command::new(&python)
        .args([&client("with_psycopg.py"), &server.address])
        .output()
        .unwrap();
    let steps = good(&run);
    assert!(steps.contains("cancel: "), "{steps}");
}

#[test]
fn jdbc_writes_and_reads_rows() {
    let home = std::env::var("HOME").unwrap_or_default();
    let jars = std::fs::read_dir(format!("{home}/.cache/orrery/clients"));
    let names = jars.into_iter().flatten().flatten().map(|it| it.path());
    let is_driver = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("postgresql-") && name.ends_with(".jar")
    };
    let Some(driver) = names.into_iter().find(is_driver) else {
        eprintln!("left out: PostgreSQL's JDBC driver is not here; see `make setup`");
        return;
    };
    if !has("java", &["-version"]) {
        return;
    }
    let server = PostgresServer::start(&[]);
    let run = Command::new("java")
        .args([
            "-cp",
            text(&driver),
            &client("WithJdbc.java"),
            &server.address,
        ])
        .output()
        .unwrap();
    assert_eq!(good(&run), "rows\n");
}
