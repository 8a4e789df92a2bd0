//! Users of the database at the PostgreSQL port: who is let in, what they see, and when they are
//! let in no longer.

use crate::client::{get, post};
use crate::fixture::TestServer;
use crate::users::access::{PASSWORD, add_user, basic, command, give, grant, start_with};
use orrery_access::{Change, KeptPassword, Name};
use orrery_postgres::PostgresOptions;
use orrery_storage::{Database, WriterOptions};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

pub(crate) const TABLES: &str = "create table item (id int primary key, name text);
    insert into item select i, 'thing ' || i from generate_series(1, 2000) as s(i);
    create table salary (id int primary key, amount int);
    insert into salary values (1, 1000)";

fn of(user: &str) -> Value {
    json!({ "user": user })
}

pub(crate) fn table(name: &str) -> Value {
    json!({"table": {"schema": "public", "name": name}})
}

/// The users: `root` administers; `ann` may read `item` and write `salary`, `bob` nothing, `key`
/// has no password.
pub(crate) fn users() -> Vec<Value> {
    vec![
        add_user("root", true),
        add_user("ann", false),
        add_user("bob", false),
        json!({"do": "add_user", "user": "key", "password": "none"}),
        grant(of("ann"), "read", table("item")),
    ]
}

pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

async fn start(more: &[Value]) -> TestServer {
    let mut commands = users();
    commands.extend_from_slice(more);
    let server = start_with(&commands, |options| {
        options.postgres = Some(PostgresOptions::new(any_port()));
    })
    .await;
    make_tables(&server).await;
    server
}

pub(crate) async fn make_tables(server: &TestServer) {
    let root = basic("root", PASSWORD);
    let sql = "Content-Type: application/sql";
    let made = post(server.address, "/sql", &[&root, sql], TABLES.as_bytes()).await;
    assert_eq!(made.status, 200, "{}", made.text());
}

