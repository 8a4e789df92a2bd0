//! The certificate and key files, and their reload on change.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring::default_provider};

use crate::error::TlsError;

/// A file of certificates that is larger is none.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where the certificate and its key are, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who vouches for certificates of clients. Without it none is asked for.
    pub client_ca: Option<PathBuf>,
}

/// How the files looked: another look says that somebody has written one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Looks(Vec<Option<FileLooks>>);

/// Time of the last change, length, and number of a file: one that is replaced by renaming has
/// another number.
#[derive(Debug, PartialEq, Eq)]
struct FileLooks {
    seconds: i64,
    nanoseconds: i64,
    bytes: u64,
    inode: u64,
}

impl From<Metadata> for FileLooks {
    fn from(of: Metadata) -> Self {
        Self {
            seconds: of.mtime(),
            nanoseconds: of.mtime_nsec(),
            bytes: of.len(),
            inode: of.ino(),
        }
    }
}

/// What the files have.
pub(crate) struct Read {
    pub(crate) config: ServerConfig,
    /// The certificates as they stand in their file.
    pub(crate) certificate: Vec<u8>,
}

impl TlsFiles {
    /// A certificate and its key, without certificates of clients.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            client_ca: None,
        }
    }

    /// How they look now; none for a file that is not there.
    pub(crate) fn looks(&self) -> Looks {
        let files = [
            Some(&self.certificate),
            Some(&self.key),
            self.client_ca.as_ref(),
        ];
        let looks = files.into_iter().flatten().map(|path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some(metadata.into())
        });
        Looks(looks.collect())
    }

    /// Reads them.
    ///
    /// # Errors
    /// When one is not there or is not what it should be, or the key is another certificate's.
    pub(crate) fn read(&self, protocols: &[&[u8]]) -> Result<Read, TlsError> {
        let of_certificate =
            |error: &dyn std::fmt::Display| TlsError::new(&self.certificate, error);
        let certificate = bytes(&self.certificate)?;
        let chain = certificates(&self.certificate, &certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes(&self.key)?)
            .map_err(|error| TlsError::new(&self.key, format!("it has no private key: {error}")))?;
        let provider = Arc::new(default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| of_certificate(&error))?;
        let config = match &self.client_ca {
            None => config.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path, &bytes(path)?)? {
                    roots
                        .add(certificate)
                        .map_err(|error| TlsError::new(path, error))?;
                }
                let roots = Arc::new(roots);
                // Who has no certificate may have a password, or be nobody known.
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| TlsError::new(path, error))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let mut config = config
            .with_single_cert(chain, key)
            .map_err(|error| of_certificate(&error))?;
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        if self.client_ca.is_some() {
            // A session that goes on later would bring a certificate that nobody looks at again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Read {
            config,
            certificate,
        })
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = || -> io::Result<Vec<u8>> {
        if std::fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("it is too large to be certificates"));
        }
        std::fs::read(path)
    };
    read().map_err(|error| TlsError::new(path, error))
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| TlsError::new(path, error))?;
    match chain.is_empty() {
        true => Err(TlsError::new(path, "it has no certificate")),
        false => Ok(chain),
    }
}
