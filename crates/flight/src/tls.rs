//! TLS: reads a certificate and its key.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::ring::default_provider};

use crate::{StartError, TlsFiles};

/// gRPC speaks HTTP/2 alone.
const ALPN: &[u8] = b"h2";

/// What speaks TLS with clients.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, StartError> {
    let wrong = |path: &Path, reason: String| StartError::File {
        path: path.to_owned(),
        reason,
    };
    let read = |path: &Path| std::fs::read(path).map_err(|error| wrong(path, error.to_string()));
    let certificate = read(&files.certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.map_err(|error| wrong(&files.certificate, error.to_string()))?;
    if chain.is_empty() {
        let reason = "it has no certificate".to_owned();
        return Err(wrong(&files.certificate, reason));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| wrong(&files.key, format!("it has no private key: {error}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(&files.certificate, error.to_string()))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
