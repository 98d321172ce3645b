//! The bytes of an IP packet with a UDP datagram in it, as captures hold them: true lengths and checksums.

use std::net::{IpAddr, SocketAddr};

use muse_wire::Ecn;

/// Bytes of the whole packet; `None` for what cannot be a packet: too long, or with one address of each kind.
pub(crate) fn ip_len(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Option<u32> {
    let udp_len = u16::try_from(payload.len() + UDP_HEADER).ok()?;
    let ip_header = match (from, to) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => 20,
        (SocketAddr::V6(_), SocketAddr::V6(_)) => 40,
        _ => return None,
    };
    Some(ip_header + u32::from(udp_len))
}

/// Appends the packet. Only for what [`ip_len`] takes.
pub(crate) fn write(out: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, ecn: Ecn, payload: &[u8]) {
    let udp_len = (payload.len() + UDP_HEADER) as u16;
    if from.is_ipv4() {
        let start = out.len();
        out.extend([0x45, ecn.bits()]);
        out.extend((udp_len.saturating_add(20)).to_be_bytes());
        out.extend([0, 0, 0x40, 0, 64, UDP_PROTOCOL, 0, 0]);
        extend_ip(out, from.ip());
        extend_ip(out, to.ip());
        let checksum = !fold(sum(&out[start..]));
        out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        out.extend([0x60, ecn.bits() << 4, 0, 0]);
        out.extend(udp_len.to_be_bytes());
        out.extend([UDP_PROTOCOL, 64]);
        extend_ip(out, from.ip());
        extend_ip(out, to.ip());
    }
    write_udp(out, from, to, payload, udp_len);
}

fn write_udp(out: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, payload: &[u8], udp_len: u16) {
    let start = out.len();
    // The addresses stand right before the UDP header in both versions of IP.
    let addresses = if from.is_ipv4() { 8 } else { 32 };
    let pseudo = sum(&out[start - addresses..]);
    out.extend(from.port().to_be_bytes());
    out.extend(to.port().to_be_bytes());
    out.extend(udp_len.to_be_bytes());
    out.extend([0, 0]);
    out.extend(payload);
    let total = pseudo + u64::from(UDP_PROTOCOL) + u64::from(udp_len) + sum(&out[start..]);
    // Zero would mean that there is none.
    let checksum = match !fold(total) {
        0 => 0xFFFF,
        checksum => checksum,
    };
    out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
}

fn extend_ip(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => out.extend(address.octets()),
        IpAddr::V6(address) => out.extend(address.octets()),
    }
}

/// Sum of the 16-bit words, the last padded with zero.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    bytes.chunks(2).map(word).sum()
}

/// The internet checksum's sum with its carries added back in (RFC 1071), not complemented.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// Longest packet that a capture says it holds.
pub(crate) const SNAP_LEN: u32 = 262_144;
/// The name in a capture for packets that begin with an IP header.
pub(crate) const LINK_TYPE_RAW_IP: u32 = 101;
pub(crate) const UDP_PROTOCOL: u8 = 17;
const UDP_HEADER: usize = 8;
