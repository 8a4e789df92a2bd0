//! Who vouches for users, and what of a token says whom it is about.

use std::net::IpAddr;
use std::time::Duration;

use orrery_http_client::{AllowList, EntryError, Url};

/// How an OpenID provider vouches for users.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// The provider, as its tokens name it (`iss`), and below which its configuration is found.
    pub issuer: String,
    /// What a token has to be meant for (`aud`).
    pub audience: String,
    /// Which claim says who somebody is.
    pub user_claim: UserClaim,
    /// Which claim says in which groups; without it tokens say nothing of groups.
    pub groups_claim: Option<String>,
    /// Addresses or networks that the provider's name may lead to although they are not public, as an allow-list has them.
    pub allow: Vec<String>,
    /// The provider is asked for its keys no sooner again. Default: 10 s.
    pub refetch_after: Duration,
}

/// The claim that says who somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UserClaim {
    /// `sub`, which a provider never gives to another one.
    #[default]
    Subject,
    /// `email`, where the provider says that it has checked it (`email_verified`).
    Email,
    /// `preferred_username`, which people may change where the provider lets them.
    PreferredUsername,
}

/// Why a provider cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The issuer cannot be one.
    #[error(
        "'{issuer}' is no OpenID issuer: {reason}; write for example https://login.example.org"
    )]
    Issuer {
        /// What was given.
        issuer: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry that allows nothing.
    #[error(transparent)]
    Allow(#[from] EntryError),
}

impl OidcOptions {
    /// For an issuer and an audience; `sub` says who somebody is.
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

    /// Where the provider's configuration is (OpenID Connect Discovery 1.0, 4).
    pub(super) fn configuration_url(&self) -> String {
        let issuer = self.issuer.trim_end_matches('/');
        format!("{issuer}/.well-known/openid-configuration")
    }

    /// Refuses an issuer that cannot be one (OpenID Connect Core 1.0, 2).
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

    /// What is asked of the provider leads to these hosts alone.
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

/// Whether nobody between can change what an address answers.
pub(super) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => is_here(url),
        _ => false,
    }
}

/// Whether an address is of this machine.
pub(super) fn is_here(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let bare = host.trim_matches(['[', ']']);
        host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
    })
}

impl UserClaim {
    /// Its name in a token.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Subject => "sub",
            Self::Email => "email",
            Self::PreferredUsername => "preferred_username",
        }
    }
}
