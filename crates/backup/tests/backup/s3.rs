//! Backups to a server on loopback that speaks as much of S3 as they need.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use orrery_backup::{Target, backup, restore};
use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{Asker, ReadScope, build_small, verify};
use orrery_term::Term;

/// Objects by key, and the parts of uploads under way.
#[derive(Default)]
struct Store {
    objects: BTreeMap<String, Bytes>,
    uploads: HashMap<String, BTreeMap<u32, Bytes>>,
    parts_received: usize,
    is_failing_once: bool,
}

type Shared = Arc<Mutex<Store>>;

fn xml(body: String) -> Response {
    ([("content-type", "application/xml")], body).into_response()
}

fn etag(content: &[u8]) -> String {
    format!("\"{:08x}\"", crc32c::crc32c(content))
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
    if std::mem::take(&mut store.is_failing_once) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let path = parts.uri.path().strip_prefix("/bucket").unwrap();
    let key = path.trim_start_matches('/').to_owned();
    match parts.method {
        Method::GET if key.is_empty() => xml(list(&store, &query)),
        Method::GET | Method::HEAD => match store.objects.get(&key) {
            Some(content) => found(content.clone()),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        Method::POST => upload(&mut store, &key, &query),
        Method::PUT => put(&mut store, key, &query, &parts.headers, body),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

fn found(content: Bytes) -> Response {
    let headers = [
        ("etag", etag(&content)),
        ("last-modified", "Sat, 21 Nov 2026 10:00:00 GMT".to_owned()),
    ];
    (headers, content).into_response()
}

fn list(store: &Store, query: &HashMap<String, String>) -> String {
    let prefix = query.get("prefix").map_or("", String::as_str);
    let objects = store
        .objects
        .iter()
        .filter(|(key, _)| key.starts_with(prefix));
    let mut entries = String::new();
    for (key, content) in objects.filter(|(key, _)| !key[prefix.len()..].contains('/')) {
        let (bytes, etag) = (content.len(), etag(content));
        entries += &format!(
            "<Contents><Key>{key}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified>\
             <ETag>{etag}</ETag><Size>{bytes}</Size></Contents>"
        );
    }
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>")
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
    let etag = etag(&content);
    store.objects.insert(key.to_owned(), content.into());
    xml(format!(
        "<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
    ))
}

fn put(
    store: &mut Store,
    key: String,
    query: &HashMap<String, String>,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    let etag = etag(&body);
    if let Some(id) = query.get("uploadId") {
        let number = query["partNumber"].parse().unwrap();
        store.parts_received += 1;
        store.uploads.get_mut(id).unwrap().insert(number, body);
    } else if headers.contains_key("if-none-match") && store.objects.contains_key(&key) {
        return StatusCode::PRECONDITION_FAILED.into_response();
    } else {
        store.objects.insert(key, body);
    }
    [("etag", etag)].into_response()
}

fn settings(address: std::net::SocketAddr) -> Vec<(String, String)> {
    let endpoint = format!("http://{address}");
    [
        ("AWS_ENDPOINT", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "nowhere"),
        ("AWS_ACCESS_KEY_ID", "someone"),
        ("AWS_SECRET_ACCESS_KEY", "something"),
        ("HOME", "is not for the store"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

#[test]
fn a_backup_goes_to_s3_in_parts_survives_an_error_and_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let [source, restored] = ["db", "restored"].map(|name| home.path().join(name));
    let iri = |name: String| Term::iri(format!("http://example.org/{name}"));
    // Text that does not shrink, so that a file is sent in more than one part.
    let noise = |mut seed: u64| {
        let mut text = String::new();
        while text.len() < 1_000_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text += &format!("{seed:016x}");
        }
        Term::string(text)
    };
    let quad = |number: u64| {
        (
            iri(format!("s{number}")),
            iri("p".into()),
            noise(number),
            None,
        )
    };
    build_small(&source, &(1..24).map(quad).collect::<Vec<_>>()).unwrap();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let shared = Shared::default();
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });

        let target = Target::parse("s3://bucket/some/prefix", settings(address)).unwrap();
        shared.lock().unwrap().is_failing_once = true;
        let all = ReadScope::all_graphs(Asker::Process);
        let first = backup(&LocalFileSystem, Path::new(&source), &target, &all)
            .await
            .unwrap();
        assert_eq!(first.bytes_copied, first.bytes);
        assert!(shared.lock().unwrap().parts_received > 1);
        let second = backup(&LocalFileSystem, Path::new(&source), &target, &all)
            .await
            .unwrap();
        assert_eq!((second.number, second.bytes_copied), (2, 0));
        let keys: Vec<String> = shared.lock().unwrap().objects.keys().cloned().collect();
        assert!(keys.iter().all(|key| key.starts_with("some/prefix/")));

        let file_system: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
        let report = restore(&target, Some(1), &file_system, &restored)
            .await
            .unwrap();
        assert_eq!(report.quads, 23);
    });
    assert!(verify(&restored, |_| {}).unwrap().is_empty());
}
