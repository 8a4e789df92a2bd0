//! OpenID Connect tokens: `Authorization: Bearer` with a signed JWT (RFC 7519, RFC 9068) instead of
//! an API key.
//!
//! ```text
//! token -> [token] parses its three parts, checks its claims: issuer, audience, times
//!       -> [keys] checks its signature with a key of the provider
//!            ^ [provider] the keys: fetched through `orrery-http-client`, cached, refreshed
//!       -> Vouched: identities, ISSUER#CLAIM; the catalog knows their users
//! ```
//!
//! Signatures are RS256, ES256 and EdDSA, computed by ring. A key is only used for the algorithm of
//! its kind, so that no token can choose another algorithm for the key.

mod keys;
mod options;
mod provider;
mod token;

pub use options::{OidcError, OidcOptions, UserClaim};
pub use provider::{OidcProvider, Refused};
pub use token::has_form_of_token;

#[cfg(test)]
mod tests;
