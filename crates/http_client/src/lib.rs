//! Requests to other machines, within an allow-list: SERVICE and LOAD; object stores for backups.
//!
//! ```text
//!   URL -> [allow]    an entry of the list permits scheme, host, port and path
//!       -> [address]  the name is resolved; what is not public must be listed itself
//!       -> [client]   connect to just the addresses that passed; follow redirects, each checked anew
//!       -> [body]     bytes as they come, decompressed, counted, within the time
//! ```
//!
//! A query names the URL, so whoever may ask a query chooses where the server connects to. Hence:
//! nothing is allowed unless listed, an allowed *name* leads to public addresses only, and it is
//! the address really connected to that is checked, so that a name which changes its
//! address between check and use gains nothing. Neither proxies nor credentials are taken from the
//! environment or from URLs; no cookies are kept.

mod address;
mod allow;
mod body;
mod client;
mod error;

pub use allow::{AllowList, EntryError};
pub use body::{Body, BodyReader};
pub use client::{Client, ClientOptions, Request, Response};
pub use error::Error;
pub use url::Url;

/// The pieces of a value in a form (`application/x-www-form-urlencoded`).
pub fn form_encoded(value: &str) -> impl Iterator<Item = &str> {
    url::form_urlencoded::byte_serialize(value.as_bytes())
}
