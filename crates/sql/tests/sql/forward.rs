//! Tests of sessions whose changes are forwarded to the writer.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use orrery_sql::{
    BatchesIn, Error, ForwardAnswer, ForwardCalls, GuestHeld, GuestUser, Guests, KnowGuest,
    Outcome, ScalarValue, Session, SqlScope, SqlState, Tag, TransactionStatus, WriterPlace,
    WriterSource,
};
use orrery_storage::{Asker, ReadScope, TableEvent, Writer};

use crate::common::House;
use crate::scope::scope;

/// Somebody whose statements begin at once, and may do what the scope has; everything if none.
fn guest(scope: Option<Arc<SqlScope>>) -> GuestUser {
    GuestUser {
        begin: Box::new(move |mut session| {
            let scope = scope.clone();
            Box::pin(async move {
                if scope.is_some() {
                    session.set_scope(scope);
                    session.go_by_transaction().await;
                }
                let held = GuestHeld {
                    turn: session.hold(Box::new(())),
                    spent: None,
                };
                Ok((session, held))
            })
        }),
        require: Box::new(|| Ok(())),
    }
}

/// Where nobody is known, and everybody may do everything.
fn anybody() -> KnowGuest {
    Arc::new(|_| Ok(guest(None)))
}

/// The way to the process that writes, which may be cut.
struct Way {
    guests: Mutex<Option<Arc<Guests>>>,
    is_cut: AtomicBool,
    /// Answers end after so many messages, as where a panic ends them.
    messages_max: AtomicUsize,
    /// Whether answers that open transactions have ended, though all else comes through.
    openings_end: tokio::sync::watch::Sender<bool>,
    calls: AtomicU64,
    here: Mutex<Option<Writer>>,
    /// What was asked last.
    asked: Mutex<Bytes>,
    /// The commits that were waited for here.
    awaited: Mutex<Vec<u64>>,
}

/// As a session asks it.
struct Place(Arc<Way>);

impl ForwardCalls for Way {
    fn writer(&self) -> Option<String> {
        Some("1".to_owned())
    }

    fn call(&self, _: &str, request: Bytes) -> BoxFuture<'static, Result<ForwardAnswer, String>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.asked.lock().unwrap().clone_from(&request);
        let guests = self.guests.lock().unwrap().clone();
        let answer = match (guests, self.is_cut.load(Ordering::Relaxed)) {
            (Some(guests), false) => {
                let is_opening = request.windows(7).any(|part| part == b"{\"Open\"");
                let messages_max = self.messages_max.load(Ordering::Relaxed);
                let mut end = self.openings_end.subscribe();
                let ended = async move {
                    match is_opening {
                        true => drop(end.wait_for(|ended| *ended).await),
                        false => std::future::pending().await,
                    }
                };
                let answer = guests.answer(request).take(messages_max);
                Ok(answer.take_until(ended.boxed()).boxed())
            }
            _ => Err("the way is cut".to_owned()),
        };
        async { answer }.boxed()
    }

    fn wait_for(&self, commit: u64) -> BoxFuture<'_, ()> {
        self.awaited.lock().unwrap().push(commit);
        async {}.boxed()
    }
}

impl WriterPlace for Place {
    fn writer(&self) -> Option<Writer> {
        self.0.here.lock().unwrap().clone()
    }

    fn is_here(&self) -> bool {
        self.writer().is_some()
    }

    fn address(&self) -> Option<String> {
        Some("http://10.0.0.7:7878".to_owned())
    }

    fn calls(&self) -> Option<Arc<dyn ForwardCalls>> {
        Some(Arc::clone(&self.0) as Arc<dyn ForwardCalls>)
    }
}

fn way_with(house: &House, know: KnowGuest) -> Arc<Way> {
    let threads = house.threads.handle().clone();
    let guests = Guests::new(house.session(), know, threads);
    Arc::new(Way {
        guests: Mutex::new(Some(guests)),
        is_cut: AtomicBool::default(),
        messages_max: AtomicUsize::new(usize::MAX),
        openings_end: tokio::sync::watch::Sender::new(false),
        calls: AtomicU64::default(),
        here: Mutex::default(),
        asked: Mutex::default(),
        awaited: Mutex::default(),
    })
}

