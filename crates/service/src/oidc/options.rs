//! Settings of an OpenID provider: its issuer and audience, and the claims that name users and
//! groups.

use std::net::IpAddr;
use std::time::Duration;

use orrery_http_client::{AllowList, EntryError, Url};

/// Settings of one OpenID provider.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// The issuer, as tokens name it (`iss`); its configuration is found below this URL.
    pub issuer: String,
    /// The audience that a token must have (`aud`).
    pub audience: String,
    /// The claim that identifies the user.
    pub user_claim: UserClaim,
    /// The claim that lists groups; without it, groups in tokens are ignored.
    pub groups_claim: Option<String>,
    /// Entries of an allow-list: non-public addresses or networks that the provider's name may
    /// resolve to.
    pub allow: Vec<String>,
    /// Minimum time between two requests for the provider's keys. Default: 10 s.
    pub refetch_after: Duration,
}

/// The claim that identifies the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UserClaim {
    /// `sub`, which a provider never reassigns.
    #[default]
    Subject,
    /// `email`, if the provider has verified it (`email_verified`).
    Email,
    /// `preferred_username`, which users may change if the provider lets them.
    PreferredUsername,
}

/// Why a provider's settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The issuer is not a valid one.
    #[error(
        "'{issuer}' is no OpenID issuer: {reason}; write for example https://login.example.org"
    )]
    Issuer {
        /// The issuer given.
        issuer: String,
        /// The reason.
        reason: String,
    },
    /// An invalid entry of the allow-list.
    #[error(transparent)]
    Allow(#[from] EntryError),
}

impl OidcOptions {
    /// Settings for an issuer and an audience, with `sub` as the user's claim.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audience: audience.into(),
            user_claim: UserClaim::default(),
            groups_claim: None,
            allow: Vec::new(),
            refetch_after: Duration::from_secs(10),
        }
    }

    /// URL of the provider's configuration (OpenID Connect Discovery 1.0, 4).
    pub(super) fn configuration_url(&self) -> String {
        let issuer = self.issuer.trim_end_matches('/');
        format!("{issuer}/.well-known/openid-configuration")
    }

    /// Refuses an issuer that is not valid (OpenID Connect Core 1.0, 2).
    pub(super) fn check(&self) -> Result<(), OidcError> {
        let wrong = |reason: &str| OidcError::Issuer {
            issuer: self.issuer.clone(),
            reason: reason.to_owned(),
        };
        let url = Url::parse(&self.issuer).map_err(|error| wrong(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a user name or password is not used"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        if !is_safe(&url) {
            return Err(wrong(
                "keys are fetched by https, or by http from this machine",
            ));
        }
        AllowList::parse(&self.allow)?;
        Ok(())
    }

    /// The allow-list for requests to the provider: the hosts of these URLs, and the configured
    /// entries.
    pub(super) fn allow_list(&self, urls: &[&Url]) -> Result<AllowList, EntryError> {
        let hosts = urls.iter().filter_map(|url| {
            let (host, port) = (url.host_str()?, url.port_or_known_default()?);
            let is_address = url.host_str().is_some_and(|host| {
                let bare = host.trim_matches(['[', ']']);
                bare.parse::<IpAddr>().is_ok()
            });
            // An address by itself, or a name with its port.
            Some(match is_address {
                true => host.trim_matches(['[', ']']).to_owned(),
                false => format!("{host}:{port}"),
            })
        });
        AllowList::parse(hosts.chain(self.allow.iter().cloned()))
    }
}

/// Whether an attacker on the network cannot change the answer of this URL.
pub(super) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => is_here(url),
        _ => false,
    }
}

/// Whether a URL points to this machine.
pub(super) fn is_here(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let bare = host.trim_matches(['[', ']']);
        host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
    })
}

impl UserClaim {
    /// The claim's name in a token.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Subject => "sub",
            Self::Email => "email",
            Self::PreferredUsername => "preferred_username",
        }
    }
}
