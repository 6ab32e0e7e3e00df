//! Addresses: pseudonyms that keep every prefix relation. Two addresses that share their first n bits, and no more, have
//! pseudonyms that share their first n bits, and no more; so subnets stay subnets. The well-known ranges (private,
//! loopback, link-local, docker's bridge …) are mapped into themselves.

use ahash::AHashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Prefixes that are mapped into themselves: (address, length).
const V4_CLASSES: [(Ipv4Addr, u8); 8] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Docker's default bridge is a cause of its own.
    (Ipv4Addr::new(172, 17, 0, 0), 16),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
];

const V6_CLASSES: [(Ipv6Addr, u8); 5] = [
    (Ipv6Addr::UNSPECIFIED, 96),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 64),
    (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 8),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 8),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
];

/// A map of bit strings that keeps prefixes. The first address that reaches a fork gets the bit of the pattern, so that
/// the result depends on nothing but the order of sight and tells nothing of the address.
#[derive(Debug, Clone)]
struct Trie {
    width: u8,
    forks: AHashMap<(u8, u128), bool>,
}

impl Trie {
    fn new(width: u8, classes: impl Iterator<Item = (u128, u8)>) -> Self {
        let mut trie = Self { width, forks: AHashMap::new() };
        for (address, len) in classes {
            trie.learn(address, address, len);
        }
        trie
    }

    fn bit(&self, value: u128, depth: u8) -> u128 {
        value >> (self.width - 1 - depth) & 1
    }

    /// The bits above `depth`.
    fn above(&self, value: u128, depth: u8) -> (u8, u128) {
        (depth, value.checked_shr(u32::from(self.width - depth)).unwrap_or(0))
    }

    /// Takes over a known pair, as far as its first `len` bits.
    fn learn(&mut self, from: u128, to: u128, len: u8) {
        for depth in 0..len {
            let flip = self.bit(from, depth) != self.bit(to, depth);
            let fork = self.above(from, depth);
            self.forks.entry(fork).or_insert(flip);
        }
    }

    fn map(&mut self, value: u128, pattern: u128) -> u128 {
        let mut mapped = 0;
        for depth in 0..self.width {
            let bit = self.bit(value, depth);
            let flip = bit != self.bit(pattern, depth);
            let fork = self.above(value, depth);
            let flip = *self.forks.entry(fork).or_insert(flip);
            mapped = mapped << 1 | bit ^ u128::from(flip);
        }
        mapped
    }
}

/// Pseudonyms of addresses.
#[derive(Debug, Clone)]
pub struct Addresses {
    v4: Trie,
    v6: Trie,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { v4: Trie::new(32, V4_CLASSES.iter().map(|(a, len)| (u128::from(a.to_bits()), *len))), v6: Trie::new(128, V6_CLASSES.iter().map(|(a, len)| (a.to_bits(), *len))) }
    }
}

/// Says nothing of anybody: loopback, netmasks, multicast, no address.
pub fn plain_v4(ip: Ipv4Addr) -> bool {
    let bits = ip.to_bits();
    let mask = bits.leading_ones() + bits.trailing_zeros() == 32 && bits.leading_ones() >= 8;
    ip.is_loopback() || ip.octets()[0] == 0 || ip.octets()[0] >= 224 || mask || bits == 0 || ip == Ipv4Addr::new(169, 254, 169, 254)
}

fn plain_v6(ip: Ipv6Addr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || ip == Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)
}

impl Addresses {
    /// The pseudonym of an IPv4 address.
    pub fn v4(&mut self, ip: Ipv4Addr) -> Ipv4Addr {
        if plain_v4(ip) {
            return ip;
        }
        let pattern = match ip.octets() {
            [10, ..] => [10, 20, 30, 33],
            [172, 17, ..] => [172, 17, 0, 2],
            [172, 16..=31, ..] => [172, 20, 30, 33],
            [192, 168, ..] => [192, 168, 30, 33],
            [100, 64..=127, ..] => [100, 84, 30, 33],
            [169, 254, ..] => [169, 254, 30, 33],
            _ => [198, 18, 30, 33],
        };
        Ipv4Addr::from_bits(self.v4.map(u128::from(ip.to_bits()), u128::from(u32::from_be_bytes(pattern))) as u32)
    }

    /// The pseudonym of an IPv6 address or GID. One that carries an IPv4 address carries that one's pseudonym.
    pub fn v6(&mut self, ip: Ipv6Addr) -> Ipv6Addr {
        if plain_v6(ip) {
            return ip;
        }
        if let Some(v4) = ip.to_ipv4_mapped() {
            return self.v4(v4).to_ipv6_mapped();
        }
        let pattern = match ip.segments() {
            [0xfe80..=0xfebf, ..] => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x21),
            [0xfc00..=0xfcff, ..] => Ipv6Addr::new(0xfc00, 0, 0, 1, 0, 0, 0, 0x21),
            [0xfd00..=0xfdff, ..] => Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0x21),
            _ => Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x21),
        };
        Ipv6Addr::from_bits(self.v6.map(ip.to_bits(), pattern.to_bits()))
    }

    /// Takes over a pair of an earlier run.
    pub fn keep_v4(&mut self, from: Ipv4Addr, to: Ipv4Addr) {
        self.v4.learn(u128::from(from.to_bits()), u128::from(to.to_bits()), 32);
    }

    /// Takes over a pair of an earlier run.
    pub fn keep_v6(&mut self, from: Ipv6Addr, to: Ipv6Addr) {
        self.v6.learn(from.to_bits(), to.to_bits(), 128);
    }
}

