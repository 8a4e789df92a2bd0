//! Quantities as people write them: `8G`, `512M`; `30s`, `500ms`, `2m`; addresses.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use orrery_server::parse_time;
use orrery_term::inline::{DAYS_TO_1970, InlineDateTime, TimeZone};

/// A number of bytes. `K`, `M`, `G`, `T` count in powers of 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl Bytes {
    /// As the length of something in memory.
    pub(crate) fn in_memory(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text
            .trim_end_matches(['b', 'B'])
            .trim_end_matches("i")
            .trim_end();
        let (digits, factor) = match trimmed.char_indices().last() {
            Some((at, unit)) if unit.is_ascii_alphabetic() => {
                let power = match unit.to_ascii_uppercase() {
                    'K' => 1,
                    'M' => 2,
                    'G' => 3,
                    'T' => 4,
                    _ => return Err(format!("unknown unit {unit:?}; use K, M, G or T")),
                };
                (&trimmed[..at], 1024u64.pow(power))
            }
            _ => (trimmed, 1),
        };
        let number: f64 = digits
            .trim()
            .parse()
            .map_err(|_| "expected a number of bytes such as 512M or 8G".to_owned())?;
        let bytes = number * factor as f64;
        if !(bytes >= 0.0 && bytes < u64::MAX as f64) {
            return Err("out of range".to_owned());
        }
        Ok(Self(bytes as u64))
    }
}

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The grammar of `timeout=`.
        parse_time(text)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

/// `HOST:PORT`: an address, or a name such as `localhost` that has one.
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
        // The first, but one of the usual family where there is any, as for 127.0.0.1.
        Ok(found) => found
            .min_by_key(SocketAddr::is_ipv6)
            .ok_or_else(|| format!("{text} has no address")),
        Err(error) => Err(format!(
            "expected HOST:PORT, such as 127.0.0.1:7878 ({})",
            orrery_storage::reason(&error)
        )),
    }
}

/// The address of a server as others reach it: `http://10.0.0.7:7878`.
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

/// A count with commas between groups of three digits.
pub(crate) struct ShowCount(pub(crate) u64);

impl fmt::Display for ShowCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

/// A count with its noun: `1 quad`, `1,000 quads`.
pub(crate) struct Counted(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = self;
        write!(f, "{} {}", ShowCount(*count), plural(*count, noun))
    }
}

/// A noun as it follows a count.
pub(crate) fn plural(count: u64, noun: &'static str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{noun}{ending}")
}

/// A moment in microseconds since 1970, as an `xsd:dateTime` in UTC.
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
    fn bytes_take_units() {
        let cases = [
            ("0", 0),
            ("100", 100),
            ("8G", 8 << 30),
            ("512MiB", 512 << 20),
            ("1.5k", 1536),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "G", "-1", "8X", "1e99"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_take_units() {
        let cases = [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("2min", 120_000),
            ("1.5", 1500),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(
                text.parse(),
                Ok(Seconds(Duration::from_millis(milliseconds))),
                "{text}"
            );
        }
        for text in ["", "s", "-1s", "inf", "x", "0", "1e3"] {
            assert!(text.parse::<Seconds>().is_err(), "{text}");
        }
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

    #[test]
    fn one_is_no_plural() {
        let text = |count| Counted(count, "quad").to_string();
        assert_eq!(
            [0, 1, 2, 1000].map(text),
            ["0 quads", "1 quad", "2 quads", "1,000 quads"]
        );
    }

    #[test]
    fn counts_have_commas() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_000_312, "1,000,312"),
        ];
        for (count, text) in cases {
            assert_eq!(ShowCount(count).to_string(), text);
        }
    }
}