/// A session that does not write, and its way to who does.
fn follower(house: &House) -> (Session, Arc<Way>) {
    let way = way_with(house, anybody());
    (over(house, &way), way)
}

fn over(house: &House, way: &Arc<Way>) -> Session {
    let place = Arc::new(Place(Arc::clone(way)));
    house
        .read_only()
        .with_writer_of(WriterSource::Changing(place))
}

#[test]
fn changes_are_forwarded_to_the_writer_and_reads_run_here() {
    let house = House::new();
    let (session, way) = follower(&house);
    let created = house.done(&session, "create table t (a int primary key, b text)");
    assert_eq!(created.tag, Tag::Words("CREATE TABLE"));
    let inserted = house.done(&session, "insert into t values (1, 'x'), (2, 'y')");
    assert_eq!(inserted.tag, Tag::Insert(2));
    let before = way.calls.load(Ordering::Relaxed);
    assert_eq!(
        house.rows(&session, "select * from t order by a"),
        ["1 x", "2 y"]
    );
    house.done(&session, "begin; select count(*) from t; commit");
    assert_eq!(way.calls.load(Ordering::Relaxed), before);
    let changed = "update t set b = b || '!' where a > 1 returning a, b";
    assert_eq!(house.rows(&session, changed), ["2 y!"]);
    assert_eq!(
        house.rows(&house.session(), "select b from t where a = 2"),
        ["y!"]
    );

    // What fails says the same as there, and where in the text.
    let texts = [
        "insert into t values (1, 'again')",
        "select 1; insert into t values (3, 'x', 4)",
        "insert into nowhere values (1)",
        "drop table nowhere",
    ];
    for text in texts {
        let here = house.run(&session, text).unwrap_err();
        let there = house.run(&house.session(), text).unwrap_err();
        assert_eq!(here, there, "{text}");
    }
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    // Who wants no changes gets none.
    house.done(&session, "set default_transaction_read_only = on");
    assert_eq!(house.refused(&session, "delete from t").0, "25006");
}

#[test]
fn a_forwarded_transaction_sees_its_own_changes() {
    let house = House::new();
    let (session, _way) = follower(&house);
    house.done(&session, "create table t (a int primary key, b int)");
    house.done(
        &session,
        "begin; create table u (c text); insert into t values (1, 1)",
    );
    assert_eq!(session.transaction_status(), TransactionStatus::Open);
    assert_eq!(house.rows(&session, "select a, b from t"), ["1 1"]);
    house.done(&session, "insert into u select 'n' || a from t");
    assert_eq!(house.rows(&session, "select c from u"), ["n1"]);
    assert_eq!(
        house.rows(&house.session(), "select count(*) from t"),
        ["0"]
    );
    // Prepared over what only the transaction has.
    let prepared = session.prepare("select c from u where c = $1");
    let prepared = house.threads.block_on(prepared).unwrap();
    assert_eq!(prepared.columns().unwrap().field(0).name(), "c");
    let values = [ScalarValue::from("n1")];
    let ran = session.run(&prepared, &values);
    let Outcome::Query(rows) = house.threads.block_on(ran).unwrap() else {
        panic!("it is a query");
    };
    let rows: Vec<_> = house.threads.block_on(rows.try_collect()).unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
    house.done(
        &session,
        "declare c cursor for select a from t; savepoint s; insert into t values (2, 2)",
    );
    let columns = session.cursor_columns("c").unwrap();
    assert_eq!(columns.field(0).name(), "a");
    assert_eq!(house.rows(&session, "fetch all from c"), ["1"]);
    assert_eq!(
        house.refused(&session, "insert into t values (1, 3)").0,
        "23505"
    );
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    assert_eq!(house.refused(&session, "select 1").0, "25P02");
    house.done(
        &session,
        "rollback to s; insert into t values (3, 3); release s",
    );
    assert_eq!(house.done(&session, "commit").tag, Tag::Words("COMMIT"));
    assert_eq!(
        house.rows(&session, "select a from t order by a"),
        ["1", "3"]
    );
    // The same prepared statement is run here now.
    let ran = session.run(&prepared, &values);
    assert!(matches!(
        house.threads.block_on(ran).unwrap(),
        Outcome::Query(_)
    ));

    house.done(&session, "begin; delete from t; rollback");
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
    house.done(
        &session,
        "begin; savepoint early; delete from t; rollback to early; commit",
    );
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
    assert_eq!(
        house
            .refused(&session, "begin; delete from t; select 1/0")
            .0,
        "22012"
    );
    assert_eq!(house.done(&session, "commit").tag, Tag::Words("ROLLBACK"));
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
    // Nobody has the turn any more.
    house.done(&house.session(), "delete from t");
}

