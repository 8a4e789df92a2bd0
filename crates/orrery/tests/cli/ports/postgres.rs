//! Tests of `orrery serve --pg` with PostgreSQL's clients: psql (Debian's postgresql-client),
//! psycopg 3 and SQLAlchemy (PyPI), and the JDBC driver (Maven). Clients that are not on the
//! machine are skipped with a message; `make setup` installs them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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

    /// The process's number.
    pub(crate) fn process(&self) -> u32 {
        self._server.process.id()
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
            "skipped: {program} {} does not work here; see `make setup`",
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
    let mut with_variable = orrery();
    with_variable.args(serve).env("ORRERY_PG_PASSWORD", "");
    check_failure(
        &with_variable.output().unwrap(),
        &["ORRERY_PG_PASSWORD", "empty"],
    );
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
fn psql_copies_rows_in_and_out() {
    if !has("psql", &["--version"]) {
        return;
    }
    let server = PostgresServer::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let (data, out) = (
        directory.path().join("in.csv"),
        directory.path().join("out.tsv"),
    );
    std::fs::write(&data, "a,b\n2,\"x, \"\"y\"\"\"\n1,\n").unwrap();
    good(&server.psql("", "create table t (a int primary key, b text)"));
    let copy = format!("\\copy t from '{}' csv header", text(&data));
    assert_eq!(good(&server.psql("", &copy)), "COPY 2\n");
    let copy = format!("\\copy (select * from t order by a) to '{}'", text(&out));
    assert_eq!(good(&server.psql("", &copy)), "COPY 2\n");
    assert_eq!(
        std::fs::read_to_string(&out).unwrap(),
        "1\t\\N\n2\tx, \"y\"\n"
    );
    // The first row is right, the second is there already: neither stays.
    std::fs::write(&data, "3,c\n1,again\n").unwrap();
    let copy = format!("\\copy t from '{}' csv", text(&data));
    let refused = server.psql("", &copy);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("duplicate key value"), "{words}");
    let all = "copy (select * from t order by a) to stdout csv";
    assert_eq!(good(&server.psql("", all)), "1,\n2,\"x, \"\"y\"\"\"\n");
}

#[test]
fn sqlalchemy_reflects_what_there_is() {
    let python = python();
    if !has(&python, &["-c", "import psycopg, sqlalchemy"]) {
        return;
    }
    let server = PostgresServer::start(&[]);
    let run = Command::new(&python)
        .args([&client("with_sqlalchemy.py"), &server.address])
        .output()
        .unwrap();
    assert_eq!(good(&run), "reflected\n");
}

#[test]
fn psql_describes_what_there_is() {
    if !has("psql", &["--version"]) {
        return;
    }
    let server = PostgresServer::start(&[]);
    good(&server.psql(
        "",
        "create table maker (id int primary key, name varchar(40) not null unique); \
         create table item (id bigint primary key, maker int references maker, price numeric(10,2) default 1 check (price > 0)); \
         create index item_price on item (price); \
         create view dear as select id, price from item where price > 10; \
         create schema other; create table other.t (a int)",
    ));
    let told = |command: &str| good(&server.psql("", command));
    let lines = |command: &str, parts: &[&str]| {
        let told = told(command);
        for part in parts {
            assert!(
                told.contains(part),
                "{part:?} is not in what {command} says:\n{told}"
            );
        }
    };
    lines(
        "\\d",
        &[
            "public | dear  | view  | tester",
            "public | item  | table | tester",
            "(3 rows)",
        ],
    );
    lines("\\dt", &["public | maker | table", "(2 rows)"]);
    lines("\\dt other.*", &["other  | t    | table"]);
    lines("\\dv", &["public | dear", "(1 row)"]);
    lines("\\di", &["item_price", "item_pkey", "maker_name_key"]);
    lines("\\dn", &["other", "public"]);
    lines("\\l", &["orrery", "UTF8"]);
    lines("\\du", &["tester"]);
    lines(
        "\\d item",
        &[
            "Table \"public.item\"",
            "id     | bigint        |           | not null |",
            "price  | numeric(10,2) |           |          | 1",
            "\"item_pkey\" PRIMARY KEY, btree (id)",
            "\"item_price\" btree (price)",
            "Check constraints:",
            "FOREIGN KEY (maker) REFERENCES maker(id)",
        ],
    );
    lines(
        "\\d maker",
        &[
            "character varying(40)",
            "UNIQUE",
            "Referenced by:",
            "TABLE \"item\"",
        ],
    );
    lines("\\d dear", &["View \"public.dear\"", "numeric(10,2)"]);
    lines("\\d+ dear", &["View definition:", "price > 10"]);
    lines("\\d item_price", &["Index \"public.item_price\"", "price"]);
    lines("\\d other.t", &["Table \"other.t\""]);
    let nothing = server.psql("", "\\d nothing");
    assert!(
        String::from_utf8_lossy(&nothing.stderr)
            .contains("Did not find any relation named \"nothing\"")
    );
}

