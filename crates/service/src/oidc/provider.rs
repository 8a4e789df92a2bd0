//! An OpenID provider: caches its keys, and verifies tokens with them.
//!
//! Keys are fetched again every ten minutes, and when a token names an unknown key, but no sooner
//! than `refetch_after` the last attempt: forged tokens cannot make the server ask the provider
//! more often. While the provider is unreachable, the cached keys stay in use.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use orrery_http_client::{Client, ClientOptions, Request, Url};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::keys::{Keys, Signed};
use super::options::{OidcError, OidcOptions, is_here, is_safe};
use super::token::Token;

/// Age of keys after which they are fetched again, without delaying requests.
const KEYS_AGE_MAX: Duration = Duration::from_secs(600);
/// Time limit of each of the provider's two answers.
const FETCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Size limit of each answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A provider and its cached keys.
#[derive(Debug)]
pub struct OidcProvider {
    options: OidcOptions,
    state: Mutex<State>,
    /// One fetch at a time, for all requests.
    fetching: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    keys: Option<Arc<Keys>>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
    /// The last failure; each is logged once.
    last_trouble: String,
}

/// The identities of a verified token.
#[derive(Debug, PartialEq, Eq)]
pub struct Vouched {
    /// The user's identity.
    pub user: String,
    /// The identities of the user's groups.
    pub groups: Vec<String>,
}

/// Why a token is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The token is invalid; the reason is for the log.
    Wrong(&'static str),
    /// The provider's keys could not be fetched so far.
    NoKeys,
}

/// The part of the provider's configuration that is used.
#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

impl OidcProvider {
    /// Creates a provider; sends no request yet.
    ///
    /// # Errors
    /// When the settings are not valid.
    pub fn new(options: OidcOptions) -> Result<Arc<Self>, OidcError> {
        options.check()?;
        Ok(Arc::new(Self {
            options,
            state: Mutex::default(),
            fetching: Semaphore::new(1),
        }))
    }

    /// Starts fetching the keys in the background, so that a failure is logged early.
    pub fn start(self: &Arc<Self>) {
        let provider = Arc::clone(self);
        tokio::spawn(async move { provider.refresh().await });
    }

    /// Verifies a token, and returns its identities.
    ///
    /// # Errors
    /// When the token is not valid for this issuer, audience and time, or no keys are known.
    pub async fn vouched(self: &Arc<Self>, text: &str) -> Result<Vouched, Refused> {
        let token = Token::parse(text).map_err(Refused::Wrong)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs_f64();
        // Before the signature, so that no keys are fetched for a token that is refused anyway.
        token.check(&self.options, now).map_err(Refused::Wrong)?;
        let mut signed = self.keys().map(|keys| keys.signed(&token));
        if matches!(signed, None | Some(Signed::ByUnknown)) {
            self.refresh().await;
            signed = self.keys().map(|keys| keys.signed(&token));
        }
        match signed {
            None => Err(Refused::NoKeys),
            Some(Signed::ByUnknown) => Err(Refused::Wrong("its key is none of the issuer's")),
            Some(Signed::No) => Err(Refused::Wrong("its signature is wrong")),
            Some(Signed::Yes) => self.says(&token).map_err(Refused::Wrong),
        }
    }

    fn says(&self, token: &Token<'_>) -> Result<Vouched, &'static str> {
        let identity = |name: &str| format!("{}#{name}", self.options.issuer);
        let groups = self.options.groups_claim.as_deref();
        let groups = groups.into_iter().flat_map(|claim| token.groups(claim));
        Ok(Vouched {
            user: identity(token.user(self.options.user_claim)?),
            groups: groups.map(identity).collect(),
        })
    }

    /// The cached keys; old ones are refreshed in the background.
    fn keys(self: &Arc<Self>) -> Option<Arc<Keys>> {
        let (keys, is_old) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let is_old =
                state.fetched.is_some_and(|it| it.elapsed() > KEYS_AGE_MAX) && self.may_try(&state);
            (state.keys.clone(), is_old)
        };
        if is_old && self.fetching.available_permits() > 0 {
            self.start();
        }
        keys
    }

