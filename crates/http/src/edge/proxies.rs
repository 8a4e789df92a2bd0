//! Client addresses behind trusted proxies, from `X-Forwarded-For` or `Forwarded` (RFC 7239).
//!
//! ```text
//! X-Forwarded-For: 198.51.100.7, 203.0.113.5, 10.0.0.9      connection from 10.0.0.8
//!                  anybody may write this  ^ the client      ^ trusted, as 10.0.0.9 is
//! ```
//!
//! Each proxy appends the address that it was asked from. So the last address that is none of our
//! proxies' is the client's; what stands before it is what the client chose to write. A connection
//! from elsewhere is from its own address, whatever its head says. Both headers are read; a proxy
//! may know only one of them, and a client may have written the other, so if they differ neither is
//! believed. Then, and where an entry is no address (`unknown`, `_hidden`, a broken line), the
//! client is the last proxy itself.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, header};

use orrery_service::query_log::Peer;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Most proxies that may stand behind each other.
const HOPS_MAX: usize = 32;

/// The addresses and networks of proxies whose headers are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

/// An address, and how many of its first bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u32,
}

/// A text that is neither an address nor a network.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is neither an address nor a network, such as 10.0.0.8, 10.0.0.0/8 or fd00::/8")]
pub struct NotANetwork(String);

impl TrustedProxies {
    /// Parses addresses and networks (`10.0.0.8`, `10.0.0.0/8`).
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, NotANetwork> {
        let networks = texts.into_iter().map(str::parse);
        Ok(Self(networks.collect::<Result<_, _>>()?))
    }

    /// Whether there are no trusted proxies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an address is that of a trusted proxy.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }

    /// The client of a request that came over a connection from `peer`.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let lines = |name| headers.get_all(name).iter().rev();
        let by_list = lines(X_FORWARDED_FOR).flat_map(|line| {
            let entries = line.to_str().unwrap_or("not ASCII").rsplit(',');
            entries.map(address_of)
        });
        let by_rfc = lines(header::FORWARDED).flat_map(|line| {
            forwarded(line.to_str().unwrap_or("not ASCII"))
                .into_iter()
                .rev()
        });
        let has = |name| headers.contains_key(name);
        match (has(X_FORWARDED_FOR), has(header::FORWARDED)) {
            (true, false) => self.last_stranger(peer, by_list),
            (false, true) => self.last_stranger(peer, by_rfc),
            (false, false) => peer,
            (true, true) => {
                let one = self.last_stranger(peer, by_list);
                match one == self.last_stranger(peer, by_rfc) {
                    true => one,
                    false => peer,
                }
            }
        }
    }

    /// The first address from the connection on that is no trusted proxy; the last proxy where an
    /// entry is unknown.
    fn last_stranger(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut last = peer;
        for hop in hops.take(HOPS_MAX) {
            match hop {
                Some(address) if self.contains(address) => last = address,
                Some(address) => return address,
                None => return last,
            }
        }
        last
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        let shift = |width: u32| width - self.bits;
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(address)) => {
                let differing = ours.to_bits() ^ address.to_bits();
                differing.checked_shr(shift(u32::BITS)).unwrap_or(0) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(address)) => {
                let differing = ours.to_bits() ^ address.to_bits();
                differing.checked_shr(shift(u128::BITS)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let wrong = || NotANetwork(text.to_owned());
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = match address {
            IpAddr::V4(_) => u32::BITS,
            IpAddr::V6(_) => u128::BITS,
        };
        let bits = bits.map(str::parse).transpose().map_err(|_| wrong())?;
        let bits: u32 = bits.unwrap_or(width);
        if bits > width {
            return Err(wrong());
        }
        // `::ffff:10.0.0.0/104` means what `10.0.0.0/8` means.
        Ok(match address.to_canonical() {
            IpAddr::V4(v4) if address.is_ipv6() => Self {
                address: IpAddr::V4(v4),
                bits: bits.checked_sub(u128::BITS - u32::BITS).ok_or_else(wrong)?,
            },
            address => Self { address, bits },
        })
    }
}

