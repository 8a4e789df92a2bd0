//! The guard: the host names under which the server answers, and where changes may come from.
//!
//! Without users, only this machine may write: the server takes changes if it listens on a loopback
//! address, or if it was started with `--allow-writes`, which is for a server behind a proxy that
//! knows its users. With users, `authentication` decides who writes.
//!
//! A browser on this machine runs pages of strangers, which must neither change nor read data:
//!
//! - A page's form or script of another origin sends `Origin` (and `Sec-Fetch-Site`) with its
//!   `POST`; the server refuses what is not from its own pages, also with `--cors`. The browser
//!   keeps answers to reads from it, unless there is `--cors`.
//! - A stranger's name that resolves to 127.0.0.1 (DNS rebinding) makes both origins equal. So on a
//!   loopback address `Host` must be `localhost`, a loopback address, or a name given with
//!   `--allow-host`, for every request. What pages of all origins may do anyway is not checked
//!   again: reads with `--cors`, and everything with `--allow-writes`.
//!
//! The host is checked once, where a request comes in ([`HostRule`]), and travels with it as a
//! [`RequestHost`].

use crate::connection::tls::Secure;
use axum::extract::Request;
use axum::http::{Version, header, request::Parts, uri::Authority};
use orrery_service::errors::ServiceError;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The server's name as the client wrote it, noted with a request.
#[derive(Debug, Clone)]
struct RequestHost(Authority);

/// The host names under which the server answers.
#[derive(Debug, Clone)]
pub(crate) struct HostRule {
    /// Whether only names of this machine, and the names below, are accepted.
    is_strict: bool,
    names: Arc<[String]>,
}

impl HostRule {
    /// `names`: further host names of this server, without a port.
    pub(crate) fn new(listen: SocketAddr, is_open: bool, names: &[String]) -> Self {
        Self {
            is_strict: listen.ip().is_loopback() && !is_open,
            names: names
                .iter()
                .map(|name| bare(name).to_ascii_lowercase())
                .collect(),
        }
    }

    /// Notes the host of a request with it; refuses a malformed one (RFC 9112, 3.2), and one not
    /// ours.
    pub(crate) fn check(&self, request: &mut Request) -> Result<(), ServiceError> {
        let Some(host) = sent_host(request)? else {
            // Older than HTTP/1.1, which needs no host. No browser sends such a request.
            return Ok(());
        };
        if self.is_strict && !self.is_ours(host.host()) {
            return Err(ServiceError::forbidden(format!(
                "this server is for programs on this machine, and is not addressed as `{}`; use localhost, or start it with \
                 --allow-host {0}",
                host.host()
            )));
        }
        request.extensions_mut().insert(RequestHost(host));
        Ok(())
    }

    fn is_ours(&self, host: &str) -> bool {
        is_loopback_name(host)
            || self
                .names
                .iter()
                .any(|name| bare(host).eq_ignore_ascii_case(name))
    }
}

/// The one host of a request: that of an absolute address, else that of the header.
fn sent_host(request: &Request) -> Result<Option<Authority>, ServiceError> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => Authority::try_from(host.as_bytes())
            .ok()
            .filter(|host| !host.as_str().contains('@'))
            .ok_or_else(|| ServiceError::bad_request("the Host header is no name or address"))?,
        (None, _) if request.version() < Version::HTTP_11 => return Ok(None),
        _ => {
            return Err(ServiceError::bad_request(
                "a request must have one Host header, and not several",
            ));
        }
    };
    // RFC 9112, 3.2.2: then the header is ignored.
    Ok(Some(request.uri().authority().cloned().unwrap_or(host)))
}

/// The server's name as the client wrote it.
pub(crate) fn host_of(parts: &Parts) -> Result<&Authority, ServiceError> {
    let host = parts.extensions.get::<RequestHost>();
    host.map(|host| &host.0)
        .ok_or_else(|| ServiceError::bad_request("a request to this path must have a Host header"))
}

/// Whether this server takes changes, as known at its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteRule {
    is_loopback: bool,
    are_allowed: bool,
}

impl WriteRule {
    /// `are_allowed`: the server was started with `--allow-writes`.
    pub(crate) fn new(listen: SocketAddr, are_allowed: bool) -> Self {
        Self {
            is_loopback: listen.ip().is_loopback(),
            are_allowed,
        }
    }

