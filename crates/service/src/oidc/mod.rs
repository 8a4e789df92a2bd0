//! Tokens of an OpenID provider: `Authorization: Bearer` with a signed JWT (RFC 7519, RFC 9068) instead of a key of our own.
//!
//! ```text
//! token -> [token] its three parts, what it claims: issuer, audience, days
//!       -> [keys] its signature, by a key of the provider
//!                    ^ [provider] the provider's keys, fetched through `orrery-http-client`, kept, fetched again
//!       -> Vouched: identities, ISSUER#CLAIM, of which the catalog knows whose they are
//! ```
//!
//! Signatures are RS256, ES256 and EdDSA, computed by ring. A key is used for the algorithm of its kind alone, so that no token can choose another one for it.

mod keys;
mod options;
mod provider;
mod token;

pub use options::{OidcError, OidcOptions, UserClaim};
pub use provider::{OidcProvider, Refused};
pub use token::has_form_of_token;

#[cfg(test)]
mod tests;
