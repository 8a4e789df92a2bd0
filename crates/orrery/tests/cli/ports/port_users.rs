//! Users of the database at the PostgreSQL and Flight SQL ports, with psql, psycopg 3, JDBC and
//! ADBC. Clients that are not on the machine are skipped with a message.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

use crate::access::{PASSWORD, database, free_address};
use crate::common::{check_failure, orrery, succeed, text};
use crate::ports::postgres::{client, good, has, jdbc_driver, python};
use crate::serve::Server;

const ANN: &str = "https://ann.example/card#me";

/// A server of a database with users: `root` and `tester` administer, `ann` may write in the schema
/// `own`.
struct Ports {
    postgres: String,
    flight: String,
    _server: Server,
    home: tempfile::TempDir,
}

impl Ports {
    fn start(options: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let database = database(home.path());
        let file = text(&home.path().join("password")).to_owned();
        let command = |arguments: &[&str]| succeed(&[arguments, &["--db", &database]].concat());
        let add = ["user", "add", "tester", "--administrator"];
        command(&[&add[..], &["--password-file", &file]].concat());
        command(&["user", "set", "ann", "--identity", ANN]);
        command(&["grant", "add", "write", "--user", "ann", "--schema", "own"]);
        let made = "create schema own; create table own.item (id int); insert into own.item values (7); create table salary (amount int)";
        command(&["sql", "-c", made]);
        let (postgres, flight) = (free_address(), free_address());
        let mut all = vec!["--pg".to_owned(), postgres.clone()];
        all.extend(["--flight".to_owned(), flight.clone()]);
        all.extend(options(home.path()));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let server = Server::start_with(&database, &all);
        // All of them listen before one answers.
        TcpStream::connect(&postgres).unwrap();
        Self {
            postgres,
            flight,
            _server: server,
            home,
        }
    }