#[test]
fn a_forwarded_transaction_fails_if_its_reads_have_changed() {
    let house = House::new();
    let (session, _way) = follower(&house);
    house.done(&session, "create table t (a int)");
    house.done(
        &session,
        "begin; select count(*) from t; insert into t values (1); commit",
    );
    house.done(&session, "begin; select count(*) from t");
    house.done(&house.session(), "insert into t values (2)");
    assert_eq!(
        house.refused(&session, "insert into t values (3)").0,
        "40001"
    );
    house.done(
        &session,
        "rollback; begin; insert into t values (3); commit",
    );
    assert_eq!(
        house.rows(&session, "select a from t order by a"),
        ["1", "2", "3"]
    );
}

#[test]
fn values_settings_and_prepared_statements_are_forwarded() {
    let house = House::new();
    let (session, _way) = follower(&house);
    house.done(
        &session,
        "create table t (a numeric(6, 2), b timestamptz, c text)",
    );
    let prepared = house
        .threads
        .block_on(session.prepare("insert into t values ($1, $2, $3)"))
        .unwrap();
    let values = [
        ScalarValue::from("1.25"),
        ScalarValue::from("2026-01-02 03:04:05"),
        ScalarValue::from("it's"),
    ];
    house.done(&session, "set application_name = 'there'");
    let ran = house.threads.block_on(session.run(&prepared, &values));
    assert!(matches!(ran.unwrap(), Outcome::Done(Tag::Insert(1))));
    let asked = "select a, b = '2026-01-02 03:04:05+00' as same, c from t";
    assert_eq!(house.rows(&session, asked), ["1.25 true it's"]);
    let named = "update t set c = c || current_setting('application_name') returning c";
    assert_eq!(house.rows(&session, named), ["it'sthere"]);
    house.done(
        &session,
        "select 1; prepare p (text) as insert into t (c) values ($1); execute p ('one')",
    );
    house.done(&session, "execute p ('two')");
    assert_eq!(
        house.rows(&session, "select c from t order by c"),
        ["it'sthere", "one", "two"]
    );
}

