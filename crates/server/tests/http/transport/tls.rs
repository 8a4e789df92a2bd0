//! HTTP within TLS, certificates that change while they are served, and certificates of clients.

use crate::client::{Answer, parse, query_path, request};
use crate::fixture::TestServer;
use crate::users::access::{CSV, JSON, OBJECTS, PASSWORD, add_user, basic, give, some_users};
use orrery_server::{ServeError, Server, ServerOptions};
use orrery_tls::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const ANN: &str = "https://ann.example/card#me";
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody who vouches for certificates.
pub type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate that an authority vouches for, and its key.
pub struct Certified {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

pub fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

pub fn certified(authority: &Authority, names: &[&str], uris: &[&str]) -> Certified {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    for uri in uris {
        let uri = SanType::URI((*uri).try_into().unwrap());
        params.subject_alt_names.push(uri);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Certified {
        pem: certificate.pem(),
        certificate: certificate.der().clone(),
        key,
    }
}

/// Has a server serve a certificate; returns its files.
pub fn put(directory: &Path, served: &Certified) -> TlsFiles {
    let files = TlsFiles::new(directory.join("certificate.pem"), directory.join("key.pem"));
    std::fs::write(&files.key, served.key.serialize_pem()).unwrap();
    std::fs::write(&files.certificate, &served.pem).unwrap();
    files
}

/// A server that speaks TLS, with users.
async fn start(served: &Certified, clients: Option<&Authority>, commands: &[Value]) -> TestServer {
    TestServer::start_with(|options| {
        options.admin = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        give(&options.db, commands);
        let directory = options.db.parent().unwrap().to_owned();
        let mut files = put(&directory, served);
        if let Some(clients) = clients {
            let path = directory.join("clients.pem");
            std::fs::write(&path, clients.pem()).unwrap();
            files.client_ca = Some(path);
        }
        options.tls = Some(files);
    })
    .await
}

/// A connection within TLS, with a certificate if one is given; `None` where the handshake with
/// this authority fails.
pub async fn connect(
    address: SocketAddr,
    known: &Authority,
    own: Option<&Certified>,
) -> Option<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(known.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => config.with_no_client_auth(),
        Some(own) => {
            let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
            config
                .with_client_auth_cert(vec![own.certificate.clone()], key)
                .unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let stream = stream.await.ok()?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    Some(stream)
}

/// Sends a request within TLS; `None` where there is no handshake.
async fn exchange(
    address: SocketAddr,
    known: &Authority,
    own: Option<&Certified>,
    request: &[u8],
) -> Option<Answer> {
    let mut stream = connect(address, known, own).await?;
    // In TLS 1.3 a client learns that its certificate is refused when it reads.
    stream.write_all(request).await.ok()?;
    let mut bytes = Vec::new();
    let is_clean = stream.read_to_end(&mut bytes).await.is_ok();
    (!bytes.is_empty()).then(|| parse(&bytes, is_clean))
}

fn objects(headers: &[&str]) -> Vec<u8> {
    let headers: Vec<&str> = headers.iter().copied().chain([CSV]).collect();
    request("GET", &query_path(OBJECTS), &headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn http_and_the_admin_socket_are_within_tls() {
    let ours = authority();
    let served = certified(&ours, &["localhost"], &[]);
    let server = start(&served, None, &some_users()).await;
    let root = basic("root", PASSWORD);
    let ask = async |path: &str, accept: &str| {
        let request = request("GET", path, &[&root, accept]);
        exchange(server.address, &ours, None, &request)
            .await
            .unwrap()
    };
    let answer = ask(&query_path("SELECT (<a> AS ?here) {}"), CSV).await;
    assert!(answer.is_complete);
    // What is relative is so to the address that the client has written.
    assert_eq!(answer.text(), "here\r\nhttps://localhost/a\r\n");
    let description = ask("/sparql", "Accept: application/n-triples").await;
    assert!(description.text().contains("https://localhost/sparql"));

    let request = request("GET", "/admin/access", &[&root]);
    let admin = server.admin.unwrap();
    let listing = exchange(admin, &ours, None, &request).await.unwrap();
    assert_eq!(listing.status, 200);
    // Who does not know who vouches for it does not go on, and in the clear nothing is said.
    assert!(
        exchange(admin, &authority(), None, &request)
            .await
            .is_none()
    );
    for address in [server.address, admin] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&request).await.unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        assert!(!said.starts_with(b"HTTP"), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_changes_is_served_without_a_new_start() {
    let (old, new) = (authority(), authority());
    let server = start(&certified(&old, &["localhost"], &[]), None, &some_users()).await;
    let health = request("GET", "/health", &[]);
    let is_served = async |by: &Authority| {
        let answer = exchange(server.address, by, None, &health).await;
        answer.is_some_and(|answer| answer.status == 200)
    };
    assert!(is_served(&old).await);
    put(server.directory(), &certified(&new, &["localhost"], &[]));
    let changed = async {
        while !is_served(&new).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let changed = tokio::time::timeout(PATIENCE, changed).await;
    changed.expect("the new certificate is served");
    assert!(!is_served(&old).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_a_client_is_the_user_whose_identity_it_names() {
    let (ours, clients) = (authority(), authority());
    let mut commands = some_users();
    commands.extend([
        json!({"do": "set_user", "user": "ann", "identities": [ANN, "x:other-name"]}),
        json!({"do": "set_user", "user": "bob", "identities": ["x:bob"]}),
        json!({"do": "set_user", "user": "root", "identities": ["x:root"]}),
        json!({"do": "grant", "to": "anyone", "right": "read", "on": {"graph": "http://example.com/g2"}}),
    ]);
    let served = certified(&ours, &["localhost"], &[]);
    let server = start(&served, Some(&clients), &commands).await;
    let of = |uris: &[&str]| certified(&clients, &["client"], uris);
    let ask = async |own: Option<&Certified>, headers: &[&str]| {
        exchange(server.address, &ours, own, &objects(headers)).await
    };
    let seen = async |own: Option<&Certified>, headers: &[&str]| {
        let answer = ask(own, headers).await.unwrap();
        let rows = answer.text().lines().count().saturating_sub(1);
        (answer.status, rows)
    };
    // The graph that everybody sees, and that of ann's.
    let ann = of(&["https://somebody.example/else", ANN]);
    assert_eq!(seen(None, &[]).await, (200, 1));
    assert_eq!(seen(Some(&ann), &[]).await, (200, 2));
    assert_eq!(seen(Some(&of(&[ANN, "x:other-name"])), &[]).await, (200, 2));
    // A certificate that names no user, or several, is refused like a wrong key, although everybody
    // sees something.
    for uris in [
        &["https://ann.example/card"][..],
        &["x:ann", "ann", "not an IRI"],
        &[],
        &[ANN, "x:bob"],
    ] {
        let answer = ask(Some(&of(uris)), &[]).await.unwrap();
        assert_eq!(answer.status, 401, "{uris:?}");
        assert!(!answer.text().contains("ann"), "{}", answer.text());
    }
    // What a header says goes first, right or wrong.
    let wrong = basic("root", "not this one");
    assert_eq!(seen(Some(&ann), &[&wrong]).await.0, 401);
    let bob = basic("bob", PASSWORD);
    assert_eq!(seen(Some(&ann), &[&bob]).await, (200, 1));
    assert_eq!(seen(Some(&of(&["x:nobody"])), &[&bob]).await, (200, 1));
    // Nobody whom we know vouches for this one.
    let forged = certified(&authority(), &["client"], &[ANN]);
    assert!(ask(Some(&forged), &[]).await.is_none());

    // An administrator's certificate administers; what it takes away is gone with the next request.
    let admin = async |own: &Certified, command: &Value| {
        let body = command.to_string();
        let length = format!("Content-Length: {}", body.len());
        let mut sent = request("POST", "/admin/access", &[JSON, &length]);
        sent.extend_from_slice(body.as_bytes());
        let answer = exchange(server.admin.unwrap(), &ours, Some(own), &sent).await;
        answer.unwrap().status
    };
    let lock = json!({"do": "set_user", "user": "ann", "locked": true});
    assert_eq!(admin(&ann, &lock).await, 403);
    let root = of(&["x:root"]);
    assert_eq!(admin(&root, &lock).await, 200);
    assert_eq!(seen(Some(&ann), &[]).await.0, 401);
    let change = |locked: bool, gone: &[&str]| json!({"do": "set_user", "user": "ann", "locked": locked, "no_identities": gone});
    assert_eq!(admin(&root, &change(false, &[])).await, 200);
    assert_eq!(seen(Some(&ann), &[]).await, (200, 2));
    assert_eq!(admin(&root, &change(false, &[ANN])).await, 200);
    assert_eq!(seen(Some(&ann), &[]).await.0, 401);
    let taken = json!({"do": "set_user", "user": "ann", "identities": ["x:bob"]});
    assert_eq!(admin(&root, &taken).await, 422);
    let none = json!({"do": "set_user", "user": "ann", "identities": ["ann"]});
    assert_eq!(admin(&root, &none).await, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_say_nothing_hold_up_neither_others_nor_the_end() {
    let ours = authority();
    let served = certified(&ours, &["localhost"], &[]);
    let mut server = start(&served, None, &some_users()).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let health = request("GET", "/health", &[]);
    let answer = exchange(server.address, &ours, None, &health).await;
    assert_eq!(answer.unwrap().status, 200);
    server.ask_to_stop();
    let stopped = tokio::time::timeout(Duration::from_secs(8), server.stopped()).await;
    stopped.expect("within less than the grace period");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_served_are_refused_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let ours = authority();
    let mut files = put(home.path(), &certified(&ours, &["localhost"], &[]));
    let bind = async |files: &TlsFiles, users: &[Value]| {
        let db = home.path().join("db");
        let _ = std::fs::remove_dir_all(&db);
        orrery_storage::build_small(&db, &[]).unwrap();
        give(&db, users);
        let mut options = ServerOptions::new(db);
        options.listen.set_port(0);
        options.tls = Some(files.clone());
        Server::bind(options).await.map(drop)
    };
    assert!(bind(&files, &[]).await.is_ok());
    let other = certified(&ours, &["localhost"], &[]);
    std::fs::write(&files.key, other.key.serialize_pem()).unwrap();
    assert!(matches!(bind(&files, &[]).await, Err(ServeError::Tls(_))));
    put(home.path(), &other);
    let clients = home.path().join("clients.pem");
    std::fs::write(&clients, ours.pem()).unwrap();
    files.client_ca = Some(clients);
    // Nobody would be asked who they are.
    let nobody = bind(&files, &[]).await;
    assert!(matches!(nobody, Err(ServeError::NobodyToVouchFor { .. })));
    assert!(bind(&files, &[add_user("root", true)]).await.is_ok());
}