/// Parses `192.0.2.7`, `192.0.2.7:4711`, `2001:db8::7`, `[2001:db8::7]`, `[2001:db8::7]:4711`.
fn address_of(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse();
    let address = address.or_else(|_| text.parse::<SocketAddr>().map(|it| it.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// The addresses of a line of `Forwarded`, one per proxy; one unknown address if it is malformed.
fn forwarded(line: &str) -> Vec<Option<IpAddr>> {
    elements(line).unwrap_or_else(|| vec![None])
}

/// Parses a line strictly by the grammar (RFC 7239, 4): a quote that a client has left open must
/// not swallow what a proxy has added.
fn elements(line: &str) -> Option<Vec<Option<IpAddr>>> {
    let mut found = Vec::new();
    let mut rest = line.trim();
    let mut of_element = None;
    loop {
        let (name, behind) = rest.split_once('=')?;
        let name = name.trim_start();
        let is_token = |text: &str| {
            let is_tchar =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            !text.is_empty() && text.bytes().all(is_tchar)
        };
        if !is_token(name) {
            return None;
        }
        let (value, behind) = match behind.strip_prefix('"') {
            Some(quoted) => {
                // Addresses have no escapes.
                let (value, behind) = quoted.split_once('"')?;
                (!value.contains('\\')).then_some((value, behind))?
            }
            None => {
                let end = behind.find([';', ',', ' ', '\t', '"']);
                let (value, behind) = behind.split_at(end.unwrap_or(behind.len()));
                // Some senders write IPv6 addresses without the quotes.
                (!value.is_empty()).then_some((value, behind))?
            }
        };
        if name.eq_ignore_ascii_case("for") {
            if of_element.is_some() {
                return None;
            }
            of_element = Some(address_of(value));
        }
        let behind = behind.trim_start();
        let Some(separator) = behind.chars().next() else {
            found.push(of_element.flatten());
            return Some(found);
        };
        match separator {
            ';' => {}
            ',' => found.push(of_element.take().flatten()),
            _ => return None,
        }
        rest = behind.get(1..)?;
    }
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub struct FarEnd {
    address: IpAddr,
    /// None where no proxy is trusted.
    proxies: Option<Arc<TrustedProxies>>,
}

impl FarEnd {
    /// The end of connections from an address, with these trusted proxies.
    pub fn new(address: IpAddr, proxies: Option<Arc<TrustedProxies>>) -> Self {
        Self { address, proxies }
    }

    /// The client of a request with this head.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Peer {
        Peer(match &self.proxies {
            Some(proxies) => proxies.client(self.address, headers),
            None => self.address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn client(peer: &str, lines: &[(&str, &str)]) -> String {
        let proxies = TrustedProxies::new(["10.0.0.0/8", "fd00::/8", "192.0.2.1"]).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let peer = peer.parse().unwrap();
        proxies.client(peer, &headers).to_string()
    }

    const LIST: &str = "X-Forwarded-For";
    const RFC: &str = "Forwarded";

    #[test]
    fn the_last_address_that_is_no_proxys_is_the_clients() {
        let of = |list| client("10.0.0.8", &[(LIST, list)]);
        assert_eq!(of("203.0.113.5"), "203.0.113.5");
        assert_eq!(of("198.51.100.7, 203.0.113.5"), "203.0.113.5");
        assert_eq!(of("1.2.3.4, 203.0.113.5, 10.0.0.9,fd00::1"), "203.0.113.5");
        assert_eq!(of("203.0.113.5:4711"), "203.0.113.5");
        assert_eq!(of("[2001:db8::7]:4711"), "2001:db8::7");
        assert_eq!(of("::ffff:203.0.113.5"), "203.0.113.5");
        // All are trusted: the first has asked.
        assert_eq!(of("10.0.0.7, 10.0.0.9"), "10.0.0.7");
        let two = [(LIST, "1.2.3.4"), (LIST, "203.0.113.5")];
        assert_eq!(client("10.0.0.8", &two), "203.0.113.5");
        assert_eq!(client("10.0.0.8", &[]), "10.0.0.8");
        assert_eq!(client("::ffff:10.0.0.8", &two), "203.0.113.5");
    }

    #[test]
    fn who_is_no_proxy_is_not_believed() {
        for name in [LIST, RFC] {
            let lines = [(name, "10.0.0.1"), (name, "for=10.0.0.1")];
            assert_eq!(client("203.0.113.5", &lines), "203.0.113.5");
            assert_eq!(client("192.0.2.2", &lines), "192.0.2.2");
        }
    }

    #[test]
    fn what_is_no_address_is_the_last_proxys() {
        for list in [
            "unknown",
            "",
            ",",
            "203.0.113.5, ",
            "203.0.113.5, x",
            "1.2.3",
        ] {
            assert_eq!(client("10.0.0.8", &[(LIST, list)]), "10.0.0.8", "{list}");
        }
        let behind = [(LIST, "_hidden, 10.0.0.9")];
        assert_eq!(client("10.0.0.8", &behind), "10.0.0.9");
    }

    #[test]
    fn forwarded_is_read_by_its_grammar() {
        let of = |line| client("10.0.0.8", &[(RFC, line)]);
        assert_eq!(of("for=203.0.113.5"), "203.0.113.5");
        assert_eq!(of("For=\"[2001:db8::7]:4711\";proto=https"), "2001:db8::7");
        assert_eq!(of("proto=http;by=10.0.0.8;for=203.0.113.5"), "203.0.113.5");
        assert_eq!(
            of("for=1.2.3.4, for=203.0.113.5 , for=10.0.0.9"),
            "203.0.113.5"
        );
        for broken in [
            "for=_hidden",
            "for=unknown",
            "proto=https",
            "for",
            "for=",
            "for=1.2.3.4;for=203.0.113.5",
            // The client has left it open; the proxy's addition closes it.
            "for=1.2.3.4, x=\", for=203.0.113.5",
            "for=1.2.3.4, x=\", for=\"[2001:db8::7]\"",
            "for=\"1.2.3.4\\\"\", for=203.0.113.5",
            "for=1.2.3.4 for=203.0.113.5",
        ] {
            assert_eq!(of(broken), "10.0.0.8", "{broken}");
        }
    }

    #[test]
    fn of_two_that_disagree_neither_is_believed() {
        let of = |list, rfc| client("10.0.0.8", &[(LIST, list), (RFC, rfc)]);
        assert_eq!(of("203.0.113.5", "for=203.0.113.5"), "203.0.113.5");
        assert_eq!(of("203.0.113.5", "for=1.2.3.4"), "10.0.0.8");
        assert_eq!(of("x, 203.0.113.5", "for=\""), "10.0.0.8");
    }

    #[test]
    fn networks_are_read_and_others_refused() {
        let holds = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
            network.contains(address.parse::<IpAddr>().unwrap().to_canonical())
        };
        assert!(holds("0.0.0.0/0", "203.0.113.5"));
        assert!(!holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("::/0", "2001:db8::1"));
        assert!(holds("10.1.2.3/9", "10.127.0.1") && !holds("10.1.2.3/9", "10.128.0.1"));
        assert!(holds("::ffff:10.0.0.0/104", "10.9.9.9"));
        assert!(holds("fd00::1", "fd00::1") && !holds("fd00::1", "fd00::2"));
        for wrong in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "x/8",
            "10.0.0.0/",
            "::ffff:1.2.3.4/8",
        ] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
