//! The verifier of server certificates, which also accepts the exact certificates of a file.
//!
//! Signatures of the handshake are checked as always.

use std::fmt;
use std::sync::Arc;

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
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The authorities that the world knows.
pub fn public_authorities() -> RootCertStore {
    RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    }
}

/// Adds the certificates of a text in PEM to those of authorities.
///
/// # Errors
/// A line for people, where the text is no PEM or has no certificate that can be read.
pub fn add_authorities(
    roots: &mut RootCertStore,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, String> {
    let added: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let added = added.map_err(|error| error.to_string())?;
    if added.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    for certificate in &added {
        let added = roots.add(certificate.clone());
        added.map_err(|error| error.to_string())?;
    }
    Ok(added)
}

/// Whether a certificate, for this name, is taken though it was refused so.
pub type Takes =
    Box<dyn Fn(&Error, &CertificateDer<'_>, &ServerName<'_>) -> Result<bool, Error> + Send + Sync>;

/// A client's settings that trust these authorities, and what else is taken; anybody, if there are
/// none.
///
/// # Errors
/// A line for people, where the authorities cannot be used.
pub fn client_config(
    authorities: Option<RootCertStore>,
    takes: Takes,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let chains = authorities.map(|roots| {
        let roots = Arc::new(roots);
        WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()
    });
    let chains = chains.transpose().map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let config = config
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let verifier = Verifier {
        provider,
        chains,
        takes,
    };
    Ok(config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

struct Verifier {
    provider: Arc<CryptoProvider>,
    chains: Option<Arc<WebPkiServerVerifier>>,
    takes: Takes,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Verifier");
        shown.field("chains", &self.chains).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chains) = &self.chains else {
            return Ok(ServerCertVerified::assertion());
        };
        let checked =
            chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match checked {
            Err(refused) if (self.takes)(&refused, end_entity, server_name)? => {
                Ok(ServerCertVerified::assertion())
            }
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
