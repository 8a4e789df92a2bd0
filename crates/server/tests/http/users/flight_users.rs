//! Users of the database at the Flight SQL port: who is let in, what they see, and who owns what
//! outlives a call.

use crate::fixture::TestServer;
use crate::users::access::{PASSWORD, add_user, basic, command, grant, start_with};
use crate::users::postgres_users::{any_port, done, make_tables, table, users, wait_until_listed};
use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch};
use arrow::util::display::array_value_to_string;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any,
    CommandGetTables, CommandPreparedStatementUpdate, DoPutUpdateResult, EndTransaction,
    ProstMessageExt as _,
};
use arrow_flight::{Action, FlightDescriptor, FlightInfo, Ticket};
use bytes::Bytes;
use futures::channel::mpsc;
use futures::{StreamExt, TryStreamExt};
use orrery_flight::FlightOptions;
use prost::Message as _;
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;

pub(crate) type Client = FlightSqlServiceClient<Channel>;

async fn start(more: &[Value]) -> TestServer {
    let mut commands = users();
    commands.extend_from_slice(more);
    let server = start_with(&commands, |options| {
        options.flight = Some(FlightOptions::new(any_port()));
    })
    .await;
    make_tables(&server).await;
    server
}

async fn unknown(server: &TestServer) -> Client {
    let address = format!("http://{}", server.flight.unwrap());
    let channel = Channel::from_shared(address).unwrap().connect().await;
    Client::new(channel.unwrap())
}

/// A client that sends this with each call.
pub(crate) async fn with(server: &TestServer, authorization: &str) -> Client {
    let mut client = unknown(server).await;
    client.set_header("authorization", authorization);
    client
}

fn header(name: &str, password: &str) -> String {
    let line = basic(name, password);
    line.split_once(": ").unwrap().1.to_owned()
}

/// A client that has got a token for its password.
pub(crate) async fn connected(server: &TestServer, name: &str) -> Client {
    let mut client = unknown(server).await;
    client.handshake(name, PASSWORD).await.unwrap();
    assert!(client.token().unwrap().starts_with("orrs_"));
    client
}

fn ticket(info: &FlightInfo) -> Ticket {
    info.endpoint[0].ticket.clone().unwrap()
}

async fn fetched(client: &mut Client, ticket: Ticket) -> Result<Vec<RecordBatch>, FlightError> {
    client.do_get(ticket).await?.try_collect().await
}

pub(crate) async fn rows(client: &mut Client, text: &str) -> Result<Vec<RecordBatch>, FlightError> {
    let info = client.execute(text.to_owned(), None).await?;
    fetched(client, ticket(&info)).await
}

async fn value(client: &mut Client, text: &str) -> String {
    let rows = rows(client, text).await.unwrap();
    array_value_to_string(rows[0].column(0), 0).unwrap()
}

