//! Captures in the pcap format, so that packet analysers and independent decoders can read a simulation's traffic.
//!
//! Records are raw IP packets (link type 101) with true UDP checksums, at virtual time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::packet_bytes::{self, LINK_TYPE_RAW_IP, SNAP_LEN};
use crate::{Sighting, Stage};

/// A capture of a network's traffic, filled by a tap. Clones share the same bytes.
#[derive(Clone, Debug)]
pub struct Capture {
    wants: Wants,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Capture {
    /// Most bytes that a capture holds; what comes after is not recorded.
    pub const BYTES_MAX: usize = 256 << 20;

    /// Of all that is sent, as it leaves its sender: what is lost afterwards is in it too.
    pub fn of_sent() -> Self {
        Self::new(Wants::Sent)
    }

    /// Of all that is delivered, as it reaches its receiver.
    pub fn of_delivered() -> Self {
        Self::new(Wants::Delivered)
    }

    /// Returns the closure to give to [`Network::set_tap`](crate::Network::set_tap).
    pub fn watcher(&self) -> impl FnMut(Sighting<'_>) + Send + 'static {
        let capture = self.clone();
        move |sighting| capture.record(&sighting)
    }

    /// Records a sighting, if it is of the wanted stage. For taps that do more than capture.
    pub fn record(&self, sighting: &Sighting<'_>) {
        let wanted = match self.wants {
            Wants::Sent => sighting.stage == Stage::Sent,
            Wants::Delivered => sighting.stage == Stage::Delivered,
        };
        let mut bytes = self.lock();
        if wanted && bytes.len() + sighting.payload.len() + RECORD_OVERHEAD_MAX <= Self::BYTES_MAX {
            write_record(&mut bytes, sighting);
        }
    }

    /// The file's content so far.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    fn new(wants: Wants) -> Self {
        let mut bytes = Vec::new();
        bytes.extend(0xA1B2_C3D4u32.to_le_bytes());
        bytes.extend([2, 0, 4, 0]);
        bytes.extend([0; 8]);
        bytes.extend(SNAP_LEN.to_le_bytes());
        bytes.extend(LINK_TYPE_RAW_IP.to_le_bytes());
        Self {
            wants,
            bytes: Arc::new(Mutex::new(bytes)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        // Records are appended whole, so a watcher that panicked leaves nothing half-written that matters.
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
enum Wants {
    Sent,
    Delivered,
}

fn write_record(out: &mut Vec<u8>, sighting: &Sighting<'_>) {
    let Some(ip_len) = packet_bytes::ip_len(sighting.from, sighting.to, sighting.payload) else {
        return;
    };
    let micros = sighting.at.as_micros();
    for word in [
        (micros / 1_000_000) as u32,
        (micros % 1_000_000) as u32,
        ip_len,
        ip_len,
    ] {
        out.extend(word.to_le_bytes());
    }
    packet_bytes::write(
        out,
        sighting.from,
        sighting.to,
        sighting.ecn,
        sighting.payload,
    );
}

/// Record header, IPv6 and UDP headers.
const RECORD_OVERHEAD_MAX: usize = 16 + 48;

#[cfg(test)]
mod tests {
    use muse_wire::{Ecn, Instant};

    use super::*;
    use crate::packet_bytes::{UDP_PROTOCOL, fold, sum};

    fn record(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        let capture = Capture::of_delivered();
        let sighting = Sighting {
            at: Instant::from_micros(3_000_007),
            stage: Stage::Delivered,
            from: from.parse().expect("an address"),
            to: to.parse().expect("an address"),
            ecn: Ecn::Congested,
            payload,
        };
        capture.record(&Sighting {
            stage: Stage::Sent,
            ..sighting
        });
        capture.record(&sighting);
        capture.to_bytes()[24..].to_vec()
    }

    /// Checksums over data that contains them come out as all ones.
    fn assert_checksums(record: &[u8], ip_header: usize, addresses: std::ops::Range<usize>) {
        let packet = &record[16..];
        let udp = &packet[ip_header..];
        let pseudo = sum(&packet[addresses]) + u64::from(UDP_PROTOCOL) + udp.len() as u64;
        assert_eq!(fold(pseudo + sum(udp)), 0xFFFF, "UDP");
    }

    #[test]
    fn a_version_4_record_is_a_valid_packet() {
        let record = record("192.0.2.1:258", "192.0.2.2:772", b"odd");
        assert_eq!(
            record[..16],
            [3, 0, 0, 0, 7, 0, 0, 0, 31, 0, 0, 0, 31, 0, 0, 0]
        );
        assert_eq!(fold(sum(&record[16..36])), 0xFFFF, "IP");
        assert_eq!((record[17], &record[36..42]), (3, &[1, 2, 3, 4, 0, 11][..]));
        assert_checksums(&record, 20, 12..20);
        assert_eq!(&record[44..], b"odd");
    }

    #[test]
    fn a_version_6_record_is_a_valid_packet() {
        let record = record("[2001:db8::1]:1", "[2001:db8::2]:2", b"even");
        assert_eq!(record.len(), 16 + 48 + 4);
        assert_eq!(record[16..20], [0x60, 0x30, 0, 0]);
        assert_checksums(&record, 40, 8..40);
    }

    #[test]
    fn what_cannot_be_a_packet_is_left_out() {
        assert!(record("192.0.2.1:1", "[2001:db8::2]:2", b"mixed").is_empty());
    }
}
