//! The trust anchors of a client: public authorities, those of a file, and that file's certificates
//! themselves.
//!
//! A self-made certificate, as `openssl req -x509` makes it, says that it is an authority's, and a
//! server shows it as its own. By the rules for chains of certificates that is refused; but who has
//! named this very certificate means this very server. So it is taken if it is byte for byte the
//! one of the file, is valid today, and is for the name that is asked; signatures of the handshake
//! are checked as always.

use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, OtherError};

use crate::verifier::{Takes, add_authorities, client_config, public_authorities};

/// What a client says at the start of a connection that it speaks, as HTTP's clients do.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A client's settings that trust the public authorities and the certificates of a text in PEM.
///
/// # Errors
/// A line for people, where the text is no PEM or has no certificate that can be read.
pub fn client_trusting(pem: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = public_authorities();
    let named = add_authorities(&mut roots, pem)?;
    let takes: Takes = Box::new(move |refused, certificate, name| {
        // It comes after the check of the time, and before that of the name.
        if !is_authority_itself(refused) || !named.contains(certificate) {
            return Ok(false);
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(true)
    });
    let mut config = client_config(Some(roots), takes)?;
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
    Ok(config)
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