pub(crate) async fn done(server: &TestServer, what: &Value) {
    let answer = command(server, &basic("root", PASSWORD), what).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

pub(crate) async fn connect(
    server: &TestServer,
    user: &str,
    password: &str,
) -> Result<Client, tokio_postgres::Error> {
    let address = server.postgres.unwrap();
    let mut config = Config::new();
    config
        .host(address.ip().to_string())
        .port(address.port())
        .user(user)
        .password(password)
        .dbname("orrery")
        .application_name("tests of users");
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

pub(crate) async fn connected(server: &TestServer, user: &str) -> Client {
    connect(server, user, PASSWORD).await.unwrap()
}

/// Code and message of a refusal.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T, tokio_postgres::Error>) -> (String, String) {
    let Err(error) = result else {
        panic!("it was not refused");
    };
    let told = error.as_db_error().unwrap_or_else(|| panic!("{error}"));
    (told.code().code().to_owned(), told.message().to_owned())
}

/// The statements that run now, as administrators are told.
pub(crate) async fn listed(server: &TestServer) -> Vec<Value> {
    let root = basic("root", PASSWORD);
    let answer = get(server.admin.unwrap(), "/queries", &[&root]).await;
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    answer["queries"].as_array().unwrap().clone()
}

/// Waits until so many run; fails if that takes too long.
pub(crate) async fn wait_until_listed(server: &TestServer, expected: usize) {
    let reached = async {
        while listed(server).await.len() != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(30), reached).await;
    reached.unwrap_or_else(|_| panic!("there were never {expected} statements running"));
}

/// The first value of the first row.
pub(crate) async fn value(client: &Client, text: &str) -> String {
    let messages = client.simple_query(text).await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
        _ => None,
    });
    row.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_by_their_passwords_what_they_may() {
    let server = start(&[]).await;
    let ann = connected(&server, "ann").await;
    assert_eq!(value(&ann, "select current_user").await, "ann");
    assert_eq!(value(&ann, "select count(*) from item").await, "2000");
    let tables = "select count(*) from pg_class where relname in ('item', 'salary')";
    assert_eq!(value(&ann, tables).await, "1");
    let hidden = refused(ann.simple_query("select * from salary").await);
    let missing = refused(ann.simple_query("select * from nothing").await);
    assert_eq!(hidden.0, "42P01");
    assert_eq!(hidden.1.replace("salary", "nothing"), missing.1);
    let change = refused(ann.simple_query("delete from item").await);
    assert_eq!(change.0, "42501");
    let copy = refused(ann.simple_query("copy item from stdin").await);
    assert_eq!(copy.0, "42501");
    let root = connected(&server, "root").await;
    assert_eq!(value(&root, "select amount from salary").await, "1000");
    let bob = connected(&server, "bob").await;
    assert_eq!(value(&bob, "select 6 * 7").await, "42");
    assert_eq!(
        refused(bob.simple_query("select * from item").await).0,
        "42P01"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_refused_is_not_told_why() {
    let server = start(&[json!({"do": "set_user", "user": "bob", "locked": true})]).await;
    let words = |name: &str| format!("password authentication failed for user \"{name}\"");
    for (name, password) in [
        ("ann", "not this one"),
        ("nobody", PASSWORD),
        ("bob", PASSWORD),
        ("key", PASSWORD),
        ("editors", PASSWORD),
        ("a b", PASSWORD),
    ] {
        let (code, message) = refused(connect(&server, name, password).await);
        assert_eq!((code.as_str(), message), ("28P01", words(name)), "{name}");
    }
    let long = "n".repeat(5_000);
    assert_eq!(refused(connect(&server, &long, PASSWORD).await).0, "28P01");
}

async fn asks_http(server: &TestServer, name: &str) -> u16 {
    let who = basic(name, PASSWORD);
    crate::client::ask(server.address, "SELECT * {}", &[&who])
        .await
        .status
}

/// What the server says to a client that does not know the password: the kinds of its messages,
/// salt and rounds, and the last message.
async fn overheard(server: &TestServer, user: &str) -> (String, String, String) {
    let mut stream = TcpStream::connect(server.postgres.unwrap()).await.unwrap();
    let mut greeting = 196_608_i32.to_be_bytes().to_vec();
    greeting.extend(format!("user\0{user}\0database\0orrery\0\0").as_bytes());
    send(&mut stream, None, &greeting).await;
    let mut kinds = String::new();
    let (mut made_with, mut last) = (String::new(), String::new());
    while let Ok(kind) = stream.read_u8().await {
        let length = stream.read_i32().await.unwrap();
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        stream.read_exact(&mut body).await.unwrap();
        kinds.push(char::from(kind));
        match (kind, body.get(3)) {
            (b'R', Some(10)) => {
                let first = b"n,,n=,r=abcdefghijklmnop";
                let mut answer = b"SCRAM-SHA-256\0".to_vec();
                answer.extend(i32::try_from(first.len()).unwrap().to_be_bytes());
                answer.extend(first);
                send(&mut stream, Some(b'p'), &answer).await;
            }
            (b'R', Some(11)) => {
                let text = String::from_utf8(body.split_off(4)).unwrap();
                let (nonce, with) = text.split_once(',').unwrap();
                made_with = with.to_owned();
                let proof = "A".repeat(43);
                let answer = format!("c=biws,{nonce},p={proof}=");
                send(&mut stream, Some(b'p'), answer.as_bytes()).await;
            }
            (b'E', _) => last = String::from_utf8_lossy(&body).into_owned(),
            _ => panic!("{kinds}"),
        }
    }
    (kinds, made_with, last)
}

async fn send(stream: &mut TcpStream, kind: Option<u8>, body: &[u8]) {
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend(i32::try_from(body.len() + 4).unwrap().to_be_bytes());
    message.extend(body);
    stream.write_all(&message).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exchange_is_the_same_for_users_and_for_nobody() {
    let server = start(&[]).await;
    let of_ann = overheard(&server, "ann").await;
    let mut salts = vec![of_ann.1.clone()];
    for name in ["nobody", "key", "bob", "a b"] {
        let first = overheard(&server, name).await;
        let again = overheard(&server, name).await;
        assert_eq!(first, again, "{name}");
        assert_eq!(first.0, of_ann.0, "{name}");
        assert_eq!(first.1.len(), of_ann.1.len(), "{name}");
        assert!(first.1.ends_with(",i=100000"), "{}", first.1);
        assert_eq!(first.2.replace(name, "ann"), of_ann.2, "{name}");
        salts.push(first.1);
    }
    salts.sort();
    salts.dedup();
    assert_eq!(salts.len(), 5);
    // Who is locked shows what they showed before.
    let before = overheard(&server, "bob").await;
    let lock = json!({"do": "set_user", "user": "bob", "locked": true});
    done(&server, &lock).await;
    assert_eq!(overheard(&server, "bob").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_waits_whether_there_is_such_a_user_or_not() {
    let server = start(&[]).await;
    let mut told = Vec::new();
    for name in ["ann", "nobody"] {
        // Until the name waits for two seconds.
        let mut wrong = 0;
        while wrong < 7 {
            let (code, message) = refused(connect(&server, name, "a guess").await);
            wrong += usize::from(code == "28P01");
            assert!(["28P01", "28000"].contains(&code.as_str()), "{message}");
        }
        let (code, message) = refused(connect(&server, name, PASSWORD).await);
        assert_eq!(code, "28000", "{message}");
        told.push(message.replace(char::is_numeric, ""));
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    // It is one account, whichever way somebody guesses.
    assert_eq!(asks_http(&server, "nobody").await, 429);
    connected(&server, "root").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_is_gone_with_the_next_statement() {
    let server = start(&[]).await;
    let mut ann = connected(&server, "ann").await;
    let prepared = ann.prepare("select name from item where id = $1").await;
    let prepared = prepared.unwrap();
    let row = ann.query_one(&prepared, &[&7_i32]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "thing 7");

    let mut cursors = connected(&server, "ann").await;
    let block = cursors.transaction().await.unwrap();
    let declare = "declare c cursor for select id from item order by id";
    block.simple_query(declare).await.unwrap();
    block.simple_query("fetch 10 from c").await.unwrap();
    let portals = ann.transaction().await.unwrap();
    let portal = portals.bind("select id from item order by id", &[]).await;
    let portal = portal.unwrap();
    let first = portals.query_portal(&portal, 10).await.unwrap();
    assert_eq!(first.len(), 10);
    // Of other rights nothing is changed for them.
    done(&server, &grant(of("bob"), "read", table("item"))).await;
    assert_eq!(portals.query_portal(&portal, 10).await.unwrap().len(), 10);
    block.simple_query("fetch 10 from c").await.unwrap();

    let root = basic("root", PASSWORD);
    let listed = get(server.admin.unwrap(), "/admin/access", &[&root]).await;
    let listed: Value = serde_json::from_slice(&listed.body).unwrap();
    let rules = listed["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["to"] == of("ann")).unwrap();
    done(&server, &json!({"do": "revoke", "rule": rule["rule"]})).await;

    assert_eq!(refused(portals.query_portal(&portal, 10).await).0, "42501");
    drop(portals);
    assert_eq!(
        refused(block.simple_query("fetch 10 from c").await).0,
        "42501"
    );
    drop(block);
    assert_eq!(refused(ann.query(&prepared, &[&7_i32]).await).0, "42P01");
    done(&server, &grant(of("ann"), "read", table("item"))).await;
    let row = ann.query_one(&prepared, &[&8_i32]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "thing 8");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_come_in_any_more_is_cut_off() {
    let server = start(&[]).await;
    for end in [
        json!({"do": "set_user", "user": "ann", "locked": true}),
        json!({"do": "set_user", "user": "bob", "password": "made"}),
        json!({"do": "remove_user", "user": "ann"}),
    ] {
        let name = end["user"].as_str().unwrap();
        let unlock = json!({"do": "set_user", "user": name, "locked": false});
        done(&server, &unlock).await;
        let client = connected(&server, name).await;
        let prepared = client.prepare("select 1").await.unwrap();
        done(&server, &end).await;
        let (code, message) = refused(client.query(&prepared, &[]).await);
        assert_eq!(code, "28000", "{message}");
        assert_eq!(refused(connect(&server, name, PASSWORD).await).0, "28P01");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_here_too() {
    let limit = |user: &str, limits: Value| json!({"do": "set_limits", "of": {"user": user}, "limits": limits});
    let server = start(&[limit("ann", json!({"concurrent": 1}))]).await;
    let endless = "select count(*) from generate_series(1, 1000000) as a(x), generate_series(1, 1000000) as b(y) where x + y = 7";
    let (one, other) = (
        connected(&server, "ann").await,
        connected(&server, "ann").await,
    );
    let cancel = one.cancel_token();
    let running = tokio::spawn(async move { one.simple_query(endless).await.map(drop) });
    wait_until_listed(&server, 1).await;
    let (code, message) = refused(other.simple_query("select 1").await);
    assert_eq!(code, "53300");
    assert!(message.contains("retry after 1 s"), "{message}");
    cancel.cancel_query(NoTls).await.unwrap();
    assert_eq!(refused(running.await.unwrap()).0, "57014");
    assert_eq!(value(&other, "select 1").await, "1");
    // A connection without a statement takes no place, whatever it has run.
    assert_eq!(value(&other, "select 2").await, "2");
    let third = connected(&server, "ann").await;
    assert_eq!(value(&third, "select 3").await, "3");
    let bob = connected(&server, "bob").await;
    bob.simple_query("set statement_timeout = '1h'")
        .await
        .unwrap();
    // What has to be done is done by now, however long it took.
    done(&server, &limit("bob", json!({"time_ms": 200}))).await;
    assert_eq!(refused(bob.simple_query(endless).await).0, "57014");

    done(&server, &grant(of("ann"), "read", json!("default_graph"))).await;
    let budget = json!({"cost": {"touches": 10, "seconds": 3600}});
    done(&server, &limit("ann", budget)).await;
    let query = "SELECT * { ?s ?p ?o } LIMIT 100";
    crate::client::ask(server.address, query, &[&basic("ann", PASSWORD)]).await;
    let (code, message) = refused(other.simple_query("select 1").await);
    assert_eq!(code, SqlState::CONFIGURATION_LIMIT_EXCEEDED.code());
    assert!(message.contains("retry after "), "{message}");
}

/// A user whose password was set by a version that kept nothing of it for this port.
fn make_old(db: &Path, name: &str) {
    let database = Arc::new(Database::open(db).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let changed = orrery_access::change(&writer, "test", |catalog| {
        let mut user = catalog.user_named(&Name::new(name)?)?.clone();
        let password = user.password.as_ref().map(KeptPassword::text);
        let old = serde_json::to_string(password.unwrap()).unwrap();
        user.password = Some(serde_json::from_str(&old).unwrap());
        Ok((catalog.after(Change::PutUser(user))?, ()))
    });
    changed.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_of_an_older_version_is_to_be_set_once_more() {
    let server = TestServer::start_with(|options| {
        options.admin = Some(any_port());
        options.postgres = Some(PostgresOptions::new(any_port()));
        give(&options.db, &users());
        make_old(&options.db, "ann");
    })
    .await;
    // HTTP takes it.
    assert_ne!(asks_http(&server, "ann").await, 401);
    assert_eq!(refused(connect(&server, "ann", PASSWORD).await).0, "28P01");
    let again = json!({"do": "set_user", "user": "ann", "password": {"given": PASSWORD}});
    done(&server, &again).await;
    connected(&server, "ann").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_password_for_all_is_refused_where_there_are_users() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db");
    Database::create_or_open(&db).unwrap();
    give(&db, &users());
    let mut options = orrery_server::ServerOptions::new(&db);
    options.listen.set_port(0);
    let mut with_postgres = options.clone();
    with_postgres.postgres = Some(PostgresOptions {
        password: orrery_postgres::Password::new("one for all"),
        ..PostgresOptions::new(any_port())
    });
    options.flight = Some(orrery_flight::FlightOptions {
        password: orrery_flight::Password::new("one for all"),
        ..orrery_flight::FlightOptions::new(any_port())
    });
    for options in [with_postgres, options] {
        let refused = orrery_server::Server::bind(options).await;
        let Err(orrery_server::ServeError::OnePassword { .. }) = refused else {
            panic!("{refused:?}");
        };
    }
}