    /// Refuses a change unless it is surely meant. `hosts` is the strict rule.
    pub(crate) fn check(self, parts: &Parts, hosts: &HostRule) -> Result<(), ServiceError> {
        if !self.is_loopback && !self.are_allowed {
            return Err(ServiceError::forbidden(
                "this server takes no writes over the network, for its database has no users; start it with --auth, \
                 or with --allow-writes behind a proxy that knows who asks, or let it listen on 127.0.0.1",
            ));
        }
        let host = host_of(parts)?;
        if !self.are_allowed && !hosts.is_ours(host.host()) {
            return Err(ServiceError::forbidden(format!(
                "writes must be addressed to localhost, not to `{}`",
                host.host()
            )));
        }
        let headers = &parts.headers;
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

fn cross_site() -> ServiceError {
    ServiceError::forbidden("a web page of another origin may not write")
}

fn is_loopback_name(host: &str) -> bool {
    let host = bare(host);
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A host without the brackets of an IPv6 address, and without the dot that may end a name.
fn bare(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The base of relative IRIs in queries and updates: the address that the request was sent to.
///
/// SPARQL 1.1 Protocol, 2.1.4 and 2.2.3, leaves the choice to the server.
pub(crate) fn base_iri(parts: &Parts) -> Option<String> {
    let host = crate::edge::guard::host_of(parts).ok()?;
    let scheme = scheme_of(parts);
    Some(format!("{scheme}://{host}{}", parts.uri.path()))
}

/// The scheme of a request's address, as its client wrote it.
pub(crate) fn scheme_of(parts: &Parts) -> &'static str {
    match parts.extensions.get::<Secure>() {
        Some(Secure) => "https",
        None => "http",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::error_response::ErrorResponse as _;
    use axum::body::Body;
    use axum::http::StatusCode;

    const LOOPBACK: &str = "127.0.0.1:7878";

    fn request(headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri("/sparql");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    fn status(listen: &str, are_allowed: bool, headers: &[(&str, &str)]) -> StatusCode {
        let listen = listen.parse().unwrap();
        let mut request = request(headers);
        // As with --cors, so that the rule for writes applies, too.
        let hosts = HostRule::new(listen, true, &["db.internal".to_owned()]);
        let rule = WriteRule::new(listen, are_allowed);
        let checked = hosts.check(&mut request);
        match checked.and_then(|()| rule.check(&request.into_parts().0, &hosts)) {
            Ok(()) => StatusCode::OK,
            Err(error) => error.status(),
        }
    }

    fn reads(listen: &str, is_open: bool, mut request: Request) -> StatusCode {
        let names = ["db.internal".to_owned()];
        let rule = HostRule::new(listen.parse().unwrap(), is_open, &names);
        rule.check(&mut request)
            .map_or_else(|error| error.status(), |()| StatusCode::OK)
    }

    #[test]
    fn reads_are_for_names_of_this_machine_where_it_listens_on_loopback() {
        for (host, expected) in [
            ("localhost:7878", 200),
            ("[::1]:7878", 200),
            ("db.internal:80", 200),
            ("DB.Internal", 200),
            ("evil.example", 403),
            ("db.internal.evil.example", 403),
            ("10.0.0.1", 403),
            ("", 400),
            ("a b", 400),
        ] {
            let asked = || request(&[("host", host)]);
            assert_eq!(reads(LOOPBACK, false, asked()), expected, "{host}");
            let elsewhere = if expected == 400 { 400 } else { 200 };
            assert_eq!(reads(LOOPBACK, true, asked()), elsewhere, "{host}");
            assert_eq!(reads("0.0.0.0:7878", false, asked()), elsewhere, "{host}");
        }
        assert_eq!(reads(LOOPBACK, false, request(&[])), 400);
        let twice = request(&[("host", "localhost"), ("host", "localhost")]);
        assert_eq!(reads("0.0.0.0:7878", false, twice), 400);
        let mut old = request(&[]);
        *old.version_mut() = Version::HTTP_10;
        assert_eq!(reads(LOOPBACK, false, old), 200);
    }

    #[test]
    fn an_absolute_address_counts_rather_than_the_header() {
        let mut rebound = request(&[("host", "localhost")]);
        *rebound.uri_mut() = "http://evil.example/sparql".parse().unwrap();
        assert_eq!(reads(LOOPBACK, false, rebound), 403);
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
            "db.internal",
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