/// Code and message of a refusal.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T, FlightError>) -> (Code, String) {
    match result {
        Err(FlightError::Tonic(status)) => (status.code(), status.message().to_owned()),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_come_in_by_passwords_tokens_and_keys_and_see_what_they_may() {
    let server = start(&[]).await;
    let root = basic("root", PASSWORD);
    let key = command(
        &server,
        &root,
        &json!({"do": "add_key", "user": "ann", "note": ""}),
    )
    .await;
    let key: Value = serde_json::from_str(key.text()).unwrap();
    let key = format!("Bearer {}", key["key"].as_str().unwrap());
    let clients = [
        connected(&server, "ann").await,
        with(&server, &header("ann", PASSWORD)).await,
        with(&server, &key).await,
    ];
    for mut client in clients {
        let ann = &mut client;
        assert_eq!(value(ann, "select current_user").await, "ann");
        assert_eq!(value(ann, "select count(*) from item").await, "2000");
        let hidden = refused(rows(ann, "select * from salary").await);
        let missing = refused(rows(ann, "select * from nothing").await);
        assert_eq!(hidden.0, Code::NotFound);
        assert_eq!(hidden.1.replace("salary", "nothing"), missing.1);
        let change = ann
            .execute_update("delete from item".to_owned(), None)
            .await;
        assert_eq!(refused(change).0, Code::PermissionDenied);
        let info = ann.get_tables(CommandGetTables::default()).await.unwrap();
        let tables = fetched(ann, ticket(&info)).await.unwrap();
        let names = tables[0].column_by_name("table_name").unwrap();
        let names: Vec<_> = names.as_string::<i32>().iter().flatten().collect();
        assert_eq!(names, ["item"]);
    }
    let mut root = connected(&server, "root").await;
    assert_eq!(value(&mut root, "select amount from salary").await, "1000");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_refused_is_not_told_why() {
    let lock = json!({"do": "set_user", "user": "bob", "locked": true});
    let server = start(&[lock]).await;
    let mut told = Vec::new();
    for authorization in [
        header("ann", "not this one"),
        header("nobody", PASSWORD),
        header("bob", PASSWORD),
        header("key", PASSWORD),
        "Basic !!!".to_owned(),
        "Bearer orr_abcdefghijkl_no".to_owned(),
        "Digest ann".to_owned(),
    ] {
        let mut client = with(&server, &authorization).await;
        let (code, message) = refused(client.execute("select 1".to_owned(), None).await);
        assert_eq!(code, Code::Unauthenticated, "{authorization}: {message}");
        told.push(message);
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    for token in ["orrs_", "orrs_2.99999999999.AAAA", "orrs_2.1.A.A"] {
        let mut client = with(&server, &format!("Bearer {token}")).await;
        let (code, _) = refused(client.execute("select 1".to_owned(), None).await);
        assert_eq!(code, Code::Unauthenticated, "{token}");
    }
    let mut nobody = unknown(&server).await;
    let (code, _) = refused(nobody.execute("select 1".to_owned(), None).await);
    assert_eq!(code, Code::Unauthenticated);
    for name in ["ann", "nobody"] {
        // Until the name waits for two seconds.
        let mut wrong = 0;
        let waits = |message: &str| message.contains("it is not looked at for");
        while wrong < 7 {
            let mut client = with(&server, &header(name, "a guess")).await;
            let (code, message) = refused(client.execute("select 1".to_owned(), None).await);
            assert_eq!(code, Code::Unauthenticated, "{message}");
            wrong += usize::from(!waits(&message));
        }
        let mut client = with(&server, &header(name, PASSWORD)).await;
        let (code, message) = refused(client.execute("select 1".to_owned(), None).await);
        assert_eq!(code, Code::Unauthenticated, "{message}");
        assert!(waits(&message), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_anyone_may_read_is_read_by_somebody_unknown() {
    let server = start(&[grant(json!("anyone"), "read", table("item"))]).await;
    let mut nobody = unknown(&server).await;
    assert_eq!(
        value(&mut nobody, "select count(*) from item").await,
        "2000"
    );
    let hidden = refused(rows(&mut nobody, "select * from salary").await);
    assert_eq!(hidden.0, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_outlives_a_call_is_found_by_its_owner_alone() {
    let server = start(&[grant(json!({"user": "bob"}), "read", table("item"))]).await;
    let mut ann = connected(&server, "ann").await;
    let mut bob = connected(&server, "bob").await;
    let text = "select id from item".to_owned();
    let info = ann.execute(text.clone(), None).await.unwrap();
    assert_eq!(
        refused(fetched(&mut bob, ticket(&info)).await).0,
        Code::NotFound
    );
    assert!(fetched(&mut ann, ticket(&info)).await.is_ok());
    let transaction = ann.begin_transaction().await.unwrap();
    let within = bob.execute(text.clone(), Some(transaction.clone())).await;
    assert_eq!(refused(within).0, Code::NotFound);
    let ended = bob
        .end_transaction(transaction.clone(), EndTransaction::Rollback)
        .await;
    assert_eq!(refused(ended).0, Code::NotFound);
    let info = ann.execute(text, Some(transaction.clone())).await.unwrap();
    assert!(fetched(&mut ann, ticket(&info)).await.is_ok());
    let ended = ann
        .end_transaction(transaction, EndTransaction::Commit)
        .await;
    ended.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_is_gone_with_the_next_call() {
    let server = start(&[]).await;
    let mut ann = connected(&server, "ann").await;
    let text = "select id from item order by id".to_owned();
    let mut prepared = ann.prepare(text.clone(), None).await.unwrap();
    let info = prepared.execute().await.unwrap();
    assert!(fetched(&mut ann, ticket(&info)).await.is_ok());
    let transaction = ann.begin_transaction().await.unwrap();
    let waiting = ann
        .execute(text.clone(), Some(transaction.clone()))
        .await
        .unwrap();
    // The first users are 0 to 3, so that this is the number of the rule.
    let rule = 4;
    done(&server, &json!({"do": "revoke", "rule": rule})).await;
    let denied = refused(fetched(&mut ann, ticket(&waiting)).await);
    assert_eq!(denied.0, Code::PermissionDenied, "{}", denied.1);
    for refused_now in [
        prepared.execute().await.map(drop),
        ann.execute(text.clone(), None).await.map(drop),
        ann.execute(text.clone(), Some(transaction)).await.map(drop),
    ] {
        assert_eq!(refused(refused_now).0, Code::NotFound);
    }
    done(
        &server,
        &grant(json!({"user": "ann"}), "read", table("item")),
    )
    .await;
    prepared.execute().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_come_in_any_more_is_cut_off() {
    let server = start(&[add_user("carl", false)]).await;
    for (name, end) in [
        (
            "ann",
            json!({"do": "set_user", "user": "ann", "locked": true}),
        ),
        (
            "bob",
            json!({"do": "set_user", "user": "bob", "password": "made"}),
        ),
        ("carl", json!({"do": "remove_user", "user": "carl"})),
    ] {
        let mut client = connected(&server, name).await;
        let text = "select 1".to_owned();
        let waiting = client.execute(text.clone(), None).await.unwrap();
        done(&server, &end).await;
        let (code, _) = refused(client.execute(text, None).await);
        assert_eq!(code, Code::Unauthenticated, "{name}");
        let (code, _) = refused(fetched(&mut client, ticket(&waiting)).await);
        assert_eq!(code, Code::Unauthenticated, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_given_for_a_password_and_for_no_token() {
    let server = start(&[]).await;
    let token = connected(&server, "ann").await.token().unwrap().clone();
    let mut again = with(&server, &format!("Bearer {token}")).await;
    // What the client sends with each call goes before the password.
    let told = again.handshake("ann", "not this one").await.unwrap();
    assert_eq!((told.as_ref(), again.token()), (&b""[..], None));
    assert_eq!(value(&mut again, "select current_user").await, "ann");
}

/// Prepares a change; its handle.
async fn prepared_change(client: &mut Client, text: &str) -> Bytes {
    let asked = ActionCreatePreparedStatementRequest {
        query: text.to_owned(),
        transaction_id: None,
    };
    let action = Action {
        r#type: "CreatePreparedStatement".to_owned(),
        body: asked.as_any().encode_to_vec().into(),
    };
    let mut told = client.do_action(action).await.unwrap();
    let told = told.message().await.unwrap().unwrap();
    let told = Any::decode(&*told.body).unwrap();
    let told: ActionCreatePreparedStatementResult = told.unpack().unwrap().unwrap();
    told.prepared_statement_handle
}

/// Has a prepared change run with values that are still to come; how many rows it has changed.
async fn change_with(
    mut client: Client,
    handle: Bytes,
    values: mpsc::UnboundedReceiver<Result<RecordBatch, FlightError>>,
) -> Result<i64, FlightError> {
    let command = CommandPreparedStatementUpdate {
        prepared_statement_handle: handle,
    };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let data = FlightDataEncoderBuilder::new()
        .with_schema(id(0).schema())
        .with_flight_descriptor(Some(descriptor))
        .build(values);
    let data = data.map(|message| message.unwrap());
    let mut told = client.do_put(data).await?;
    let told = told.message().await?.unwrap();
    let told = DoPutUpdateResult::decode(&*told.app_metadata).unwrap();
    Ok(told.record_count)
}

fn id(id: i32) -> RecordBatch {
    let ids: ArrayRef = std::sync::Arc::new(Int32Array::from(vec![id]));
    RecordBatch::try_from_iter([("id", ids)]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_while_it_sends_has_changed_nothing() {
    let write = grant(json!({"user": "ann"}), "write", table("salary"));
    let server = start(&[write]).await;
    let mut ann = connected(&server, "ann").await;
    let handle = prepared_change(&mut ann, "insert into salary values ($1, 1)").await;
    let lock = json!({"do": "set_user", "user": "ann", "locked": true});
    for (number, end) in [(2, None), (3, Some(lock))] {
        let (sender, values) = mpsc::unbounded();
        let changed = tokio::spawn(change_with(ann.clone(), handle.clone(), values));
        // It was let in, and waits for what comes.
        wait_until_listed(&server, 1).await;
        if let Some(end) = &end {
            done(&server, end).await;
        }
        sender.unbounded_send(Ok(id(number))).unwrap();
        drop(sender);
        let changed = changed.await.unwrap();
        match end {
            None => assert_eq!(changed.unwrap(), 1),
            Some(_) => assert_eq!(refused(changed).0, Code::Unauthenticated),
        }
        wait_until_listed(&server, 0).await;
    }
    let mut root = connected(&server, "root").await;
    assert_eq!(value(&mut root, "select max(id) from salary").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_here_too() {
    let limits = json!({"do": "set_limits", "of": {"user": "ann"}, "limits": {"concurrent": 1}});
    let server = start(&[limits]).await;
    let endless =
        "select x from generate_series(1, 1000000) as a(x), generate_series(1, 1000000) as b(y)";
    let mut ann = connected(&server, "ann").await;
    let running = ann.execute(endless.to_owned(), None).await.unwrap();
    let (code, message) = refused(ann.execute("select 1".to_owned(), None).await);
    assert_eq!(code, Code::ResourceExhausted);
    assert!(message.contains("retry after 1 s"), "{message}");
    let rows = ann.do_get(ticket(&running)).await.unwrap();
    drop(rows);
    wait_until_listed(&server, 0).await;
    assert_eq!(value(&mut ann, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_all_sets_of_values_are_one_answer() {
    let limits = json!({"do": "set_limits", "of": {"user": "ann"}, "limits": {"rows": 100}});
    let server = start(&[limits]).await;
    let mut ann = connected(&server, "ann").await;
    let text = "select id from item where id >= $1::int and id < $1::int + 10".to_owned();
    for (sets, whole) in [(10, true), (11, false), (50, false)] {
        let mut prepared = ann.prepare(text.clone(), None).await.unwrap();
        let firsts: ArrayRef = std::sync::Arc::new(Int32Array::from_iter_values(100..100 + sets));
        let values = RecordBatch::try_from_iter([("1", firsts)]).unwrap();
        prepared.set_parameters(values).unwrap();
        let info = prepared.execute().await.unwrap();
        let mut answer = ann.do_get(ticket(&info)).await.unwrap();
        let mut came = 0;
        let ended = loop {
            match answer.next().await {
                Some(Ok(batch)) => came += batch.num_rows(),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        assert_eq!((came, ended.is_none()), (100, whole), "{sets}: {ended:?}");
        wait_until_listed(&server, 0).await;
    }
}

/// Beside the answers it has what it is asked with, which is little.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_fetches_are_within_the_memory() {
    let server = start_with(&users(), |options| {
        options.flight = Some(FlightOptions::new(any_port()));
        options.memory_bytes = 64 << 20;
    })
    .await;
    make_tables(&server).await;
    let mut client = connected(&server, "root").await;
    let mut waiting = Vec::new();
    let (code, message) = loop {
        match client.execute("select 1".to_owned(), None).await {
            Ok(info) => waiting.push(ticket(&info)),
            refusal => break refused(refusal),
        }
        assert!(waiting.len() < 400, "{} answers wait", waiting.len());
    };
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    assert!(message.contains("not fetched"), "{message}");
    // What is fetched makes room for as many.
    for ticket in waiting.drain(..) {
        assert_eq!(fetched(&mut client, ticket).await.unwrap().len(), 1);
    }
    assert_eq!(value(&mut client, "select 1").await, "1");
}
