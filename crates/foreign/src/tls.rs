//! TLS as libpq's `sslmode` has it.
//!
//! `prefer` and `require` encrypt and ask nobody who the server is; `verify-ca` wants a certificate that a known authority vouches for, `verify-full` one for
//! this host. The authorities are those of the option `sslrootcert`, else the public ones. As with libpq, `require` with `sslrootcert` is `verify-ca`.

use std::path::Path;
use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore,
    SignatureScheme,
};

use crate::address::{Server, SslMode};
use crate::error::{Error, Result};

/// What encrypts connections to a server.
pub(crate) fn connector(server: &Server) -> Result<MakeRustlsConnect> {
    let failed = |words: String| Error::Connect {
        server: server.to_string(),
        words,
    };
    let of_tls = |error: &dyn std::fmt::Display| failed(format!("TLS: {error}"));
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| of_tls(&error))?;
    let mode = match (server.ssl_mode, &server.ssl_root) {
        (SslMode::Require, Some(_)) => SslMode::VerifyCa,
        (mode, _) => mode,
    };
    let roots = || roots(server.ssl_root.as_deref()).map_err(failed);
    let config = match mode {
        SslMode::VerifyFull => builder
            .with_root_certificates(roots()?)
            .with_no_client_auth(),
        SslMode::Disable | SslMode::Prefer | SslMode::Require | SslMode::VerifyCa => {
            let chain = match mode {
                SslMode::VerifyCa => {
                    let roots = Arc::new(roots()?);
                    let verifier =
                        WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
                    Some(verifier.build().map_err(|error| of_tls(&error))?)
                }
                _ => None,
            };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyName { provider, chain }))
                .with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> std::result::Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = file else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let failed = |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    match roots.is_empty() {
        true => Err(failed(&"it has no certificate")),
        false => Ok(roots),
    }
}

/// Takes certificates for whatever name; of whomever, if there is no chain to be checked.
#[derive(Debug)]
struct AnyName {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at behind the chain.
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
