//! Tests of calls over sockets that cut, change or stop traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::calls::{CallAnswer, CallError, CallHandler, Handlers};
use crate::http::calls::client::{Call, Caller};
use crate::http::calls::frame::PART_BYTES;
use crate::http::calls::server;
use crate::http::client::Signer;
use crate::http::signature::{Gate, Secret};

const SECRET: &[u8] = b"the secret of these tests";
const KEEP_ALIVE: Duration = Duration::from_millis(40);
const SILENCE: Duration = Duration::from_secs(5);
/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(30);

impl<F> CallHandler for F
where
    F: Fn(Bytes) -> BoxStream<'static, Result<Bytes, String>> + Send + Sync + 'static,
{
    fn answer(&self, _kind: &str, request: Bytes) -> BoxStream<'static, Result<Bytes, String>> {
        self(request)
    }
}

async fn serve(handler: impl CallHandler) -> String {
    let handlers = Arc::new(Handlers::new());
    handlers.add("test", Arc::new(handler)).unwrap();
    serve_all(handlers).await
}

async fn serve_all(handlers: Arc<Handlers>) -> String {
    let gate = Arc::new(Gate::new(Secret::new(SECRET), 2));
    let router = server::router(gate, handlers, Arc::new(|| 1_000_000), KEEP_ALIVE);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn caller(secret: &[u8]) -> Caller {
    static NONCES: AtomicUsize = AtomicUsize::new(0);
    let unique = || Ok(NONCES.fetch_add(1, Ordering::Relaxed) as u128);
    let signer = Signer::new(
        Secret::new(secret),
        Arc::new(|| 1_000_000),
        Arc::new(unique),
    );
    Caller::new(signer.unwrap())
}

fn call_of(address: &str, request: Bytes, silence: Duration) -> Call {
    Call {
        node: 2,
        address: address.to_owned(),
        kind: "test".to_owned(),
        request,
        silence,
    }
}

async fn call(address: &str, request: &'static [u8]) -> Result<CallAnswer, CallError> {
    let call = call_of(address, Bytes::from_static(request), SILENCE);
    caller(SECRET).call(call).await
}

async fn whole(caller: &Caller, call: Call) -> Result<Vec<Bytes>, CallError> {
    caller.call(call).await?.try_collect().await
}

fn pattern(bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A handler that has all its messages.
fn giving(messages: Vec<Bytes>) -> impl CallHandler {
    move |_: Bytes| stream::iter(messages.clone().into_iter().map(Ok)).boxed()
}

/// What a line does with the byte at this place of what comes back.
#[derive(Clone, Copy)]
enum Fault {
    None,
    Cut(usize),
    Flip(usize),
    /// Nothing is carried from here on, and nothing is closed.
    Stop(usize),
}

/// A line to a server.
struct Line {
    address: String,
    asked: Arc<Mutex<Vec<u8>>>,
    answered: Arc<Mutex<Vec<u8>>>,
}

async fn line(server: &str, fault: Fault) -> Line {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let line = Line {
        address: listener.local_addr().unwrap().to_string(),
        asked: Arc::default(),
        answered: Arc::default(),
    };
    let (server, asked, answered) = (server.to_owned(), line.asked.clone(), line.answered.clone());
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(server).await.unwrap();
        let (mut near_read, mut near_write) = near.into_split();
        let (mut far_read, mut far_write) = far.into_split();
        let there = async {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = near_read.read(&mut buffer).await {
                asked.lock().extend_from_slice(&buffer[..read]);
                far_write.write_all(&buffer[..read]).await.unwrap();
            }
        };
        let back = async {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = far_read.read(&mut buffer).await {
                let begin = answered.lock().len();
                let bytes = &mut buffer[..read];
                answered.lock().extend_from_slice(bytes);
                let inside = |at: usize| (begin..begin + read).contains(&at).then(|| at - begin);
                match fault {
                    Fault::Cut(at) if inside(at).is_some() => {
                        let _ = near_write.write_all(&bytes[..at - begin]).await;
                        return;
                    }
                    Fault::Stop(at) if inside(at).is_some() => {
                        let _ = near_write.write_all(&bytes[..at - begin]).await;
                        std::future::pending::<()>().await;
                    }
                    Fault::Flip(at) if inside(at).is_some() => bytes[at - begin] ^= 1,
                    _ => {}
                }
                if near_write.write_all(bytes).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! { () = there => {}, () = back => {} }
    });
    line
}

/// How many bytes an answer takes, and where its body begins.
async fn measured(server: &str) -> (usize, usize) {
    let line = line(server, Fault::None).await;
    let call = call_of(&line.address, Bytes::new(), SILENCE);
    whole(&caller(SECRET), call).await.unwrap();
    let answered = line.answered.lock();
    let head = answered.windows(4).position(|four| four == b"\r\n\r\n");
    (answered.len(), head.unwrap() + 4)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_keep_their_boundaries_and_the_request_is_what_was_sent() {
    let sizes = [0, 1, 0, 1_000, PART_BYTES, PART_BYTES + 1, 3 << 20];
    let messages: Vec<Bytes> = sizes.into_iter().map(pattern).collect();
    let given = messages.clone();
    let server = serve(move |request: Bytes| {
        let all = [request].into_iter().chain(given.clone());
        stream::iter(all.map(Ok)).boxed()
    })
    .await;
    let caller = caller(SECRET);
    for bytes in [0, 10, 64 << 20] {
        let request = pattern(bytes);
        let call = call_of(&server, request.clone(), LONG);
        let answer = caller.call(call).await.unwrap();
        let heard: Vec<Bytes> = answer.try_collect().await.unwrap();
        assert!(
            heard[0] == request && heard[1..] == messages,
            "{bytes} bytes"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_megabytes_pass_with_a_few_under_way() {
    const MESSAGES: usize = 200;
    let (given, taken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let most = Arc::new(AtomicUsize::new(0));
    let (gives, takes, sees) = (given.clone(), taken.clone(), most.clone());
    let message = pattern(1 << 20);
    let expected = message.clone();
    let server = serve(move |_: Bytes| {
        let (gives, takes, sees, message) =
            (gives.clone(), takes.clone(), sees.clone(), message.clone());
        let messages = stream::iter(0..MESSAGES).map(move |_| {
            let given = gives.fetch_add(1, Ordering::SeqCst) + 1;
            sees.fetch_max(given - takes.load(Ordering::SeqCst), Ordering::SeqCst);
            Ok(message.clone())
        });
        messages.boxed()
    })
    .await;
    let mut answer = call(&server, b"").await.unwrap();
    // Time enough for a server that does not wait to give all of them.
    sleep(Duration::from_millis(500)).await;
    while let Some(message) = answer.next().await {
        assert!(message.unwrap() == expected);
        taken.fetch_add(1, Ordering::SeqCst);
    }
    assert_eq!(taken.load(Ordering::SeqCst), MESSAGES);
    // Messages of a megabyte: those in the buffers of both sockets, which the system sizes, and a
    // handful of ours.
    let most = most.load(Ordering::SeqCst);
    assert!((2..24).contains(&most), "{most} messages under way");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_off_anywhere_is_an_error() {
    let caller = caller(SECRET);
    for (sizes, step) in [(vec![0, 5, 40], 1), (vec![100, PART_BYTES + 100], 4_099)] {
        let messages: Vec<Bytes> = sizes.into_iter().map(pattern).collect();
        let server = serve(giving(messages)).await;
        let (bytes, _) = measured(&server).await;
        for at in (0..bytes).step_by(step).chain(bytes - 30..bytes) {
            let line = line(&server, Fault::Cut(at)).await;
            let call = call_of(&line.address, Bytes::new(), SILENCE);
            let answer = timeout(LONG, whole(&caller, call)).await.unwrap();
            assert!(
                matches!(answer, Err(CallError::BrokenOff { .. })),
                "cut at {at} of {bytes}: {answer:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_byte_that_is_changed_anywhere_is_an_error() {
    let caller = caller(SECRET);
    for (sizes, step) in [(vec![0, 5, 40], 1), (vec![100, PART_BYTES + 100], 4_099)] {
        let messages: Vec<Bytes> = sizes.into_iter().map(pattern).collect();
        let server = serve(giving(messages.clone())).await;
        let (bytes, body) = measured(&server).await;
        for at in (0..bytes).step_by(step).chain(bytes - 30..bytes) {
            let line = line(&server, Fault::Flip(at)).await;
            let call = call_of(&line.address, Bytes::new(), Duration::from_millis(300));
            match timeout(LONG, whole(&caller, call)).await.unwrap() {
                Err(_) => {}
                // A date that is another one, say, changes nothing.
                Ok(heard) => assert!(at < body && heard == messages, "at {at} of {bytes}"),
            }
        }
    }
}

#[tokio::test]
async fn who_has_another_secret_is_refused_and_not_believed() {
    let server = serve(giving(vec![Bytes::from_static(b"secret things")])).await;
    let call = call_of(&server, Bytes::new(), SILENCE);
    let refused = caller(b"another secret of length").call(call).await;
    let Err(CallError::Refused { node: 2, detail }) = refused.map(|_| ()) else {
        panic!("it was let in");
    };
    assert!(detail.contains("another secret"), "{detail}");
    let call = Call {
        kind: "none".to_owned(),
        ..call_of(&server, Bytes::new(), SILENCE)
    };
    let refused = caller(SECRET).call(call).await.map(|_| ());
    let detail = "it does not answer calls of kind `none`".to_owned();
    assert_eq!(refused, Err(CallError::Refused { node: 2, detail }));
}

#[tokio::test]
async fn a_call_that_is_sent_again_or_with_another_body_is_refused() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counts = calls.clone();
    let server = serve(move |_: Bytes| {
        counts.fetch_add(1, Ordering::SeqCst);
        stream::empty().boxed()
    })
    .await;
    let line = line(&server, Fault::None).await;
    let mut answer = call(&line.address, b"pay one crown").await.unwrap();
    assert!(answer.next().await.is_none());
    let asked = line.asked.lock().clone();
    let text = String::from_utf8(asked.clone()).unwrap();
    let other_body = text
        .replace("pay one", "pay two")
        .replace("x-orrery-nonce: ", "x-orrery-nonce: 1");
    for request in [asked, other_body.into_bytes()] {
        let mut socket = TcpStream::connect(&server).await.unwrap();
        socket.write_all(&request).await.unwrap();
        let mut status = [0; 12];
        socket.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 401");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_body_that_is_not_the_one_that_was_signed_is_refused() {
    let server = serve(giving(Vec::new())).await;
    // The request goes to somebody who changes it and sends it on.
    let between = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = between.local_addr().unwrap().to_string();
    let asked = tokio::spawn(async move {
        let (mut socket, _) = between.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"crown") {
            socket.read_buf(&mut asked).await.unwrap();
        }
        String::from_utf8(asked).unwrap()
    });
    let lost = call(&address, b"pay one crown").await.map(|_| ());
    assert!(matches!(lost, Err(CallError::BrokenOff { .. })), "{lost:?}");
    let changed = asked.await.unwrap().replace("pay one", "pay two");
    let mut socket = TcpStream::connect(&server).await.unwrap();
    socket.write_all(changed.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let bytes = socket.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..bytes]);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(
        answer.ends_with("the request is not what was signed"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_says_nothing_is_silent_and_one_that_works_is_not() {
    let server = serve(|_: Bytes| {
        stream::once(async {
            sleep(KEEP_ALIVE * 20).await;
            Ok(Bytes::from_static(b"done"))
        })
        .boxed()
    })
    .await;
    let silence = KEEP_ALIVE * 8;
    let caller = caller(SECRET);
    let answer = caller.call(call_of(&server, Bytes::new(), silence)).await;
    let heard: Vec<Bytes> = answer.unwrap().try_collect().await.unwrap();
    assert_eq!(heard, ["done"], "it was long, and not silent");

    let expected = CallError::Silent {
        node: 2,
        waited: silence,
    };
    assert_eq!(expected.to_string(), "node 2 was silent for 0.32 s");
    for at in [0, 20, 250, 300] {
        let line = line(&server, Fault::Stop(at)).await;
        let call = call_of(&line.address, Bytes::new(), silence);
        let answer = timeout(LONG, whole(&caller, call)).await.unwrap();
        assert_eq!(answer, Err(expected.clone()), "stopped at {at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_takes_its_time_does_not_take_the_node_for_silent() {
    let messages = vec![pattern(1 << 20); 40];
    let server = serve(giving(messages)).await;
    let silence = KEEP_ALIVE * 8;
    let call = call_of(&server, Bytes::new(), silence);
    let mut answer = caller(SECRET).call(call).await.unwrap();
    for number in 0..40 {
        if number % 15 == 1 {
            sleep(silence * 2).await;
        }
        answer.next().await.unwrap().unwrap();
    }
    assert!(answer.next().await.is_none());
}

/// Tells when it is dropped.
struct Tells(mpsc::UnboundedSender<()>);

impl Drop for Tells {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A handler that gives a message and then waits for ever, or gives messages for ever; tells when
/// its stream is dropped.
fn endless(is_idle: bool, dropped: mpsc::UnboundedSender<()>) -> impl CallHandler {
    move |_: Bytes| {
        let tells = Tells(dropped.clone());
        let first = stream::once(async { Ok(Bytes::from_static(b"first")) });
        let rest = if is_idle {
            stream::pending().boxed()
        } else {
            stream::repeat_with(|| Ok(pattern(1 << 20))).boxed()
        };
        let all = first.chain(rest).map(move |message| {
            let _ = &tells;
            message
        });
        all.boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_handler_is_dropped_when_the_caller_goes_or_the_connection_is_lost() {
    for is_idle in [true, false] {
        let (dropped, mut is_dropped) = mpsc::unbounded_channel();
        let server = serve(endless(is_idle, dropped)).await;
        let mut answer = call(&server, b"").await.unwrap();
        assert_eq!(answer.next().await.unwrap().unwrap(), "first");
        assert!(is_dropped.try_recv().is_err());
        drop(answer);
        timeout(SILENCE, is_dropped.recv()).await.unwrap().unwrap();

        let line = line(&server, Fault::Cut(300)).await;
        let call = call_of(&line.address, Bytes::new(), SILENCE);
        let answer = whole(&caller(SECRET), call).await;
        assert!(matches!(answer, Err(CallError::BrokenOff { .. })));
        timeout(SILENCE, is_dropped.recv()).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_breaks_its_answers_off() {
    let handlers = Arc::new(Handlers::new());
    let (dropped, mut is_dropped) = mpsc::unbounded_channel();
    handlers
        .add("test", Arc::new(endless(true, dropped)))
        .unwrap();
    let server = serve_all(handlers.clone()).await;
    let mut answer = call(&server, b"").await.unwrap();
    assert_eq!(answer.next().await.unwrap().unwrap(), "first");
    handlers.stop();
    let end = timeout(SILENCE, answer.next()).await.unwrap();
    assert!(matches!(end, Some(Err(CallError::BrokenOff { .. }))));
    assert!(answer.next().await.is_none());
    timeout(SILENCE, is_dropped.recv()).await.unwrap().unwrap();
    let refused = call(&server, b"").await.map(|_| ());
    let detail = "it stops".to_owned();
    assert_eq!(refused, Err(CallError::Refused { node: 2, detail }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handlers_error_is_told_apart_and_ends_the_answer() {
    let has_gone_on = Arc::new(AtomicBool::new(false));
    let goes_on = has_gone_on.clone();
    let server = serve(move |_: Bytes| {
        let goes_on = goes_on.clone();
        let items = [
            Ok(Bytes::from_static(b"a")),
            Err("no such table".to_owned()),
            Ok(Bytes::from_static(b"b")),
        ];
        let items = stream::iter(items).inspect(move |item| {
            if item.as_ref().is_ok_and(|message| message == "b") {
                goes_on.store(true, Ordering::SeqCst);
            }
        });
        items.boxed()
    })
    .await;
    let heard: Vec<_> = call(&server, b"").await.unwrap().collect().await;
    let message = "no such table".to_owned();
    let expected = CallError::Handler { node: 2, message };
    assert!(expected.is_of_handler());
    assert_eq!(heard, [Ok(Bytes::from_static(b"a")), Err(expected)]);
    assert!(!has_gone_on.load(Ordering::SeqCst));
}

#[tokio::test]
async fn nobody_there_is_told_apart_from_a_connection_that_is_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let closes = tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    let lost = call(&address, b"").await.map(|_| ());
    assert!(matches!(lost, Err(CallError::BrokenOff { .. })), "{lost:?}");
    closes.await.unwrap();
    let nobody = call(&address, b"").await.map(|_| ());
    assert!(
        matches!(nobody, Err(CallError::Unreachable { .. })),
        "{nobody:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_have_connections_of_their_own_which_are_kept() {
    let server = serve(|request: Bytes| {
        let messages = stream::iter(0..20).then(move |_| {
            let message = request.clone();
            async move {
                tokio::task::yield_now().await;
                Ok(message)
            }
        });
        messages.boxed()
    })
    .await;
    let caller = Arc::new(caller(SECRET));
    for round in 0..3 {
        let calls = (0..100).map(|number| {
            let (caller, server) = (caller.clone(), server.clone());
            tokio::spawn(async move {
                let request = Bytes::from(format!("{round} {number}"));
                let call = call_of(&server, request.clone(), SILENCE);
                let answer = caller.call(call).await.unwrap();
                let heard: Vec<Bytes> = answer.try_collect().await.unwrap();
                assert_eq!(heard, vec![request; 20]);
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    }
    // A line takes one connection only.
    let line = line(&server, Fault::None).await;
    for _ in 0..5 {
        let call = call_of(&line.address, Bytes::from_static(b"x"), SILENCE);
        let answer = caller.call(call).await.unwrap();
        assert_eq!(answer.try_collect::<Vec<Bytes>>().await.unwrap().len(), 20);
    }
}