    fn psql(&self, connection: &str, asked: &str) -> Output {
        let (host, port) = self.postgres.rsplit_once(':').unwrap();
        let place = format!("host={host} port={port} dbname=orrery {connection}");
        Command::new("psql")
            .args(["-X", "-A", "-t", "-d", &place, "-c", asked])
            .env_remove("PGPASSWORD")
            .env("HOME", self.home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

fn with_password(user: &str) -> String {
    format!("user={user} password='{PASSWORD}'")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn psql_comes_in_with_a_users_password() {
    if !has("psql", &["--version"]) {
        return;
    }
    let ports = Ports::start(|_| Vec::new());
    let ann = with_password("ann");
    assert_eq!(good(&ports.psql(&ann, "select current_user")), "ann\n");
    assert_eq!(good(&ports.psql(&ann, "select * from own.item")), "7\n");
    let insert = "insert into own.item values (8) returning id";
    assert_eq!(good(&ports.psql(&ann, insert)), "8\nINSERT 0 1\n");
    let hidden = ports.psql(&ann, "select * from salary");
    assert!(words(&hidden).contains("relation \"salary\" does not exist"));
    assert!(!good(&ports.psql(&ann, "\\d *.*")).contains("salary"));
    let wrong = words(&ports.psql("user=ann password=wrong", "select 1"));
    assert!(wrong.contains("password authentication failed"), "{wrong}");
    let nobody = words(&ports.psql(&with_password("nobody"), "select 1"));
    assert_eq!(nobody.replace("nobody", "ann"), wrong);
    let none = ports.psql("user=ann", "select 1");
    assert!(!none.status.success());
}

#[test]
fn psycopg_and_jdbc_work_as_users() {
    let ports = Ports::start(|_| Vec::new());
    let python = python();
    if has(&python, &["-c", "import psycopg"]) {
        let run = Command::new(&python)
            .args([&client("with_psycopg.py"), &ports.postgres, PASSWORD])
            .output()
            .unwrap();
        let steps = good(&run);
        assert!(steps.contains("cancel: "), "{steps}");
    }
    if let Some(driver) = jdbc_driver() {
        let ports = Ports::start(|_| Vec::new());
        let run = Command::new("java")
            .args(["-cp", text(&driver), &client("WithJdbc.java")])
            .args([&ports.postgres, PASSWORD])
            .output()
            .unwrap();
        assert_eq!(good(&run), "rows\ntables\n");
    }
}

/// Asks one query of Flight SQL with what is given of who asks.
fn ask(python: &str, uri: &str, options: &str, query: &str) -> Output {
    let program = format!(
        "import adbc_driver_flightsql.dbapi as f\nwith f.connect({uri:?}, db_kwargs={options}, autocommit=True) as c:\n  \
         k = c.cursor()\n  k.execute({query:?})\n  print(k.fetchall())"
    );
    Command::new(python)
        .args(["-c", &program])
        .output()
        .unwrap()
}

#[test]
fn adbc_comes_in_with_a_users_password_or_key() {
    let python = python();
    if !has(
        &python,
        &["-c", "import adbc_driver_flightsql.dbapi, pyarrow"],
    ) {
        return;
    }
    let ports = Ports::start(|_| Vec::new());
    let uri = format!("grpc://{}", ports.flight);
    let with =
        |name: &str, password: &str| format!("{{'username': {name:?}, 'password': {password:?}}}");
    let ann = with("ann", PASSWORD);
    let user = ask(&python, &uri, &ann, "select current_user, id from own.item");
    assert_eq!(good(&user), "[('ann', 7)]\n");
    let hidden = ask(&python, &uri, &ann, "select * from salary");
    assert!(words(&hidden).contains("42P01"), "{}", words(&hidden));
    let mut told = Vec::new();
    for wrong in [with("ann", "wrong"), with("nobody", PASSWORD)] {
        let refused = ask(&python, &uri, &wrong, "select 1");
        assert!(!refused.status.success());
        let line = words(&refused);
        let line = line.lines().find(|line| line.contains("28P01"));
        told.push(
            line.unwrap_or_else(|| panic!("{}", words(&refused)))
                .to_owned(),
        );
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    // All that the driver does, as a user.
    let run = Command::new(&python)
        .args([&client("with_adbc.py"), &uri, PASSWORD])
        .output()
        .unwrap();
    let steps = good(&run);
    assert!(steps.contains("cancel: done"), "{steps}");
}

/// Writes what a server and a client with a certificate need; the options of the server.
fn certificates(home: &Path) -> Vec<String> {
    let at = |name: &str| text(&home.join(name)).to_owned();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // What bears its issuer's name is taken for its own issuer by OpenSSL.
    let named = &mut params.distinguished_name;
    named.push(DnType::CommonName, "the authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(at("ca.pem"), authority.pem()).unwrap();
    for (file, name, uri) in [
        ("server", Some("127.0.0.1"), None),
        ("ann", None, Some(ANN)),
    ] {
        let names: Vec<String> = name.into_iter().map(str::to_owned).collect();
        let mut params = CertificateParams::new(names).unwrap();
        if let Some(uri) = uri {
            let uri = SanType::URI(uri.try_into().unwrap());
            params.subject_alt_names.push(uri);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        std::fs::write(at(&format!("{file}.pem")), certificate.pem()).unwrap();
        let key_file = at(&format!("{file}.key"));
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        // libpq takes no key that others may read.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&key_file, mode).unwrap();
    }
    let options = ["tls", "pg", "flight"].map(|port| {
        let certificate = [format!("--{port}-certificate"), at("server.pem")];
        let key = [format!("--{port}-key"), at("server.key")];
        [certificate, key].concat()
    });
    let mut options = options.concat();
    options.extend(["--tls-client-ca".to_owned(), at("ca.pem")]);
    options
}

#[test]
fn psql_comes_in_with_a_certificate_of_its_user() {
    if !has("psql", &["--version"]) {
        return;
    }
    let ports = Ports::start(certificates);
    let home = text(ports.home.path());
    let secure = format!("sslmode=verify-full sslrootcert={home}/ca.pem");
    let certificate = format!("{secure} sslcert={home}/ann.pem sslkey={home}/ann.key");
    let user = ports.psql(&format!("{certificate} user=ann"), "select current_user");
    assert_eq!(good(&user), "ann\n");
    // It is nobody else's.
    let other = ports.psql(&format!("{certificate} user=root"), "select 1");
    assert!(!other.status.success());
    // Others have their password, which is bound to the server's certificate.
    let bound = format!("{secure} channel_binding=require {}", with_password("root"));
    assert_eq!(good(&ports.psql(&bound, "select current_user")), "root\n");
}

#[test]
fn one_password_for_all_is_refused_where_there_are_users() {
    let home = tempfile::tempdir().unwrap();
    let database = database(home.path());
    for (option, variable) in [
        ("--pg", "ORRERY_PG_PASSWORD"),
        ("--flight", "ORRERY_FLIGHT_PASSWORD"),
    ] {
        let mut serve = orrery();
        serve
            .args(["serve", "--db", &database, "--listen", "127.0.0.1:0"])
            .args([option, "127.0.0.1:0"])
            .env(variable, "one for all");
        check_failure(&serve.output().unwrap(), &["has users", variable]);
    }
}
