//! `orrery serve` as a process: it answers, sees what a load publishes, and stops on SIGTERM.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{check_failure, good, orrery, run, succeed, text};

const PATIENCE: Duration = Duration::from_secs(30);

/// Ends with the test, however that ends.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    pub(crate) fn start(database: &str) -> Self {
        Self::start_with(database, &[])
    }

    /// With more options.
    pub(crate) fn start_with(database: &str, options: &[&str]) -> Self {
        Self::start_by(orrery(), database, options)
    }

    /// By a command that has more in its environment.
    pub(crate) fn start_by(mut program: Command, database: &str, options: &[&str]) -> Self {
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .to_string();
        let process = program
            .args(["serve", "--db", database, "--listen", &address])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, address };
        wait_until("the server listens", || {
            TcpStream::connect(&server.address).is_ok()
        });
        server
    }

    /// The whole answer, head and body.
    pub(crate) fn get(&self, target: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nAccept: text/csv\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// How many quads the default graph has.
    pub(crate) fn count(&self) -> u64 {
        let answer = self.get(
            "/sparql?query=SELECT%20%28COUNT%28%2A%29%20AS%20%3Fc%29%20%7B%3Fs%20%3Fp%20%3Fo%7D",
        );
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.lines().last().unwrap().trim().parse().unwrap()
    }
}

/// Looks again and again; there is nothing in another process to wait on.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_only_reads_sees_what_a_load_publishes_and_stops_when_asked() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let (first, second) = (home.path().join("1.nt"), home.path().join("2.nt"));
    std::fs::write(&first, "<a:s> <a:p> <a:o> .\n").unwrap();
    std::fs::write(&second, "<a:s> <a:p> <a:q> .\n<a:s> <a:p> <a:r> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&first)]);
    let mut server = Server::start_with(text(&database), &["--read-only"]);
    assert!(server.get("/health").starts_with("HTTP/1.1 200"));
    assert_eq!(server.count(), 1);
    succeed(&["load", "--db", text(&database), text(&second)]);
    wait_until("the load is seen", || server.count() == 3);

    let stopped = Command::new("kill")
        .args(["-TERM", &server.process.id().to_string()])
        .status()
        .unwrap();
    assert!(stopped.success());
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn a_server_that_writes_takes_loads_over_http_only() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let data = home.path().join("1.nt");
    std::fs::write(&data, "<a:s> <a:p> <a:o> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let server = Server::start(text(&database));
    wait_until("the server answers", || {
        server.get("/health").starts_with("HTTP/1.1 200")
    });
    std::fs::write(&data, "<a:s> <a:p> <a:q> .\n").unwrap();
    let beside = orrery()
        .args(["load", "--db", text(&database), text(&data)])
        .output()
        .unwrap();
    assert_eq!(beside.status.code(), Some(1));
    succeed(&[
        "load",
        "--server",
        &format!("http://{}", server.address),
        text(&data),
    ]);
    assert_eq!(server.count(), 2);
}

#[test]
fn an_answer_of_another_server_may_have_as_many_solutions_as_is_said() {
    let home = tempfile::tempdir().unwrap();
    let [there, here] = ["there", "here"].map(|name| home.path().join(name));
    let data = home.path().join("data.ttl");
    std::fs::write(&data, "<http://e/s> <http://e/p> 1, 2, 3 .\n").unwrap();
    for database in [&there, &here] {
        succeed(&["load", "--db", text(database), text(&data)]);
    }
    let server = Server::start_with(text(&there), &[]);
    let query = format!(
        "SELECT * {{ SERVICE <http://{}/sparql> {{ ?s ?p ?o }} }}",
        server.address
    );
    let asked = |more: &[&str]| {
        let arguments = ["query", "--db", text(&here), "--format", "csv", &query];
        let allowed = ["--service-allow", "127.0.0.1"];
        run(&[&arguments[..], &allowed, more].concat())
    };
    let all = good(asked(&["--service-rows-max", "3"]), &["query"]);
    assert_eq!(all.lines().count(), 4, "{all}");
    let refused = ["more than 2 solutions", "--service-rows-max"];
    check_failure(&asked(&["--service-rows-max", "2"]), &refused);
    check_failure(&asked(&["--service-bytes-max", "20"]), &["20 bytes"]);
}
