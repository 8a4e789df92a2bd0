//! Whom a client trusts: the public authorities, those of a file, and the very certificates of that
//! file.
//!
//! A self-made certificate, as `openssl req -x509` makes it, says that it is an authority's, and a
//! server shows it as its own. By the rules for chains of certificates that is refused; but who has
//! named this very certificate means this very server. So it is taken if it is byte for byte the
//! one of the file, is valid today, and is for the name that is asked; signatures of the handshake
//! are checked as always.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};

/// What a client says at the start of a connection that it speaks, as HTTP's clients do.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A client's settings that trust the public authorities and the certificates of a text in PEM.
///
/// # Errors
/// A line for people, where the text is no PEM or has no certificate that can be read.
pub fn client_trusting(pem: &[u8]) -> Result<ClientConfig, String> {
    let named: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let named = named.map_err(|error| error.to_string())?;
    if named.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for certificate in &named {
        let added = roots.add(certificate.clone());
        added.map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(ring::default_provider());
    let chains =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let chains = chains.build().map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(provider);
    let config = config
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Named { chains, named }))
        .with_no_client_auth();
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

/// See the module's documentation.
#[derive(Debug)]
struct Named {
    chains: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let checked = self.chains.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match checked {
            // It comes after the check of the time, and before that of the name.
            Err(refused) if is_authority_itself(&refused) && self.named.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Whether all that is wrong with a server's certificate is that it is an authority's.
fn is_authority_itself(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error else {
        return false;
    };
    matches!(
        other.downcast_ref::<webpki::Error>(),
        Some(webpki::Error::CaUsedAsEndEntity)
    )
}
