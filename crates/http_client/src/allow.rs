//! The allow-list of hosts and URLs.
//!
//! | entry | permits |
//! | --- | --- |
//! | `example.org` | that host, any port, http and https |
//! | `example.org:8080` | that host on that port |
//! | `https://example.org/data/` | URLs that begin so: scheme, host, port, whole path segments |
//! | `10.0.0.7`, `[fd00::7]:8080` | that address, and names that resolve to it (without a port only) |
//! | `10.0.0.0/8` | the addresses of that network, and names that resolve to one of them |
//! | `*` | every host with a public address |
//!
//! A name leads to public addresses only, unless the address it resolves to is listed
//! itself: whoever owns the name's zone could else point it into our network. `localhost`
//! is the exception; it means this machine by definition (RFC 6761) when listed.

use std::net::IpAddr;

use url::{Host, Url};

use crate::address::{is_public, is_within};

/// What may be asked; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct AllowList {
    entries: Vec<Entry>,
}

/// An entry that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{entry}' is no host, host:port, address, network or URL prefix to allow: {reason}; write for example example.org, example.org:8080, 10.0.0.0/8 or https://example.org/data/"
)]
pub struct EntryError {
    /// The entry.
    pub entry: String,
    /// What is wrong with it.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    AnyPublic,
    Host { host: Host, port: Option<u16> },
    Network { address: IpAddr, bits: u8 },
    Prefix(Url),
}

impl AllowList {
    /// Reads the entries; the forms: host, host:port, address, network, URL prefix, `*` (see the
    /// module).
    pub fn parse<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, EntryError> {
        let entries = entries.into_iter().map(|entry| {
            let entry = entry.as_ref().trim();
            Entry::parse(entry).map_err(|reason| EntryError {
                entry: entry.to_owned(),
                reason,
            })
        });
        Ok(Self {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// Whether nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a URL may be asked, as far as the URL tells; else why not.
    pub(crate) fn check_url(&self, url: &Url) -> Result<(), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("only http and https are, not {}", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a user name or password in a URL is not used; leave it out".to_owned());
        }
        let host = host_of(url).ok_or("it has no host")?;
        let port = url.port_or_known_default();
        let is_listed = self.lists(&host, port)
            || self.entries.iter().any(|entry| match entry {
                Entry::Prefix(prefix) => is_prefix(prefix, url),
                Entry::AnyPublic | Entry::Host { .. } | Entry::Network { .. } => false,
            });
        match is_listed {
            true => Ok(()),
            false => Err(self.refusal(&host)),
        }
    }

    /// Whether a host may be connected to on a port for something that has no URL; else why not.
    /// Prefixes of URLs permit nothing here. Where the host is a name, each address that it leads
    /// to is to pass [`AllowList::check_address`].
    pub fn check_host(&self, host: &str, port: u16) -> Result<(), String> {
        let written = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        let host = Host::parse(&written).map_err(|error| format!("{host}: {error}"))?;
        let host = normal(host);
        match self.lists(&host, Some(port)) {
            true => Ok(()),
            false => Err(self.refusal(&host)),
        }
    }

    /// Whether an entry that is no prefix permits a host on a port.
    fn lists(&self, host: &Host, port: Option<u16>) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::AnyPublic => match address_of(host) {
                Some(address) => is_public(address),
                None => !is_localhost(host),
            },
            Entry::Host {
                host: listed,
                port: None,
            } => listed == host,
            Entry::Host {
                host: listed,
                port: Some(listed_port),
            } => listed == host && port == Some(*listed_port),
            Entry::Network { address, bits } => {
                address_of(host).is_some_and(|host| is_within(host, *address, *bits))
            }
            Entry::Prefix(_) => false,
        })
    }

    fn refusal(&self, host: &Host) -> String {
        if self.is_empty() {
            "no host is allowed; name it when the server or the query is started".to_owned()
        } else {
            format!("{host} is not on the list of allowed hosts, or not with this port or path")
        }
    }

    /// Whether a name that passed `check_url` or [`AllowList::check_host`] may lead to this
    /// address; else why not.
    pub fn check_address(&self, name: &str, address: IpAddr) -> Result<(), String> {
        if is_public(address) {
            return Ok(());
        }
        let name = Host::Domain(without_root(name).to_ascii_lowercase());
        let is_listed = self.entries.iter().any(|entry| match entry {
            Entry::Host { host: listed, port } => {
                (address_of(listed) == Some(address) && port.is_none())
                    || (address.is_loopback() && is_localhost(&name) && *listed == name)
            }
            Entry::Prefix(prefix) => {
                let listed = host_of(prefix);
                address.is_loopback() && is_localhost(&name) && listed.as_ref() == Some(&name)
            }
            Entry::Network {
                address: network,
                bits,
            } => is_within(address, *network, *bits),
            Entry::AnyPublic => false,
        });
        if is_listed {
            return Ok(());
        }
        Err(format!(
            "{name} leads to {address}, which is no public address; to allow that, list the address or its network too"
        ))
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::AnyPublic);
        }
        if text.contains("://") {
            return prefix(text).map(Self::Prefix);
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address
                .parse()
                .map_err(|_| "this is no network".to_owned())?;
            let width = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|bits| *bits <= width);
            let bits = bits.ok_or_else(|| format!("a network has 0 to {width} bits"))?;
            return Ok(Self::Network { address, bits });
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Host {
                host: host_of_address(address),
                port: None,
            });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().map_err(|_| format!("'{port}' is no port"))?;
                (host, Some(port))
            }
            _ => (text, None),
        };
        if host.contains('@') {
            return Err("a user name is not used".to_owned());
        }
        let host = Host::parse(host).map_err(|error| error.to_string())?;
        Ok(Self::Host {
            host: normal(host),
            port,
        })
    }
}

