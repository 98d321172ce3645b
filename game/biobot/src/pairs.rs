//! Two packets of the netcode in one datagram (OA-19).
//!
//! A client simulates 50 ticks a second, and each gives a packet; what the transport adds to a datagram is almost as much as such a packet
//! itself. So two travel together, and half of the inputs wait for a tick: the server sees how they come, and the clock follows.
//!
//! ```text
//! length of the first packet 1 (0: there is only one), the first packet, the second packet
//! ```

/// Packets that wait for a second one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    held: Vec<u8>,
}

impl Pairs {
    /// Whether one waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Keeps a packet for the next. Says whether it could.
    pub(crate) fn hold(&mut self, packet: &[u8]) -> bool {
        if self.is_waiting() || packet.is_empty() || packet.len() > FIRST_BYTES_MAX {
            return false;
        }
        self.held.extend_from_slice(packet);
        true
    }

    /// Writes what waits and this packet to the front of `buffer`, and says how long that is.
    pub(crate) fn join(&mut self, packet: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let len = 1 + self.held.len() + packet.len();
        let (first, rest) = buffer.get_mut(..len)?.split_first_mut()?;
        *first = self.held.len() as u8;
        let (before, after) = rest.split_at_mut(self.held.len());
        before.copy_from_slice(&self.held);
        after.copy_from_slice(packet);
        self.held.clear();
        Some(len)
    }
}

/// The packets of a datagram; the first may be empty.
pub(crate) fn split(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = datagram.split_first()?;
    rest.split_at_checked(usize::from(*first))
}

/// The longest packet that waits.
const FIRST_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_apart_again() {
        let mut pairs = Pairs::default();
        let mut buffer = [0; 64];
        assert_eq!(pairs.join(b"alone", &mut buffer), Some(6));
        assert_eq!(split(&buffer[..6]), Some((&b""[..], &b"alone"[..])));
        assert!(pairs.hold(b"first") && !pairs.hold(b"third"));
        let len = pairs.join(b"second", &mut buffer).expect("room");
        assert_eq!(split(&buffer[..len]), Some((&b"first"[..], &b"second"[..])));
        assert!(!pairs.hold(&[0; 256]));
        assert_eq!(split(&[9, 1, 2]), None);
        assert_eq!(split(&[]), None);
    }
}
