//! TLS as libpq's `sslmode` has it.
//!
//! `prefer` and `require` encrypt and ask nobody who the server is; `verify-ca` wants a certificate
//! that a known authority vouches for, `verify-full` one for this host. The authorities are those
//! of the option `sslrootcert`, else the public ones. As with libpq, `require` with `sslrootcert`
//! is `verify-ca`.

use std::path::Path;

use orrery_tls::{Takes, add_authorities, client_config, public_authorities};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::{CertificateError, Error as TlsError, RootCertStore};

use crate::address::{Server, SslMode};
use crate::error::{Error, Result};

/// What encrypts connections to a server.
pub(crate) fn connector(server: &Server) -> Result<MakeRustlsConnect> {
    let failed = |words: String| Error::Connect {
        server: server.to_string(),
        words,
    };
    let mode = match (server.ssl_mode, &server.ssl_root) {
        (SslMode::Require, Some(_)) => SslMode::VerifyCa,
        (mode, _) => mode,
    };
    let authorities = match mode {
        SslMode::VerifyFull | SslMode::VerifyCa => {
            Some(roots(server.ssl_root.as_deref()).map_err(failed)?)
        }
        SslMode::Disable | SslMode::Prefer | SslMode::Require => None,
    };
    let takes_any_name = mode != SslMode::VerifyFull;
    let takes: Takes = Box::new(move |refused, _, _| Ok(takes_any_name && is_about_name(refused)));
    let config = client_config(authorities, takes);
    let config = config.map_err(|error| failed(format!("TLS: {error}")))?;
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> std::result::Result<RootCertStore, String> {
    let Some(path) = file else {
        return Ok(public_authorities());
    };
    let failed = |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", path.display());
    let pem = std::fs::read(path).map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    add_authorities(&mut roots, &pem).map_err(|error| failed(&error))?;
    Ok(roots)
}

/// Whether all that is wrong with a certificate is its name, which is looked at behind the chain.
fn is_about_name(refused: &TlsError) -> bool {
    matches!(
        refused,
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )
    )
}
