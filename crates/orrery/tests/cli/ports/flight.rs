//! Tests of `orrery serve --flight` with ADBC's driver for Arrow Flight SQL (PyPI). Without the
//! driver on the machine they are skipped with a message; `make setup` installs it.

use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::common::{check_failure, fail, orrery, text};
use crate::ports::postgres::{client, good, has, python};
use crate::serve::Server;

/// A server of an almost empty database.
struct FlightServer {
    address: String,
    _server: Server,
    directory: tempfile::TempDir,
}

impl FlightServer {
    fn start(options: impl FnOnce(&std::path::Path) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("db");
        let one = directory.path().join("one.ttl");
        std::fs::write(&one, "<http://e/s> <http://e/p> 1 .\n").unwrap();
        crate::common::succeed(&["load", "--db", text(&database), text(&one)]);
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .to_string();
        let mut all = vec!["--flight".to_owned(), address.clone()];
        all.extend(options(directory.path()));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let server = Server::start_with(text(&database), &all);
        // Both listen before either answers.
        TcpStream::connect(&address).unwrap();
        Self {
            address,
            _server: server,
            directory,
        }
    }
}

pub(crate) fn has_adbc(python: &str) -> bool {
    has(
        python,
        &["-c", "import adbc_driver_flightsql.dbapi, pyarrow"],
    )
}

#[test]
fn adbc_works() {
    let python = python();
    if !has_adbc(&python) {
        return;
    }
    let server = FlightServer::start(|_| Vec::new());
    let run = Command::new(&python)
        .args([
            &client("with_adbc.py"),
            &format!("grpc://{}", server.address),
        ])
        .output()
        .unwrap();
    let steps = good(&run);
    assert!(steps.contains("cancel: done"), "{steps}");
}

/// Asks one query, with what is given of password and TLS.
fn ask(python: &str, uri: &str, options: &str) -> std::process::Output {
    let program = format!(
        "import adbc_driver_flightsql.dbapi as f\nwith f.connect({uri:?}, db_kwargs={options}, autocommit=True) as c:\n  \
         k = c.cursor()\n  k.execute('select 6 * 7 as it')\n  print(k.fetchall())"
    );
    Command::new(python)
        .args(["-c", &program])
        .output()
        .unwrap()
}

#[test]
fn a_password_is_asked_for_within_tls_and_a_wrong_one_refused() {
    let python = python();
    if !has_adbc(&python) || !has("openssl", &["version"]) {
        return;
    }
    let server = FlightServer::start(|directory| {
        let at = |name: &str| text(&directory.join(name)).to_owned();
        std::fs::write(at("password"), "secret word\n").unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=localhost"])
            .args(["-keyout", &at("key.pem"), "-out", &at("certificate.pem")])
            .output();
        good(&made.unwrap());
        let options = [
            ("--flight-password-file", "password"),
            ("--flight-certificate", "certificate.pem"),
            ("--flight-key", "key.pem"),
        ];
        let options = options.map(|(option, file)| [option.to_owned(), at(file)]);
        options.into_iter().flatten().collect()
    });
    assert!(server.directory.path().exists());
    let uri = format!("grpc+tls://{}", server.address);
    let with = |password: &str| {
        format!(
            "{{'username': 'me', 'password': {password:?}, 'adbc.flight.sql.client_option.tls_skip_verify': 'true'}}"
        )
    };
    assert_eq!(good(&ask(&python, &uri, &with("secret word"))), "[(42,)]\n");
    let without = "{'adbc.flight.sql.client_option.tls_skip_verify': 'true'}";
    for wrong in [with("secret"), without.to_owned()] {
        let refused = ask(&python, &uri, &wrong);
        assert!(!refused.status.success(), "{wrong} was let in");
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(words.contains("SQLSTATE 28P01"), "{words}");
    }
}

#[test]
fn others_than_this_machine_need_a_password_and_tls() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("db");
    let one = directory.path().join("one.ttl");
    std::fs::write(&one, "<http://e/s> <http://e/p> 1 .\n").unwrap();
    crate::common::succeed(&["load", "--db", text(&database), text(&one)]);
    let serve = [
        "serve",
        "--db",
        text(&database),
        "--listen",
        "127.0.0.1:0",
        "--flight",
        "0.0.0.0:0",
    ];
    fail(&serve, &["0.0.0.0:0", "password", "--flight-password-file"]);
    let mut with_password = orrery();
    with_password
        .args(serve)
        .env("ORRERY_FLIGHT_PASSWORD", "secret");
    check_failure(
        &with_password.output().unwrap(),
        &["0.0.0.0:0", "--flight-certificate"],
    );
}
