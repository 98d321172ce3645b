//! MUSE-RP datagrams and ChannelInfos: what parses is written again alike.

use muse_rp::packet::{ChannelInfo, Packet};

use crate::{Bound, Target, no_setup};

/// One datagram.
pub const TARGET: Target = Target {
    name: "rp_packet",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 4_096,
        per_byte: 4,
    },
    steps: Bound {
        base: 1_000,
        per_byte: 10,
    },
};

/// Runs the bytes.
fn run(data: &[u8]) {
    if let Ok(packet) = Packet::parse(data) {
        let mut written = vec![0; data.len()];
        assert_eq!(packet.emit(&mut written), Ok(data.len()));
        assert_eq!(written, data);
        assert!(packet.emit(&mut written[1..]).is_err());
        if let Ok(info) = ChannelInfo::parse(packet.payload) {
            assert_eq!(info.bytes(), packet.payload);
        }
    }
    if let Ok(info) = ChannelInfo::parse(data) {
        assert_eq!(info.bytes(), data);
    }
}
