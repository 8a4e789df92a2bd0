//! The check for public internet addresses.
//!
//! Everything else leads to this machine, to its network, or nowhere, and a request of a stranger
//! must not get there. The IANA special-purpose registries (RFC 6890) name the ranges. Of IPv6 only
//! global unicast (2000::/3) passes, without the ranges in it that carry an IPv4 address
//! (6to4, Teredo): IPv4-mapped, translated, local and multicast addresses all lie outside of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether anybody on the internet may reach this address.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special: [([u8; 4], u8); 15] = [
        ([0, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        // Shared by customers of a provider (RFC 6598).
        ([100, 64, 0, 0], 10),
        ([127, 0, 0, 0], 8),
        // Link-local; the metadata services of clouds are there.
        ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12),
        ([192, 0, 0, 0], 24),
        ([192, 0, 2, 0], 24),
        ([192, 88, 99, 0], 24),
        ([192, 168, 0, 0], 16),
        ([198, 18, 0, 0], 15),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        // Multicast, and reserved with the broadcast address.
        ([224, 0, 0, 0], 4),
        ([240, 0, 0, 0], 4),
    ];
    !special
        .iter()
        .any(|&(network, bits)| is_within(address.into(), Ipv4Addr::from(network).into(), bits))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within =
        |network: [u16; 8], bits| is_within(IpAddr::V6(address), IpAddr::V6(network.into()), bits);
    let is_global_unicast = within([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
    // Protocol assignments with Teredo, documentation, 6to4.
    let is_special = within([0x2001, 0, 0, 0, 0, 0, 0, 0], 23)
        || within([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32)
        || within([0x2002, 0, 0, 0, 0, 0, 0, 0], 16)
        || within([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20);
    is_global_unicast && !is_special
}

/// Whether the first `bits` of both addresses are the same; never across IPv4 and IPv6.
pub(crate) fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let same = |a: u128, b: u128, width: u8| {
        let shift = u32::from(width.saturating_sub(bits));
        bits == 0 || (a >> shift) == (b >> shift)
    };
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for text in [
            "1.1.1.1",
            "100.63.255.255",
            "172.32.0.1",
            "2a00:1450:4001::1",
            "2606:4700::1",
        ] {
            assert!(public(text), "{text}");
        }
    }

    #[test]
    fn addresses_of_this_machine_and_its_network_are_not() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "2002:7f00:1::",
            "2001:0:1::1",
            "2001:db8::1",
        ] {
            assert!(!public(text), "{text}");
        }
    }

    #[test]
    fn networks_compare_their_first_bits() {
        let within =
            |a: &str, n: &str, bits| is_within(a.parse().unwrap(), n.parse().unwrap(), bits);
        assert!(within("10.0.0.255", "10.0.0.0", 24));
        assert!(!within("10.0.1.0", "10.0.0.0", 24));
        assert!(within("10.0.0.1", "10.0.0.1", 32));
        assert!(within("200.1.1.1", "10.0.0.0", 0));
        assert!(!within("::ffff:10.0.0.1", "10.0.0.0", 8));
        assert!(within("fd00::1", "fd00::", 8));
    }
}
