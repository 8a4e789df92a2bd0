//! Users, keys and rules over HTTP: who is let in, what they see, and what the admin socket does.

use crate::client::{Answer, ask, exchange, get, post, query_path, request, send};
use crate::fixture::TestServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_access::{Catalog, Command};
use orrery_server::{ServeError, Server, ServerOptions};
use orrery_storage::{Database, WriterOptions};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

pub const PASSWORD: &str = "long enough";
pub const CSV: &str = "Accept: text/csv";
pub const JSON: &str = "Content-Type: application/json";
const UPDATE: &str = "Content-Type: application/sparql-update";
pub const OBJECTS: &str = "SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } } ORDER BY ?o";
const COUNT: &str = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";

pub fn basic(name: &str, password: &str) -> String {
    let text = STANDARD.encode(format!("{name}:{password}"));
    format!("Authorization: Basic {text}")
}

/// Does commands to a database that nobody serves.
pub fn give(db: &Path, commands: &[Value]) -> Catalog {
    let database = Arc::new(Database::open(db).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    for command in commands {
        let command: Command = serde_json::from_value(command.clone()).unwrap();
        orrery_access::change(&writer, "test", |catalog| command.apply(catalog, 0)).unwrap();
    }
    orrery_access::read(database.snapshot().tables()).unwrap()
}

pub fn add_user(name: &str, is_administrator: bool) -> Value {
    json!({
        "do": "add_user", "user": name, "password": {"given": PASSWORD}, "administrator": is_administrator,
    })
}

pub(crate) fn grant(to: Value, right: &str, on: Value) -> Value {
    json!({ "do": "grant", "to": to, "right": right, "on": on })
}

fn graph(name: &str) -> Value {
    json!({ "graph": format!("http://example.com/{name}") })
}

/// `root` administers, `ann` may read g1, and `bob` write g2.
pub fn some_users() -> Vec<Value> {
    vec![
        add_user("root", true),
        add_user("ann", false),
        add_user("bob", false),
        grant(json!({"user": "ann"}), "read", graph("g1")),
        grant(json!({"user": "bob"}), "write", graph("g2")),
    ]
}

pub(crate) async fn start(commands: &[Value]) -> TestServer {
    start_with(commands, |_| {}).await
}

pub(crate) async fn start_with(
    commands: &[Value],
    change: impl FnOnce(&mut ServerOptions),
) -> TestServer {
    TestServer::start_with(|options| {
        options.admin = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        give(&options.db, commands);
        change(options);
    })
    .await
}

pub(crate) async fn command(server: &TestServer, who: &str, command: &Value) -> Answer {
    let (address, body) = (server.admin.unwrap(), command.to_string());
    let path = "/admin/access";
    post(address, path, &[who, JSON], body.as_bytes()).await
}

fn refused(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.text());
    let challenge = answer.header("WWW-Authenticate");
    assert_eq!(challenge.is_some(), status == 401, "{challenge:?}");
    answer.text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_known_is_not_told_who_is() {
    let server = start(&some_users()).await;
    let address = server.address;
    for path in [
        "/",
        "/sparql",
        &query_path(COUNT),
        "/graphs?default",
        "/changes?since=0",
        "/prefixes",
        "/no-such-path",
    ] {
        refused(&get(address, path, &[]).await, 401);
    }
    refused(
        &post(address, "/sparql", &[UPDATE], b"CLEAR ALL").await,
        401,
    );
    let wrong = [
        basic("ann", "not this one"),
        basic("nobody", PASSWORD),
        basic("", ""),
        basic(&"n".repeat(5_000), PASSWORD),
        "Authorization: Basic !!!".to_owned(),
        "Authorization: Basic bm8gY29sb24=".to_owned(),
        "Authorization: Basic".to_owned(),
        "Authorization: Digest username=\"ann\"".to_owned(),
        "Authorization: Bearer orr_abcdefghijkl_no".to_owned(),
        format!("Authorization: Bearer {PASSWORD}"),
    ];
    let mut told: Vec<String> = Vec::new();
    for header in &wrong {
        told.push(refused(&ask(address, COUNT, &[header]).await, 401));
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    let twice = [basic("ann", PASSWORD), basic("root", PASSWORD)];
    let twice: Vec<&str> = twice.iter().map(String::as_str).collect();
    refused(&ask(address, COUNT, &twice).await, 401);

    // A browser's preflight and a health check need no user; they learn nothing more than this.
    let options = exchange(address, &request("OPTIONS", "/sparql", &[])).await;
    assert_eq!(options.status, 204);
    for path in ["/health", "/health/ready"] {
        let health = get(address, path, &[]).await;
        assert_eq!(
            (health.status, health.text().trim()),
            (200, "{\"status\":\"ok\"}"),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_their_graphs_and_nothing_else() {
    let mut commands = some_users();
    commands.extend([
        json!({"do": "add_user", "user": "eve", "password": {"given": PASSWORD}}),
        json!({"do": "add_group", "group": "readers"}),
        json!({"do": "join", "group": "readers", "users": ["eve"]}),
        grant(
            json!({"group": "readers"}),
            "read",
            json!({"graphs_below": "http://example.com/g"}),
        ),
    ]);
    let server = start(&commands).await;
    let address = server.address;
    let (g1, g2) = (
        "http://example.com/g1,g1\r\n",
        "http://example.com/g2,g2\r\n",
    );
    for (name, graphs, count, has_g1, has_g2) in [
        ("root", [g1, g2].concat(), "3002", 200, 200),
        ("ann", g1.to_owned(), "1", 200, 404),
        ("bob", g2.to_owned(), "1", 404, 200),
        ("eve", [g1, g2].concat(), "2", 200, 200),
    ] {
        let who = basic(name, PASSWORD);
        let seen = ask(address, OBJECTS, &[&who, CSV]).await;
        assert_eq!(seen.text(), format!("g,o\r\n{graphs}"), "{name}");
        assert_eq!(seen.header("Cache-Control"), Some("private, no-cache"));
        let counted = ask(address, COUNT, &[&who, CSV]).await;
        assert_eq!(counted.text(), format!("n\r\n{count}\r\n"), "{name}");
        for (graph, status) in [("g1", has_g1), ("g2", has_g2)] {
            let path = format!("/graphs?graph=http%3A%2F%2Fexample.com%2F{graph}");
            let answer = get(address, &path, &[&who]).await;
            assert_eq!(answer.status, status, "{name} {graph}");
        }
        // What is not there, and what may not be seen, are told apart by nothing.
        let none = get(
            address,
            "/graphs?graph=http%3A%2F%2Fexample.com%2Fg3",
            &[&who],
        )
        .await;
        assert_eq!(none.status, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_in_particular_sees_what_is_for_everybody() {
    let mut commands = some_users();
    commands.push(grant(json!("anyone"), "read", graph("g2")));
    commands.push(grant(
        json!("authenticated"),
        "read",
        json!("default_graph"),
    ));
    let server = start(&commands).await;
    let address = server.address;
    let counted = |headers: Vec<String>| async move {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        ask(address, COUNT, &headers).await.text().to_owned()
    };
    assert_eq!(counted(vec![CSV.to_owned()]).await, "n\r\n1\r\n");
    let ann = vec![CSV.to_owned(), basic("ann", PASSWORD)];
    assert_eq!(counted(ann).await, "n\r\n3002\r\n");
    // A wrong password is not nobody's question.
    refused(
        &ask(address, COUNT, &[&basic("ann", "something")]).await,
        401,
    );
    refused(
        &post(address, "/sparql", &[UPDATE], b"CLEAR ALL").await,
        401,
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_for_those_who_have_the_right() {
    let mut commands = some_users();
    commands.push(add_user("pat", false));
    commands.push(grant(json!({"user": "pat"}), "write", json!("all_graphs")));
    let server = start(&commands).await;
    let address = server.address;
    let insert = b"INSERT DATA { GRAPH <http://example.com/g1> { <x:s> <x:p> 1 } }";
    let (ann, root) = (basic("ann", PASSWORD), basic("root", PASSWORD));
    refused(
        &post(address, "/sparql", &[&ann, UPDATE], insert).await,
        403,
    );
    let path = "/graphs?graph=http%3A%2F%2Fexample.com%2Fg1";
    refused(&send(address, "DELETE", path, &[&ann], b"").await, 403);
    let pat = basic("pat", PASSWORD);
    let done = post(address, "/sparql", &[&pat, UPDATE], insert).await;
    assert_eq!(done.status, 200, "{}", done.text());
    // What is about the database as a whole is for administrators.
    let administered = [
        "/checkpoint",
        "/compact",
        "/prefixes?name=q&iri=x%3Aq",
        "/text?grams=true",
        "/text?rebuild=true",
    ];
    for path in administered {
        refused(&post(address, path, &[&pat], b"").await, 403);
        let done = post(address, path, &[&root], b"").await;
        assert_eq!(done.status, 200, "{path}: {}", done.text());
    }
    for method in ["GET", "DELETE"] {
        refused(&send(address, method, "/text", &[&pat], b"").await, 403);
        let done = send(address, method, "/text", &[&root], b"").await;
        assert_eq!(done.status, 200, "{method}: {}", done.text());
    }
    // SQL of tables.
    let statement = "Content-Type: application/sql";
    let create = b"CREATE TABLE t (a int)";
    refused(
        &post(address, "/sql", &[&pat, statement], create).await,
        403,
    );
    let done = post(address, "/sql", &[&root, statement], create).await;
    assert_eq!(done.status, 200, "{}", done.text());
    // It is not there for who may not read it.
    let read = post(address, "/sql", &[&pat, statement], b"SELECT * FROM t").await;
    assert_eq!(read.status, 400, "{}", read.text());
    assert!(read.text().contains("does not exist"), "{}", read.text());
}

/// Statements of graphs, in whatever way they come, go into those that their author may change.
#[tokio::test(flavor = "multi_thread")]
async fn graphs_are_changed_by_those_who_may_change_them() {
    let mut commands = some_users();
    let below = json!({"graphs_below": "http://example.com/own/"});
    commands.push(grant(json!({"user": "ann"}), "write", below));
    let server = start(&commands).await;
    let address = server.address;
    let (ann, root) = (basic("ann", PASSWORD), basic("root", PASSWORD));
    let turtle = "Content-Type: text/turtle";
    let quads = "Content-Type: application/n-quads";
    let path = |graph: &str| format!("/graphs?graph=http%3A%2F%2Fexample.com%2F{graph}");
    let data = b"<http://e/s> <http://e/p> 1 .";
    let own = "own%2Fx";
    for (method, graph, headers, body, status) in [
        ("PUT", own, turtle, &data[..], 201),
        ("POST", own, turtle, data, 200),
        ("PATCH", own, UPDATE, b"DELETE WHERE { ?s ?p ?o }", 200),
        ("PUT", own, turtle, data, 201),
        ("DELETE", own, turtle, b"", 200),
        // It may be read, not changed; whether there is one that may not be read is not told.
        ("PUT", "g1", turtle, data, 403),
        ("POST", "g1", turtle, data, 403),
        ("DELETE", "g1", turtle, b"", 403),
        ("DELETE", "g2", turtle, b"", 403),
        ("DELETE", "none", turtle, b"", 403),
        ("PATCH", "g1", UPDATE, b"DELETE WHERE { ?s ?p ?o }", 403),
    ] {
        let answer = send(address, method, &path(graph), &[&ann, headers], body).await;
        assert_eq!(answer.status, status, "{method} {graph}: {}", answer.text());
    }
    let in_own = b"<http://e/s> <http://e/p> <http://e/o> <http://example.com/own/y> .";
    let stored = post(address, "/graphs", &[&ann, quads], in_own).await;
    assert_eq!(stored.status, 200, "{}", stored.text());
    let in_other = b"<http://e/s> <http://e/p> <http://e/o> <http://example.com/g2> .";
    refused(
        &post(address, "/graphs", &[&ann, quads], in_other).await,
        403,
    );
    refused(
        &send(address, "DELETE", "/graphs?default", &[&ann], b"").await,
        403,
    );
    // Of a length that is not said.
    let bulk = |headers: &[&str], path: &str, data: &[u8]| {
        let chunked = "Transfer-Encoding: chunked";
        let headers: Vec<&str> = headers.iter().copied().chain([chunked]).collect();
        let mut bytes = request("POST", path, &headers);
        bytes.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(b"\r\n0\r\n\r\n");
        bytes
    };
    let loaded = exchange(address, &bulk(&[&ann, turtle], &path("own%2Fz"), data)).await;
    assert_eq!(loaded.status, 201, "{}", loaded.text());
    for (headers, path, data, status) in [
        ([ann.as_str(), turtle], path("g1"), &data[..], 403),
        ([ann.as_str(), quads], "/graphs".to_owned(), in_other, 403),
        ([ann.as_str(), quads], path(own), in_other, 400),
        ([ann.as_str(), quads], "/graphs".to_owned(), in_own, 200),
    ] {
        refused(
            &exchange(address, &bulk(&headers, &path, data)).await,
            status,
        );
    }
    let update = |text: &'static str| {
        let ann = ann.clone();
        async move { post(address, "/sparql", &[&ann, UPDATE], text.as_bytes()).await }
    };
    refused(&update("CLEAR ALL").await, 403);
    refused(
        &update("LOAD <http://127.0.0.1:1/none> INTO GRAPH <http://example.com/g1>").await,
        403,
    );
    let objects = get(address, &query_path(OBJECTS), &[&root, CSV]).await;
    let expected = "g,o\r\nhttp://example.com/own/z,1\r\nhttp://example.com/own/y,http://e/o\r\n\
                    http://example.com/g1,g1\r\nhttp://example.com/g2,g2\r\n";
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(objects.text()), sorted(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_makes_wait_whether_there_is_such_a_user_or_not() {
    let server = start(&some_users()).await;
    let address = server.address;
    for name in ["ann", "nobody"] {
        let wrong = basic(name, "a wrong one");
        for _ in 0..5 {
            refused(&ask(address, COUNT, &[&wrong]).await, 401);
        }
        for password in ["a wrong one", PASSWORD] {
            let waits = ask(address, COUNT, &[&basic(name, password)]).await;
            assert_eq!(waits.status, 429, "{name}: {}", waits.text());
            let seconds: u64 = waits.header("Retry-After").unwrap().parse().unwrap();
            assert!((1..=2).contains(&seconds), "{seconds}");
        }
    }
    let other = ask(address, COUNT, &[&basic("bob", PASSWORD)]).await;
    assert_eq!(other.status, 200);
    // Requests for a commit that is not here yet count as one guess each, too: the server does not
    // wait for a newer state that could know the user.
    let wrong = [
        &basic("nobody else", "a wrong one"),
        "Orrery-Min-Commit: 1000000",
    ];
    for _ in 0..5 {
        refused(&ask(address, COUNT, &wrong).await, 401);
    }
    assert_eq!(ask(address, COUNT, &wrong).await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_let_in_until_they_are_removed_and_rights_hold_until_they_are_taken() {
    let server = start(&some_users()).await;
    let address = server.address;
    let (ann, root) = (basic("ann", PASSWORD), basic("root", PASSWORD));
    let add = json!({"do": "add_key", "user": "ann", "note": "nightly"});
    let made = command(&server, &ann, &add).await;
    assert_eq!(made.header("Cache-Control"), Some("no-store"));
    let made: Value = serde_json::from_str(made.text()).unwrap();
    let key = format!("Authorization: Bearer {}", made["key"].as_str().unwrap());
    let count = |answer: Answer| answer.text().to_owned();
    assert_eq!(count(ask(address, COUNT, &[&key, CSV]).await), "n\r\n1\r\n");

    let given = command(
        &server,
        &root,
        &grant(json!({"user": "ann"}), "read", graph("g2")),
    )
    .await;
    let given: Value = serde_json::from_str(given.text()).unwrap();
    assert_eq!(count(ask(address, COUNT, &[&key, CSV]).await), "n\r\n2\r\n");
    let revoke = json!({"do": "revoke", "rule": given["rule"]});
    assert_eq!(command(&server, &root, &revoke).await.status, 200);
    assert_eq!(count(ask(address, COUNT, &[&key, CSV]).await), "n\r\n1\r\n");

    let listed = get(server.admin.unwrap(), "/admin/access", &[&root]).await;
    let secret = made["key"].as_str().unwrap();
    assert!(!listed.text().contains(secret) && !listed.text().contains("argon2"));
    let listed: Value = serde_json::from_str(listed.text()).unwrap();
    assert_eq!(listed["keys"][0]["note"], "nightly");
    let remove = json!({"do": "remove_key", "key": listed["keys"][0]["key"]});
    refused(
        &command(&server, &basic("bob", PASSWORD), &remove).await,
        403,
    );
    assert_eq!(command(&server, &ann, &remove).await.status, 200);
    refused(&ask(address, COUNT, &[&key]).await, 401);

    // Another password lets in at once, the old one no more; a lock keeps out.
    let other = json!({"do": "set_user", "user": "ann", "password": "made"});
    let other = command(&server, &root, &other).await;
    let other: Value = serde_json::from_str(other.text()).unwrap();
    refused(&ask(address, COUNT, &[&ann]).await, 401);
    let ann = basic("ann", other["password"].as_str().unwrap());
    assert_eq!(ask(address, COUNT, &[&ann]).await.status, 200);
    let lock = json!({"do": "set_user", "user": "ann", "locked": true});
    assert_eq!(command(&server, &root, &lock).await.status, 200);
    refused(&ask(address, COUNT, &[&ann]).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_socket_is_for_administrators_and_apart_from_the_public_one() {
    let server = start(&some_users()).await;
    let (public, admin) = (server.address, server.admin.unwrap());
    let (ann, root) = (basic("ann", PASSWORD), basic("root", PASSWORD));
    let path = "/admin/access";
    assert_eq!(get(public, path, &[&root]).await.status, 404);
    assert_eq!(get(admin, &query_path(COUNT), &[&root]).await.status, 404);
    refused(&get(admin, path, &[]).await, 401);
    refused(&get(admin, path, &[&ann]).await, 403);
    let add = add_user("mal", true);
    refused(&command(&server, &ann, &add).await, 403);
    refused(
        &command(&server, &basic("root", "another one"), &add).await,
        401,
    );
    for (wrong, status, says) in [
        (json!({"do": "add_user"}), 400, "missing field"),
        (json!({"do": "destroy"}), 400, "unknown variant"),
        (
            grant(json!("anyone"), "own", graph("g1")),
            400,
            "unknown variant `own`",
        ),
        (
            grant(json!({"user": "none"}), "read", graph("g1")),
            422,
            "there is no user `none`",
        ),
        (
            grant(
                json!("anyone"),
                "read",
                json!({"graphs_below": "no scheme"}),
            ),
            400,
            "at `no scheme`",
        ),
        (
            json!({"do": "remove_user", "user": "root"}),
            422,
            "last administrator",
        ),
        (
            json!({"do": "add_user", "user": "a:b", "password": "made"}),
            400,
            "no name",
        ),
        (add_user("ann", false), 422, "there already"),
    ] {
        let answer = command(&server, &root, &wrong).await;
        assert_eq!(answer.status, status, "{wrong}: {}", answer.text());
        assert!(answer.text().contains(says), "{says}: {}", answer.text());
    }
    // A form of another origin has the browser's password, and no JSON.
    let body = add.to_string();
    let form = [root.as_str(), "Content-Type: text/plain"];
    let answer = post(admin, path, &form, body.as_bytes()).await;
    assert_eq!(answer.status, 415, "{}", answer.text());
    let foreign = [root.as_str(), JSON, "Origin: http://evil.example"];
    refused(&post(admin, path, &foreign, body.as_bytes()).await, 403);
    let long = format!("{{\"do\": \"{}\"}}", "x".repeat(100_000));
    let answer = post(admin, path, &[&root, JSON], long.as_bytes()).await;
    assert_eq!(answer.status, 413, "{}", answer.text());
    let listed = get(admin, path, &[&root]).await;
    let listed: Value = serde_json::from_str(listed.text()).unwrap();
    assert_eq!(listed["users"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asked_nobody_ends_when_another_process_makes_users() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db");
    Database::create_or_open(&db).unwrap();
    let mut options = ServerOptions::new(&db);
    options.listen.set_port(0);
    options.is_read_only = true;
    let without_users = ServerOptions {
        auth: Some(|_, _| {}),
        ..options.clone()
    };
    let refused = Server::bind(without_users).await;
    assert!(
        matches!(refused, Err(ServeError::NoAdministrator)),
        "{refused:?}"
    );
    let server = Server::bind(options).await.unwrap();
    let running = tokio::spawn(server.run(std::future::pending()));
    give(&db, &some_users());
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), running).await;
    let ended = ended.unwrap().unwrap();
    assert!(matches!(ended, Err(ServeError::UsersCame)), "{ended:?}");
}
