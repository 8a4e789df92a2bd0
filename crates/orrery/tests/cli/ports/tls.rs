//! `orrery serve --tls-certificate`, and commands that ask such a server.

use std::path::Path;

use crate::access::{PASSWORD, database, free_address};
use crate::common::{check_failure, fail, orrery, text};
use crate::serve::{Server, wait_until};

/// Writes a certificate for this machine, and its key; returns their paths.
pub(crate) fn certificate(home: &Path) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = ["certificate.pem", "key.pem"].map(|name| text(&home.join(name)).to_owned());
    std::fs::write(&files[0], made.cert.pem()).unwrap();
    std::fs::write(&files[1], made.signing_key.serialize_pem()).unwrap();
    files
}

#[test]
fn a_server_within_tls_is_asked_by_https() {
    let home = tempfile::tempdir().unwrap();
    let database = database(home.path());
    let [certificate, key] = certificate(home.path());
    let admin = free_address();
    let options = [
        "--tls-certificate",
        &certificate,
        "--tls-key",
        &key,
        "--admin",
        &admin,
    ];
    let _server = Server::start_with(&database, &options);
    let list = |scheme: &str, known: Option<&str>| {
        let mut command = orrery();
        command
            .env("ORRERY_USER", "root")
            .env("ORRERY_PASSWORD", PASSWORD)
            .args(["user", "list", "--server", &format!("{scheme}://{admin}")]);
        if let Some(known) = known {
            command.env("ORRERY_CA_FILE", known);
        }
        command.output().unwrap()
    };
    wait_until("the server answers", || {
        list("https", Some(&certificate)).status.success()
    });
    let listed = list("https", Some(&certificate));
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("root  administrator"), "{listed}");
    // Not without knowing the certificate, and not in the clear.
    check_failure(&list("https", None), &["certificate"]);
    check_failure(&list("http", None), &["http://"]);
    check_failure(&list("https", Some(&key)), &["ORRERY_CA_FILE"]);
}

#[test]
fn a_self_made_certificate_of_an_authority_is_trusted_where_the_environment_names_it() {
    let home = tempfile::tempdir().unwrap();
    let database = database(home.path());
    // As `openssl req -x509` makes it: it may sign others, and is shown by a server itself.
    let made = |file: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        let files = ["pem", "key"].map(|ending| text(&home.path().join(file)).to_owned() + ending);
        std::fs::write(&files[0], certificate.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        files
    };
    let ([certificate, key], [other, _]) = (made("server."), made("other."));
    let address = free_address();
    let options = ["--tls-certificate", &certificate, "--tls-key", &key];
    let admin = [&options[..], &["--admin", &address]].concat();
    let _server = Server::start_with(&database, &admin);
    let list = |known: &str| {
        let mut command = orrery();
        let server = format!("https://{address}");
        command
            .env("ORRERY_USER", "root")
            .env("ORRERY_PASSWORD", PASSWORD)
            .env("ORRERY_CA_FILE", known)
            .args(["user", "list", "--server", &server]);
        command.output().unwrap()
    };
    wait_until("the server answers", || list(&certificate).status.success());
    check_failure(&list(&other), &["certificate"]);
}

#[test]
fn files_that_do_not_fit_are_refused_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let database = database(home.path());
    let [certificate, _] = certificate(home.path());
    let serve = |more: &[&str], says: &[&str]| {
        let arguments = ["serve", "--db", &database, "--listen", "127.0.0.1:0"];
        fail(&[&arguments, more].concat(), says);
    };
    let wrong = ["--tls-certificate", &certificate, "--tls-key", &certificate];
    serve(&wrong, &["certificate.pem: it has no private key"]);
    let issuer = ["--oidc-issuer", "http://login.example.org"];
    let issuer = [&issuer[..], &["--oidc-audience", "orrery"]].concat();
    serve(&issuer, &["'http://login.example.org' is no OpenID issuer"]);
}
