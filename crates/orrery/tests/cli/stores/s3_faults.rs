//! A faulty HTTP proxy between a client and its store: it delays, refuses, cuts off, and answers
//! with an error although the request was done.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The store has no time: 503, and nothing was done.
    Unavailable,
    /// The store does it, and the answer is 500.
    DoneButError,
    /// The store does it, and the answer ends in its middle.
    CutOff,
    /// The store does it, and the connection ends without an answer.
    DoneWithoutAnswer,
    /// The connection ends before anything was sent on.
    Dropped,
    /// It takes a while.
    Slow(Duration),
}

/// Which requests go wrong.
#[derive(Clone, Copy)]
pub(crate) enum Faults {
    /// None.
    No,
    /// The first request of each method and path: the next one is fine.
    FirstTries(Fault),
    /// All of them.
    All(Fault),
    /// One of so many, in turn one of each kind.
    OneOf(u64),
}

const IN_TURN: [Fault; 5] = [
    Fault::Unavailable,
    Fault::DoneButError,
    Fault::CutOff,
    Fault::DoneWithoutAnswer,
    Fault::Dropped,
];

/// Ends with the value.
pub(crate) struct Proxy {
    pub(crate) endpoint: String,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    /// `HOST:PORT` of the store.
    store: String,
    faults: Mutex<Faults>,
    seen: Mutex<HashSet<String>>,
    requests: AtomicU64,
    injected: AtomicU64,
    bytes: AtomicU64,
    is_over: AtomicBool,
}

impl Proxy {
    /// Before a store at `http://HOST:PORT`.
    pub(crate) fn start(store: &str, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            store: store.trim_start_matches("http://").to_owned(),
            faults: Mutex::new(faults),
            seen: Mutex::default(),
            requests: AtomicU64::new(0),
            injected: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if for_thread.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&for_thread)) else {
                    continue;
                };
                // A client that leaves, and a store that does, are what is tested.
                std::thread::spawn(move || drop(shared.pass(stream)));
            }
        });
        Self {
            endpoint,
            shared,
            accepting: Some(accepting),
        }
    }

    /// From now on.
    pub(crate) fn set(&self, faults: Faults) {
        *self.shared.faults.lock().unwrap() = faults;
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Those of them that something was done to.
    pub(crate) fn injected(&self) -> u64 {
        self.shared.injected.load(Ordering::Relaxed)
    }

    /// Bytes of answers so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.endpoint.trim_start_matches("http://"));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// A request: its head without the line about the connection, and its body.
struct Request {
    line: String,
    bytes: Vec<u8>,
}

impl Shared {
    /// Answers one request, and closes the connection.
    fn pass(&self, client: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(client);
        let Some(request) = read_request(&mut reader)? else {
            return Ok(());
        };
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let fault = self.fault_of(&request, number);
        if fault.is_some() {
            self.injected.fetch_add(1, Ordering::Relaxed);
        }
        let mut client = reader.into_inner();
        match fault {
            None => self.send(&mut client, &self.ask(&request)?),
            Some(Fault::Slow(time)) => {
                std::thread::sleep(time);
                self.send(&mut client, &self.ask(&request)?)
            }
            Some(Fault::Dropped) => Ok(()),
            Some(Fault::Unavailable) => {
                self.send(&mut client, &error_answer("503 Slow Down", "SlowDown"))
            }
            Some(Fault::DoneButError) => {
                self.ask(&request)?;
                let answer = error_answer("500 Internal Server Error", "InternalError");
                self.send(&mut client, &answer)
            }
            Some(Fault::DoneWithoutAnswer) => self.ask(&request).map(drop),
            Some(Fault::CutOff) => {
                let answer = self.ask(&request)?;
                let head = head_bytes(&answer);
                let half = match answer.len() > head {
                    true => head + (answer.len() - head) / 2,
                    // Without a body, the head is what can be cut.
                    false => head / 2,
                };
                self.send(&mut client, &answer[..half])
            }
        }
    }

    fn fault_of(&self, request: &Request, number: u64) -> Option<Fault> {
        match *self.faults.lock().unwrap() {
            Faults::No => None,
            Faults::All(fault) => Some(fault),
            Faults::FirstTries(fault) => {
                let is_first = self.seen.lock().unwrap().insert(request.line.clone());
                is_first.then_some(fault)
            }
            Faults::OneOf(many) if number.is_multiple_of(many) => {
                let turn = self.injected.load(Ordering::Relaxed) as usize;
                Some(IN_TURN[turn % IN_TURN.len()])
            }
            Faults::OneOf(_) => None,
        }
    }

    /// The whole answer of the store.
    fn ask(&self, request: &Request) -> std::io::Result<Vec<u8>> {
        let mut store = TcpStream::connect(&self.store)?;
        store.write_all(&request.bytes)?;
        let mut answer = Vec::new();
        store.read_to_end(&mut answer)?;
        Ok(answer)
    }

    fn send(&self, client: &mut TcpStream, answer: &[u8]) -> std::io::Result<()> {
        self.bytes.fetch_add(answer.len() as u64, Ordering::Relaxed);
        client.write_all(answer)
    }
}

/// None where the client says nothing.
fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    // The signature covers the other lines, so they stay as they are.
    let mut bytes = line.clone().into_bytes();
    let mut body_bytes = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let lower = header.to_ascii_lowercase();
        if let Some(length) = lower.strip_prefix("content-length:") {
            body_bytes = length.trim().parse().unwrap();
        }
        assert!(!lower.starts_with("transfer-encoding:"), "{header}");
        if header.trim().is_empty() {
            break;
        }
        if !lower.starts_with("connection:") {
            bytes.extend_from_slice(header.as_bytes());
        }
    }
    bytes.extend_from_slice(b"Connection: close\r\n\r\n");
    let head_bytes = bytes.len();
    bytes.resize(head_bytes + body_bytes, 0);
    reader.read_exact(&mut bytes[head_bytes..])?;
    let line = line.trim_end().to_owned();
    Ok(Some(Request { line, bytes }))
}

/// Where the body of an answer begins.
fn head_bytes(answer: &[u8]) -> usize {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    end.map_or(answer.len(), |end| end + 4)
}

fn error_answer(status: &str, code: &str) -> Vec<u8> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>injected</Message></Error>"
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
