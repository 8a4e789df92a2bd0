//! An in-memory S3 server on loopback for tests, with what databases and backups need.
//!
//! It has objects by key, conditional puts, multipart uploads, ranges, lists and deletions, and
//! wants every request to be signed.
#![allow(
    clippy::unwrap_used,
    reason = "what is wrong with a request or with this machine fails the test that asked"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

/// The server; it ends with the process.
#[derive(Debug)]
pub struct FakeS3 {
    address: SocketAddr,
    shared: Shared,
}

#[derive(Debug)]
struct Object {
    content: Bytes,
    etag: String,
    modified: SystemTime,
}

/// Objects by key, and the parts of uploads under way.
#[derive(Debug, Default)]
struct Store {
    objects: BTreeMap<String, Object>,
    uploads: HashMap<String, BTreeMap<u32, Bytes>>,
    parts_received: usize,
    puts: u64,
    /// So many requests come first that are answered with an error.
    failing: u32,
}

type Shared = Arc<Mutex<Store>>;

impl Store {
    fn put(&mut self, key: &str, content: Bytes) -> String {
        self.puts += 1;
        let etag = format!("\"{}-{:08x}\"", self.puts, crc32c::crc32c(&content));
        let object = Object {
            content,
            etag: etag.clone(),
            modified: SystemTime::now(),
        };
        self.objects.insert(key.to_owned(), object);
        etag
    }
}

fn xml(body: String) -> Response {
    ([("content-type", "application/xml")], body).into_response()
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// One request; the path is `/bucket/key`.
async fn answer(
    State(shared): State<Shared>,
    Query(query): Query<HashMap<String, String>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 28).await.unwrap();
    let mut store = shared.lock().unwrap();
    assert!(
        parts.headers.contains_key("authorization"),
        "requests are signed"
    );
    if store.failing > 0 {
        store.failing -= 1;
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let path = parts.uri.path().strip_prefix("/bucket").unwrap();
    let key = path.trim_start_matches('/').to_owned();
    match parts.method {
        Method::GET if key.is_empty() => xml(list(&store, &query)),
        Method::GET | Method::HEAD => match store.objects.get(&key) {
            Some(object) => found(object, &parts.headers),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        Method::POST if query.contains_key("delete") => delete(&mut store, &body),
        Method::POST => upload(&mut store, &key, &query),
        Method::PUT => put(&mut store, &key, &query, &parts.headers, body),
        Method::DELETE => {
            store.objects.remove(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

fn found(object: &Object, headers: &HeaderMap) -> Response {
    if text(headers, "if-none-match") == Some(&object.etag) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let modified = httpdate::fmt_http_date(object.modified);
    let about = [("etag", object.etag.clone()), ("last-modified", modified)];
    let Some(range) = text(headers, "range") else {
        return (about, object.content.clone()).into_response();
    };
    let (start, last) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let (start, last): (usize, usize) = (start.parse().unwrap(), last.parse().unwrap());
    let length = object.content.len();
    let last = last.min(length - 1);
    let range = [("content-range", format!("bytes {start}-{last}/{length}"))];
    let part = object.content.slice(start..=last);
    (StatusCode::PARTIAL_CONTENT, about, range, part).into_response()
}

fn list(store: &Store, query: &HashMap<String, String>) -> String {
    let prefix = query.get("prefix").map_or("", String::as_str);
    let has_delimiter = query.contains_key("delimiter");
    let mut folders = BTreeSet::new();
    let mut entries = String::new();
    for (key, object) in &store.objects {
        let Some(rest) = key.strip_prefix(prefix) else {
            continue;
        };
        if has_delimiter && let Some((folder, _)) = rest.split_once('/') {
            folders.insert(format!("{prefix}{folder}/"));
            continue;
        }
        let (bytes, etag) = (object.content.len(), &object.etag);
        entries += &format!(
            "<Contents><Key>{key}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified>\
             <ETag>{etag}</ETag><Size>{bytes}</Size></Contents>"
        );
    }
    for folder in folders {
        entries += &format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
    }
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>")
}

fn delete(store: &mut Store, body: &Bytes) -> Response {
    let body = String::from_utf8(body.to_vec()).unwrap();
    for part in body.split("<Key>").skip(1) {
        store.objects.remove(part.split('<').next().unwrap());
    }
    xml("<DeleteResult></DeleteResult>".to_owned())
}

/// The beginning of an upload in parts, or its end.
fn upload(store: &mut Store, key: &str, query: &HashMap<String, String>) -> Response {
    if query.contains_key("uploads") {
        let id = format!("upload-{}", store.uploads.len());
        store.uploads.insert(id.clone(), BTreeMap::new());
        return xml(format!(
            "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        ));
    }
    let parts = store.uploads.remove(&query["uploadId"]).unwrap();
    let content: Vec<u8> = parts.into_values().flatten().collect();
    let etag = store.put(key, content.into());
    xml(format!(
        "<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
    ))
}

fn put(
    store: &mut Store,
    key: &str,
    query: &HashMap<String, String>,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(id) = query.get("uploadId") {
        let number = query["partNumber"].parse().unwrap();
        store.parts_received += 1;
        store.uploads.get_mut(id).unwrap().insert(number, body);
        return [("etag", "\"part\"")].into_response();
    }
    let there = store.objects.get(key).map(|object| object.etag.as_str());
    let is_refused = match text(headers, "if-match") {
        Some(wanted) => there != Some(wanted),
        None => headers.contains_key("if-none-match") && there.is_some(),
    };
    if is_refused {
        return StatusCode::PRECONDITION_FAILED.into_response();
    }
    [("etag", store.put(key, body))].into_response()
}

impl FakeS3 {
    /// Listens on a port of its own.
    pub fn start() -> Self {
        let shared = Shared::default();
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        let address = receiver.recv().unwrap();
        Self { address, shared }
    }

    /// What a client is told of it, in the names of the environment. Its bucket is `bucket`.
    pub fn settings(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.address);
        let settings = [
            ("AWS_ENDPOINT", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "nowhere"),
            ("AWS_ACCESS_KEY_ID", "someone"),
            ("AWS_SECRET_ACCESS_KEY", "something"),
            ("HOME", "is not for the store"),
        ];
        settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.shared.lock().unwrap()
    }

    /// Answers so many requests with an error before the next one.
    pub fn fail(&self, requests: u32) {
        self.store().failing = requests;
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<String> {
        self.store().objects.keys().cloned().collect()
    }

    /// Parts of uploads so far.
    pub fn parts_received(&self) -> usize {
        self.store().parts_received
    }
}