#[test]
fn copy_data_is_forwarded_whole_or_not_at_all() {
    let house = House::new();
    let (session, _way) = follower(&house);
    house.done(&session, "create table t (a int primary key, b text)");
    let copy = |lines: &[&str], fails: Option<&str>| {
        house.threads.block_on(async {
            let statement = session.statements("copy t from stdin").unwrap().remove(0);
            let Outcome::CopyIn(mut copy) = session.execute(&statement).await? else {
                panic!("it takes bytes");
            };
            assert_eq!(copy.columns(), 2);
            for line in lines {
                copy.send(Bytes::from(format!("{line}\n"))).await?;
            }
            match fails {
                None => copy.finish().await,
                Some(reason) => Err(copy.fail(reason).await),
            }
        })
    };
    assert_eq!(copy(&["1\tx", "2\ty"], None).unwrap(), Tag::Copy(2));
    assert_eq!(
        copy(&["3\tz", "1\tx"], None).unwrap_err().state.code(),
        "23505"
    );
    assert_eq!(
        copy(&["3\tz"], Some("enough")).unwrap_err().state.code(),
        "57014"
    );
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
    house.done(&session, "begin");
    assert_eq!(copy(&["4\tz"], None).unwrap(), Tag::Copy(1));
    // And back, from within the transaction.
    let sent = house.threads.block_on(async {
        let statement = session.statements("copy (select a from t order by a) to stdout");
        let Outcome::CopyOut(mut copy) = session.execute(&statement.unwrap()[0]).await.unwrap()
        else {
            panic!("it gives bytes");
        };
        let mut sent = Vec::new();
        while let Some(rows) = copy.next().await {
            sent.extend_from_slice(rows.unwrap().bytes());
        }
        sent
    });
    assert_eq!(sent, b"1\n2\n4\n");
    house.done(&session, "rollback");
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
    assert_eq!(copy(&["5\tz"], None).unwrap(), Tag::Copy(1));

    // One that is left in the middle is none, and keeps nobody from the turn.
    house.threads.block_on(async {
        let statement = session.statements("copy t from stdin").unwrap().remove(0);
        let Outcome::CopyIn(mut copy) = session.execute(&statement).await.unwrap() else {
            panic!("it takes bytes");
        };
        copy.send(Bytes::from_static(b"6\tz\n")).await.unwrap();
    });
    let rows = house
        .done(&house.session(), "select a, b from t order by a")
        .batches;
    house.done(&house.session(), "delete from t");
    let batches = |rows| BatchesIn {
        schema: None,
        table: "t".to_owned(),
        columns: vec!["a".to_owned(), "b".to_owned()],
        batches: futures::stream::iter(rows).map(Ok).boxed(),
    };
    let insert = |rows| {
        house
            .threads
            .block_on(session.insert_batches(batches(rows)))
    };
    assert_eq!(insert(rows.clone()).unwrap(), 3);
    assert_eq!(insert(rows).unwrap_err().state.code(), "23505");
    assert_eq!(house.rows(&session, "select count(*) from t"), ["3"]);
}

#[test]
fn a_cut_connection_to_the_writer_is_reported_and_leaves_nothing() {
    let house = House::new();
    let (session, way) = follower(&house);
    house.done(&session, "create table t (a int)");
    house.done(&session, "begin; insert into t values (1)");
    way.is_cut.store(true, Ordering::Relaxed);
    assert_eq!(
        house.refused(&session, "insert into t values (2)").0,
        "40001"
    );
    house.done(&session, "rollback");
    assert_eq!(
        house.refused(&session, "insert into t values (2)").0,
        "57P03"
    );
    way.is_cut.store(false, Ordering::Relaxed);
    // Whether a commit was made whose answer was lost is not known.
    house.done(&session, "begin; insert into t values (3)");
    way.is_cut.store(true, Ordering::Relaxed);
    assert_eq!(house.refused(&session, "commit").0, "08007");
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    way.is_cut.store(false, Ordering::Relaxed);
    assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);

    // One that is stopped leaves nothing there, and a block that has failed here.
    house.done(&session, "begin; insert into t values (4)");
    house.threads.block_on(async {
        let text = "insert into t select count(*) from generate_series(1, 100000000) a";
        let statement = session.statements(text).unwrap().remove(0);
        let ran = tokio::time::timeout(Duration::from_millis(50), session.execute(&statement));
        assert!(ran.await.is_err());
    });
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    assert_eq!(house.done(&session, "commit").tag, Tag::Words("ROLLBACK"));
    house.done(&house.session(), "insert into t values (5)");
    assert_eq!(house.rows(&session, "select a from t"), ["5"]);

    // The process that writes stops; and this one takes its place.
    house.done(&session, "begin; insert into t values (6)");
    way.guests.lock().unwrap().as_ref().unwrap().stop();
    assert_eq!(
        house.refused(&session, "insert into t values (6)").0,
        "40001"
    );
    house.done(&session, "rollback");
    way.here.lock().unwrap().clone_from(&house.writer);
    house.done(&session, "insert into t values (7)");
    assert_eq!(
        house.rows(&session, "select a from t order by a"),
        ["5", "7"]
    );
}