#[test]
fn trees_of_tables_in_pgadmin_and_dbeaver_are_filled() {
    if !has("psql", &["--version"]) {
        return;
    }
    let server = PostgresServer::start(&[]);
    good(&server.psql(
        "",
        "create table maker (id int primary key, name varchar(40) not null unique); \
         create table item (id bigint primary key, maker int references maker, price numeric(10,2) default 1 check (price > 0)); \
         create index item_price on item (price); \
         create view dear as select id, price from item where price > 10",
    ));
    let (host, port) = server.address.rsplit_once(':').unwrap();
    let place = format!("host={host} port={port} user=tester dbname=orrery");
    let run = Command::new("psql")
        .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &place])
        .args(["-f", &client("tools.sql")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = good(&run);
    let parts: Vec<&str> = told.split("== ").collect();
    let part = |name: &str| {
        let found = parts.iter().find(|part| part.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} is not in {told}"))
    };
    let lines = |name: &str, expected: &[&str]| {
        let part = part(name);
        for line in expected {
            assert!(part.contains(line), "{line:?} is not in {part}");
        }
    };
    lines("pgAdmin: databases", &["|orrery|pg_default|t|f|t|10|"]);
    lines("pgAdmin: schemas", &["2200|public|t|t|"]);
    lines(
        "pgAdmin: tables",
        &["|item|0|0|f|public|0|0|", "|maker|0|0|f|public|0|0|"],
    );
    lines(
        "pgAdmin: columns",
        &[
            "id|1|bigint|t|f|",
            "maker|2|integer|f|f|",
            "price|3|numeric|f|t|",
        ],
    );
    lines("pgAdmin: indexes", &["|item_price|f"]);
    assert!(!part("pgAdmin: indexes").contains("item_pkey"));
    lines(
        "pgAdmin: constraints",
        &[
            "item_maker_fkey|f|FOREIGN KEY (maker) REFERENCES maker(id)",
            "item_pkey|p|PRIMARY KEY (id)",
            "item_price_check|c|CHECK ((price > 0))",
        ],
    );
    lines("DBeaver: session", &["public|tester", "|orrery|", "|int8|"]);
    lines("DBeaver: tables", &["|maker|", "|item|", "|dear|"]);
    lines("DBeaver: columns", &["item|", "|price|"]);
    lines(
        "DBeaver: constraints",
        &["|item_pkey|", "((price > 0))", "|item_maker_fkey|"],
    );
    lines("DBeaver: indexes", &["|3|item_price|", "|1|item_pkey|"]);
}

/// PostgreSQL's JDBC driver, if it and a Java that runs it are on the machine; says so if not.
pub(crate) fn jdbc_driver() -> Option<PathBuf> {
    let home = std::env::var("HOME").unwrap_or_default();
    let jars = std::fs::read_dir(format!("{home}/.cache/orrery/clients"));
    let names = jars.into_iter().flatten().flatten().map(|it| it.path());
    let is_driver = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("postgresql-") && name.ends_with(".jar")
    };
    let driver = names.into_iter().find(is_driver);
    if driver.is_none() {
        eprintln!("skipped: PostgreSQL's JDBC driver is not here; see `make setup`");
    }
    driver.filter(|_| has("java", &["-version"]))
}

