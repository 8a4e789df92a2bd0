use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion, version,
};

use super::*;

/// A certificate for localhost and its key, as PEM, and the certificate for a client to know.
fn made() -> (String, String, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem(), cert.der().clone())
}

/// Writes a file, with a time of change that no other write has, whatever the file system's clock.
fn write(path: &Path, text: &str, seconds: u64) {
    std::fs::write(path, text).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
    file.set_modified(time).unwrap();
}

fn files(directory: &Path) -> TlsFiles {
    TlsFiles::new(directory.join("certificate.pem"), directory.join("key.pem"))
}

/// Whether a client that knows just this certificate is served, and by which version.
async fn greets(
    tls: &Arc<Tls>,
    known: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
) -> Option<ProtocolVersion> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = Arc::clone(tls);
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        tls.accept(stream).await?.write_all(b"hello").await
    });
    let mut roots = RootCertStore::empty();
    roots.add(known.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let mut stream = stream.await.ok()?;
    let mut said = [0; 5];
    stream.read_exact(&mut said).await.unwrap();
    served.await.unwrap().unwrap();
    stream.get_ref().1.protocol_version()
}

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS12, &version::TLS13];

#[tokio::test]
async fn both_versions_of_tls_are_spoken() {
    let home = tempfile::tempdir().unwrap();
    let (certificate, key, known) = made();
    let files = files(home.path());
    write(&files.certificate, &certificate, 0);
    write(&files.key, &key, 0);
    let tls = Tls::open(files, &[b"http/1.1"]).unwrap();
    let with = async |versions| greets(&tls, &known, versions).await;
    assert_eq!(with(BOTH).await, Some(ProtocolVersion::TLSv1_3));
    assert_eq!(
        with(&[&version::TLS12]).await,
        Some(ProtocolVersion::TLSv1_2)
    );
    assert_eq!(tls.served().certificate(), certificate.as_bytes());
}

#[tokio::test]
async fn changed_files_are_served_and_broken_ones_leave_the_old_certificate() {
    let home = tempfile::tempdir().unwrap();
    let files = files(home.path());
    let (first, second) = (made(), made());
    write(&files.certificate, &first.0, 0);
    write(&files.key, &first.1, 0);
    let tls = Tls::open(files.clone(), &[]).unwrap();
    let is_first = async || {
        tls.look();
        let is_first = greets(&tls, &first.2, BOTH).await.is_some();
        assert_ne!(is_first, greets(&tls, &second.2, BOTH).await.is_some());
        is_first
    };
    assert!(is_first().await);
    // Between the two writes the key is another certificate's.
    write(&files.certificate, &second.0, 1);
    assert!(is_first().await);
    write(&files.key, &second.1, 1);
    assert!(!is_first().await);
    write(&files.certificate, "no certificate", 2);
    assert!(!is_first().await);
    std::fs::remove_file(&files.certificate).unwrap();
    assert!(!is_first().await);
    write(&files.certificate, &first.0, 3);
    write(&files.key, &first.1, 3);
    assert!(is_first().await);
}

#[test]
fn what_cannot_be_served_is_told_with_its_file() {
    let home = tempfile::tempdir().unwrap();
    let files = files(home.path());
    let (one, other) = (made(), made());
    let told = |files: &TlsFiles| Tls::open(files.clone(), &[]).unwrap_err();
    assert_eq!(told(&files).path, files.certificate);
    write(&files.certificate, "nonsense", 0);
    assert_eq!(told(&files).reason, "it has no certificate");
    write(&files.certificate, &one.0, 0);
    assert_eq!(told(&files).path, files.key);
    write(&files.key, &one.0, 0);
    assert!(told(&files).reason.starts_with("it has no private key"));
    write(&files.key, &other.1, 0);
    assert!(told(&files).to_string().contains("certificate.pem: "));
    write(&files.key, &one.1, 0);
    let mut with_ca = files.clone();
    with_ca.client_ca = Some(home.path().join("no-such-file"));
    assert_eq!(Some(told(&with_ca).path), with_ca.client_ca);
    Tls::open(files, &[]).unwrap();
}