#[test]
fn a_truncated_forwarded_answer_is_an_error() {
    let house = House::new();
    let (session, way) = follower(&house);
    house.done(
        &session,
        "create table t (a int); begin; insert into t select * from generate_series(1, 5000)",
    );
    let asked = ["select a from t", "update t set a = a + 1 returning a"];
    for asked in asked {
        assert_eq!(house.rows(&session, asked).len(), 5_000);
    }
    // The head, and some rows of several messages.
    way.messages_max.store(2, Ordering::Relaxed);
    for asked in asked {
        let failed = house.run(&session, &format!("savepoint s; {asked}"));
        assert_eq!(failed.unwrap_err().state.code(), "XX000", "{asked}");
        house.done(&session, "rollback to s");
    }
    let statement = session.statements("copy t to stdout").unwrap().remove(0);
    house.threads.block_on(async {
        let Outcome::CopyOut(mut copy) = session.execute(&statement).await.unwrap() else {
            panic!("it gives bytes");
        };
        let mut is_failed = false;
        while let Some(rows) = copy.next().await {
            is_failed |= rows.is_err();
        }
        assert!(is_failed);
    });
}

/// As many transactions as there are texts are opened at a process, which then has another one's
/// place taken under the same name; there another client's is open, and each text is asked in one
/// of the first. Returns what the other client sees at the end.
fn asked_after_another_process_took_over(texts: &[&str], is_end_known: bool) -> Vec<String> {
    let house = House::new();
    let (setup, way) = follower(&house);
    house.done(&setup, "create table t (a int)");
    let sessions: Vec<Session> = texts.iter().map(|_| over(&house, &way)).collect();
    for session in &sessions {
        // Open there, without the turn.
        let begun = "begin; savepoint s; insert into t values (1); rollback to s";
        house.done(session, begun);
    }
    let before = way.guests.lock().unwrap().take().unwrap();
    if is_end_known {
        before.stop();
    }
    let other = way_with(&house, anybody());
    let guests = other.guests.lock().unwrap().clone();
    *way.guests.lock().unwrap() = guests;
    let others: Vec<Session> = texts.iter().map(|_| over(&house, &other)).collect();
    for session in &others {
        house.done(
            session,
            "begin; savepoint s; insert into t values (2); rollback to s",
        );
    }
    let last = others.last().unwrap();
    house.done(last, "insert into t values (2)");
    for (session, text) in sessions.iter().zip(texts) {
        assert_eq!(house.refused(session, text).0, "40001", "{text}");
    }
    house.done(last, "commit");
    house.rows(&house.session(), "select a from t")
}

#[test]
fn a_transaction_of_a_process_that_is_gone_is_nobody_elses() {
    let texts = [
        "commit",
        "insert into t values (3)",
        "select a from t",
        "select 1",
    ];
    for is_end_known in [false, true] {
        let seen = asked_after_another_process_took_over(&texts, is_end_known);
        assert_eq!(seen, ["2"], "{is_end_known}");
    }
}

#[test]
fn a_transaction_ends_with_the_answer_that_opened_it() {
    let house = House::new();
    let (session, way) = follower(&house);
    house.done(&session, "create table t (a int)");
    house.done(&session, "begin; insert into t values (1)");
    way.openings_end.send_replace(true);
    assert_eq!(house.refused(&session, "commit").0, "40001");
    way.openings_end.send_replace(false);
    house.done(&session, "insert into t values (2)");
    assert_eq!(house.rows(&session, "select a from t"), ["2"]);
}

/// Knows who came in elsewhere as `ann`, who changes `rows` and reads it.
fn knows_ann(rights: Arc<SqlScope>) -> KnowGuest {
    Arc::new(move |passport| match passport {
        Some("of ann") => Ok(guest(Some(Arc::clone(&rights)))),
        _ => Err(Error::new(SqlState::InvalidAuthorization, "nobody known")),
    })
}

