//! The provider: its keys, fetched when they are needed, and what its tokens say then.
//!
//! Keys are fetched again every ten minutes, and when a token names one that is not there, but no sooner than some seconds after the last attempt: tokens that somebody
//! makes up have the provider asked no more often. While it cannot be reached, the keys that are there go on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use orrery_http_client::{Client, ClientOptions, Request, Url};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::keys::{Keys, Signed};
use super::options::{OidcError, OidcOptions, is_here, is_safe};
use super::token::Token;

/// Keys that are older are fetched again, beside the requests.
const KEYS_AGE_MAX: Duration = Duration::from_secs(600);
/// How long the provider may take for each of its two answers.
const FETCH_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest of them.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub struct OidcProvider {
    options: OidcOptions,
    state: Mutex<State>,
    /// One asks the provider, for all.
    fetching: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    keys: Option<Arc<Keys>>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
    /// Told once, not for as long as it lasts.
    last_trouble: String,
}

/// What a token of the provider says, which is true then.
#[derive(Debug, PartialEq, Eq)]
pub struct Vouched {
    /// The identity of whom it is about.
    pub user: String,
    /// The identities of their groups.
    pub groups: Vec<String>,
}

/// Why a token is not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// What is wrong with it, for the log.
    Wrong(&'static str),
    /// Nobody can say: the provider cannot be reached, and never was.
    NoKeys,
}

/// What is read of the provider's configuration.
#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

impl OidcProvider {
    /// For a provider, which is not asked yet.
    ///
    /// # Errors
    /// When it cannot be one.
    pub fn new(options: OidcOptions) -> Result<Arc<Self>, OidcError> {
        options.check()?;
        Ok(Arc::new(Self {
            options,
            state: Mutex::default(),
            fetching: Semaphore::new(1),
        }))
    }

    /// Has the keys fetched beside whatever else happens, so that it is told early where that fails.
    pub fn start(self: &Arc<Self>) {
        let provider = Arc::clone(self);
        tokio::spawn(async move { provider.refresh().await });
    }

    /// What a token says.
    ///
    /// # Errors
    /// When it is not one of the provider's, for us, now; or that cannot be found out.
    pub async fn vouched(self: &Arc<Self>, text: &str) -> Result<Vouched, Refused> {
        let token = Token::parse(text).map_err(Refused::Wrong)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs_f64();
        // Before the signature, so that nobody is asked for the keys of what would be refused anyway.
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

    /// The keys that are known; old ones are fetched again meanwhile.
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

    /// Fetches the keys, unless somebody has tried to a moment ago; waits for who does already.
    async fn refresh(&self) {
        // Closed by nobody.
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

    /// The keys, by the provider's configuration. The error is for the log.
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
        // Who is elsewhere has no business on this machine.
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

    /// The answer of an address of the provider.
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
