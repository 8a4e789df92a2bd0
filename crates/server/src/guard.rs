//! Who may change the database over HTTP, as long as there is no access control.
//!
//! Writes are for those on this machine: the server takes them when it listens on a loopback address, or
//! when it was told to with `--allow-writes`, which is for a server behind a proxy that knows its users.
//!
//! A browser on this machine runs pages of strangers, and must not become their hand:
//!
//! - A page's form or script of another origin sends `Origin` (and `Sec-Fetch-Site`) with its `POST`;
//!   what does not come from this server's own pages is refused, also with `--cors`.
//! - A name of the stranger's that resolves to 127.0.0.1 (DNS rebinding) makes both origins equal. So
//!   on a loopback address `Host` must be `localhost` or an address of the loopback itself.

use crate::errors::ServerError;
use axum::http::{HeaderMap, header, uri::Authority};
use std::net::{IpAddr, SocketAddr};

/// What is known of the server when it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteRule {
    is_loopback: bool,
    are_allowed: bool,
}

impl WriteRule {
    /// `are_allowed`: the server was told to take writes wherever it listens.
    pub(crate) fn new(listen: SocketAddr, are_allowed: bool) -> Self {
        Self {
            is_loopback: listen.ip().is_loopback(),
            are_allowed,
        }
    }

    /// Refuses a request to change the database, unless it is certain to be meant.
    pub(crate) fn check(self, headers: &HeaderMap) -> Result<(), ServerError> {
        if !self.is_loopback && !self.are_allowed {
            return Err(ServerError::forbidden(
                "this server takes no writes over the network, for it has no access control; start it \
                 with --allow-writes behind a proxy that has, or let it listen on 127.0.0.1",
            ));
        }
        let host = host_of(headers)?;
        if !self.are_allowed && !is_loopback_name(host.host()) {
            return Err(ServerError::forbidden(format!(
                "writes must be addressed to localhost, not to `{}`",
                host.host()
            )));
        }
        if let Some(origin) = headers.get(header::ORIGIN) {
            let own = origin.to_str().ok().and_then(|origin| {
                let (scheme, authority) = origin.split_once("://")?;
                let is_web = matches!(scheme, "http" | "https");
                is_web.then_some(authority)
            });
            if own.is_none_or(|authority| !authority.eq_ignore_ascii_case(host.as_str())) {
                return Err(cross_site());
            }
        }
        let fetched = headers.get("sec-fetch-site");
        if fetched.is_some_and(|site| site != "same-origin" && site != "none") {
            return Err(cross_site());
        }
        Ok(())
    }
}

fn cross_site() -> ServerError {
    ServerError::forbidden("a web page of another origin may not write")
}

/// The server's name as the client wrote it.
pub(crate) fn host_of(headers: &HeaderMap) -> Result<Authority, ServerError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => Authority::try_from(host.as_bytes())
            .ok()
            .filter(|host| !host.as_str().contains('@'))
            .ok_or_else(|| ServerError::bad_request("the Host header is no name or address")),
        _ => Err(ServerError::bad_request(
            "a request to this path must have one Host header",
        )),
    }
}

fn is_loopback_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue, StatusCode};

    const LOOPBACK: &str = "127.0.0.1:7878";

    fn status(listen: &str, are_allowed: bool, headers: &[(&str, &str)]) -> StatusCode {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        let rule = WriteRule::new(listen.parse().unwrap(), are_allowed);
        match rule.check(&map) {
            Ok(()) => StatusCode::OK,
            Err(error) => error.status(),
        }
    }

    #[test]
    fn programs_on_this_machine_may_write() {
        for host in [
            "localhost",
            "LOCALHOST:7878",
            "127.0.0.1:7878",
            "127.9.9.9",
            "[::1]:7878",
            "localhost.",
        ] {
            assert_eq!(status(LOOPBACK, false, &[("host", host)]), 200, "{host}");
        }
    }

    #[test]
    fn names_that_were_rebound_may_not() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7878",
            "10.0.0.1",
        ] {
            assert_eq!(status(LOOPBACK, false, &[("host", host)]), 403, "{host}");
        }
        for host in ["", "a b", "user@localhost"] {
            assert_eq!(status(LOOPBACK, false, &[("host", host)]), 400, "{host}");
        }
        assert_eq!(status(LOOPBACK, false, &[]), 400);
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status(LOOPBACK, false, &twice), 400);
    }

    #[test]
    fn pages_of_other_origins_may_not() {
        let with = |name: &'static str, value: &'static str| {
            status(
                LOOPBACK,
                false,
                &[("host", "localhost:7878"), (name, value)],
            )
        };
        assert_eq!(with("origin", "http://localhost:7878"), 200);
        assert_eq!(with("sec-fetch-site", "same-origin"), 200);
        assert_eq!(with("sec-fetch-site", "none"), 200);
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:8080",
            "http://127.0.0.1:7878",
            "file://localhost:7878",
            "localhost:7878",
        ] {
            assert_eq!(with("origin", origin), 403, "{origin}");
        }
        assert_eq!(with("sec-fetch-site", "cross-site"), 403);
        assert_eq!(with("sec-fetch-site", "same-site"), 403);
    }

    #[test]
    fn the_network_may_write_only_if_the_server_says_so() {
        let host = [("host", "db.example")];
        assert_eq!(status("0.0.0.0:7878", false, &host), 403);
        assert_eq!(status("0.0.0.0:7878", true, &host), 200);
        let foreign = [("host", "db.example"), ("origin", "http://evil.example")];
        assert_eq!(status("0.0.0.0:7878", true, &foreign), 403);
    }
}