#[test]
fn a_forwarded_statement_runs_as_the_user_who_sent_it() {
    let house = House::new();
    house.done(
        &house.session(),
        "create table rows (a int); create table other (a int)",
    );
    let rights = scope(&[], &["public.rows"]);
    let way = way_with(&house, knows_ann(Arc::clone(&rights)));
    // This process lets the session do everything; the rights in the writing process count.
    let ann = over(&house, &way).with_passport(Some("of ann".into()));
    house.done(&ann, "insert into rows values (1)");
    assert_eq!(
        house.refused(&ann, "insert into other values (1)").0,
        "42P01"
    );
    assert_eq!(
        house
            .refused(
                &ann,
                "begin; insert into rows values (2); select * from other"
            )
            .0,
        "42P01"
    );
    house.done(&ann, "rollback");
    // A number that is known opens nothing to somebody else.
    house.done(&ann, "begin; insert into rows values (4)");
    let mut asked = way.asked.lock().unwrap().to_vec();
    let name = asked.windows(6).position(|part| part == b"of ann");
    asked[name.unwrap()..][..6].copy_from_slice(b"of bob");
    let guests = way.guests.lock().unwrap().clone().unwrap();
    let answered = house.threads.block_on(async {
        let answer = guests.answer(Bytes::from(asked));
        answer.try_collect::<Vec<Bytes>>().await.unwrap().concat()
    });
    let answered = String::from_utf8_lossy(&answered);
    assert!(answered.contains("40001"), "{answered}");
    house.done(&ann, "rollback");
    // Nobody who was let in is not somebody who may do everything.
    let nobody = over(&house, &way);
    assert_eq!(
        house.refused(&nobody, "insert into rows values (3)").0,
        "28000"
    );
    assert_eq!(house.rows(&nobody, "select a from rows"), ["1"]);
}

/// The newest commit was told, so that a node waited for those of others that came in between, too.
#[test]
fn a_forwarded_commit_reports_the_writers_commit_number() {
    let house = House::new();
    let (session, way) = follower(&house);
    house.done(&session, "create table t (a int primary key)");
    let writer = house.writer.clone().unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    // Somebody else, who commits all the time.
    let others = {
        let (other, is_done) = (house.session(), Arc::clone(&is_done));
        house.done(&other, "create table other (a int primary key)");
        house.threads.spawn(async move {
            let mut count = 0_u64;
            while !is_done.load(Ordering::Relaxed) {
                let insert = format!("insert into other values ({count})");
                let statement = other.statements(&insert).unwrap().remove(0);
                other.execute(&statement).await.unwrap();
                count += 1;
            }
            count
        })
    };
    way.awaited.lock().unwrap().clear();
    // Changes by themselves, and blocks.
    for a in 0..40 {
        let insert = format!("insert into t values ({a})");
        match a % 2 {
            0 => house.done(&session, &insert),
            _ => house.done(&session, &format!("begin; {insert}; commit")),
        };
    }
    is_done.store(true, Ordering::Relaxed);
    assert!(house.threads.block_on(others).unwrap() > 0);
    let awaited = way.awaited.lock().unwrap().clone();
    assert_eq!(awaited.len(), 40);
    let own = |number: u64| {
        let mut has_rows = false;
        let scope = ReadScope::all_graphs(Asker::Process);
        let database = writer.database();
        let read = database.changes_with_tables(&scope, number - 1, |changes| {
            let is_this = changes.entry.number == number;
            changes.tables(|event| {
                let is_own = matches!(event, TableEvent::Inserted(table, ..) if table.name == "t");
                has_rows |= is_this && is_own;
                Ok(())
            })
        });
        read.unwrap();
        has_rows
    };
    for number in awaited {
        assert!(own(number), "commit {number} is somebody else's");
    }
    // One that has changed nothing has seen no more than is there.
    house.done(&session, "begin; delete from t where a < 0; commit");
    let last = way.awaited.lock().unwrap().last().copied();
    assert_eq!(last, Some(house.commit()));
}
