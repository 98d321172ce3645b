//! A browser's connection over TCP: whatever it sends in place of HTTP and WebSocket frames, it gets an answer of bounded length, and
//! the game loop gets datagrams of at most their length and number.

use muse_web_fuzz::{DATAGRAMS_MAX, converse};

use crate::{Bound, Target, no_setup};

/// A connection of a browser.
pub const TARGET: Target = Target {
    name: "web_link",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 200_000,
        per_byte: 16,
    },
    // A byte may be a piece of its own.
    steps: Bound {
        base: 400_000,
        per_byte: 1_000,
    },
};

/// The first byte says whether a good request comes first; the others are what the browser sends.
fn run(data: &[u8]) {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    // Pieces as short as a byte, as TCP may deliver them.
    let piece = 1 << (first >> 4);
    let conversation = match first & 1 {
        0 => converse(&[bytes], piece),
        _ => converse(&[UPGRADE.as_bytes(), bytes], piece),
    };
    assert!(conversation.datagrams.len() <= DATAGRAMS_MAX);
    for datagram in &conversation.datagrams {
        assert!((1..=1_200).contains(&datagram.len()));
    }
    let received: usize = conversation.datagrams.iter().map(Vec::len).sum();
    assert!(received <= bytes.len(), "nothing is made up");
    // Pongs and a closing frame are no longer than what they answer.
    assert!(conversation.answer.len() <= ANSWER_MAX + bytes.len());
}

const UPGRADE: &str = "GET /muse HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// The longest answer to a request.
const ANSWER_MAX: usize = 512;
