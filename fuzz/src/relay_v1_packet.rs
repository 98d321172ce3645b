//! Relay v1's headers: what parses is written again alike.

use muse_relay_v1::packet::{
    DATAGRAM_HEADER, DATAGRAM_MAX, DatagramHeader, STREAM_HEADER, StreamHeader,
};

use crate::{Bound, Target, no_setup};

/// One packet.
pub const TARGET: Target = Target {
    name: "relay_v1_packet",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 4_096,
        per_byte: 1,
    },
    steps: Bound {
        base: 1_000,
        per_byte: 4,
    },
};

/// Runs the bytes.
fn run(data: &[u8]) {
    if let Some(&bytes) = data.first_chunk::<STREAM_HEADER>() {
        match StreamHeader::parse(bytes) {
            Ok(header) => assert_eq!(header.emit(), bytes),
            Err(_) => assert_ne!(bytes[..2], bytes[3..]),
        }
    }
    if let Ok((header, behind)) = DatagramHeader::parse(data) {
        assert!(data.len() <= DATAGRAM_MAX);
        assert_eq!(header.emit(behind.len() as u16), data[..DATAGRAM_HEADER]);
    }
}
