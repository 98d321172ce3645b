//! MUSE-RP datagrams and ChannelInfos: what parses is written again alike.

use muse_rp::packet::{ChannelInfo, Packet};

/// Runs the bytes.
pub fn run(data: &[u8]) {
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
