//! IPv4 on an IPv6 socket: mapped addresses on the socket, plain ones towards the machine.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The address as machines know it: IPv4 is always plain IPv4, so that a peer has one address only.
#[inline]
pub(super) fn normal(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => SocketAddr::V6(SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id())),
        },
    }
}

/// The address as the socket wants it. IPv6 on an IPv4 socket stays what it is and the kernel refuses it.
#[inline]
pub(super) fn for_socket(address: SocketAddr, ipv6: bool) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(v4) if ipv6 => {
            let mapped: Ipv6Addr = v4.to_ipv6_mapped();
            SocketAddr::from((mapped, address.port()))
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_addresses_come_back_plain() {
        let plain = SocketAddr::from(([192, 0, 2, 7], 7_000));
        let mapped = for_socket(plain, true);
        assert!(mapped.is_ipv6());
        assert_eq!(normal(mapped), plain);
        assert_eq!(for_socket(plain, false), plain);
    }

    #[test]
    fn a_scope_is_kept_and_a_flow_label_is_not() {
        let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let with_flow = SocketAddr::V6(SocketAddrV6::new(ip, 7, 99, 3));
        assert_eq!(
            normal(with_flow),
            SocketAddr::V6(SocketAddrV6::new(ip, 7, 0, 3))
        );
    }
}
