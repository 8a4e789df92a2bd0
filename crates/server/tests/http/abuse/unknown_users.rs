//! How long a wrong password takes does not tell whether there is such a user.

use crate::client::get;
use crate::fixture::TestServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_access::Command;
use orrery_storage::{Database, WriterOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many passwords of a name are looked at without a wait.
const GUESSES: usize = 4;
const USERS: usize = 5;

fn with_users(db: &std::path::Path) {
    let database = Arc::new(Database::open(db).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    for number in 0..USERS {
        let command = serde_json::json!({
            "do": "add_user", "user": format!("known{number}"), "password": {"given": "long enough"}, "administrator": true,
        });
        let command: Command = serde_json::from_value(command).unwrap();
        orrery_access::change(&writer, "test", |catalog| command.apply(catalog, 0)).unwrap();
    }
}

async fn guess(server: &TestServer, name: &str, password: &str) -> Duration {
    let header = STANDARD.encode(format!("{name}:{password}"));
    let header = format!("Authorization: Basic {header}");
    let started = Instant::now();
    let answer = get(server.address, "/sparql", &[&header]).await;
    assert_eq!(answer.status, 401, "{name}");
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Both guesses take one check by Argon2, without which an unknown name would take no time; so the
/// bound may be loose. Known and unknown names alternate, so that other load on the machine affects
/// both.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_of_known_and_unknown_users_take_alike() {
    let server = TestServer::start_with(|options| with_users(&options.db)).await;
    let (mut of_known, mut of_unknown) = (Vec::new(), Vec::new());
    for number in 0..USERS {
        for round in 0..GUESSES {
            let password = format!("wrong password {round}");
            of_known.push(guess(&server, &format!("known{number}"), &password).await);
            of_unknown.push(guess(&server, &format!("nobody{number}"), &password).await);
        }
    }
    let (known, unknown) = (median(of_known), median(of_unknown));
    assert!(unknown * 2 > known, "{known:?} and {unknown:?}");
    assert!(known * 2 > unknown, "{known:?} and {unknown:?}");
}
