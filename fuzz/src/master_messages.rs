//! The messages on a master's WebSockets: what decodes encodes to something that decodes alike, and the links of a player and of a
//! game server survive whatever a master says, in any order.

use muse_master_client::messages::{self, FromMaster, FromServer, ToMaster, ToServer};
use muse_master_client::{AccountId, PlayerLink, PlayerLinkConfig, Preferences, ServerLink};
use muse_wire::{Duration, Instant};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Bound, Target, no_setup};

/// Messages of players, game servers and masters.
pub const TARGET: Target = Target {
    name: "master_messages",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 65_536,
        per_byte: 64,
    },
    steps: Bound {
        base: 50_000,
        per_byte: 400,
    },
};

/// The bytes are lines of text, each a message.
fn run(data: &[u8]) {
    let mut now = Instant::from_secs(1);
    let mut player = PlayerLink::new(PlayerLinkConfig::default(), 1);
    player.start(now);
    let mut server = ServerLink::new("192.0.2.1:7000", "00");
    server.start(now);
    for line in data.split(|byte| *byte == b'\n').take(LINES_MAX) {
        let Ok(text) = std::str::from_utf8(line) else {
            continue;
        };
        // To the master.
        round_trip::<ToMaster>(text);
        round_trip::<FromServer>(text);
        // From the master.
        if let Some(message) = round_trip::<FromMaster>(text) {
            player.handle_message(now, message);
        }
        if let Some(message) = round_trip::<ToServer>(text) {
            server.handle_message(now, message);
        }
        act(&mut player, &mut server, now, line.first().copied());
        now += Duration::from_millis(line.len() as u64 * 37);
        player.handle_timeout(now);
        server.handle_timeout(now);
        while player.poll_action().is_some() || player.poll_event().is_some() {}
        while server.poll_action().is_some() || server.poll_event().is_some() {}
        assert!(player.poll_timeout().is_none_or(|due| due > now));
    }
}

/// Acts as a game does meanwhile, chosen by the first letter of a line that is no message.
fn act(player: &mut PlayerLink, server: &mut ServerLink, now: Instant, choice: Option<u8>) {
    match choice {
        Some(b'c') => player.handle_connected(now),
        Some(b'l') => player.handle_lost(now),
        Some(b'q') => player.queue(Preferences::default()),
        Some(b'o') => player.leave_queue(),
        Some(b'g') => player.handle_game_connected(now),
        Some(b'x') => player.handle_game_lost(now, "lost"),
        Some(b'm') => player.leave_match(),
        Some(b'C') => server.handle_connected(now),
        Some(b'L') => server.handle_lost(now),
        Some(b'P') => server.ask_profile(AccountId(1), "game"),
        Some(b'S') => server.save_progress(AccountId(1), "game", serde_json::Value::Null),
        Some(b'D') => server.drain(),
        _ => {}
    }
}

fn round_trip<T: Serialize + DeserializeOwned>(text: &str) -> Option<T> {
    let message: T = messages::decode(text).ok()?;
    let written = messages::encode(&message);
    // Numbers with a fraction may be rounded once, and missing fields be filled in; after that nothing changes.
    if let Ok(again) = messages::decode::<T>(&written) {
        assert_eq!(messages::encode(&again).len(), written.len());
    } else {
        assert!(written.len() > messages::MESSAGE_LEN_MAX, "{written}");
    }
    Some(message)
}

const LINES_MAX: usize = 256;
