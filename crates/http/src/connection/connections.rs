//! Limits the connections that one address keeps open, so that none can take all there are.
//!
//! A connection beyond the limit is closed at once, before anything of it is read. An address here
//! is what one client has of addresses (a /64 of IPv6). Programs of this machine and trusted
//! proxies, behind which other clients stand, are not counted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::edge::proxies::TrustedProxies;
use orrery_service::metering::network;

/// At most one log line about refused connections in this time.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The connection limit of addresses, and which addresses are counted.
#[derive(Debug, Clone)]
pub struct AddressRule {
    /// Most connections that one address may have open.
    pub connections_max: usize,
    /// Whether addresses of this machine are counted like others.
    pub counts_loopback: bool,
    /// The trusted proxies, which are not counted.
    pub proxies: Option<Arc<TrustedProxies>>,
}

/// Counts the open connections by address.
#[derive(Debug)]
pub struct OpenConnections {
    rule: AddressRule,
    open: Mutex<HashMap<IpAddr, usize>>,
    refused: Mutex<Refused>,
}

#[derive(Debug, Default)]
struct Refused {
    untold: u64,
    told: Option<Instant>,
}

/// A connection that counts until it is dropped.
#[derive(Debug)]
pub struct OpenAtAddress {
    /// None where the connection does not count.
    counted: Option<(Arc<OpenConnections>, IpAddr)>,
}

impl OpenConnections {
    /// Makes a counter without open connections.
    pub fn new(rule: AddressRule) -> Arc<Self> {
        Arc::new(Self {
            rule,
            open: Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// Counts a connection, unless its address has reached the limit.
    pub fn open(self: &Arc<Self>, address: IpAddr) -> Option<OpenAtAddress> {
        let address = address.to_canonical();
        let rule = &self.rule;
        let is_proxy = |proxies: &Arc<TrustedProxies>| proxies.contains(address);
        if (address.is_loopback() && !rule.counts_loopback)
            || rule.proxies.as_ref().is_some_and(is_proxy)
        {
            return Some(OpenAtAddress { counted: None });
        }
        let network = network(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(&network).copied().unwrap_or(0) >= rule.connections_max {
            drop(open);
            self.tell(address);
            return None;
        }
        *open.entry(network).or_default() += 1;
        drop(open);
        Some(OpenAtAddress {
            counted: Some((Arc::clone(self), network)),
        })
    }

    fn tell(&self, address: IpAddr) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.untold += 1;
        let is_time = refused.told.is_none_or(|told| told.elapsed() >= TELL_EVERY);
        if is_time {
            tracing::warn!(
                "closed {} connections of addresses that have {} open already (--connections-per-address), the last of {address}",
                refused.untold,
                self.rule.connections_max
            );
            *refused = Refused {
                untold: 0,
                told: Some(Instant::now()),
            };
        }
    }
}

impl Drop for OpenAtAddress {
    fn drop(&mut self) {
        let Some((connections, network)) = &self.counted else {
            return;
        };
        let open = connections.open.lock();
        let mut open = open.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(network) {
            *count -= 1;
            if *count == 0 {
                open.remove(network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_address_has_so_many_and_takes_none_from_others() {
        let proxies = TrustedProxies::new(["10.0.0.8"]).unwrap();
        let connections = OpenConnections::new(AddressRule {
            connections_max: 2,
            counts_loopback: false,
            proxies: Some(Arc::new(proxies)),
        });
        let open = |text| connections.open(address(text));
        let held = [
            open("203.0.113.5").unwrap(),
            open("::ffff:203.0.113.5").unwrap(),
        ];
        assert!(open("203.0.113.5").is_none());
        assert!(open("203.0.113.6").is_some());
        let v6 = [open("2001:db8::1").unwrap(), open("2001:db8::2").unwrap()];
        assert!(open("2001:db8::3").is_none());
        assert!(open("2001:db8:0:1::3").is_some());
        let free: Vec<_> = (0..9)
            .flat_map(|_| {
                [
                    open("127.0.0.1").unwrap(),
                    open("::1").unwrap(),
                    open("10.0.0.8").unwrap(),
                ]
            })
            .collect();
        drop(held);
        assert!(open("203.0.113.5").is_some());
        drop((v6, free));
        assert!(connections.open.lock().unwrap().is_empty());
    }
}
