//! The decoders of relay v2: packets, codes, invitations, questions and answers on a local network.

use muse_relay::packet::{PACKET_LEN_MAX, Packet, is_relay_packet};
use muse_relay::{Invitation, LegId, RoomCode, lan};

use crate::{Bound, Target, no_setup};

/// One packet, code or invitation.
pub const TARGET: Target = Target {
    name: "relay_v2_packet",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_384,
        per_byte: 16,
    },
    steps: Bound {
        base: 20_000,
        per_byte: 100,
    },
};

/// A packet that can be read is written back as the same bytes.
fn run(data: &[u8]) {
    if let Some(packet) = Packet::parse(data) {
        assert!(is_relay_packet(data));
        let mut buffer = [0; PACKET_LEN_MAX];
        let len = packet.emit(&mut buffer);
        assert_eq!(Packet::parse(&buffer[..len]), Some(packet));
    }
    if let Some(id) = LegId::of_data(data) {
        assert_eq!(Packet::parse(data), None);
        assert_eq!(id.data_header()[..], data[..8]);
        assert_eq!(LegId::from_virtual(id.virtual_address()), Some(id));
    }
    let _ = lan::parse_question(data);
    if let Some((_, advert)) = lan::parse_answer(data) {
        assert!(advert.name.len() <= lan::NAME_MAX);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(code) = text.parse::<RoomCode>() {
        assert_eq!(code.to_string().parse(), Ok(code));
    }
    for text in [text.to_owned(), format!("muse2:{text}")] {
        if let Ok(invitation) = text.parse::<Invitation>() {
            assert_eq!(invitation.to_string().parse(), Ok(invitation));
        }
    }
}