    fn may_try(&self, state: &State) -> bool {
        let tried = state.tried;
        tried.is_none_or(|tried| tried.elapsed() >= self.options.refetch_after)
    }

    /// Fetches the keys, unless the last attempt was a moment ago; waits for a fetch that runs
    /// already.
    async fn refresh(&self) {
        // No code closes the semaphore.
        let Ok(_turn) = self.fetching.acquire().await else {
            return;
        };
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.may_try(&state) {
                return;
            }
            state.tried = Some(Instant::now());
        }
        let fetched = self.fetch().await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let issuer = &self.options.issuer;
        match fetched {
            Ok(keys) => {
                if state.keys.is_none() || !state.last_trouble.is_empty() {
                    tracing::info!("the OpenID provider {issuer} has {} keys", keys.len());
                }
                state.last_trouble.clear();
                state.fetched = Some(Instant::now());
                state.keys = Some(Arc::new(keys));
            }
            Err(trouble) => {
                if trouble != state.last_trouble {
                    let goes_on = match state.keys {
                        Some(_) => "; those that it had go on",
                        None => "; its tokens are refused until then",
                    };
                    tracing::warn!("the keys of {issuer} cannot be had{goes_on}: {trouble}");
                }
                state.last_trouble = trouble;
            }
        }
    }

    /// Fetches the keys, by way of the provider's configuration. The error is for the log.
    async fn fetch(&self) -> Result<Keys, String> {
        let url = self.options.configuration_url();
        let found = self.get(&url, &[]).await?;
        let found: Configuration = serde_json::from_slice(&found)
            .map_err(|error| format!("<{url}> is no configuration of a provider: {error}"))?;
        // OpenID Connect Discovery 1.0, 4.3.
        if found.issuer != self.options.issuer {
            return Err(format!(
                "<{url}> is that of another issuer, {}",
                found.issuer
            ));
        }
        let keys_url = Url::parse(&found.jwks_uri)
            .map_err(|error| format!("<{url}> says that its keys are nowhere: {error}"))?;
        let issuer = Url::parse(&url).map_err(|error| error.to_string())?;
        // A provider elsewhere must not direct requests to this machine.
        if !is_safe(&keys_url) || (is_here(&keys_url) && !is_here(&issuer)) {
            return Err(format!("<{keys_url}> is not where keys may be"));
        }
        let keys = self.get(keys_url.as_str(), &[&keys_url]).await?;
        let keys = Keys::parse(&keys)
            .map_err(|error| format!("<{keys_url}> is no set of keys: {error}"))?;
        match keys.len() {
            0 => Err(format!("<{keys_url}> has no key for RS256, ES256 or EdDSA")),
            _ => Ok(keys),
        }
    }

    /// The answer of one of the provider's URLs.
    async fn get(&self, url: &str, more: &[&Url]) -> Result<Vec<u8>, String> {
        let issuer = Url::parse(&self.options.issuer).map_err(|error| error.to_string())?;
        let hosts: Vec<&Url> = more.iter().copied().chain([&issuer]).collect();
        let allow = self.options.allow_list(&hosts);
        let client = Client::new(ClientOptions {
            allow: allow.map_err(|error| error.to_string())?,
            timeout: FETCH_TIME_MAX,
            received_bytes_max: ANSWER_BYTES_MAX,
            decoded_bytes_max: ANSWER_BYTES_MAX,
            redirects_max: 0,
            ..ClientOptions::default()
        });
        let client = client.map_err(|error| error.to_string())?;
        let fetched = async {
            let mut response = client.send(Request::get(url, "application/json")).await?;
            let mut bytes = Vec::new();
            while let Some(chunk) = response.body.chunk().await? {
                bytes.extend_from_slice(&chunk);
            }
            Ok::<_, orrery_http_client::Error>(bytes)
        };
        fetched.await.map_err(|error| error.to_string())
    }
}
