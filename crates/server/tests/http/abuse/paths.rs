//! Addresses that mean to lead out of where they belong: graphs have names, and names are no files.

use super::{assert_unharmed, beginning, update};
use crate::client::{get, send};
use crate::fixture::TestServer;

const TRICKS: [&str; 16] = [
    "..",
    "../../etc/passwd",
    "%2e%2e/%2e%2e/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%252e%252e/etc/passwd",
    "..%5c..%5cetc",
    "..\\..\\etc",
    "%00",
    "a%00.ttl",
    "/etc/passwd",
    "//etc/passwd",
    "%c0%ae%c0%ae/%c0%af",
    "%e0%80%ae",
    "%uff0e%uff0e",
    "a;/../b",
    "%ff%fe",
];

/// Where a server might take a path for another.
fn addresses(trick: &str) -> [String; 7] {
    [
        "/",
        "/console.js/",
        "/graphs/",
        "/graphs//",
        "/graphs/a/",
        "/sparql/",
        "/health/",
    ]
    .map(|before| format!("{before}{trick}"))
}

/// All files below a directory.
fn files(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_lead_to_what_they_name_or_nowhere() {
    let server = TestServer::start().await;
    let secret = server.directory().join("secret.ttl");
    std::fs::write(&secret, "<http://e/secret> <http://e/p> 1 .").unwrap();
    let parent = server.directory().to_str().unwrap();
    let beside = || {
        let mut names: Vec<_> = std::fs::read_dir(server.directory())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let (before, count) = (beside(), files(server.directory()).len());
    let paths: Vec<String> = TRICKS.iter().flat_map(|trick| addresses(trick)).collect();
    for path in &paths {
        let answer = get(server.address, path, &[]).await;
        let shown = beginning(&answer);
        assert!(
            (400..500).contains(&answer.status),
            "{path}: {} {shown}",
            answer.status
        );
        for inner in ["root:", "http://e/secret", parent] {
            assert!(!answer.text().contains(inner), "{path}: {shown}");
        }
    }
    let turtle = "Content-Type: text/turtle";
    for path in paths.iter().filter(|path| path.starts_with("/graphs/")) {
        let put = send(server.address, "PUT", path, &[turtle], b"<a:s> <a:p> 1 .").await;
        assert!(
            [200, 201, 400].contains(&put.status),
            "{path}: {}",
            beginning(&put)
        );
    }
    assert_eq!(beside(), before);
    // Each change is a commit of the log, and no file with a name of a stranger's.
    assert_eq!(files(server.directory()).len(), count);
    assert_unharmed(&server).await;
}

/// Whatever a graph's path is, it names one graph, which is the one that was put there.
#[tokio::test(flavor = "multi_thread")]
async fn two_paths_are_two_graphs() {
    let server = TestServer::start().await;
    let turtle = "Content-Type: text/turtle";
    let paths = [
        "/graphs/a",
        "/graphs/b/../a",
        "/graphs/./a",
        "/graphs//a",
        "/graphs/%61",
        "/graphs/a/",
    ];
    for (number, path) in paths.iter().enumerate() {
        let text = format!("<a:s> <a:p> {number} .");
        let put = send(server.address, "PUT", path, &[turtle], text.as_bytes()).await;
        assert_eq!(put.status, 201, "{path}: {}", beginning(&put));
    }
    for (number, path) in paths.iter().enumerate() {
        let answer = get(server.address, path, &["Accept: application/n-triples"]).await;
        assert!(
            answer.text().contains(&format!("\"{number}\"")),
            "{path}: {}",
            beginning(&answer)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_loaded_from_below_their_directory_alone() {
    let server = TestServer::start_with(|options| {
        let open = options.db.parent().unwrap().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::write(
            options.db.parent().unwrap().join("secret.ttl"),
            "<a:s> <a:secret> 1 .",
        )
        .unwrap();
        std::fs::write(open.join("a.ttl"), "<a:s> <a:open> 1 .").unwrap();
        options.load_dir = Some(open);
    })
    .await;
    let open = server.directory().join("open");
    let open = open.to_str().unwrap();
    let loaded = update(server.address, &format!("LOAD <file://{open}/a.ttl>")).await;
    assert_eq!(loaded.status, 200, "{}", beginning(&loaded));
    for path in [
        "/../secret.ttl",
        "/%2e%2e/secret.ttl",
        "/..%2fsecret.ttl",
        "/./../secret.ttl",
        "/a.ttl/../../secret.ttl",
        "/..\\secret.ttl",
        "/%00",
        "/a.ttl%00.nt",
        "",
        "/",
    ] {
        let loaded = update(server.address, &format!("LOAD <file://{open}{path}>")).await;
        assert!(loaded.status >= 400, "{path}: {}", beginning(&loaded));
    }
    for address in [
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "file:///proc/self/environ",
        "file:///dev/zero",
        "file://other/a.ttl",
    ] {
        let loaded = update(server.address, &format!("LOAD <{address}>")).await;
        assert!(loaded.status >= 400, "{address}: {}", beginning(&loaded));
    }
    assert_unharmed(&server).await;
}
