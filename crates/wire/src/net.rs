//! Parts of IP addresses, by which limits tell customers apart: who has an IPv6 network has all of its addresses.

use std::net::IpAddr;

/// Returns the part of an address that one customer has: all of an IPv4 address, 64 bits of an IPv6 address.
///
/// ```
/// use muse_wire::net::customer;
/// let ip = |text: &str| text.parse().expect("an address");
/// assert_eq!(customer(ip("2001:db8::1")), customer(ip("2001:db8::2")));
/// assert_eq!(customer(ip("192.0.2.1")), customer(ip("::ffff:192.0.2.1")));
/// assert_ne!(customer(ip("192.0.2.1")), customer(ip("192.0.2.2")));
/// ```
pub fn customer(ip: IpAddr) -> u64 {
    match ip.to_canonical() {
        // Apart from every IPv6 network that is given to customers: those begin with other bits than zeros.
        IpAddr::V4(ip) => u64::from(ip.to_bits()) | 0xFFFF << 32,
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

/// Returns the part of an address that neighbours share: 24 bits of an IPv4 address, 48 of an IPv6 address.
///
/// ```
/// use muse_wire::net::neighbourhood;
/// let ip = |text: &str| text.parse().expect("an address");
/// assert_eq!(neighbourhood(ip("192.0.2.1")), neighbourhood(ip("192.0.2.200")));
/// assert_ne!(neighbourhood(ip("192.0.2.1")), neighbourhood(ip("192.0.3.1")));
/// ```
pub fn neighbourhood(ip: IpAddr) -> u64 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits() >> 8) | 0xFFFF << 24,
        IpAddr::V6(ip) => (ip.to_bits() >> 80) as u64,
    }
}