/// Writes `to` in the manner of `from`: in full with four digits a group, or as usual; with an IPv4 tail if it had one.
pub fn like(from: &str, to: Ipv6Addr) -> String {
    let full = from.split(':').count() == 8 && from.split(':').all(|g| g.len() == 4);
    let upper = from.bytes().any(|b| b.is_ascii_uppercase());
    let segments = to.segments();
    let text = if full {
        segments.map(|s| format!("{s:04x}")).join(":")
    } else if to.to_ipv4_mapped().is_some() && !from.contains('.') {
        format!("::ffff:{:x}:{:x}", segments[6], segments[7])
    } else {
        to.to_string()
    };
    if upper { text.to_ascii_uppercase() } else { text }
}

/// A GID as two integers of a little-endian host, `0/2010A8C0FFFF0000`.
pub fn decode_halves(text: &str) -> Option<Ipv6Addr> {
    let (high, low) = text.split_once('/')?;
    let half = |t: &str| u64::from_str_radix(t, 16).ok().map(u64::to_le_bytes);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&half(high)?);
    bytes[8..].copy_from_slice(&half(low)?);
    Some(Ipv6Addr::from(bytes))
}

/// The other way.
pub fn encode_halves(ip: Ipv6Addr) -> String {
    let bytes = ip.octets();
    let half = |part: &[u8]| part.iter().rev().fold(0_u64, |sum, b| sum << 8 | u64::from(*b));
    format!("{:X}/{:X}", half(&bytes[..8]), half(&bytes[8..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn common(a: u128, b: u128, width: u32) -> u32 {
        (a ^ b).leading_zeros().saturating_sub(128 - width)
    }

    proptest! {
        #[test]
        fn prefixes_are_kept(list in proptest::collection::vec(any::<u32>(), 2..40), near in any::<u32>()) {
            let mut map = Addresses::default();
            let list: Vec<Ipv4Addr> = list.iter().flat_map(|n| [*n, near ^ (n >> 16), 0x0a00_0000 | n >> 8, 0xac10_0000 | n >> 12]).map(Ipv4Addr::from_bits).collect();
            let mapped: Vec<Ipv4Addr> = list.iter().map(|ip| map.v4(*ip)).collect();
            for (a, x) in list.iter().zip(&mapped) {
                prop_assert_eq!(a.is_private(), x.is_private());
                prop_assert_eq!(a.is_loopback(), x.is_loopback());
                prop_assert_eq!(a.is_link_local(), x.is_link_local());
                prop_assert_eq!(a.octets()[..2] == [172, 17], x.octets()[..2] == [172, 17]);
                for (b, y) in list.iter().zip(&mapped) {
                    if !plain_v4(*a) && !plain_v4(*b) {
                        prop_assert_eq!(common(a.to_bits().into(), b.to_bits().into(), 32), common(x.to_bits().into(), y.to_bits().into(), 32));
                    }
                }
            }
        }

        #[test]
        fn prefixes_of_ipv6_are_kept(list in proptest::collection::vec(any::<(u16, u64)>(), 2..20)) {
            let mut map = Addresses::default();
            let list: Vec<Ipv6Addr> = list.iter().flat_map(|(a, b)| [0xfe80_u128 << 112 | u128::from(*b), 0x2a02_u128 << 112 | u128::from(*a) << 64 | u128::from(*b)]).map(Ipv6Addr::from_bits).collect();
            let mapped: Vec<Ipv6Addr> = list.iter().map(|ip| map.v6(*ip)).collect();
            for (a, x) in list.iter().zip(&mapped) {
                prop_assert_eq!(a.is_unicast_link_local(), x.is_unicast_link_local());
                for (b, y) in list.iter().zip(&mapped) {
                    prop_assert_eq!(common(a.to_bits(), b.to_bits(), 128), common(x.to_bits(), y.to_bits(), 128));
                }
            }
        }
    }

    #[test]
    fn forms_are_kept() {
        let mut map = Addresses::default();
        let v4 = map.v4(Ipv4Addr::new(10, 7, 7, 7));
        assert_eq!(v4, Ipv4Addr::new(10, 20, 30, 33));
        let gid = map.v6("::ffff:10.7.7.7".parse().unwrap());
        assert_eq!(like("::ffff:10.7.7.7", gid), "::ffff:10.20.30.33");
        assert_eq!(like("0000:0000:0000:0000:0000:ffff:0a07:0707", gid), "0000:0000:0000:0000:0000:ffff:0a14:1e21");
        assert_eq!(like("::ffff:a07:707", gid), "::ffff:a14:1e21");
        let halves = "0/707070AFFFF0000";
        assert_eq!(decode_halves(halves), Some("::ffff:10.7.7.7".parse().unwrap()));
        assert_eq!(encode_halves(decode_halves(halves).unwrap()), halves);
        assert_eq!(encode_halves(gid), "0/211E140AFFFF0000");
        assert_eq!(map.v6("fe80::b859:9f03:d4:1".parse().unwrap()).to_string(), "fe80::21");
    }

    #[test]
    fn a_second_time_changes_nothing() {
        let list = ["10.1.2.3", "10.1.2.4", "10.9.2.3", "192.168.3.4", "8.8.8.8", "172.17.0.9", "172.18.0.9", "203.0.113.7"];
        let once = |list: &[String]| -> Vec<String> {
            let mut map = Addresses::default();
            list.iter().map(|ip| map.v4(ip.parse().unwrap()).to_string()).collect()
        };
        let first = once(&list.map(str::to_owned));
        assert_eq!(once(&first), first);
    }
}