#[test]
fn jdbc_reads_rows_and_lists_tables() {
    let Some(driver) = jdbc_driver() else {
        return;
    };
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
    assert_eq!(good(&run), "rows\ntables\n");
}

/// A client that says what no driver would.
pub(crate) struct RawClient(TcpStream);

impl RawClient {
    pub(crate) fn connect(server: &PostgresServer) -> Self {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut client = Self(stream);
        let body = b"\0\x03\0\0user\0tester\0\0";
        let mut start = (body.len() as u32 + 4).to_be_bytes().to_vec();
        start.extend_from_slice(body);
        client.0.write_all(&start).unwrap();
        assert!(client.until_ready().ends_with('Z'));
        client
    }

    /// Messages, each of a type and its body.
    pub(crate) fn send(&mut self, messages: &[(u8, &[u8])]) {
        let mut bytes = Vec::new();
        for (kind, body) in messages {
            bytes.push(*kind);
            bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
            bytes.extend_from_slice(body);
        }
        self.0.write_all(&bytes).unwrap();
    }

    pub(crate) fn message(&mut self) -> (char, Vec<u8>) {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body).unwrap();
        (char::from(head[0]), body)
    }

    /// The types of all messages up to the next ReadyForQuery; errors with their codes.
    fn until_ready(&mut self) -> String {
        let mut kinds = String::new();
        loop {
            let (kind, body) = self.message();
            kinds.push(kind);
            if kind == 'E' {
                let body = String::from_utf8_lossy(&body).into_owned();
                let code = body.split('\0').find_map(|field| field.strip_prefix('C'));
                kinds.push_str(code.unwrap_or_default());
            }
            if kind == 'Z' {
                return kinds;
            }
        }
    }

    pub(crate) fn ask(&mut self, messages: &[(u8, &[u8])]) -> String {
        self.send(messages);
        self.until_ready()
    }

    pub(crate) fn query(&mut self, text: &str) -> String {
        self.ask(&[(b'Q', format!("{text}\0").as_bytes())])
    }
}

const SYNC: (u8, &[u8]) = (b'S', b"");
/// Of the statement and the portal without names, all rows.
const BIND_AND_EXECUTE: [(u8, &[u8]); 2] = [(b'B', b"\0\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0")];

#[test]
fn malformed_messages_at_the_port_harm_nobody() {
    let server = PostgresServer::start(&[]);
    let mut client = RawClient::connect(&server);
    // A statement that runs itself.
    let itself = client.ask(&[
        (b'P', b"a\0execute a\0\0\0"),
        (b'B', b"\0a\0\0\0\0\0\0\0"),
        (b'E', b"\0\0\0\0\0"),
        SYNC,
    ]);
    assert_eq!(itself, "12E42601Z");
    // A value without a text: nothing of its row is left before the error.
    let far = client.query("select arrow_cast(2147483647, 'Date32')");
    assert!(far.starts_with("TE") && far.ends_with('Z'), "{far}");
    // What follows a failure is not looked at, though it is no UTF-8.
    assert_eq!(
        client.ask(&[
            (b'P', b"\0select no_such_column\0\0\0"),
            (b'P', b"\0\xff\0\0\0"),
            (b'Q', b"\xff\0"),
            SYNC
        ]),
        "E42703Z"
    );
    assert_eq!(client.query("select 1"), "TDCZ");
    // A transaction that has failed is left by the extended protocol.
    assert_eq!(client.query("begin"), "CZ");
    assert!(client.query("select 1/0").ends_with("E22012Z"));
    let [bind, execute] = BIND_AND_EXECUTE;
    let roll_back = [(b'P', &b"\0rollback\0\0\0"[..]), bind, execute, SYNC];
    assert_eq!(client.ask(&roll_back), "12CZ");
    // What is no part of a COPY ends it; the data that follow belong to it.
    assert_eq!(client.query("create table t (a int primary key)"), "CZ");
    let query: (u8, &[u8]) = (b'Q', b"copy t from stdin\0");
    let data: (u8, &[u8]) = (b'd', b"1\n");
    let mixed = client.ask(&[query, data, (b'Q', b"select 1\0")]);
    assert_eq!(mixed, "GE08P01Z");
    assert_eq!(client.ask(&[query, data, (b'f', b"no\0")]), "GE57014Z");
    assert_eq!(client.ask(&[query, data, (b'H', b""), (b'c', b"")]), "GCZ");
    // By the extended protocol the first Sync comes before the data.
    let copy = [
        (b'P', &b"\0copy t from stdin\0\0\0"[..]),
        bind,
        execute,
        SYNC,
    ];
    let sent = [&copy[..], &[(b'd', b"2\n"), (b'c', b""), SYNC]].concat();
    assert_eq!(client.ask(&sent), "12GCZ");
    let sent = [&copy[..], &[(b'd', b"2\n"), (b'c', b""), SYNC]].concat();
    assert_eq!(client.ask(&sent), "12GE23505Z");
    assert_eq!(client.query("copy t to stdout"), "HddcCZ");
    // Queries by another name tell their columns.
    let tables = [(b'P', &b"\0show tables\0\0\0"[..]), (b'D', b"S\0"), SYNC];
    assert_eq!(client.ask(&tables), "1tTZ");
}

