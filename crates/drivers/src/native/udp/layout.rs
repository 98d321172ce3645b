//! Addresses and control messages in the layout of Linux's system calls, written and read as bytes in safe code.

use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use libc::c_int;
use muse_wire::Ecn;

use super::address;

/// A socket address as the kernel lays it out.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Name(pub(super) [u8; NAME_BYTES]);

impl Name {
    #[inline]
    pub(super) fn write(&mut self, to: SocketAddr, ipv6: bool) -> usize {
        match address::for_socket(to, ipv6) {
            SocketAddr::V4(v4) => {
                self.0[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                self.0[2..4].copy_from_slice(&v4.port().to_be_bytes());
                self.0[4..8].copy_from_slice(&v4.ip().octets());
                self.0[8..16].fill(0);
                mem::size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                self.0[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                self.0[2..4].copy_from_slice(&v6.port().to_be_bytes());
                self.0[4..8].fill(0);
                self.0[8..24].copy_from_slice(&v6.ip().octets());
                self.0[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                mem::size_of::<libc::sockaddr_in6>()
            }
        }
    }

    #[inline]
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let bytes = &self.0;
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        match c_int::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
            libc::AF_INET => {
                let ip = Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]);
                Some(SocketAddr::from((ip, port)))
            }
            libc::AF_INET6 => {
                let octets: [u8; 16] = bytes[8..24].try_into().ok()?;
                let scope = u32::from_ne_bytes(bytes[24..28].try_into().ok()?);
                let v6 = SocketAddrV6::new(Ipv6Addr::from(octets), port, 0, scope);
                Some(address::normal(SocketAddr::V6(v6)))
            }
            _ => None,
        }
    }
}

impl Default for Name {
    fn default() -> Self {
        Self([0; NAME_BYTES])
    }
}

/// Control messages as the kernel lays them out: a length of machine size, level, kind, value, padding.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; CONTROL_BYTES]);

impl Control {
    /// Writes a message at `at` and says where the next one goes. Two of them fit, and there are never more.
    #[inline]
    pub(super) fn write(&mut self, at: usize, level: c_int, kind: c_int, value: &[u8]) -> usize {
        let end = at + CONTROL_HEADER + value.len();
        let bytes = &mut self.0[at..];
        bytes[..WORD].copy_from_slice(&(CONTROL_HEADER + value.len()).to_ne_bytes());
        bytes[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        bytes[WORD + 4..CONTROL_HEADER].copy_from_slice(&kind.to_ne_bytes());
        bytes[CONTROL_HEADER..CONTROL_HEADER + value.len()].copy_from_slice(value);
        end.next_multiple_of(WORD)
    }

    /// The congestion mark and the size of coalesced datagrams, from the first `len` bytes.
    #[inline]
    pub(super) fn parse(&self, len: usize) -> (Ecn, Option<usize>) {
        let (mut ecn, mut segment) = (Ecn::NotCapable, None);
        let mut rest = &self.0[..len.min(CONTROL_BYTES)];
        while let Some((head, tail)) = rest.split_first_chunk::<CONTROL_HEADER>() {
            let (size, kinds) = head.split_at(WORD);
            let size = usize::from_ne_bytes(size.try_into().unwrap_or_default());
            let (level, kind) = kinds.split_at(4);
            let level = c_int::from_ne_bytes(level.try_into().unwrap_or_default());
            let kind = c_int::from_ne_bytes(kind.try_into().unwrap_or_default());
            let Some(value) = size
                .checked_sub(CONTROL_HEADER)
                .and_then(|len| tail.get(..len))
            else {
                break;
            };
            match (level, kind) {
                // One byte for IPv4, an integer for IPv6; the mark is in the lowest byte of either.
                (libc::IPPROTO_IP, libc::IP_TOS) => {
                    ecn = Ecn::from_bits(value.first().copied().unwrap_or(0));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    ecn = Ecn::from_bits(integer(value) as u8)
                }
                (libc::SOL_UDP, libc::UDP_GRO) => segment = usize::try_from(integer(value)).ok(),
                _ => {}
            }
            rest = rest.get(size.next_multiple_of(WORD)..).unwrap_or_default();
        }
        (ecn, segment)
    }
}

impl Default for Control {
    fn default() -> Self {
        Self([0; CONTROL_BYTES])
    }
}

fn integer(value: &[u8]) -> c_int {
    value
        .first_chunk()
        .map_or(0, |bytes| c_int::from_ne_bytes(*bytes))
}

/// A `sockaddr_in6`, rounded up.
pub(super) const NAME_BYTES: usize = 32;
/// Room for three messages: both marks and the segment size.
pub(super) const CONTROL_BYTES: usize = 96;
const WORD: usize = mem::size_of::<usize>();
const CONTROL_HEADER: usize = WORD + 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernel_layout() {
        let scoped = SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 1, 2, 3, 4), 40_000, 0, 7);
        let mut name = Name::default();
        for address in [
            SocketAddr::V6(scoped),
            SocketAddr::from(([192, 0, 2, 1], 53)),
        ] {
            assert_eq!(
                name.write(address, true),
                mem::size_of::<libc::sockaddr_in6>()
            );
            assert_eq!(name.address(), Some(address));
        }
        let plain = SocketAddr::from(([192, 0, 2, 1], 53));
        assert_eq!(
            name.write(plain, false),
            mem::size_of::<libc::sockaddr_in>()
        );
        assert_eq!(name.address(), Some(plain));
        assert_eq!(Name::default().address(), None);
    }

    #[test]
    fn control_messages_match_the_c_macros_and_come_back() {
        let mut control = Control::default();
        let mark = 2_i32.to_ne_bytes();
        let at = control.write(0, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &mark);
        // A C header and an integer, padded: what CMSG_SPACE says.
        let padded = (mem::size_of::<libc::cmsghdr>() + 4).next_multiple_of(WORD);
        assert_eq!(at, padded);
        let end = control.write(at, libc::SOL_UDP, libc::UDP_GRO, &1_200_i32.to_ne_bytes());
        assert_eq!(control.parse(end), (Ecn::Capable0, Some(1_200)));
        assert_eq!(control.parse(at), (Ecn::Capable0, None));
        assert_eq!(control.parse(0), (Ecn::NotCapable, None));
        assert_eq!(control.parse(usize::MAX).1, Some(1_200));
    }

    #[test]
    fn broken_control_messages_end_the_parse() {
        for size in [0, 1, CONTROL_HEADER - 1, CONTROL_BYTES + 1, usize::MAX] {
            let mut control = Control::default();
            control.write(0, libc::IPPROTO_IP, libc::IP_TOS, &[3, 0, 0, 0]);
            control.0[..WORD].copy_from_slice(&size.to_ne_bytes());
            assert_eq!(control.parse(CONTROL_BYTES), (Ecn::NotCapable, None));
        }
    }
}
