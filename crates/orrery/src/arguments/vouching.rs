//! Arguments about certificates and an OpenID provider, by which servers and users are
//! authenticated.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use orrery_server::{OidcOptions, UserClaim};
use orrery_tls::TlsFiles;

/// TLS of HTTP and of the admin socket.
#[derive(Args)]
pub(crate) struct TlsArguments {
    /// TLS certificate chain (PEM) of HTTP and the admin socket, which then speak only TLS.
    /// Reloaded when the file changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// TLS private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate authorities (PEM) for client certificates, also at the ports of PostgreSQL and
    /// Flight SQL. A certificate with a user's identity as URI authenticates the user
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_client_ca: Option<PathBuf>,
}

/// An OpenID provider, whose tokens are taken.
#[derive(Args)]
pub(crate) struct OidcArguments {
    /// URL of an OpenID provider whose tokens authenticate users with the identity ISSUER#CLAIM
    #[arg(long, value_name = "URL", requires = "oidc_audience")]
    pub(crate) oidc_issuer: Option<String>,
    /// Audience (aud) that tokens must have
    #[arg(long, value_name = "NAME", requires = "oidc_issuer")]
    pub(crate) oidc_audience: Option<String>,
    /// Claim that names the user
    #[arg(long, value_enum, value_name = "CLAIM", default_value_t = ClaimArgument::Sub, requires = "oidc_issuer")]
    pub(crate) oidc_user_claim: ClaimArgument,
    /// Claim that names the user's groups, which have the identity ISSUER#GROUP; none if not given
    #[arg(long, value_name = "CLAIM", requires = "oidc_issuer")]
    pub(crate) oidc_groups_claim: Option<String>,
    /// Private address or network that the provider may have, such as 10.0.0.0/8; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "oidc_issuer")]
    pub(crate) oidc_allow: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ClaimArgument {
    /// Stable identifier, never given to another user
    Sub,
    /// Email address, if the provider has verified it
    Email,
    /// User name, which people may change where the provider lets them
    PreferredUsername,
}

impl TlsArguments {
    pub(crate) fn files(&self) -> Option<TlsFiles> {
        let (certificate, key) = (self.tls_certificate.clone()?, self.tls_key.clone()?);
        Some(TlsFiles {
            client_ca: self.tls_client_ca.clone(),
            ..TlsFiles::new(certificate, key)
        })
    }
}

impl OidcArguments {
    pub(crate) fn options(&self) -> Option<OidcOptions> {
        let (issuer, audience) = (self.oidc_issuer.clone()?, self.oidc_audience.clone()?);
        Some(OidcOptions {
            user_claim: match self.oidc_user_claim {
                ClaimArgument::Sub => UserClaim::Subject,
                ClaimArgument::Email => UserClaim::Email,
                ClaimArgument::PreferredUsername => UserClaim::PreferredUsername,
            },
            groups_claim: self.oidc_groups_claim.clone(),
            allow: self.oidc_allow.clone(),
            ..OidcOptions::new(issuer, audience)
        })
    }
}