fn prefix(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("only http and https can be allowed".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user name or password is not used".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a prefix ends with the path".to_owned());
    }
    Ok(url)
}

/// Whole path segments, so that `/data` does not permit `/database`.
fn is_prefix(prefix: &Url, url: &Url) -> bool {
    let rest = url.path().strip_prefix(prefix.path());
    let is_path = rest.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('/') || prefix.path().ends_with('/')
    });
    is_path
        && prefix.scheme() == url.scheme()
        && host_of(prefix) == host_of(url)
        && prefix.port_or_known_default() == url.port_or_known_default()
}

fn host_of(url: &Url) -> Option<Host> {
    url.host().map(|host| normal(host.to_owned()))
}

/// Without the final dot of a full name. Letters are small already.
fn normal(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(without_root(&name).to_owned()),
        address => address,
    }
}

fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn host_of_address(address: IpAddr) -> Host {
    match address {
        IpAddr::V4(address) => Host::Ipv4(address),
        IpAddr::V6(address) => Host::Ipv6(address),
    }
}

fn address_of(host: &Host) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address)),
    }
}

fn is_localhost(host: &Host) -> bool {
    matches!(host, Host::Domain(name) if name == "localhost" || name.ends_with(".localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(entries: &[&str], url: &str) -> bool {
        let list = AllowList::parse(entries).unwrap();
        list.check_url(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        assert!(!allows(&[], "http://example.org/"));
        assert!(AllowList::default().is_empty());
    }

    #[test]
    fn a_host_is_allowed_on_every_port_and_with_a_port_on_that_one() {
        assert!(allows(&["example.org"], "http://example.org:81/x"));
        assert!(allows(&["Example.ORG"], "https://EXAMPLE.org./x"));
        assert!(!allows(&["example.org"], "http://sub.example.org/"));
        assert!(!allows(&["example.org"], "http://example.org.evil.test/"));
        assert!(allows(&["example.org:80"], "http://example.org/"));
        assert!(!allows(&["example.org:80"], "https://example.org/"));
        assert!(allows(&["[fd00::7]:81"], "http://[fd00::7]:81/"));
        assert!(!allows(&["[fd00::7]:81"], "http://[fd00::7]:82/"));
    }

    #[test]
    fn a_prefix_holds_for_whole_segments_of_normal_paths() {
        let list = ["https://example.org/data"];
        assert!(allows(&list, "https://example.org/data"));
        assert!(allows(&list, "https://example.org:443/data/x?q#f"));
        for url in [
            "https://example.org/database",
            "https://example.org/data/../secret",
            "https://example.org/data/%2e%2e/secret",
            "http://example.org/data",
            "https://example.org:444/data",
        ] {
            assert!(!allows(&list, url), "{url}");
        }
        assert!(allows(&["https://example.org"], "https://example.org/any"));
    }

    #[test]
    fn addresses_in_any_spelling_must_be_listed() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/",
            "http://localhost/",
            "http://a.localhost/",
        ] {
            assert!(!allows(&["*"], url), "{url}");
            assert!(!allows(&["example.org"], url), "{url}");
        }
        assert!(allows(&["127.0.0.1"], "http://2130706433:7878/"));
        assert!(!allows(&["127.0.0.1"], "http://[::ffff:127.0.0.1]/"));
        assert!(allows(&["10.0.0.0/8"], "http://10.9.8.7/"));
        assert!(!allows(&["10.0.0.0/8"], "http://11.9.8.7/"));
        assert!(allows(&["*"], "http://example.org/"));
        assert!(allows(&["*"], "http://1.1.1.1/"));
    }

    #[test]
    fn other_schemes_and_credentials_are_refused() {
        assert!(!allows(&["*"], "ftp://example.org/"));
        assert!(!allows(&["*"], "file:///etc/passwd"));
        assert!(!allows(&["example.org"], "http://user@example.org/"));
        assert!(!allows(&["example.org"], "http://:word@example.org/"));
    }

    #[test]
    fn a_name_leads_to_public_addresses_or_listed_ones() {
        let leads = |entries: &[&str], name: &str, address: &str| {
            let list = AllowList::parse(entries).unwrap();
            list.check_address(name, address.parse().unwrap()).is_ok()
        };
        assert!(leads(&["example.org"], "example.org", "1.1.1.1"));
        assert!(!leads(&["example.org"], "example.org", "127.0.0.1"));
        assert!(!leads(&["*"], "example.org", "10.0.0.1"));
        assert!(leads(
            &["example.org", "10.0.0.1"],
            "example.org",
            "10.0.0.1"
        ));
        assert!(!leads(
            &["example.org", "10.0.0.1:80"],
            "example.org",
            "10.0.0.1"
        ));
        assert!(leads(
            &["example.org", "10.0.0.0/8"],
            "example.org",
            "10.0.0.1"
        ));
        assert!(leads(&["localhost:7878"], "localhost", "127.0.0.1"));
        assert!(leads(&["http://localhost/a"], "localhost", "::1"));
        assert!(!leads(&["localhost"], "localhost", "10.0.0.1"));
        assert!(!leads(&["localhost"], "example.org", "127.0.0.1"));
    }

    #[test]
    fn a_host_without_a_url_is_allowed_by_hosts_and_networks_and_not_by_prefixes() {
        let allows = |entries: &[&str], host: &str, port: u16| {
            let list = AllowList::parse(entries).unwrap();
            list.check_host(host, port).is_ok()
        };
        assert!(allows(&["db.example:5432"], "DB.example.", 5432));
        assert!(!allows(&["db.example:5432"], "db.example", 5433));
        assert!(!allows(&["https://db.example/"], "db.example", 443));
        assert!(allows(&["10.0.0.0/8"], "10.1.2.3", 5432));
        assert!(allows(&["[fd00::7]:81"], "fd00::7", 81));
        assert!(!allows(&["*"], "127.0.0.1", 5432));
        assert!(!allows(&["*"], "localhost", 5432));
        assert!(allows(&["localhost"], "localhost", 5432));
        assert!(!allows(&[], "db.example", 5432));
    }

    #[test]
    fn entries_that_cannot_be_read_are_errors() {
        for entry in [
            "",
            "a b",
            "example.org:x",
            "10.0.0.0/33",
            "x/8",
            "ftp://a/",
            "u@h",
            "http://a/?q",
        ] {
            assert!(AllowList::parse([entry]).is_err(), "{entry}");
        }
    }
}
