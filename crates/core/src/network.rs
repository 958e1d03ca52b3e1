//! Which addresses a person's own definition may lead to (architecture.md §9, private networks).
//!
//! Owns the judgement of one address; resolving a name, and connecting to exactly what was judged, is done elsewhere.
//! Only addresses of the public internet pass: anything else may be a service that trusts whoever reaches it, such as
//! the one that hands out a cloud machine's credentials. An address that holds an IPv4 address is judged by that one,
//! since it is where packets end up. What an operator lists is let through first. Never fails; refuses when in doubt.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A block of addresses, such as `10.0.0.0/8`. A single address is a block of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    first: IpAddr,
    length: u8,
}

/// The text is no block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no block of addresses; write an address, or an address and a prefix length such as 10.0.0.0/8")]
pub struct NotACidr;

impl Cidr {
    const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length }
    }

    const fn v6(first: [u16; 3], length: u8) -> Self {
        let [a, b, c] = first;
        Self { first: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), length }
    }

    /// Whether `address` lies in it. Blocks of one family hold no address of the other.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                first.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                first.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = NotACidr;

    fn from_str(text: &str) -> Result<Self, NotACidr> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| NotACidr)?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().map_err(|_| NotACidr)?,
            Some(_) => return Err(NotACidr),
        };
        if length <= longest { Ok(Self { first, length }) } else { Err(NotACidr) }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

/// Blocks of IPv4 that are not of the public internet (RFC 6890 and its registry), and one that looks as if it were.
const NOT_PUBLIC_V4: [Cidr; 17] = [
    Cidr::v4(0, 0, 0, 0, 8),          // this host, unspecified
    Cidr::v4(10, 0, 0, 0, 8),         // private
    Cidr::v4(100, 64, 0, 0, 10),      // carrier-grade NAT
    Cidr::v4(127, 0, 0, 0, 8),        // loopback
    Cidr::v4(168, 63, 129, 16, 32),   // the metadata service of Azure
    Cidr::v4(169, 254, 0, 0, 16),     // link-local, where most clouds keep their metadata
    Cidr::v4(172, 16, 0, 0, 12),      // private
    Cidr::v4(192, 0, 0, 0, 24),       // protocol assignments
    Cidr::v4(192, 0, 2, 0, 24),       // documentation
    Cidr::v4(192, 88, 99, 0, 24),     // relays of 6to4
    Cidr::v4(192, 168, 0, 0, 16),     // private
    Cidr::v4(198, 18, 0, 0, 15),      // benchmarks
    Cidr::v4(198, 51, 100, 0, 24),    // documentation
    Cidr::v4(203, 0, 113, 0, 24),     // documentation
    Cidr::v4(224, 0, 0, 0, 4),        // multicast
    Cidr::v4(240, 0, 0, 0, 4),        // reserved
    Cidr::v4(255, 255, 255, 255, 32), // broadcast
];

/// The only block of IPv6 that global unicast addresses are given out of.
const GLOBAL_UNICAST: Cidr = Cidr::v6([0x2000, 0, 0], 3);

/// Blocks inside it that are not of the public internet.
const NOT_PUBLIC_V6: [Cidr; 3] = [
    Cidr::v6([0x2001, 0, 0], 23),     // protocol assignments, Teredo among them
    Cidr::v6([0x2001, 0xdb8, 0], 32), // documentation
    Cidr::v6([0x3fff, 0, 0], 20),     // documentation
];

/// Which addresses outside the public internet are let through all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedNetworks(pub Vec<Cidr>);

impl AllowedNetworks {
    /// Whether a person's own definition may lead to `address`.
    pub fn admits(&self, address: IpAddr) -> bool {
        let listed = |address: IpAddr| self.0.iter().any(|block| block.contains(address));
        match embedded(address) {
            Some(inner) => listed(address) || listed(inner.into()) || is_public_v4(inner),
            None => listed(address) || is_public(address),
        }
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(_) => GLOBAL_UNICAST.contains(address) && !NOT_PUBLIC_V6.iter().any(|block| block.contains(address)),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|block| block.contains(address.into()))
}

/// The IPv4 address that an IPv6 address stands for: mapped (RFC 4291), of a NAT64 (RFC 6052) or of 6to4 (RFC 3056).
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(of(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(allowed: &[&str], address: &str) -> bool {
        let allowed = AllowedNetworks(allowed.iter().map(|block| block.parse().expect(block)).collect());
        allowed.admits(address.parse().expect(address))
    }

    #[test]
    fn addresses_of_the_public_internet_pass() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.0",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001:81b::200e",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(admits(&[], public), "{public}");
        }
    }

    #[test]
    fn every_other_address_is_refused() {
        // architecture.md §9, private networks.
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.0.1",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!admits(&[], refused), "{refused}");
        }
        for refused in [
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!admits(&[], refused), "{refused}");
        }
    }

    #[test]
    fn what_is_listed_passes_however_it_is_written_and_nothing_beside_it() {
        assert!(admits(&["127.0.0.1"], "127.0.0.1") && admits(&["127.0.0.1"], "::ffff:127.0.0.1"));
        assert!(!admits(&["127.0.0.1"], "127.0.0.2") && !admits(&["127.0.0.1"], "::1"));
        assert!(admits(&["10.2.0.0/16"], "10.2.255.255") && !admits(&["10.2.0.0/16"], "10.3.0.0"));
        assert!(admits(&["0.0.0.0/0"], "192.168.0.1") && !admits(&["0.0.0.0/0"], "fd00::1"));
        assert!(admits(&["fd00::/8"], "fdff::1") && !admits(&["fd00::/8"], "fe80::1"));
        assert!(admits(&["::/0"], "::1") && !admits(&["::/0"], "10.0.0.1"));
    }

    #[test]
    fn a_block_is_an_address_and_a_length_that_fits_it() {
        for (text, shown) in [("10.0.0.0/8", "10.0.0.0/8"), ("::1", "::1/128"), ("1.2.3.4", "1.2.3.4/32")] {
            assert_eq!(text.parse::<Cidr>().map(|block| block.to_string()), Ok(shown.to_owned()));
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "::/129", "10.0.0/8", "localhost", "10.0.0.0/8/8"]
        {
            assert_eq!(wrong.parse::<Cidr>(), Err(NotACidr), "{wrong}");
        }
    }
}
