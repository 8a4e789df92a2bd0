//! Parsing and display of quantities, times and addresses on the command line.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use orrery_term::inline::{DAYS_TO_1970, InlineDateTime, TimeZone};

pub(crate) use orrery_units::{Bytes, Counted, Seconds, ShowCount, plural};

/// Parses `HOST:PORT`: an address, or a name such as `localhost` that resolves to one.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Err(format!("expected HOST:PORT, such as 127.0.0.1:{port}"));
    }
    if let Ok(host) = text.parse::<IpAddr>() {
        return Err(format!(
            "expected HOST:PORT, such as {}",
            SocketAddr::new(host, 7878)
        ));
    }
    match text.to_socket_addrs() {
        // The first address, preferably of IPv4, as for 127.0.0.1.
        Ok(found) => found
            .min_by_key(SocketAddr::is_ipv6)
            .ok_or_else(|| format!("{text} has no address")),
        Err(error) => Err(format!(
            "expected HOST:PORT, such as 127.0.0.1:7878 ({})",
            orrery_storage::reason(&error)
        )),
    }
}

/// Checks the URL at which others reach a server: `http://10.0.0.7:7878`.
pub(crate) fn server_address(text: &str) -> Result<String, String> {
    let address = url::Url::parse(text).map_err(|error| error.to_string())?;
    let is_server = matches!(address.scheme(), "http" | "https")
        && address.has_host()
        && address.path() == "/"
        && address.query().is_none()
        && address.username().is_empty();
    match is_server {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("it is not of the form http://host:port".to_owned()),
    }
}

/// A time in microseconds since 1970, shown as an `xsd:dateTime` in UTC.
pub(crate) struct ShowTime(pub(crate) i64);

impl fmt::Display for ShowTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MILLISECONDS_PER_DAY: i64 = 24 * 60 * 60 * 1000;
        let time = InlineDateTime {
            fraction_digits: 3,
            instant_ms: self.0.div_euclid(1000) + DAYS_TO_1970 * MILLISECONDS_PER_DAY,
            zone: TimeZone::Utc,
        };
        time.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_in_utc() {
        assert_eq!(ShowTime(0).to_string(), "1970-01-01T00:00:00.000Z");
        let time = ShowTime(1_795_258_803_250_999).to_string();
        assert_eq!(time, "2026-11-21T11:00:03.250Z");
    }

    #[test]
    fn an_address_has_host_and_port() {
        let fine = |text: &str| listen_address(text).unwrap().to_string();
        assert_eq!(fine("127.0.0.1:17777"), "127.0.0.1:17777");
        assert_eq!(fine("[::1]:80"), "[::1]:80");
        assert_eq!(fine("localhost:17777"), "127.0.0.1:17777");
        let wrong = |text: &str| listen_address(text).unwrap_err();
        assert!(wrong("17777").ends_with("HOST:PORT, such as 127.0.0.1:17777"));
        assert!(wrong(":17777").ends_with("HOST:PORT, such as 127.0.0.1:17777"));
        assert!(wrong("0.0.0.0").ends_with("HOST:PORT, such as 0.0.0.0:7878"));
        assert!(wrong("localhost").contains("HOST:PORT"));
    }
}