#[test]
fn rows_of_a_change_are_sent_before_it_is_committed() {
    let server = PostgresServer::start(&[]);
    let mut client = RawClient::connect(&server);
    assert_eq!(client.query("create table t (a int)"), "CZ");
    // The second row cannot be told, so there is neither.
    let text = "insert into t values (0), (2147483647) returning arrow_cast(a, 'Date32') as told";
    let simple = client.query(text);
    assert!(simple.starts_with("TDE"), "{simple}");
    let [bind, execute] = BIND_AND_EXECUTE;
    let parse = format!("\0{text}\0\0\0");
    let extended = client.ask(&[(b'P', parse.as_bytes()), bind, execute, SYNC]);
    assert!(extended.starts_with("12DE"), "{extended}");
    assert_eq!(client.query("select a from t"), "TCZ");
    assert_eq!(client.query("insert into t values (1) returning a"), "TDCZ");
    let other = RawClient::connect(&server).query("select a from t");
    assert_eq!(other, "TDCZ");
}

#[test]
fn answers_are_sent_before_sync_and_forgotten_statements_are_gone() {
    let server = PostgresServer::start(&[]);
    let mut client = RawClient::connect(&server);
    let places: Vec<_> = (1..=20_000).map(|place| format!("${place}")).collect();
    let parse = format!("wide\0select {}\0\0\0", places.join("+"));
    // Too deep for an expression: told so, and nothing is kept of it.
    assert!(
        client
            .ask(&[(b'P', parse.as_bytes()), SYNC])
            .starts_with('E')
    );
    let parse = format!("wide\0select {}\0\0\0", places[..400].join(","));
    assert_eq!(client.ask(&[(b'P', parse.as_bytes()), SYNC]), "1Z");
    // Without Sync: what comes is more than is gathered before it is sent.
    client.send(&vec![(b'D', &b"Swide\0"[..]); 100]);
    for kind in ['t', 'T'].repeat(40) {
        assert_eq!(client.message().0, kind);
    }
    for kind in client.ask(&[SYNC]).trim_end_matches('Z').chars() {
        assert!(matches!(kind, 't' | 'T'));
    }
    // One list for both protocols: an empty statement is forgotten, too.
    assert_eq!(client.ask(&[(b'P', b"none\0\0\0\0"), SYNC]), "1Z");
    assert_eq!(client.ask(&[(b'P', b"none\0\0\0\0"), SYNC]), "E42P05Z");
    assert_eq!(client.query("deallocate all"), "CZ");
    assert_eq!(client.ask(&[(b'P', b"none\0\0\0\0"), SYNC]), "1Z");
    assert_eq!(client.ask(&[(b'D', b"Swide\0"), SYNC]), "E26000Z");
}
